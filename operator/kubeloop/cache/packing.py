"""Objects as few bytes as possible: deflate with a dictionary that the objects themselves provide.

The objects of one kind are nearly the same text: the same keys, the same defaults. Compressed against one
of their own, a WebApp with status comes to about 160 bytes and a fully defaulted Deployment to about 300, for
5 to 15 µs to pack and 2 to 5 µs to unpack (bench/cache_memory.py, bench/decode.py). Packed objects are also
nothing to the garbage collector, which would otherwise walk millions of small containers.
"""

from __future__ import annotations

import threading
import zlib

_LEARN_AT = (1, 64, 4096)
"""Which object, counted from the first, becomes a dictionary: the very first one, and later ones because an
object that was only just created has no status yet and makes a poor model."""

_LEVEL = 1
_MEMORY = 5
_LARGEST_WINDOW = 15


class Packer:
    """Packs and unpacks the bytes of similar texts. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards learning
        self._packed = 0
        # Only ever appended to, so that reading needs no lock. What a copy of a fresh compressor saves is
        # feeding it the dictionary each time. The first has none: for texts that come before any other.
        self._compressors = [_compressor(_LARGEST_WINDOW, b"")]
        self._decompressors = [zlib.decompressobj(-_LARGEST_WINDOW)]

    def pack(self, text: bytes) -> bytes:
        """The packed form: one byte naming the dictionary, then raw deflate."""
        self._packed += 1  # a lost count does no harm
        if self._packed in _LEARN_AT:
            self._learn(text)
        number = len(self._compressors) - 1
        compressor = self._compressors[number].copy()
        return b"%c" % number + compressor.compress(text) + compressor.flush()

    def unpack(self, packed: bytes) -> bytes:
        """The text again."""
        decompressor = self._decompressors[packed[0]].copy()
        return decompressor.decompress(packed[1:])

    def _learn(self, text: bytes) -> None:
        sample = text[-32_768:]
        # A window for the dictionary and one text: copying a larger one costs more than compressing.
        window = min(_LARGEST_WINDOW, max(9, (2 * len(sample)).bit_length()))
        with self._lock:
            # The decompressor first: whoever sees the new compressor must find its counterpart.
            self._decompressors.append(zlib.decompressobj(-window, zdict=sample))
            self._compressors.append(_compressor(window, sample))


def _compressor(window: int, dictionary: bytes) -> zlib._Compress:
    """Raw deflate: no header, no checksum, as memory is not a wire."""
    return zlib.compressobj(_LEVEL, zlib.DEFLATED, -window, _MEMORY, zlib.Z_DEFAULT_STRATEGY, dictionary)

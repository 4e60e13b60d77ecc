"""Packing is lossless, whoever packs what and when."""

from __future__ import annotations

import threading

from hypothesis import given, settings
from hypothesis import strategies as st

from kubeloop.cache.packing import Packer


@given(st.lists(st.binary(max_size=300), max_size=80))
@settings(max_examples=50, deadline=None)
def test_what_was_packed_can_be_read_back_whatever_was_packed_since(texts: list[bytes]) -> None:
    packer = Packer()
    packed = [packer.pack(text) for text in texts]
    assert [packer.unpack(one) for one in packed] == texts


def test_similar_texts_become_small() -> None:
    packer = Packer()
    text = b'{"metadata":{"name":"app-%d"},"spec":{"image":"nginx:1.27","replicas":3,"template":{"a":"b"}}}'
    sizes = [len(packer.pack(text % number)) for number in range(200)]
    assert max(sizes[1:]) < 20


def test_threads_may_pack_at_once() -> None:
    packer = Packer()
    wrong: list[bytes] = []

    def work(seed: int) -> None:
        for number in range(300):
            text = b"object %d of %d " % (number, seed) * 5
            if packer.unpack(packer.pack(text)) != text:
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []

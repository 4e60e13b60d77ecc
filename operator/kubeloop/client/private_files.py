"""Certificates and keys that came as text, written where the TLS library can read them."""

from __future__ import annotations

import os
import weakref
from pathlib import Path

_folders: set[Path] = set()


def remove_all() -> None:
    """For those who end the process by force: nothing private may stay behind."""
    for folder in list(_folders):
        _remove(folder)


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
    _folders.discard(folder)


class PrivateFiles:
    """A folder that only this user can enter, made when it is needed and gone with this object."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def write(self, name: str, content: bytes) -> str:
        """A new file with `content` (mode 0600); gives its path."""
        if self._folder is None:
            # Imported late, as shutil above: most processes never need them, and they take their time.
            import tempfile

            self._folder = Path(tempfile.mkdtemp(prefix="kubeloop-"))
            weakref.finalize(self, _remove, self._folder)
            _folders.add(self._folder)
        path = self._folder / name
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        return str(path)

    def remove(self, name: str) -> None:
        """Delete a file that may not be there."""
        if self._folder is not None:
            (self._folder / name).unlink(missing_ok=True)

"""Keys on disk, and that none stays there."""

from __future__ import annotations

from pathlib import Path

from kubeloop.client import private_files
from kubeloop.client.private_files import PrivateFiles, remove_all


def test_files_go_with_their_owner_and_are_forgotten() -> None:
    files = PrivateFiles()
    path = Path(files.write("key.pem", b"secret"))
    assert path.read_bytes() == b"secret"
    assert path.parent in private_files._folders
    del files
    assert not path.parent.exists()
    assert path.parent not in private_files._folders


def test_a_forced_end_leaves_nothing_behind() -> None:
    files = PrivateFiles()
    path = Path(files.write("key.pem", b"secret"))
    remove_all()
    assert not path.parent.exists()
    assert path.parent not in private_files._folders
    del files  # its own removal finds nothing, and says nothing

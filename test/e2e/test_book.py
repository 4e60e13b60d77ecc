"""The Book tutorial's session, with real kubectl in the other terminal (R4.1 to R4.12)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "operator" / "book_controller.py"


class Session:
    """The book controller in its terminal."""

    def __init__(self, cluster: Any) -> None:
        self.lines: Queue[str] = Queue()
        self.child = subprocess.Popen(
            [sys.executable, str(SOURCE), "--namespace", cluster.namespace],
            env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, name="book-output")
        self._reader.start()

    def _read(self) -> None:
        assert self.child.stdout is not None
        with self.child.stdout as output:
            for line in output:
                self.lines.put(line.rstrip("\n"))

    def next(self, timeout: float = 20.0) -> str:
        try:
            return self.lines.get(timeout=timeout)
        except Empty:
            pytest.fail("the book controller said nothing")

    def stop(self) -> int:
        self.child.terminate()
        code = self.child.wait(10)
        self._reader.join(5)
        return code


@pytest.fixture
def session(cluster: Any) -> Iterator[Session]:
    made = Session(cluster)
    yield made
    made.stop()


def test_the_tutorials_session(cluster: Any, session: Session) -> None:
    """R4.3, R4.8, R4.10, R4.11."""
    sample = ROOT / "config" / "samples" / "moby-dick.yaml"
    namespace = ("-n", cluster.namespace)
    book = yaml.safe_load(sample.read_text())
    book["metadata"].pop("namespace", None)
    cluster.kubectl(*namespace, "create", "-f", "-", input=json.dumps(book))
    assert session.next() == "Added a book moby-dick with title 'Moby Dick'"
    cluster.kubectl(*namespace, "label", "book", "moby-dick", "shelf=whales")
    assert session.next() == "another event"
    cluster.kubectl(*namespace, "delete", "book", "moby-dick")
    assert session.next() == "Deleted a book moby-dick"
    assert session.stop() == 0
    assert session.lines.empty()


def test_books_of_other_namespaces_are_none_of_its_business(cluster: Any, session: Session) -> None:
    """R4.5."""
    book = {
        "apiVersion": "example.technosophos.com/v1",
        "kind": "Book",
        "metadata": {"name": "elsewhere", "namespace": "default"},
        "spec": {"title": "Elsewhere"},
    }
    cluster.kubectl("-n", "default", "create", "-f", "-", input=json.dumps(book))
    cluster.apply({**book, "metadata": {"name": "here"}, "spec": {"title": "Здесь 📖", "authors": []}})

    assert session.next() == "Added a book here with title 'Здесь 📖'"
    cluster.kubectl("-n", "default", "delete", "book", "elsewhere")


def test_a_book_without_title_is_refused_by_the_server(cluster: Any) -> None:
    """R4.4."""
    done = cluster.kubectl(
        "-n", cluster.namespace, "create", "-f", "-", check=False,
        input='{"apiVersion":"example.technosophos.com/v1","kind":"Book","metadata":{"name":"b"},"spec":{}}',
    )  # fmt: skip

    assert done.returncode != 0
    assert "title" in done.stderr


def test_without_kubeconfig_and_cluster_it_says_so(tmp_path: Path) -> None:
    """R4.5."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KUBE")}
    done = subprocess.run(
        [sys.executable, str(SOURCE)],
        env={**environment, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 2
    assert "kubeconfig failed to load" in done.stderr
    assert "Traceback" not in done.stderr


def test_it_is_at_most_sixty_lines() -> None:
    """R4.1."""
    assert len(SOURCE.read_text().splitlines()) <= 60

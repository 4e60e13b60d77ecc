"""hack/controlplane: where its programs come from, its fake kubelet, and (with `-m e2e`) its life and end."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HACK = Path(__file__).resolve().parents[2] / "hack"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports one of the package's modules; the scripts run with hack/ on their path."""
    monkeypatch.syspath_prepend(str(HACK))
    return lambda name: importlib.import_module(f"controlplane.{name}")


class TestBinaries:
    @pytest.fixture
    def binaries(
        self, load: Callable[[str], ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> ModuleType:
        """With an empty cache, and without $KUBEBUILDER_ASSETS."""
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
        return load("binaries")

    def put(self, folder: Path, *names: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).touch(0o755)

    def test_nothing_is_found_in_an_empty_cache_and_the_error_says_how_to_build(
        self, binaries: ModuleType
    ) -> None:
        assert binaries.find("etcd") is None
        with pytest.raises(binaries.ControlPlaneError, match=r"hack/controlplane\.sh build"):
            binaries.need("etcd")

    def test_the_users_own_programs_come_first(
        self, binaries: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.put(binaries.cache_folder(binaries.CONTROL_PLANE), "etcd", "kube-apiserver")
        self.put(tmp_path / "own", "etcd", "kube-apiserver")
        monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "own"))

        assert binaries.find("etcd") == tmp_path / "own" / "etcd"
        assert binaries.find("kube-controller-manager") is None
        binaries.build()  # has nothing to do

    def test_a_folder_without_the_programs_is_an_error_at_once(
        self, binaries: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
        with pytest.raises(binaries.ControlPlaneError, match=r"KUBEBUILDER_ASSETS=.* has no program etcd"):
            binaries.build()

    def test_without_go_the_error_names_both_ways_out(
        self, binaries: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(binaries.ControlPlaneError, match=r"(?s)go 1\.26.*KUBEBUILDER_ASSETS"):
            binaries.build()

    def test_a_go_that_is_too_old_is_named(
        self, binaries: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go = tmp_path / "go"
        go.write_text("#!/bin/sh\necho 'go: go.mod requires go >= 1.26.0 (running go 1.22)' >&2; exit 1\n")
        go.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        with pytest.raises(binaries.ControlPlaneError, match=r"running go 1\.22"):
            binaries.build()

    def test_a_failed_build_leaves_nothing_that_counts_as_built(
        self, binaries: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go = tmp_path / "go"
        go.write_text(
            '#!/bin/sh\n[ "$1" = env ] && exit 0\ntouch "$GOBIN/server"; echo no such module; exit 1\n'
        )
        go.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        with pytest.raises(binaries.ControlPlaneError, match="no such module"):
            binaries.build()

        assert binaries.find("etcd") is None
        target = binaries.cache_folder(binaries.CONTROL_PLANE)
        assert [path.name for path in target.parent.iterdir()] == [f"{target.name}.lock"]

    def test_a_build_is_installed_whole_and_etcd_gets_its_name(
        self, binaries: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go = tmp_path / "go"
        go.write_text(
            '#!/bin/sh\n[ "$1" = env ] && exit 0\ncd "$GOBIN"\n'
            "for p in server kube-apiserver kube-controller-manager kube-scheduler; do\n"
            "  echo >$p; chmod +x $p\ndone\n"
        )
        go.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        binaries.build()

        assert binaries.need("etcd").parent == binaries.cache_folder(binaries.CONTROL_PLANE)

    def test_the_version_stamped_in_is_the_one_that_is_built(self, binaries: ModuleType) -> None:
        assert f"k8s.io/kubernetes v{binaries.KUBERNETES}" in (HACK / "controlplane" / "go.mod").read_text()


class TestFakeKubelet:
    def pod(self, **metadata: Any) -> dict[str, Any]:
        return {"metadata": {"name": "p", "namespace": "n", **metadata}, "status": {"phase": "Pending"}}

    def test_a_pending_pod_becomes_ready(self, load: Callable[[str], ModuleType]) -> None:
        status = load("kubelet").ready_status(self.pod(), NOW)

        assert status["phase"] == "Running"
        assert {c["type"]: c["status"] for c in status["conditions"]}["Ready"] == "True"
        assert status["startTime"] == "2026-01-02T03:04:05Z"

    def test_others_are_left_alone(self, load: Callable[[str], ModuleType]) -> None:
        kubelet = load("kubelet")
        running = {**self.pod(), "status": {"phase": "Running"}}
        never = self.pod(annotations={kubelet.UNREADY_ANNOTATION: ""})
        going = self.pod(deletionTimestamp="2026-01-02T03:04:05Z")

        assert [kubelet.ready_status(pod, NOW) for pod in (running, never, going)] == [None, None, None]


class TestCredentials:
    def test_keys_are_for_their_owner_only_and_each_user_has_a_token(
        self, load: Callable[[str], ModuleType], tmp_path: Path
    ) -> None:
        module = load("credentials")
        made = module.create(tmp_path / "pki")
        lines = made.token_file.read_text().splitlines()

        assert (tmp_path / "pki").stat().st_mode & 0o777 == 0o700
        assert len(lines) == len(set(made.tokens.values())) == len(module.USERS)
        assert f'{made.tokens["admin"]},admin,admin,"system:masters"' in lines
        assert made.server_certificate.read_text().startswith("-----BEGIN CERTIFICATE-----")

    def test_a_kubeconfig_is_for_its_owner_only(
        self, load: Callable[[str], ModuleType], tmp_path: Path
    ) -> None:
        path = tmp_path / "kubeconfig"
        load("credentials").write_kubeconfig(
            path, server="https://127.0.0.1:1", ca=tmp_path / "ca", user="admin", token="t"
        )

        assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.e2e
class TestLife:
    def start(self, folder: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "controlplane", "run"],
            env={**os.environ, "PYTHONPATH": str(HACK), "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def processes(self, folder: Path) -> list[str]:
        listing = subprocess.run(["ps", "-ww", "-eo", "args="], capture_output=True, text=True, check=True)
        return [line for line in listing.stdout.splitlines() if f"{folder}/controlplane-" in line]

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_stops_and_removes_everything(self, number: signal.Signals, tmp_path: Path) -> None:
        with self.start(tmp_path) as child:
            assert child.stdout
            assert child.stdout.readline().startswith("export KUBECONFIG=")
            assert len(self.processes(tmp_path)) >= 2
            child.send_signal(number)

        assert child.returncode == 0
        assert not self.processes(tmp_path)
        assert not list(tmp_path.iterdir())

    def test_when_its_owner_is_killed_the_processes_end_too(self, tmp_path: Path) -> None:
        with self.start(tmp_path) as child:
            assert child.stdout
            child.stdout.readline()
            child.kill()
        deadline, pause = time.monotonic() + 10, threading.Event()
        while self.processes(tmp_path) and time.monotonic() < deadline:
            pause.wait(0.1)

        assert not self.processes(tmp_path)

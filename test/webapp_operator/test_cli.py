"""The command line, as far as it goes without a cluster."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from webapp_operator import cli
from webapp_operator.flags import parse


def run(*args: str) -> int:
    try:
        return cli.main(args)
    except SystemExit as end:
        return int(end.code or 0)


def test_help_names_every_option_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    text = capsys.readouterr().out
    for option in (
        "--kubeconfig",
        "--context",
        "--namespace",
        "--workers",
        "--once",
        "--dry-run",
        "--log-format",
        "--log-level",
        "--version",
        "crd",
        "exit codes",
    ):
        assert option in text


def test_crd_prints_what_kubectl_apply_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """R0.5."""
    assert run("crd") == 0
    crd = yaml.safe_load(capsys.readouterr().out)

    assert crd["kind"] == "CustomResourceDefinition"
    assert crd["metadata"]["name"] == "webapps.example.com"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        pytest.param(["--workers", "0"], "from 1 to 256", id="no workers"),
        pytest.param(["--workers", "1e9"], "from 1 to 256", id="no number"),
        pytest.param(["--namespace", "No_Such"], "not a namespace", id="no namespace name"),
        pytest.param(["--namespace", ""], "not a namespace", id="empty namespace"),
        pytest.param(["--dry-run"], "--once", id="dry run of an endless operator"),
        pytest.param(["--log-format", "xml"], "invalid choice", id="unknown format"),
        pytest.param(["frobnicate"], "invalid choice", id="unknown command"),
    ],
)
def test_unusable_arguments_are_refused_with_a_reason(
    args: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*args) == cli.EXIT_USAGE
    assert says in capsys.readouterr().err


def test_a_missing_kubeconfig_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """R4.5's words."""
    missing = tmp_path / "no-such-file"

    assert run("--kubeconfig", str(missing), "--once") == cli.EXIT_USAGE
    error = capsys.readouterr().err
    assert "kubeconfig failed to load" in error
    assert str(missing) in error
    assert "Traceback" not in error


def test_a_kubeconfig_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = tmp_path / "config"
    broken.write_text("clusters: [")

    assert run("--kubeconfig", str(broken), "--once") == cli.EXIT_USAGE
    assert "kubeconfig failed to load" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "code"), [([], 0), (["--once"], 1)])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_anything_was_started_ends_the_process_quietly(
    words: list[str], code: int, number: signal.Signals
) -> None:
    """A pass that did not take place did not converge."""
    program = (
        "import os, webapp_operator.flags as flags\n"
        f"flags.parse = lambda *_: os.kill(os.getpid(), {int(number)})\n"
        f"from webapp_operator.cli import main\nmain({words!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    file = tmp_path / "config"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {}}
    content = {"current-context": "c", "clusters": [cluster], "contexts": [context], "users": [user]}
    file.write_text(yaml.safe_dump(content))
    return file


@pytest.mark.parametrize(
    ("args", "environ", "says"),
    [
        (["--tracing"], {}, "--tracing needs"),
        ([], {"WEBAPP_OPERATOR_TRACING": "true"}, "--tracing needs"),
        (
            [],
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"},
            "OTEL_EXPORTER_OTLP_ENDPOINT (unless --no-tracing) needs",
        ),
    ],
)
@pytest.mark.parametrize("mode", [["--once"], []], ids=["once", "running"])
def test_tracing_that_cannot_be_says_what_to_install(
    kubeconfig: Path,
    args: list[str],
    environ: dict[str, str],
    says: str,
    mode: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)

    assert run("--kubeconfig", str(kubeconfig), *mode, *args) == cli.EXIT_USAGE
    error = capsys.readouterr().err
    assert f"webapp-operator: {says} OpenTelemetry, which is not installed" in error
    assert "pip install 'webapp-operator[tracing]' opentelemetry-exporter-otlp-proto-http" in error


@pytest.mark.parametrize(
    ("args", "environ"),
    [
        ([], {}),
        (["--no-tracing"], {"OTEL_TRACES_EXPORTER": "console"}),
        (["--tracing"], {"OTEL_SDK_DISABLED": "true"}),
    ],
)
def test_tracing_is_off_unless_asked_for_and_where_it_is_switched_off(
    args: list[str], environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert cli._tracing(parse(args, {})) is None

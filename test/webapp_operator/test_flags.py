"""Flags, the same as environment variables, and the rules between them."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from kubeloop.client import ClusterConfig
from kubeloop.manager import LOST_LEASE_EXIT
from webapp_operator import cli, process
from webapp_operator.flags import PREFIX, build_parser, parse


def refused(capsys: pytest.CaptureFixture[str], *args: str, **environ: str) -> str:
    with pytest.raises(SystemExit) as end:
        parse(args, {PREFIX + name: value for name, value in environ.items()})
    assert end.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "rule"),
    [
        pytest.param(
            ["--lease-duration=10"],
            "lease duration must be longer than the renew deadline: 10 s is not more than 10 s",
            id="duration and deadline",
        ),
        pytest.param(
            ["--retry-period=9"],
            "renew deadline must be longer than 1.2 times the retry period",
            id="deadline and period",
        ),
        pytest.param(["--lease-duration=15.5"], "whole seconds", id="half seconds"),
        pytest.param(["--retry-period=0"], "greater than 0", id="no time"),
        pytest.param(["--resync=nan"], "greater than 0", id="no number"),
        pytest.param(["--resync=1e9"], "between 1 second and a week", id="resync for ever"),
        pytest.param(["--shutdown-timeout=-1"], "greater than 0", id="negative"),
        pytest.param(["--health-bind-address=8081"], "host:port", id="a port alone"),
        pytest.param(["--metrics-bind-address=::1:80"], "brackets", id="IPv6 without brackets"),
        pytest.param(
            ["--metrics-secure", "--metrics-bind-address=0"], "switched off", id="protected nothing"
        ),
        pytest.param(["--metrics-cert-dir=/x"], "--metrics-secure", id="a certificate for plain HTTP"),
        pytest.param(
            ["--metrics-secure", "--metrics-bind-address=:1", "--health-bind-address=:1"],
            "another --metrics-bind-address",
            id="probes behind HTTPS",
        ),
        pytest.param(["--once", "--leader-elect"], "no election", id="a pass that elects"),
        pytest.param(["--lease-name=Upper"], "not the name of an object", id="no name"),
        pytest.param(["--lease-namespace=a.b"], "not a namespace", id="no namespace"),
        pytest.param(["--name"], "unrecognized", id="an abbreviation"),
    ],
)
def test_what_cannot_be_is_refused_with_the_rule(
    capsys: pytest.CaptureFixture[str], args: list[str], rule: str
) -> None:
    assert rule in refused(capsys, *args)


def test_the_environment_stands_for_flags_and_the_command_line_wins() -> None:
    environ = {
        PREFIX + "WORKERS": "3",
        PREFIX + "LEADER_ELECT": "false",
        PREFIX + "METRICS_SECURE": "TRUE",
        PREFIX + "NAMESPACE": "a, b",
        PREFIX + "RESYNC": "60",
        PREFIX + "LOG_LEVEL": "debug",
        PREFIX + "DRY_RUN": "false",
        PREFIX + "LEASE_NAME": " ",
        PREFIX + "METRICS_SERVICE_HOST": "10.0.0.1",  # what a Service of our name would put there
    }
    args = parse(["--workers=5"], environ)

    assert (args.workers, args.leader_elect, args.metrics_secure, args.namespace) == (
        5,
        False,
        True,
        ["a", "b"],
    )
    assert (args.resync, args.log_level, args.dry_run, args.lease_name) == (
        60,
        "debug",
        False,
        "webapp-operator",
    )
    assert parse(["--namespace=c"], environ).namespace == ["c"]
    assert parse(["--leader-elect"], environ).leader_elect is True


def test_every_flag_can_be_set_by_the_environment() -> None:
    """Values that differ from each default."""
    samples = {"log_level": "error", "log_format": "json", "health_bind_address": ":1", "lease_name": "x"}
    for action in build_parser()._actions:
        if not action.option_strings or action.dest in ("help", "version"):
            continue
        value = samples.get(action.dest, "true" if action.nargs == 0 else "9")
        environ = {PREFIX + action.dest.upper(): value}
        extra = {
            "dry_run": ["--once"],
            "retry_period": ["--renew-deadline=14"],
            "lease_duration": ["--renew-deadline=8"],
            "metrics_bind_address": [],
            "metrics_cert_dir": ["--metrics-secure"],
        }
        if action.dest == "metrics_bind_address":
            environ[PREFIX + "METRICS_BIND_ADDRESS"] = ":9"
        got = getattr(parse(extra.get(action.dest, []), environ), action.dest)

        assert got != action.default, action.dest


@pytest.mark.parametrize(
    ("name", "value"), [("WORKERS", "many"), ("LEADER_ELECT", "maybe"), ("NAMESPACE", "a,No")]
)
def test_a_bad_variable_is_named(capsys: pytest.CaptureFixture[str], name: str, value: str) -> None:
    assert f"environment variable {PREFIX}{name}: " in refused(capsys, **{name: value})


def test_rules_hold_between_variables_and_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert "renew deadline" in refused(capsys, "--renew-deadline=20", LEASE_DURATION="18")


def test_help_names_every_flag_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"], {})
    text = capsys.readouterr().out

    for action in build_parser()._actions:
        assert not action.option_strings or action.option_strings[-1] in text
        assert action.help or action.dest == "command"
    for code in (0, 1, 2, LOST_LEASE_EXIT):
        assert re.search(rf"^  {code}  ", text, re.MULTILINE)
    assert PREFIX in text


class TestLeaseNamespace:
    def config(self, namespace: str | None) -> ClusterConfig:
        return ClusterConfig("https://server", "test", namespace, None, None)  # type: ignore[arg-type]

    def test_the_flag_beats_the_configuration(self) -> None:
        args = parse(["--lease-namespace=mine"], {})

        assert process._lease_namespace(self.config("theirs"), args) == "mine"
        assert process._lease_namespace(self.config("theirs"), parse([], {})) == "theirs"

    def test_without_any_namespace_there_is_no_start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("POD_NAMESPACE", raising=False)
        with pytest.raises(process.SetupError, match="--lease-namespace"):
            process._lease_namespace(self.config(None), parse([], {}))


def test_a_taken_address_that_was_asked_for_ends_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "kubeloop.observe.configure_logging", lambda **_: None
    )  # the tests' logging stays as it is
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: a,"
        " contexts: [{name: a, context: {cluster: a, user: a}}],"
        " clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: a, user: {}}]}"
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code = cli.main(
            [f"--kubeconfig={kubeconfig}", f"--health-bind-address={address}", "--metrics-bind-address=0"]
        )

    assert code == 2
    assert f"--health-bind-address: cannot listen on {address}" in capsys.readouterr().err

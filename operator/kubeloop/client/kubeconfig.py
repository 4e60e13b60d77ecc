"""Reading kubeconfig files as kubectl does: several files, contexts, paths relative to their file.

The files are merged here, since the kubernetes package lets the last file's current-context win where
kubectl takes the first one's, and looks for a user's files beside the cluster's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubeloop.client.errors import ConfigError

_SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}
_PATHS = {
    "clusters": ("certificate-authority",),
    "users": ("client-certificate", "client-key", "tokenFile"),
    "contexts": (),
}


@dataclass(frozen=True, slots=True)
class Selected:
    """One context of a kubeconfig with what it refers to; file paths in it are absolute."""

    context: str
    cluster: Mapping[str, Any]
    user: Mapping[str, Any]
    namespace: str | None
    user_base: str
    """Folder of the file that the user stands in."""


def candidates(explicit: str | None, environ: Mapping[str, str]) -> list[str]:
    """The files to read, in order: the one given, else $KUBECONFIG's, else ~/.kube/config."""
    if explicit:
        return [explicit]
    listed = [path for path in environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    home = environ.get("HOME") or os.path.expanduser("~")
    return listed or [os.path.join(home, ".kube", "config")]


def read(paths: list[str], context: str | None) -> Selected:
    """Merge those of `paths` that exist and select `context`, by default the current one.

    The first file to say something wins. Raises `ConfigError` for unreadable or malformed files and for
    names that lead nowhere.
    """
    merged: dict[str, dict[str, tuple[Mapping[str, Any], str]]] = {section: {} for section in _SECTIONS}
    current = ""
    for path in paths:
        path = os.path.expanduser(path)
        if not os.path.exists(path):
            continue
        content = _load(path)
        current = current or str(content.get("current-context") or "")
        base = os.path.dirname(os.path.abspath(path))
        for section, entry in _SECTIONS.items():
            for name, value in _entries(content, section, entry, path):
                merged[section].setdefault(name, (_absolute(value, _PATHS[section], base), base))
    chosen = context or current
    if not chosen:
        raise ConfigError(f"{', '.join(paths)}: no current-context is set and none was asked for")
    if chosen not in merged["contexts"]:
        known = ", ".join(sorted(merged["contexts"])) or "none at all"
        raise ConfigError(f"{', '.join(paths)}: there is no context {chosen!r}, only: {known}")
    selected = merged["contexts"][chosen][0]
    cluster, _ = _referred(merged["clusters"], selected, "cluster", chosen, paths)
    user: Mapping[str, Any] = {}
    user_base = ""
    if selected.get("user"):
        user, user_base = _referred(merged["users"], selected, "user", chosen, paths)
    if not cluster.get("server"):
        raise ConfigError(f"{', '.join(paths)}: the cluster of context {chosen!r} has no server")
    return Selected(chosen, cluster, user, selected.get("namespace") or None, user_base)


def _referred(
    entries: Mapping[str, tuple[Mapping[str, Any], str]],
    context: Mapping[str, Any],
    kind: str,
    name: str,
    paths: list[str],
) -> tuple[Mapping[str, Any], str]:
    wanted = context.get(kind)
    if not isinstance(wanted, str) or wanted not in entries:
        raise ConfigError(
            f"{', '.join(paths)}: context {name!r} refers to {kind} {wanted!r}, which is not there"
        )
    return entries[wanted]


def _load(path: str) -> Mapping[str, Any]:
    import yaml  # only programs that read a kubeconfig pay for it

    try:
        content = yaml.safe_load(Path(path).read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        # Only where it is wrong: the text around may be a key.
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}: not YAML{where}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: not a kubeconfig, but a {type(content).__name__}")
    return content


def _entries(
    content: Mapping[str, Any], section: str, entry: str, path: str
) -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []
    listed = content.get(section) or []
    if not isinstance(listed, list):
        raise ConfigError(f"{path}: {section} is not a list")
    for item in listed:
        name = item.get("name") if isinstance(item, dict) else None
        value = item.get(entry) or {} if isinstance(item, dict) else None
        if not isinstance(name, str) or not isinstance(value, dict):
            raise ConfigError(f"{path}: an entry of {section} has no name or no proper {entry}")
        found.append((name, value))
    return found


def _absolute(value: dict[str, Any], keys: tuple[str, ...], base: str) -> Mapping[str, Any]:
    paths = {key: os.path.join(base, str(value[key])) for key in keys if value.get(key)}
    return {**value, **paths}

"""What is on every target before a script is played: its users, and the CRDs that scripts share."""

import json
from typing import Any

from .play import CRDS, Target
from .script import Json, Shared
from .transports import Transport
from .variables import MISSING, ScriptError, lookup

USERS = ("admin", "operator", "user", "anonymous", "stranger")


def install(target: Target, shared: Shared) -> None:
    """Create the objects that every script may rely on, and wait until their kinds are served."""
    transport = target.transport("admin")
    for obj in shared.fixtures:
        path = CRDS if obj["kind"] == "CustomResourceDefinition" else None
        if path is None:
            raise ScriptError(f"fixtures are CustomResourceDefinitions, not {obj['kind']}")
        _must(transport, "POST", path, obj)
    for obj in shared.fixtures:
        spec = obj["spec"]
        served = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}?limit=1"
        for path, wanted in (
            (f"{CRDS}/{obj['metadata']['name']}", "status.conditions[type=Established].status"),
            (served, "metadata.resourceVersion"),
        ):
            for _ in range(400):
                answer = _must(transport, "GET", path, None, allowed=(404,))
                if lookup(answer, wanted) not in (MISSING, "False"):
                    break
                target.idle()
            else:
                raise ScriptError(f"{path} is not served")


def _must(transport: Transport, method: str, path: str, obj: Json, *, allowed: tuple[int, ...] = ()) -> Any:
    headers = {"content-type": "application/json"}
    body = json.dumps(obj).encode() if obj is not None else None
    response = transport.request(method, path, headers=headers, body=body, timeout=30.0)
    if response.status >= 400 and response.status not in allowed:
        raise ScriptError(f"{method} {path}: {response.status} {response.body.decode(errors='replace')}")
    return json.loads(response.body)

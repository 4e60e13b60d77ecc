"""Ask a real API server the questions of the sandbox's unit tests again, and write down its answers.

    python hack/openapi/record.py --server https://127.0.0.1:6443 --token-file TOKEN --ca CA.crt

Rewrites `answers.json` of test/kubeloop/sandbox/builtins and .../crd: each entry's body is posted to its path
as a dry run with strict field validation. `git diff` then shows where the server has changed its mind.
"""

from __future__ import annotations

import argparse
import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[2] / "test/kubeloop/sandbox"


def post(server: str, path: str, body: Any, token: str, ca: str | None) -> Any:
    request = urllib.request.Request(
        f"{server}{path}?dryRun=All&fieldValidation=Strict",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    context = ssl.create_default_context(cafile=ca)
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)


def answer(got: dict[str, Any]) -> dict[str, Any]:
    """What is compared: a failure's code, text and causes; an object without its metadata but its owners."""
    if got.get("kind") == "Status":
        causes = (got.get("details") or {}).get("causes", [])
        return {"code": got["code"], "message": got["message"], "causes": causes}
    result = {key: value for key, value in got.items() if key not in ("metadata", "apiVersion", "kind")}
    result["managedFields"] = [e["fieldsV1"] for e in got["metadata"].get("managedFields", [])]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token-file", required=True)
    parser.add_argument("--ca")
    args = parser.parse_args()
    token = Path(args.token_file).read_text().strip()
    for name in ("builtins", "crd"):
        path = TESTS / name / "answers.json"
        cases = json.loads(path.read_text())
        for case in cases:
            case["answer"] = answer(post(args.server, case["path"], case["body"], token, args.ca))
        lines = (json.dumps(case, ensure_ascii=False, sort_keys=True) for case in cases)
        path.write_text("[\n" + ",\n".join(lines) + "\n]\n")
        print(f"{path}: {len(cases)} answers")


if __name__ == "__main__":
    main()

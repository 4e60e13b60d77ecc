#!/usr/bin/env bash
# Replays the request scripts of test/conformance on a real control plane and shows every golden that drifted.
# hack/conformance.sh [replay | record [--new]] [area/name …]   (--help for more)
source "$(dirname "$0")/lib.sh"
use_venv

hack/controlplane.sh build >/dev/null
[[ $# -gt 0 ]] || set -- replay
PYTHONPATH=hack exec python -m conformance "$@"

#!/usr/bin/env bash
# Replays the request scripts of test/conformance on a real control plane and shows every golden that drifted.
# hack/conformance.sh [replay | record [--new] | sandbox | generate | docs] [area/name …]   (--help for more)
source "$(dirname "$0")/lib.sh"
use_venv

[[ $# -gt 0 ]] || set -- replay
case $1 in
    record | replay | generate) hack/controlplane.sh build >/dev/null ;;
esac
PYTHONPATH=hack exec python -m conformance "$@"

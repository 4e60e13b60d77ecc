#!/usr/bin/env bash
# A real control plane on loopback: hack/controlplane.sh build | run | up --dir D | down --dir D   (--help for more)
source "$(dirname "$0")/lib.sh"
use_venv
PYTHONPATH=hack exec python -m controlplane "$@"

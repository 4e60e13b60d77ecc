#!/usr/bin/env bash
# Runs the embedded API server until Ctrl-C; prints the export line for kubectl.
source "$(dirname "$0")/lib.sh"
use_venv
mkdir -p .sandbox
exec python -m kubeloop.sandbox --kubeconfig "$PWD/.sandbox/kubeconfig" \
    --apply config/crd/webapps.yaml --apply config/crd/books.yaml "$@"

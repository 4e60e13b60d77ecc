#!/usr/bin/env bash
# The end-to-end tests, the same that the sandbox passes in `make test`, on a real control plane.
source "$(dirname "$0")/lib.sh"
use_venv

hack/controlplane.sh build >/dev/null
status=0
pytest -m e2e test/e2e "$@" || status=$?
((status != 5)) || die "no end-to-end test ran"
exit "$status"

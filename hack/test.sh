#!/usr/bin/env bash
# Everything that needs no cluster: lint, types, layers, generated files, tests.
# Goes on after a failure, so that one run shows all; the last line says how it ended.
source "$(dirname "$0")/lib.sh"
use_venv

tests() { # pytest itself fails (exit code 5) when it finds no test
    pytest -n "${PYTEST_WORKERS:-2}" "$@"
}

step "lint" hack/lint.sh
step "types" hack/types.sh
step "import layers" hack/layers.sh
step "generated CRDs" hack/crds.sh --check
step "tests" tests "$@"
summary

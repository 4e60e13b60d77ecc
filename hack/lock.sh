#!/usr/bin/env bash
# Resolves the dependencies in setup.cfg into hash-pinned locks for every supported Python and platform.
# Usage: hack/lock.sh [--upgrade | --upgrade-package NAME]   (without: keeps what still fits)
source "$(dirname "$0")/lib.sh"
use_venv

compile() { # OUTPUT ARGUMENT...
    local output=$1
    shift
    say "Locking $output"
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-header --output-file "$output" "$@"
}

# What the image holds: the operator, and what makes up a certificate for its metrics.
compile hack/requirements/runtime.txt setup.cfg --extra tls "$@"
# The same versions of what the operator runs on, plus the tools.
compile hack/requirements/dev.txt setup.cfg --extra tls --extra tracing --extra sandbox --extra dev \
    --constraint hack/requirements/runtime.txt "$@"
# Mutation tests, in an environment of their own: what the tests of the cores need, and mutmut.
compile hack/requirements/mutation.txt setup.cfg --extra sandbox --constraint hack/requirements/dev.txt - "$@" \
    <<<$'hypothesis\nmutmut >= 3.8\npytest\npytest-timeout'
# What turns the sources into a wheel without an isolated build, which would not be hash-checked.
compile hack/requirements/build.txt --constraint hack/requirements/dev.txt - "$@" <<<"setuptools"

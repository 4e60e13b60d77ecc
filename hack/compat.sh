#!/usr/bin/env bash
# The sandbox, judged by unmodified clients: kubectl in two minor versions, kopf, client-go and kube-rs programs.
# Builds them into the user's cache (the first time: minutes), then runs test/compat. What needs Go or Cargo is
# left out, and said so, where there is none; COMPAT_ALL=1 makes that a failure. Arguments go to pytest.
source "$(dirname "$0")/lib.sh"
use_venv

export KUBELOOP_COMPAT=${KUBELOOP_COMPAT:-${XDG_CACHE_HOME:-$HOME/.cache}/kubeloop/compat}
mkdir -p "$KUBELOOP_COMPAT"
sources=$PWD/test/compat
left_out=()

# A toolchain's own cache decides what there is to do.
built_with() { # TOOL NAME COMMAND...
    local tool=$1 name=$2
    shift 2
    if ! command -v "$tool" >/dev/null; then
        left_out+=("$name")
        return
    fi
    say "── $name: $tool build"
    "$@"
}
build_client_go() {
    mkdir -p "$KUBELOOP_COMPAT/client_go"
    (cd "$sources/client_go" && go build -trimpath -buildvcs=false -o "$KUBELOOP_COMPAT/client_go/greeter" .)
}
build_kube_rs() {
    (cd "$sources/kube_rs" && CARGO_TARGET_DIR=$KUBELOOP_COMPAT/kube_rs cargo build --quiet)
}

environment "$KUBELOOP_COMPAT/kubectl" "$sources/kubectl/requirements.txt"
environment "$KUBELOOP_COMPAT/kopf" "$sources/kopf_operator/requirements.txt"
built_with go client_go build_client_go
built_with cargo kube_rs build_kube_rs

names=""
for name in ${left_out[@]+"${left_out[@]}"}; do
    [[ -z ${COMPAT_ALL:-} ]] || die "no toolchain to build the $name program with"
    say "── $name: left out, there is no toolchain to build it with"
    names+="${names:+ and }not $name"
done
pytest -n "${PYTEST_WORKERS:-2}" -m compat ${names:+-k "$names"} test/compat "$@"

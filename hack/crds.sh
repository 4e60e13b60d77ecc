#!/usr/bin/env bash
# Writes the CRD manifests from the classes in the code; with --check only compares, and fails on a difference.
source "$(dirname "$0")/lib.sh"
use_venv

check=${1:-}
[[ -z $check || $check == --check ]] || die "usage: hack/crds.sh [--check]"
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
webapp-operator crd >"$fresh/webapps.yaml"
book-controller crd >"$fresh/books.yaml"
for file in "$fresh"/*.yaml; do
    kept=config/crd/$(basename "$file")
    if [[ -z $check ]]; then
        cp "$file" "$kept"
        say "wrote $kept"
    elif ! diff -u "$kept" "$file" >&2; then
        die "$kept is not what the code says: run make crds"
    fi
done

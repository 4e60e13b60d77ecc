#!/usr/bin/env bash
# Mutation tests of the decision cores (docs/mutation.md): the code is changed in one place at a time, and the
# core's own tests must notice. Fails below 90 % or when a mutant survives that hack/mutation.yaml does not
# explain. Usage: hack/mutation.sh [CORE …]   (without: all of them, about half an hour)
source "$(dirname "$0")/lib.sh"
use_venv

environment "$PWD/.mutation/venv" hack/requirements/mutation.txt
exec python hack/mutation.py "$@"

#!/usr/bin/env bash
# Plays the story of one WebApp on the embedded API server; exit code 0 only if every step was observed.
source "$(dirname "$0")/lib.sh"
use_venv
exec python hack/demo.py "$@"

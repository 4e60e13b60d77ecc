#!/usr/bin/env bash
# Rewrites the Python sources: safe fixes of the lint rules (import order and the like), then the format.
source "$(dirname "$0")/lib.sh"
use_venv
ruff check --fix-only --quiet
ruff format

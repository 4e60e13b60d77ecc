#!/usr/bin/env bash
# The import layers (setup.cfg, [importlinter]): who may import whom.
source "$(dirname "$0")/lib.sh"
use_venv
lint-imports 2>&1 | sed -n '/^Contracts/,$p' >&2

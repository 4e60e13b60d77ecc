#!/usr/bin/env bash
# Rules and format of the Python sources, and shellcheck over the scripts. Fails on any finding.
source "$(dirname "$0")/lib.sh"
use_venv

mapfile -t scripts < <(git ls-files --cached --others --exclude-standard -- '*.sh' .ci/run 2>/dev/null || ls hack/*.sh .ci/run)
ruff check
ruff format --check
shellcheck "${scripts[@]}"

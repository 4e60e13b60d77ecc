#!/usr/bin/env bash
# Rules and format of the Python sources, and shellcheck over the scripts. Fails on any finding.
source "$(dirname "$0")/lib.sh"
use_venv

mapfile -t scripts < <(git ls-files --cached --others --exclude-standard -- '*.sh' .ci/run 2>/dev/null || ls hack/*.sh .ci/run)
status=0
ruff check || status=1
ruff format --check || status=1
shellcheck "${scripts[@]}" || status=1
exit "$status"

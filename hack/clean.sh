#!/usr/bin/env bash
# Removes what the other targets make in this checkout. The control plane's cache is elsewhere and stays.
source "$(dirname "$0")/lib.sh"
rm -rf .venv .venv.lock .mutation .sandbox .hypothesis .*_cache build dist operator/*.egg-info
find operator test hack bench -name __pycache__ -type d -prune -exec rm -rf {} +
say "clean"

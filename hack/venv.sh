#!/usr/bin/env bash
# Makes or refreshes .venv from the hash-pinned lock; does nothing when it is up to date.
source "$(dirname "$0")/lib.sh"
use_venv

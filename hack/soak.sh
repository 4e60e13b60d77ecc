#!/usr/bin/env bash
# An hour of each core behaviour, on a simulated clock and under seeded faults, with many seeds.
# hack/soak.sh [workqueue | cache | election | webapps …] [--seeds N] [--seed N]   (--help for more)
source "$(dirname "$0")/lib.sh"
use_venv
PYTHONPATH=hack:operator PYTHONHASHSEED=0 exec python -m soak "$@"

# shellcheck shell=bash
# What the scripts in this folder share; source it, don't run it:  source "$(dirname "$0")/lib.sh"
# Sets strict mode, goes to the repository root, and keeps other Python set-ups out of the way.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset PYTHONPATH PYTHONHOME CDPATH
export PYTHONNOUSERSITE=1

red='' green='' plain=''
if [[ -t 2 && -z ${NO_COLOR:-} ]]; then
    red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
fi

# Progress and results for people go to stderr: stdout belongs to what a script produces.
say() { printf '%s\n' "$*" >&2; }
die() {
    say "${red}error:${plain} $*"
    exit 1
}

# The first Python that is new enough: $PYTHON if set, else python3, else a newer one beside it.
find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python3.14 python; do
        # Run it: a name on PATH may be a shim whose Python is not there.
        if "$candidate" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$candidate"
            return
        fi
        [[ $candidate != "${PYTHON:-}" ]] || die "PYTHON=$PYTHON is not a Python 3.11 or newer"
    done
    die "no Python 3.11 or newer found (looked for python3, python3.13, python3.12, python3.11);" \
        "install one, or name it: PYTHON=/path/to/python3 make …"
}

# One check of several: runs COMMAND and goes on when it fails; `summary` lists them all and fails if one did.
steps=() failed=0
step() { # NAME COMMAND...
    local name=$1 start=$SECONDS outcome="${green}ok${plain}"
    shift
    say "── $name"
    if "$@" >&2; then :; else
        outcome="${red}FAILED${plain}"
        failed=$((failed + 1))
    fi
    steps+=("$(printf '%-22s %s (%d s)' "$name" "$outcome" $((SECONDS - start)))")
}
summary() {
    say "──"
    printf '%s\n' "${steps[@]}" >&2
    if ((failed)); then
        die "$failed of ${#steps[@]} checks failed"
    fi
    say "${green}all ${#steps[@]} checks passed${plain}"
}

# Makes .venv when it is missing or its inputs have changed, then puts its tools first on PATH.
use_venv() {
    local python
    python=$(find_python)
    "$python" -I hack/venv.py
    export PATH="$PWD/.venv/bin:$PATH"
}

# A virtual environment beside .venv, for tools that must not share it: from a hash-pinned lock, made anew when the
# lock (or the Python) is another. After use_venv.
environment() { # FOLDER LOCK
    local folder=$1 lock=$2 stamp
    stamp=$(python -c 'import sys; print(sys.version)' | cat - "$lock" | cksum)
    [[ ! -f $folder/.made-from || $(<"$folder/.made-from") != "$stamp" ]] || return 0
    say "── ${folder##*/}: installing"
    rm -rf "$folder"
    uv venv --quiet --python "$(command -v python)" "$folder"
    uv pip install --quiet --require-hashes --python "$folder/bin/python" --requirement "$lock"
    printf '%s' "$stamp" >"$folder/.made-from"
}

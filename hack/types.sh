#!/usr/bin/env bash
# mypy --strict over everything that is shipped, over the scripts of this folder, and over the benchmarks.
source "$(dirname "$0")/lib.sh"
use_venv

# By name: operator/__init__.py itself is the standard library's module, which mypy knows better.
packages=()
for folder in operator/*/; do
    [[ ! -f $folder/__init__.py ]] || packages+=(-p "$(basename "$folder")")
done
for file in operator/*.py; do
    [[ $file == operator/__*__.py ]] || packages+=(-m "$(basename "$file" .py)")
done
mypy "${packages[@]}"
# The scripts run with hack/ on their path.
MYPYPATH=hack mypy hack operator/__main__.py
# So do the benchmarks, on bench/; one of them uses hack/ too.
MYPYPATH=operator:hack:bench mypy bench

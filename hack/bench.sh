#!/usr/bin/env bash
# Measures what bench/ measures: one line a figure, with its target. Arguments pick some: hack/bench.sh decode idle
# A figure over its target is marked and is no failure, as machines differ; a benchmark that breaks is one.
source "$(dirname "$0")/lib.sh"
use_venv

# The quick ones first; the last takes minutes.
all=(decode cache_memory workqueue reconcile imports http_client sandbox idle)
[[ $# -gt 0 ]] || set -- "${all[@]}"
for name; do
    [[ " ${all[*]} " == *" $name "* ]] || die "there is no benchmark $name, only: ${all[*]}"
done

broken=()
printf '%-36s %10s %-13s %10s\n' FIGURE MEASURED '' TARGET
for name; do
    python "bench/$name.py" || broken+=("$name")
done
((${#broken[@]} == 0)) || die "broken: ${broken[*]}"

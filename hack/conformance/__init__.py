"""Request scripts, the answers of a real kube-apiserver to them, and the comparison with a server under test.

Contract: a script (YAML, `test/conformance/scripts/<area>/<name>.yaml`) is a list of requests in a namespace
of its own. Played on a target it gives answers; normalised (`normalise`), they hold nothing that differs from
run to run. The normalised answers of a real control plane are kept as goldens
(`test/conformance/goldens/<area>/<name>.json`); whatever else is to count as an API server has to give the
same, save for what `test/conformance/differences.yaml` lists with a reason.

`python -m conformance` (PYTHONPATH=hack) records, replays, generates scripts and writes the tables of
docs/conformance.md.
"""

# Each target is a short script under hack/; this file only names and explains them.
# Plain `make` prints the targets: what stands behind `##` on their lines.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory --no-builtin-rules
# `make -j test lint`: the scripts share .venv and two cores, so they take turns.
.NOTPARALLEL:

##@ Try it
.PHONY: demo
demo: ## Play the whole story on the embedded API server, each step measured (30 s)
	@hack/demo.sh

.PHONY: sandbox
sandbox: ## Keep the embedded API server running for kubectl and operators
	@hack/sandbox.sh

.PHONY: controlplane
controlplane: ## Keep a real control plane running (built once from Go modules); ARGS=--kwok adds nodes
	@hack/controlplane.sh run $(ARGS)

##@ Check it
.PHONY: test
test: ## Lint, types, import layers, generated files and every test that needs no cluster
	@hack/test.sh

.PHONY: test-e2e
test-e2e: ## The end-to-end tests on the real control plane; ARGS="-k name" picks some
	@hack/test-e2e.sh $(ARGS)

.PHONY: test-compat
test-compat: ## Unmodified clients judge the sandbox: kubectl (two minors), kopf, client-go, kube-rs
	@hack/compat.sh $(ARGS)

.PHONY: lint
lint: ## ruff (rules and format) and shellcheck
	@hack/lint.sh

.PHONY: types
types: ## mypy --strict
	@hack/types.sh

.PHONY: layers
layers: ## The import layers of docs/architecture.md
	@hack/layers.sh

.PHONY: mutation
mutation: ## Change the decision cores one line at a time: do their tests notice? ARGS=queue for one core
	@hack/mutation.sh $(ARGS)

.PHONY: soak
soak: ## An hour of queue, cache, election and operator on a simulated clock, with many seeds; ARGS="--seed 17"
	@hack/soak.sh $(ARGS)

.PHONY: conformance
conformance: ## Compare the recorded answers that judge the sandbox with a real control plane's
	@hack/conformance.sh $(ARGS)

.PHONY: bench
bench: ## Speed and memory, one line a figure with its target (6 min); ARGS="decode idle" picks some
	@hack/bench.sh $(ARGS)

##@ Change it
.PHONY: venv
venv: ## Make or refresh .venv (every other target does so by itself)
	@hack/venv.sh

.PHONY: format
format: ## Rewrite the Python sources in house style
	@hack/format.sh

.PHONY: lock
lock: ## Resolve setup.cfg's dependencies into the locks; ARGS=--upgrade takes the newest
	@hack/lock.sh $(ARGS)

.PHONY: crds
crds: ## Write config/crd from the classes in the code
	@hack/crds.sh

.PHONY: verify-crds
verify-crds: ## Fail if config/crd is not what the code says
	@hack/crds.sh --check

.PHONY: clean
clean: ## Remove everything that is made here, .venv included (the control plane's cache stays)
	@hack/clean.sh

.PHONY: help
help:
	@awk -f hack/help.awk $(firstword $(MAKEFILE_LIST))

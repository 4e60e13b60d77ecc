"""A simulated Kubernetes API server, in memory: for tests, demos and trying kubectl on a bare machine.

Contract: what it answers is what a real kube-apiserver (1.36) answers; what it does not simulate it refuses
with a 501 `Status` naming the feature. It imports nothing of the runtime but the clock, so that it can
judge it.
"""

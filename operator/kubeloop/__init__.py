"""A runtime for synchronous, multi-threaded Kubernetes operators."""

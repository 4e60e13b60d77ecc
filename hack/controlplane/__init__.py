"""A real Kubernetes control plane on this machine, for tests and for looking at how the real thing answers.

etcd, kube-apiserver and kube-controller-manager (kube-scheduler and kwok on request) run as child processes
on free loopback ports, with RBAC, a throw-away CA and a token for each user.  Everything they write lies in
one folder.  Contract: whoever starts a `ControlPlane` owns it; `stop()` ends every process, last started
first; should the owner die without stopping it, Linux ends the processes with it (unless started detached).

The binaries come from $KUBEBUILDER_ASSETS, or are built once from the Go modules named in the go.mod beside
this file and kept in the user's cache folder (`binaries`).
"""

from .errors import ControlPlaneError
from .plane import ControlPlane

__all__ = ["ControlPlane", "ControlPlaneError"]

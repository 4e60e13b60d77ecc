"""RBAC from the Role, ClusterRole and binding objects in the store, as the real server's authorizer decides.

Contract: `Rbac` is an `Authorizer`; it sees every change of those objects at once (the real server a moment
later). It also keeps people from granting what they do not have, and owners from being blocked by those who
may not set their finalizers.
"""

from __future__ import annotations

from kubeloop.sandbox.rbac.authorizer import CLUSTER_ROLES, Rbac
from kubeloop.sandbox.rbac.defaults import DEFAULT_OBJECTS

__all__ = ["CLUSTER_ROLES", "DEFAULT_OBJECTS", "Rbac"]

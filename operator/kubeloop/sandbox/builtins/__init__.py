"""The kinds of the server itself: what they default, refuse and reset.

Contract: `INFOS` holds one `ResourceInfo` per served resource. Strategies are stateless and pure; they get
decoded objects and share what they do not change. What the real server checks and these do not (kubelet and
scheduler settings, security contexts) passes.
"""

from __future__ import annotations

from kubeloop.sandbox.builtins.definitions import INFOS

__all__ = ["INFOS"]

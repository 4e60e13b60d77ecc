"""Faults on purpose: what goes wrong between a client and a cluster, by rule, countable and repeatable.

``sandbox.faults.add(verb="patch", resource="webapps", status=503, count=2)`` and the next two patches of
WebApps fail. Rules say which requests (verb, resource or kind, namespace, name, user, user agent), how often
(`after`, `count`, `probability` with a seed) and what happens to them (`Effect`). Several may apply to one
request: their effects add up. The sandbox's own controllers are never disturbed.

Contract: the same rules and the same requests in the same order give the same faults; everything that lasts
does so on the sandbox's clock; both transports show a fault as the network would (the in-process one raises
the standard library's OSErrors). Nothing costs anything while there are no rules.
"""

from __future__ import annotations

from kubeloop.sandbox.faults.effects import Effect
from kubeloop.sandbox.faults.rules import Fault, Faults

__all__ = ["Effect", "Fault", "Faults"]

"""Local copies of the server's objects, and news of their changes.

The contract
------------
* **Visibility.** The store has a change before handlers hear of it. The answer to an own write is in the
  store as soon as `write_through` returns, and nothing older replaces it: a reader never sees a state from
  before its own last write, nor an object that it deleted.
* **Order.** Each handler hears of the changes of one namespace in the order in which they happened, of each
  change once, of all changes that it can still learn of (several changes in a gap are one). An object that
  was deleted and made anew is Deleted, then Added, however quickly that went. Deletions in a gap are found
  by the list after it.
* **Own writes** are told when the watch shows them, marked `own`.
* **Isolation.** Reads decode afresh: nobody can change what the store holds. An object that its class cannot
  read is left out, reported, and blocks nothing. A failing handler, index function or transform
  harms nobody else.
* **Never gives up.** Whatever the server answers, a reflector tries again, at a bounded pace, says once
  in the log what it is waiting for, and shows it in `Informer.scopes`.
* **Threads.** One per kind and watched namespace, named `informer-<plural>[-<namespace>]`. `stop` ends
  them at once, whatever they wait for.
"""

from __future__ import annotations

from kubeloop.cache.codec import Undecodable
from kubeloop.cache.core import ReflectorCore
from kubeloop.cache.event import Added, Deleted, Event, Modified
from kubeloop.cache.indexes import NAMESPACE, OWNER
from kubeloop.cache.informer import Informer, ScopeState
from kubeloop.cache.store import Store
from kubeloop.cache.stream import events

__all__ = [
    "NAMESPACE",
    "OWNER",
    "Added",
    "Deleted",
    "Event",
    "Informer",
    "Modified",
    "ReflectorCore",
    "ScopeState",
    "Store",
    "Undecodable",
    "events",
]

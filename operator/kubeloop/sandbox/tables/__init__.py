"""Tables: what ``kubectl get`` prints, made by the server.

Contract: `to_table` is pure. Built-in kinds have the real server's columns; custom resources those of their
CRD, evaluated as simple JSON paths. Wide columns are always there (kubectl hides them by priority).
"""

from __future__ import annotations

from kubeloop.sandbox.tables.table import to_table

__all__ = ["to_table"]

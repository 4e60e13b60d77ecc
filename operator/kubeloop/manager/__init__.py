"""The process around controllers.

Start: informers (each its own thread), then, once every cache is synced, workers. Stop, under one deadline:
no more work is taken and the watches end at once; reconciles in progress go on to their end; connections are
closed last. Nothing is lost by a stop or a crash at any point: a restarted operator lists everything again.
"""

from kubeloop.manager.manager import SHUTDOWN_TIMEOUT, Manager
from kubeloop.manager.signals import FORCED_EXIT, stop_on_signals

__all__ = ["FORCED_EXIT", "SHUTDOWN_TIMEOUT", "Manager", "stop_on_signals"]

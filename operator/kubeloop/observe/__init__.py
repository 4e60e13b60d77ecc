"""What the operator tells about itself: log lines, metrics, Events.

Telling costs next to nothing and disturbs nobody: metrics are plain numbers until somebody asks for them, and
Events are written by a thread of their own, at a bounded rate, or not at all. `metrics` and `events` are
imported by name, so that logging alone does not pay for them.
"""

from kubeloop.observe.logs import LOG_FORMATS, LOG_LEVELS, FieldLogger, configure_logging, fields

__all__ = ["LOG_FORMATS", "LOG_LEVELS", "FieldLogger", "configure_logging", "fields"]

"""What the operator tells about itself: log lines with a constant message and fields."""

from kubeloop.observe.logs import LOG_FORMATS, LOG_LEVELS, FieldLogger, configure_logging, fields

__all__ = ["LOG_FORMATS", "LOG_LEVELS", "FieldLogger", "configure_logging", "fields"]

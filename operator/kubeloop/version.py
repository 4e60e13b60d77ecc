"""The version of this distribution; setup.cfg takes it from here."""

__version__ = "0.1.0"

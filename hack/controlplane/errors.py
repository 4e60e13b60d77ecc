"""What can go wrong, for the person at the terminal."""


class ControlPlaneError(Exception):
    """The control plane could not be built or started; the message says why and what to do."""

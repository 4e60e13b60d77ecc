"""The runner of hack/conformance, for the tests here."""

import sys
from pathlib import Path

# The runner is a tool of the repository, no part of what is installed.
sys.path.append(str(Path(__file__).resolve().parents[2] / "hack"))

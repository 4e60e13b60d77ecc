"""`python -m operator`: the command line of the WebApp operator, from the repository root or the image.

Works when this folder's parent is found before the standard library: in the current directory, or through
`PYTHONPATH` (needed under `-P` and `PYTHONSAFEPATH`, where the current directory is not searched, and where
something has imported the standard library's `operator` at start-up).  The console script
`webapp-operator` does the same and always works.
"""

import sys
from pathlib import Path

# The packages lie beside this file; without an installation nothing else would find them.
_SOURCE_ROOT = str(Path(__file__).resolve().parent)
if _SOURCE_ROOT not in sys.path:
    sys.path.insert(1, _SOURCE_ROOT)

from webapp_operator.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())

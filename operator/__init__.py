"""Stand-in for the standard library's `operator` module: this folder bears its name.

The folder is the *source root*, not a package of this product: `kubeloop`, `webapp_operator` and
`book_controller` are imported from inside it by their own names.  It is a package only so that
`python -m operator` works from the repository root (see `__main__.py`).  There `import operator` finds
this folder before the standard library, for everybody in the process, so this module must then *be* the
standard library's: its code is executed in this very namespace, and nothing public is added.

Contract: every name of the standard library's module is here and works alike, pickles included;
`ImportError` is raised if its code cannot be found.
"""

# Only what an interpreter has loaded before its first `import operator` may be used here:
# importlib.util, collections and functools import names from `operator` themselves.
import os as _os
from importlib.machinery import PathFinder as _PathFinder

_spec = _PathFinder.find_spec("operator", [_os.path.dirname(_os.__file__)])
_code = _spec.loader.get_code("operator") if _spec is not None and _spec.loader is not None else None  # type: ignore[attr-defined]
if _code is None:
    raise ImportError(f"the standard library's operator module is not beside {_os.__file__}", name=__name__)
exec(_code, globals())
del _os, _PathFinder, _spec, _code

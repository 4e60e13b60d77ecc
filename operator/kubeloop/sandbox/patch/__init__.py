"""The three client-side patch formats, with the server's quirks.

Contract: pure functions from a document and a patch to a new document; arguments are never changed, results
may share their parts. They know nothing of the kind beyond what the strategic merge needs from its schema;
decoding and validating the result is the caller's. Wrong patches raise ApiFailure with the server's code and
text: 400 for what is no patch at all, 422 for a JSON patch that does not apply.
"""

from __future__ import annotations

from kubeloop.sandbox.patch.jsonpatch import json_patch
from kubeloop.sandbox.patch.merge import merge_patch
from kubeloop.sandbox.patch.strategic import strategic_merge_patch

__all__ = ["json_patch", "merge_patch", "strategic_merge_patch"]

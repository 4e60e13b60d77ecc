"""CustomResourceDefinitions: what is accepted, and the resources that an accepted one serves.

Contract: pure functions on CRD objects. A CRD is decoded (`Schema.prune`), defaulted (`default_crd`) and
validated (`accept`) like any object; whether its *names* are free is decided afterwards by `name_conditions`
(the server's naming controller), and only an established CRD serves `infos`. Validation rules in CEL are
not simulated: such a CRD is refused with a 501 that says so.
"""

from __future__ import annotations

from kubeloop.sandbox.crd.names import established, name_conditions
from kubeloop.sandbox.crd.serving import infos
from kubeloop.sandbox.crd.strategy import CRDStrategy, accept, default_crd

__all__ = ["CRDStrategy", "accept", "default_crd", "established", "infos", "name_conditions"]

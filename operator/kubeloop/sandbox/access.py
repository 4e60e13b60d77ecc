"""Who asks, and whether they may: bearer tokens and an authorisation hook, with the server's texts.

By default everybody may do everything, as on a cluster whose only user is its administrator. With tokens
given, a request without one is `system:anonymous`, and a wrong one is refused with 401.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kubeloop.sandbox.status import ApiFailure, qualified, unauthorized


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated user."""

    name: str
    groups: tuple[str, ...] = ()


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))
SYSTEM = User("system:kube-controller-manager", ("system:masters", "system:authenticated"))


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is asked for, as authorizers see it. `resource` is empty for paths that name none."""

    user: User
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


Authorizer = Callable[[Attributes], bool]
"""Whether the request may go on. Called for every request but those of the sandbox's own controllers."""


@dataclass(slots=True)
class Access:
    """Tokens (token -> user) and the authorizer; both may be changed while the sandbox runs."""

    tokens: Mapping[str, User] = field(default_factory=dict)
    authorizer: Authorizer | None = None

    def authenticate(self, headers: Mapping[str, str]) -> User:
        """The user of a request. Raises a 401 failure."""
        header = headers.get("authorization")
        if not header:
            return ANONYMOUS if self.tokens else ADMIN
        scheme, _, token = header.partition(" ")
        if not self.tokens:
            return ADMIN
        user = self.tokens.get(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise unauthorized()
        return user

    def authorize(self, attributes: Attributes) -> None:
        """Raises a 403 failure when the authorizer says no."""
        if self.authorizer is None or self.authorizer(attributes):
            return
        raise denied(attributes)


def denied(attributes: Attributes) -> ApiFailure:
    """The 403 of a request nobody allowed (responsewriters.ForbiddenStatusError)."""
    who = f'User "{attributes.user.name}" cannot {attributes.verb}'
    if not attributes.resource:
        return ApiFailure(403, "Forbidden", f'forbidden: {who} path "{attributes.path}"', details={})
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    what = f'{who} resource "{resource}" in API group "{attributes.group}"'
    namespace = attributes.namespace
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    subject = qualified(attributes.group, attributes.resource)
    name = f' "{attributes.name}"' if attributes.name else ""
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return ApiFailure(
        403,
        "Forbidden",
        f"{subject}{name} is forbidden: {what} {where}",
        details={key: value for key, value in details.items() if value},
    )

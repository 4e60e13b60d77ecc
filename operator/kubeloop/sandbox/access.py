"""Who asks, and whether they may: bearer tokens, impersonation and an authorizer, with the server's texts.

By default everybody may do everything, as on a cluster whose only user is its administrator. With tokens
given, a request without one is `system:anonymous`, and a wrong one is refused with 401. Rights come from the
authorizer: a function of one's own, or `rbac.Rbac`, which reads Role and ClusterRole objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field

from kubeloop.sandbox.status import ApiFailure, qualified, unauthorized

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
ACCOUNT_PREFIX = "system:serviceaccount:"
"""User names of service accounts go on with ``<namespace>:<name>``."""


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated user. Groups that the server itself gives need not be named, see `known`."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
ADMIN = User("kubernetes-admin", (MASTERS, AUTHENTICATED))
SYSTEM = User("system:kube-controller-manager", (MASTERS, AUTHENTICATED))


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


@dataclass(frozen=True, slots=True)
class Decision:
    """What an authorizer says; `reason` is told to whoever is refused, and in access reviews."""

    allowed: bool
    reason: str = ""


Authorizer = Callable[[Attributes], "bool | Decision"]
"""Whether the request may go on. Called for every request but those of the sandbox's own controllers."""


@dataclass(slots=True)
class Access:
    """Tokens (token -> user) and the authorizer; both may be changed while the sandbox runs."""

    tokens: MutableMapping[str, User] = field(default_factory=dict)
    authorizer: Authorizer | None = None
    enforced: bool = False
    """Whether tokens count although there are none (any more)."""

    def authenticate(self, headers: Mapping[str, str]) -> User:
        """The user of a request. Raises a 401 failure, or a 403 one for a forbidden impersonation."""
        user = self._bearer(headers.get("authorization", ""))
        wanted = headers.get("impersonate-user")
        return user if not wanted else self._impersonated(user, wanted, headers)

    def user_of(self, token: str) -> User | None:
        """Whose token it is."""
        user = self.tokens.get(token)
        return None if user is None else known(user)

    def revoke(self, token: str) -> None:
        """From now on the token is answered with 401, as an expired one is."""
        self.enforced = True
        self.tokens.pop(token, None)

    def decide(self, attributes: Attributes) -> Decision:
        """What the authorizer says; without one everything is allowed."""
        if self.authorizer is None:
            return Decision(True)
        answer = self.authorizer(attributes)
        return answer if isinstance(answer, Decision) else Decision(answer)

    def authorize(self, attributes: Attributes) -> None:
        """Raises a 403 failure when the authorizer says no."""
        if self.authorizer is None:
            return
        decision = self.decide(attributes)
        if not decision.allowed:
            raise denied(attributes, decision.reason)

    def _bearer(self, header: str) -> User:
        if not self.tokens and not self.enforced:
            return ADMIN
        scheme, _, token = header.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS  # other schemes are nobody's: only a wrong token is an error
        user = self.user_of(token)
        if user is None:
            raise unauthorized()
        return user

    def _impersonated(self, user: User, wanted: str, headers: Mapping[str, str]) -> User:
        groups = tuple(g.strip() for g in headers.get("impersonate-group", "").split(",") if g.strip())
        if wanted.startswith(ACCOUNT_PREFIX):
            namespace, _, name = wanted.removeprefix(ACCOUNT_PREFIX).partition(":")
            asked = Attributes(user, "impersonate", "", "serviceaccounts", "", namespace, name)
        else:
            asked = Attributes(user, "impersonate", "", "users", name=wanted)
        self.authorize(asked)
        for group in groups:
            self.authorize(Attributes(user, "impersonate", "", "groups", name=group))
        if wanted == ANONYMOUS.name:
            return User(wanted, groups or ANONYMOUS.groups)
        return known(User(wanted, groups))


def known(user: User) -> User:
    """`user` with the groups that everybody who was recognised is in."""
    groups = list(user.groups)
    if user.name.startswith(ACCOUNT_PREFIX):
        namespace = user.name.removeprefix(ACCOUNT_PREFIX).partition(":")[0]
        groups += ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    groups.append(AUTHENTICATED)
    unique = tuple(dict.fromkeys(groups))
    return user if unique == user.groups else User(user.name, unique, user.uid)


def service_account(namespace: str, name: str, uid: str = "") -> User:
    """A service account as the user it is to the server."""
    return known(User(f"{ACCOUNT_PREFIX}{namespace}:{name}", (), uid))


def why_denied(attributes: Attributes, reason: str = "") -> str:
    """Who cannot do what where (responsewriters.ForbiddenStatusError)."""
    who = f'User "{attributes.user.name}" cannot {attributes.verb}'
    tail = f": {reason}" if reason else ""
    if not attributes.resource:
        return f'{who} path "{attributes.path}"{tail}'
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    namespace = attributes.namespace
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    return f'{who} resource "{resource}" in API group "{attributes.group}" {where}{tail}'


def denied(attributes: Attributes, reason: str = "") -> ApiFailure:
    """The 403 of a request nobody allowed."""
    why = why_denied(attributes, reason)
    if not attributes.resource:
        return ApiFailure(403, "Forbidden", f"forbidden: {why}", details={})
    subject = qualified(attributes.group, attributes.resource)
    name = f' "{attributes.name}"' if attributes.name else ""
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return ApiFailure(
        403,
        "Forbidden",
        f"{subject}{name} is forbidden: {why}",
        details={key: value for key, value in details.items() if value},
    )

"""Talking to the API server.

The contract
------------
* **Bytes and dicts.** `Client` sends and returns plain JSON objects and loses no field of them; `Api` adds
  types.
* **Bounded.** Each try of a request ends within its timeout (30 s), each watch after 150 s of silence. A
  watch can be closed from any thread, and then ends at once. Setting the stop event ends all
  waiting for a retry.
* **Retried when right.** 429 always; lost answers, 502, 503 and 504 when the request is repeatable; 401 once,
  with credentials read anew; what timed out never. Retry-After is respected up to 10 s a wait; beyond that
  the caller's own backoff takes over, with the number in the error.
* **Errors by type.** `ApiError` and its subclasses carry the server's Status, `TransportError` says that
  there was no usable answer, `ConfigError` that it is unknown whom to ask. All name verb and object.
  None holds a credential, and no request is sent without one because a source failed.
* **Threads.** Everything here is thread-safe and starts no thread. The kubernetes package is imported only
  for what it alone can do: `auth-provider` sections, and `kubernetes_configuration` to use it beside ours.
"""

from __future__ import annotations

from kubeloop.client.answers import Answer, ObjectList, Page, RequestInfo
from kubeloop.client.client import Client, FieldValidation
from kubeloop.client.config import ClusterConfig, connect, load_config, user_agent
from kubeloop.client.credentials import Credentials
from kubeloop.client.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    ConfigError,
    Conflict,
    CredentialsError,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    MethodNotAllowed,
    MissingKeyError,
    NotFound,
    ServerTimeout,
    ServiceUnavailable,
    TooManyRequests,
    TransportError,
    Unauthorized,
)
from kubeloop.client.http_transport import HttpTransport
from kubeloop.client.official import kubernetes_configuration
from kubeloop.client.patches import Apply, JsonPatch, MergePatch, Patch, StrategicPatch
from kubeloop.client.retry import NO_RETRY, RetryPolicy
from kubeloop.client.transport import ConnectFailed, Response, Stream, Transport
from kubeloop.client.typed import Api
from kubeloop.client.watch import WatchStream

__all__ = [
    "NO_RETRY",
    "AlreadyExists",
    "Answer",
    "Api",
    "ApiError",
    "Apply",
    "BadRequest",
    "Client",
    "ClusterConfig",
    "ConfigError",
    "Conflict",
    "ConnectFailed",
    "Credentials",
    "CredentialsError",
    "Expired",
    "FieldValidation",
    "Forbidden",
    "HttpTransport",
    "InternalError",
    "Invalid",
    "JsonPatch",
    "MergePatch",
    "MethodNotAllowed",
    "MissingKeyError",
    "NotFound",
    "ObjectList",
    "Page",
    "Patch",
    "RequestInfo",
    "Response",
    "RetryPolicy",
    "ServerTimeout",
    "ServiceUnavailable",
    "StrategicPatch",
    "Stream",
    "TooManyRequests",
    "Transport",
    "TransportError",
    "Unauthorized",
    "WatchStream",
    "connect",
    "kubernetes_configuration",
    "load_config",
    "user_agent",
]

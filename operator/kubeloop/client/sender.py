"""One request with all that belongs to it: credentials, fence, retries, warnings, metrics."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping

from kubeloop.client.answers import RequestInfo
from kubeloop.client.cancel import Cancel
from kubeloop.client.credentials import Credentials
from kubeloop.client.errors import ApiError, ConfigError, CredentialsError, TransportError, api_error
from kubeloop.client.retry import UNCERTAIN, RetryPolicy
from kubeloop.client.transport import Answered, ConnectFailed, Response, Transport
from kubeloop.client.warnings import Warnings
from kubeloop.client.wire import MAX_BODY, gunzip
from kubeloop.clock import StopEvent

CONNECT_TIMEOUT = 10.0
"""Seconds to open the connection of a stream."""


class Call:
    """One request and what became of its tries."""

    __slots__ = (
        "accept",
        "body",
        "cancel",
        "content_type",
        "gzip",
        "method",
        "repeatable",
        "retry",
        "target",
        "uncertain",
        "verb",
        "what",
    )

    def __init__(
        self,
        verb: str,
        what: str,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = "",
        accept: str = "",
        repeatable: bool = True,
        gzip: bool = False,
        retry: RetryPolicy | None = None,
        cancel: Cancel | None = None,
    ) -> None:
        self.verb = verb
        self.what = what
        self.method = method
        self.target = path
        self.body = body
        self.content_type = content_type
        self.accept = accept
        self.repeatable = repeatable
        self.gzip = gzip
        self.retry = retry
        self.cancel = cancel
        self.uncertain = False  # some try may have been carried out although it looked like a failure


class Sender:
    """Sends calls; thread-safe. See `Client` for what the parts mean."""

    def __init__(
        self,
        transport: Transport,
        *,
        credentials: Credentials,
        stop: StopEvent,
        user_agent: str,
        retry: RetryPolicy,
        timeout: float,
        fence: Callable[[], None] | None,
        observer: Callable[[RequestInfo], None] | None,
        rng: random.Random,
    ) -> None:
        self.transport = transport
        self.base = {"User-Agent": user_agent, "Accept": "application/json"}
        self._credentials = credentials
        self._stop = stop
        self._retry = retry
        self._timeout = timeout
        self._fence = fence
        self._observer = observer
        self._rng = rng
        self._warnings = Warnings()

    def perform(self, call: Call) -> Response:
        """The answer, with a status below 400, to a call; tries again where that is right."""
        policy = call.retry or self._retry
        renewed = False
        attempt = 0
        while True:
            attempt += 1
            if self._fence is not None and call.method != "GET":
                self._fence()
            identity = self.identity(call.verb, call.what)
            try:
                response = self._send(call, identity)
            except OSError as failure:
                error: ApiError | TransportError = TransportError(
                    call.verb, call.what, failure, sent=not isinstance(failure, ConnectFailed)
                )
                error.__cause__ = failure
            else:
                if "warning" in response.headers:
                    self._warnings.log(response.headers["warning"], call.what)
                if response.status < 400:
                    return response
                error = api_error(call.verb, call.what, response.status, response.body, response.headers)
                if response.status == 401 and not renewed and self.renew(identity, call.verb, call.what):
                    renewed = True
                    attempt -= 1
                    continue
            if (isinstance(error, TransportError) and error.sent) or getattr(error, "code", 0) in UNCERTAIN:
                call.uncertain = True
            delay = policy.delay(attempt, error, repeatable=call.repeatable, rng=self._rng)
            if delay is None or self._stop.wait(delay):
                raise error

    def _send(self, call: Call, identity: Mapping[str, str]) -> Response:
        headers = {**self.base, **identity}
        if call.content_type:
            headers["Content-Type"] = call.content_type
        if call.accept:
            headers["Accept"] = call.accept
        if call.gzip:
            headers["Accept-Encoding"] = "gzip"
        began = time.perf_counter()
        code = 0
        try:
            if call.cancel is None:
                response = self.transport.request(
                    call.method, call.target, headers=headers, body=call.body, timeout=self._timeout
                )
            else:
                response = self._send_cancellable(call, call.cancel, headers)
            code = response.status
        finally:
            if self._observer is not None:
                self._observer(RequestInfo(call.method, code, time.perf_counter() - began))
        return response

    def _send_cancellable(self, call: Call, cancel: Cancel, headers: Mapping[str, str]) -> Response:
        """A request read as a stream, since streams can be closed by another thread."""
        stream = self.transport.stream(
            call.method,
            call.target,
            headers=headers,
            connect_timeout=min(self._timeout, CONNECT_TIMEOUT),
            read_timeout=self._timeout,
        )
        cancel.attach(stream)
        try:
            status, answered = stream.status, stream.headers
            body = b"".join(stream.chunks())
        finally:
            stream.close()
        if cancel.cancelled:
            raise ConnectionAbortedError("the request was cancelled")  # what came may be half an answer
        if answered.get("content-encoding") == "gzip":
            body = gunzip(body, MAX_BODY)
        return Answered(status, answered, body)

    def identity(self, verb: str, what: str) -> Mapping[str, str]:
        try:
            return self._credentials.headers()
        except (ConfigError, OSError, ValueError) as error:
            raise CredentialsError(verb, what, error) from error

    def renew(self, refused: Mapping[str, str], verb: str, what: str) -> bool:
        try:
            renewed = self._credentials.renew(refused)
        except (ConfigError, OSError, ValueError) as error:
            raise CredentialsError(verb, what, error) from error
        if renewed:
            # Connections made with a refused client certificate would be refused again; streams are not
            # touched (nolar/kopf#980).
            self.transport.close()
        return renewed

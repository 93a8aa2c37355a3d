"""Request and Response, the context of a call, and the handler: the boundary between faces and runtime."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from typing import Any, Final, Protocol

import msgspec

from bespeak.protocol.exchange.headers import NO_HEADERS, REQUEST_ID, SESSION_ID, TASK_ID, HeaderBlock
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.wire.messages import Malformed

__all__ = ("Connection", "Malformed", "Request", "Response")


class Connection:
    """The state shared by the requests of one connection.

    `answered` counts the responses sent, so that the first one can introduce the server (Supported-Methods).
    """

    __slots__ = ("address", "agent_id", "answered", "certificate", "ended", "face", "interrupt", "peer", "secure")

    def __init__(
        self,
        *,
        face: str = "agtp",
        peer: str = "",
        address: str = "",
        secure: bool = False,
        certificate: bytes | None = None,
    ) -> None:
        self.face = face
        self.peer = peer  # host and port, for people
        self.address = address  # host alone, shared by all connections of one machine
        self.secure = secure
        self.certificate = certificate  # client certificate in DER, verified by TLS against the server's authorities
        self.answered = 0
        self.agent_id: str | None = None  # agent of the last request that identified one
        self.ended = False  # True if the peer is gone or the server stops, so that no stream is sent any more
        self.interrupt: Callable[[], None] | None = None  # ends the stream that is being sent; None without one

    def end(self) -> None:
        """End streams, now and later: the peer is gone, or the server stops."""
        self.ended = True
        if self.interrupt is not None:
            self.interrupt()

    def seen_as(self, face: str) -> Connection:
        """Return the connection as another face presents it, which shares the port of this one."""
        if self.face == face:
            return self
        found = Connection(
            face=face, peer=self.peer, address=self.address, secure=self.secure, certificate=self.certificate
        )
        found.answered = 1  # documents introduce the server
        return found


class Request(msgspec.Struct, frozen=True, gc=False):
    """One call as received: not decoded, not trusted."""

    method: str
    path: str  # target up to the first `?`, with percent-encoding
    query: str
    headers: Mapping[str, str]  # headers with names in lower case, each at most once
    body: bytes
    connection: Connection
    reads: bool = False  # True for a request that promises to change nothing, such as GET over HTTP
    prepared: Response | None = None
    """Answer of the face to a request that calls no endpoint. Only callers that may discover get it."""
    counted: bool = False
    """True if the face has counted the request against all rate limits, because it stores something first."""
    files: Any = None  # files of the call, a `CallFiles`; None if it has none
    semantic: Any = None  # what the call means, a `Meaning`, once it is understood; None if it does not say
    streams: bool = False
    """True if the caller asks for a stream, and the face can send one. An AGTP request says it in a header."""


class Batch(msgspec.Struct, frozen=True, gc=False):
    """Items of a stream that are sent together."""

    items: tuple[bytes, ...] = ()  # items as JSON
    ended: bool = False  # True if nothing follows
    failure: Response | None = None  # refusal that breaks the stream off; then nothing follows


class Stream(Protocol):
    """The items of one answer. Whoever takes it must call `aclose` in the end."""

    async def next(self) -> Batch: ...  # the handler does not go on before the next items are asked for
    def aclose(self) -> Coroutine[Any, Any, None]: ...  # ends the handler, unless it has ended


class Response(msgspec.Struct, frozen=True, gc=False):
    """One response. A transport adds framing (Content-Length) and nothing else."""

    status: int
    body: bytes = b""
    block: HeaderBlock = NO_HEADERS  # headers known before the request
    headers: tuple[tuple[str, str], ...] = ()  # headers of this response alone
    code: str | None = None  # the machine-readable name of a refusal; None for any other answer
    stream: Stream | None = None  # items that follow, if the caller asked for a stream; then the body is empty

    def header(self, name: str) -> str | None:
        wanted = name.lower()
        for pairs in (self.headers, self.block.pairs):
            for candidate, value in pairs:
                if candidate.lower() == wanted:
                    return value
        return None


Report = Callable[[float, float | None, str | None], None]
"""Takes what is done, of how much, and what is being done. It may be called from any thread, and never waits."""
REPORT: Final[ContextVar[Report | None]] = ContextVar("bespeak_progress", default=None)
"""Report of the current call; None if its caller cannot hear of progress."""


ITEMS: Final[ContextVar[Callable[[bytes], None] | None]] = ContextVar("bespeak_items", default=None)
"""Takes each item of an answer that is collected, as JSON; None if its caller cannot hear of single items."""


PATIENCE: Final[ContextVar[float | None]] = ContextVar("bespeak_patience", default=None)
"""Seconds for which the caller waits for the end of long work; infinite for one that follows it, None if not known."""


class Joining(Protocol):
    """The call behind a Context."""

    # Adds a standard method that is carried out in the transaction of the answer; returns the id that it gives.
    def join(self, method: str, given: dict[str, Any], path: str = "/", *, prefix: str = "") -> str: ...


class Context(msgspec.Struct, frozen=True):
    """The current call. A handler receives it in a parameter annotated `Context`, after all gates have passed."""

    request: Request
    """The request as received, with its headers."""
    principal: Principal
    """The caller: agent, scopes and how they were verified."""
    method: str
    """The method after redirects."""
    path: str
    """The path after redirects, with its actual values."""
    input: Mapping[str, Any]
    """The validated input: body, query and path parameters together."""
    state: Any = None
    """What the service's lifespan function has yielded: connections, caches, clients. None without one."""
    _call: Joining | None = None

    @property
    def agent_id(self) -> str | None:
        """Agent-ID of the caller; None for an anonymous call."""
        return self.principal.agent_id

    @property
    def semantic(self) -> Any:
        """Semantic profile of the call in the vocabulary of the service, a `SemanticProfile`; None without one."""
        meaning = self.request.semantic
        return None if meaning is None else meaning.understood

    @property
    def task_id(self) -> str | None:
        """Task-ID of the request, for tracing."""
        return self.request.headers.get(TASK_ID)

    @property
    def session_id(self) -> str | None:
        """Session-ID of the request."""
        return self.request.headers.get(SESSION_ID)

    @property
    def request_id(self) -> str | None:
        """Request-ID of the request."""
        return self.request.headers.get(REQUEST_ID)

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell a waiting client how far the call is: `done` of `total`, and what is being done.

        `done` must increase. Over MCP the client is told if it wants to know, and over A2A if it follows the task;
        elsewhere nothing happens. It may be called from a thread, and never waits.
        """
        report = REPORT.get()
        if report is not None:
            report(done, total, message)

    def send(self, channel: str, recipient: str, content: Any, **more: Any) -> None:
        """Send a message outside AGTP, by `email`, `sms`, `push` or `webhook`, as SEND does.

        This and the methods below take the parameters of the standard method. They are carried out in one transaction
        with the answer of the call, and not at all if it fails. They are in the name of the caller; those of an
        anonymous caller are in the name of the service. Raises ValueError for parameters that the method does not take.
        """
        self._join("SEND", channel=channel, recipient=recipient, content=content, **more)

    def notify(self, recipient: str, content: Any, **more: Any) -> None:
        """Put a message into the inbox of an agent, or have it delivered, as NOTIFY does."""
        self._join("NOTIFY", recipient=recipient, content=content, **more)

    def alert(self, recipient: str | list[str], severity: str, message: str, **more: Any) -> None:
        """Tell somebody what cannot wait, as ALERT does."""
        self._join("ALERT", recipient=recipient, severity=severity, message=message, **more)

    def publish(self, channel: str, content: Any, **more: Any) -> None:
        """Publish on a channel, as PUBLISH does."""
        self._join("PUBLISH", channel=channel, content=content, **more)

    def submit(self, queue: str, payload: Mapping[str, Any], **more: Any) -> None:
        """Hand work to a queue of the service, as SUBMIT does."""
        self._join("SUBMIT", target=queue, payload=payload, **more)

    def start(self, workflow: str, **given: Any) -> str:
        """Start a workflow of the service with this input, as RUN does; return the id of the run, for `signal`."""
        return self._joining("RUN").join("RUN", {"procedure_id": workflow, "input": given}, prefix="run")

    def signal(self, run_id: str, name: str, value: Any = None) -> None:
        """Leave a signal for a run of a workflow, which `run.wait_for` returns. A run that has ended is refused."""
        self._joining("NOTIFY").join("NOTIFY", {"workflow_id": run_id, "name": name, "value": value}, "/workflows")

    def _join(self, method: str, /, **given: Any) -> None:
        self._joining(method).join(method, given)

    def _joining(self, method: str) -> Joining:
        if self._call is None:
            raise RuntimeError(f"{method} cannot be added here: this call is answered while its function runs")
        return self._call


class Handler(Protocol):
    """Answers requests. A response that is ready is returned at once; a coroutine means a real wait."""

    def __call__(self, request: Request) -> Response | Coroutine[Any, Any, Response]: ...  # never raises
    def malformed(self, fault: Malformed, connection: Connection) -> Response: ...  # answers what is not a request

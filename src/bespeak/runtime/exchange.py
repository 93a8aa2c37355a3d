"""One exchange as an event; the access log, the Prometheus metrics (extra `metrics`) and audit records made of it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.headers import AGENT_ID
from bespeak.protocol.exchange.messages import Connection, Malformed, Response
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.runtime.call import Call, RoutedCall, StepCall
from bespeak.runtime.extension import RECORD
from bespeak.state.audit.record import make_payload
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.commands.audit import AppendAudit
from bespeak.state.store.store import Conflict, Sealed, Store

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

    from bespeak.runtime.route_table import RouteTable
    from bespeak.state.audit.checkpoints import Checkpointer
    from bespeak.state.audit.trail import Signing

_ECHOED: Final = {
    "Response-ID": "response_id",
    "Request-ID": "request_id",
    "Task-ID": "task_id",
    "Audit-ID": "audit_id",
}  # headers of an answer that name it, its request or its record

REPLAYED: Final = ("Idempotency-Replayed", "true")  # header that marks a replayed answer
_LONGEST: Final = 128  # maximum characters of an id or a method chosen by a peer


class Exchange(msgspec.Struct, frozen=True):
    """A call and its answer. Its properties may be logged: none of them contains a value the caller sent."""

    call: Call
    response: Response
    seconds: float | None = None  # duration of the answer; None before it is complete

    @property
    def replayed(self) -> bool:
        """True if the answer is replayed from an earlier request with the same idempotency key."""
        return REPLAYED in self.response.headers

    @property
    def method(self) -> str:
        return self.call.method[:_LONGEST]

    @property
    def path(self) -> str:
        """The template, else the path with `*` for what no contract has: it may be a token or a person's name."""
        call = self.call
        route = call.route
        if route is not None and route is not call.routes.wildcard:
            return route.endpoint.path
        return known_parts(call.path, call.routes)

    @property
    def claimed_agent_id(self) -> str | None:
        """Agent-ID claimed by a caller that was refused before it was identified."""
        if self.call.principal.agent_id is not None:
            return None
        claimed = self.call.request.headers.get(AGENT_ID)
        # A text that is not an id might be a secret.
        return claimed if claimed is not None and is_canonical_id(claimed) else None

    @property
    def caller(self) -> str:
        claimed = self.claimed_agent_id
        return self.call.agent_id or ("anonymous" if claimed is None else f"a caller claiming to be {claimed}")

    @property
    def particulars(self) -> dict[str, Any]:
        principal = self.call.principal
        return {
            **_ids(self.response.headers),
            "agent_id": principal.agent_id,
            # Core 10.1: an agent is logged with the principal it acts for.
            "principal_id": principal.principal_id and principal.principal_id[:_LONGEST],
            "claimed_agent_id": self.claimed_agent_id,
            "method": self.method,
            "path": self.path,
            "status": self.response.status,
            "peer": self.call.request.connection.peer,
        }


Subscriber = Callable[[Exchange], None]  # called when an answer is complete; must not raise or block


def _ids(headers: Iterable[tuple[str, str]]) -> dict[str, Any]:
    return {_ECHOED[name]: value[:_LONGEST] for name, value in headers if name in _ECHOED}


def known_parts(path: str, routes: RouteTable) -> str:
    """Return a path with `*` for every part that no contract has."""
    words = routes.path_words
    return "/".join(part if part in words else "*" for part in path[:2000].split("/")[:20])


ACCESS_LOGGER: Final = "bespeak.access"

_logger = logging.getLogger(ACCESS_LOGGER)


class AskedPath:
    """The path of a request that reached no endpoint, as it was sent. Only a terminal shows it; it has no `repr`."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text[:_LONGEST]


def is_access_logged() -> bool:
    return _logger.isEnabledFor(logging.INFO)


def access_log() -> tuple[Subscriber, ...]:
    """Return the subscriber that writes a line for each answer; nothing if the log level suppresses them."""
    return (log_exchange,) if is_access_logged() else ()


def log_exchange(exchange: Exchange) -> None:
    asked = AskedPath(exchange.call.path) if exchange.call.route is None else None
    _log(exchange.particulars, exchange.caller, exchange.response.code, exchange.seconds, asked)


def log_answer(
    connection: Connection,
    method: str,
    paths: tuple[str, str],
    *,
    number: int,
    code: str | None,
    seconds: float,
    caller: str | None = None,
) -> None:
    """Log an answer that a face has given by itself: a document, or a refusal before there is a call.

    `paths` are the path as it was sent, for a terminal, and as it may be logged.
    """
    listed = {"method": method[:_LONGEST], "path": paths[1], "status": number, "peer": connection.peer}
    _log(listed, caller or "anonymous", code, seconds, AskedPath(paths[0]))


def log_fault(fault: Malformed, connection: Connection, headers: Iterable[tuple[str, str]], level: int) -> None:
    """Log the refusal of a request that has not become a call: its bytes are not valid, or its body is not admitted."""
    particulars = {**_ids(headers), "status": fault.status, "code": fault.code, "peer": connection.peer}
    _logger.log(
        level, "%d %s: refused before it was read", fault.status, fault.code, extra={"particulars": particulars}
    )


def _log(
    particulars: dict[str, Any], caller: str, code: str | None, seconds: float | None, asked: AskedPath | None
) -> None:
    ms = (seconds or 0.0) * 1000
    what = particulars["status"], "" if code is None else f" {code}:", particulars["method"], particulars["path"]
    extra = {"particulars": {**particulars, "code": code, "ms": round(ms, 3)}, "asked": asked}
    _logger.info("%d%s %s %s by %s in %.1f ms", *what, caller, ms, extra=extra)


SHARED_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable of the folder in which several workers add up their numbers; read by prometheus_client."""

_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_NO_ENDPOINT: Final = "-"
"""Label of a call that reached no endpoint: its method and path are the caller's own, and there is no end of them."""

_SYNTHESIS: Final = "(synthesis)"  # label of the paths of syntheses: agents choose them, so their number has no bound


def make_metrics() -> Metrics | None:
    """Create the metrics of this process; None, with a line in the log, if the extra is not installed."""
    try:
        return Metrics()
    except ImportError:
        logging.getLogger(__name__).warning("there are no /metrics without the extra: pip install 'bespeak[metrics]'")
        return None


class Metrics:
    """Counts the exchanges of one process. It is a subscriber of the dispatcher."""

    def __init__(self) -> None:
        import prometheus_client as client  # noqa: PLC0415 - optional

        self._client = client
        self._registry = client.CollectorRegistry()
        labels = ("face", "method", "path")
        self._answers = client.Counter(
            "bespeak_requests", "Answered requests.", (*labels, "status"), registry=self._registry
        )
        self._seconds = client.Histogram(
            "bespeak_request_seconds", "Time to answer.", labels, buckets=_BUCKETS, registry=self._registry
        )
        self._known: dict[tuple[str, ...], tuple[Any, Any]] = {}
        self.shared = SHARED_FOLDER in os.environ  # True if several processes add up their numbers
        if not self.shared:
            client.ProcessCollector(registry=self._registry)

    def __call__(self, exchange: Exchange) -> None:
        route = exchange.call.route
        method, path = (_NO_ENDPOINT, _NO_ENDPOINT) if route is None else (route.method, route.endpoint.path)
        if route is not None and route.synthesis_id is not None:
            path = _SYNTHESIS
        key = (exchange.call.request.connection.face, method, path, str(exchange.response.status))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = (self._answers.labels(*key), self._seconds.labels(*key[:3]))
        found[0].inc()
        found[1].observe(exchange.seconds or 0.0)

    def gauge(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Publish a number of this process that is read when it is asked for; left out if processes add up theirs."""
        if not self.shared:
            self._client.Gauge(name, meaning, registry=self._registry).set_function(value)

    def write(self) -> tuple[bytes, str]:
        registry = self._registry
        if self.shared:
            from prometheus_client import multiprocess  # noqa: PLC0415 - only for several workers

            registry = self._client.CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call] # the library has no hint
        return self._client.generate_latest(registry), self._client.CONTENT_TYPE_LATEST


@dataclass(frozen=True, slots=True)
class Auditor:
    """Builds the records of one server. They are committed with the exchange, so a subscriber cannot do it."""

    server_id: str
    _: KW_ONLY
    attributes: bool  # True if a response carries its signed record, Attribution-Record
    everything: bool = True  # False if only what governance needs is recorded
    discovery: bool = False
    fields: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    clock: Callable[[], float] = time.time

    def audits(self, call: Call) -> bool:
        """Return True for a call to be recorded; not if it reached no endpoint: strangers must not fill the trail."""
        route = call.route
        if not self.everything:
            return route is not None and route.is_governed
        if route is None:
            return call.principal.agent_id is not None
        return self.discovery or not route.endpoint.is_basic or route.endpoint.semantic.impact != "informational"

    def audits_refusal(self, call: Call, number: int) -> bool:
        """Return True for a call to be recorded because it was refused with a status; not for anonymous callers."""
        if self.everything:
            return self.audits(call)
        return number in status.LACKING_AUTHORITY and call.principal.agent_id is not None

    def entry(self, exchange: Exchange, more: Mapping[str, Any] | None = None) -> AppendAudit:
        """Return the command that records an exchange; its result is the Sealed record. `more` goes with the input."""
        call = exchange.call
        composing = None if call.parent is None else call.parent.composing
        payload = make_payload(
            request=call.request,
            response=exchange.response,
            principal=call.principal,
            method=call.method,
            path=None if call.route is None else call.route.endpoint.path,
            server_id=self.server_id,
            issued_at=self.clock(),
            replayed=exchange.replayed,
            recorded={**(self._recorded(call) or {}), **more} if more else self._recorded(call),
            parent_response_id=None if composing is None else composing.response_id,
            step=call.number if isinstance(call, StepCall) else None,
            synthesis_id=None if call.route is None else call.route.synthesis_id,
            semantic_mapping=None if call.request.semantic is None else call.request.semantic.outcome.mapping,
        )
        return AppendAudit(call.agent_id or "", payload)

    def headers(self, sealed: Sealed) -> tuple[tuple[str, str], ...]:
        named = ("Audit-ID", sealed.audit_id)
        return (named, ("Attribution-Record", sealed.jws)) if self.attributes else (named,)

    def _recorded(self, call: Call) -> Mapping[str, Any] | None:
        """Return the input fields that the operator has chosen to record, and those that the method must."""
        if not isinstance(call, RoutedCall):
            return None
        endpoint = call.route.endpoint
        names = (*endpoint.recorded, *self.fields.get(endpoint.key, ()))
        recorded = {name: call.input[name] for name in names if name in call.input} if names else None
        more = None if recorded is None else call.server.hooks.get(f"{RECORD}{call.method}")
        if recorded is not None and more is not None:
            recorded |= more(call)
        return recorded


class RunningTrail:
    """Attached to the store on creation; writes checkpoints from `start` to `stop`."""

    def __init__(self, settings: AuditSettings, server_id: str, store: Store, keys: tuple[OKPKey, ...]) -> None:
        """Attach to a store; `keys` are the signing key, followed by those it replaced; none for an unsigned trail."""
        from bespeak.state.audit.trail import ChainSealer  # noqa: PLC0415 - for servers with a trail

        ends = settings.sign == "none"
        signing = cast("Signing", settings.sign or "each")
        self._store = store
        self.keys = keys
        self._ends = ends
        self._checkpointer: Checkpointer | None = None
        sealer = ChainSealer()
        if keys:
            from bespeak.state.audit.checkpoints import Checkpointer  # noqa: PLC0415
            from bespeak.state.identity.key_files import SigningKey, trusted  # noqa: PLC0415

            key = SigningKey(keys[0])
            sealer = sealer if ends else ChainSealer(key, signing=signing)
            self._checkpointer = Checkpointer(
                store, sealer, key, server_id=server_id, trusted=trusted(keys), every=settings.checkpoint_every
            )
        store.attach(sealer)
        self.auditor = Auditor(
            server_id,
            attributes=bool(keys) and signing == "each",
            everything=settings.recording(lasting=store.lasting) == "all",
            discovery=settings.discovery,
            fields=settings.fields,
        )

    async def start(self) -> None:
        """Write a checkpoint over the records of earlier processes, then continue."""
        if self._checkpointer is None:
            await self._warn_of_unrecorded_end()
        elif self._ends:
            await self._checkpointer.end()
        else:
            await self._checkpointer.start()

    async def _warn_of_unrecorded_end(self) -> None:
        from bespeak.state.store.commands.audit import LastCheckpoint  # noqa: PLC0415

        done = await self._store.do(LastCheckpoint())
        if isinstance(done, Conflict) or done[0] is None:
            return
        from bespeak.state.audit.checkpoints import ENDS, read_checkpoint  # noqa: PLC0415 - loads cryptography

        last = read_checkpoint(done[0][1])
        if last is not None and last.signing != ENDS:
            _logger.warning(
                "the audit trail was signed until now and there is no signing key any more, so `bespeak audit verify` "
                'will report the new records; to end signing, write sign = "none" in [audit] and keep signing_key'
            )

    async def stop(self) -> None:
        """Write the final checkpoint. No records may follow."""
        if self._checkpointer is not None and not self._ends:
            await self._checkpointer.stop()

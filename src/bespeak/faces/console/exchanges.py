"""One call from the console, as it is on the wire: its text, the gates that judged it, and what may help if refused."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

import msgspec

from bespeak.contract.grammar.syntax import fill_path
from bespeak.errors import LocalProtocolError
from bespeak.protocol import status
from bespeak.protocol.exchange import headers as names
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.exchange.principal import derived_id
from bespeak.protocol.exchange.refusal import GATES, Fault, Refused, gate_of
from bespeak.protocol.wire.connection import encode_request, encode_response
from bespeak.protocol.wire.messages import DEFAULT_LIMITS
from bespeak.runtime.answer import Effects
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.dispatcher import Answering, Dispatcher, Outcome
from bespeak.runtime.identity.authority import KEPT_HEADERS
from bespeak.runtime.route import CATALOG_WARNING, ENDPOINT_WARNING, Route

PASSED: Final = "passed"
REFUSED: Final = "refused"
_ABOUT: Final = {name: about for name, about, _ in GATES}
HANDLER: Final = "handler"


@dataclass(frozen=True, slots=True)
class Station:
    """A gate that judged a call, or its handler."""

    name: str
    about: str  # what it decides
    seconds: float
    verdict: str


@dataclass(slots=True)
class Trail:
    """The stations of one call, in the order in which it passed them."""

    stations: list[Station] = field(default_factory=list)

    def note(self, name: str, seconds: float, *, passed: bool) -> None:
        about = _ABOUT.get(name.rpartition(" ")[2], "")
        self.stations.append(Station(name, about, seconds, PASSED if passed else REFUSED))

    def close(self, code: str | None) -> None:
        """Add the gate that refused with `code` if none of the watched ones has: it belongs to the settlement."""
        refused = None if code is None or any(one.verdict == REFUSED for one in self.stations) else gate_of(code)
        if refused is not None:
            self.note(refused, 0.0, passed=False)


class PressAgain(Exception):
    """The call cannot be undone, or passes on to calls that may be so, and nobody has pressed again."""


class TracedDispatcher(Dispatcher):
    """A dispatcher that answers exactly as another one, for one call, and notes its trail."""

    def __init__(self, dispatcher: Dispatcher, trail: Trail, *, confirmed: bool = True) -> None:
        """Trace a call through `dispatcher`, whose settlement, subscribers and gates are shared.

        Raises PressAgain for a call that cannot be undone, or may call what cannot, unless it is `confirmed`.
        """
        vars(self).update(vars(dispatcher))
        self._trail = trail
        self._confirmed = confirmed
        self._arrival = tuple(map(self._watched, self._arrival))
        self._routed = tuple(map(self._watched, self._routed))

    def _watched(self, gate: Callable[..., Any]) -> Callable[..., Any]:
        name = name_of(gate)

        def judge(call: Call) -> Any:
            started = perf_counter()
            refused = gate(call)
            self._trail.note(name, perf_counter() - started, passed=refused is None)
            return refused

        return judge

    def _find(self, call: Call, route: Route | None, started: float) -> Answering:
        began, known = perf_counter(), len(self._trail.stations)
        answer = super()._find(call, route, started)
        if call.route is not None or len(self._trail.stations) > known:
            return answer
        refused = answer.code if isinstance(answer, Response) else None
        if refused is not None:
            self._trail.note(gate_of(refused) or "route", perf_counter() - began, passed=False)
        return answer

    def _proceed(self, routed: RoutedCall, started: float) -> Answering:
        self._trail.note("route", 0.0, passed=True)
        # Here and not before: redirects, legacy verbs, letters in another case and endpoints that exist for one agent
        # only lead to endpoints that the words of the call do not name.
        endpoint = routed.route.endpoint
        if not self._confirmed and (endpoint.passes_on or endpoint.semantic.impact == "irreversible"):
            raise PressAgain("may call what cannot be undone" if endpoint.passes_on else "cannot be undone")
        return super()._proceed(routed, started)

    def _invoke(self, call: RoutedCall) -> Outcome:
        started = perf_counter()
        outcome = super()._invoke(call)
        if isinstance(outcome, Response | Effects):
            self._note_handler(outcome, started)
            return outcome
        return self._await_handler(outcome, started)

    async def _await_handler(
        self, outcome: Coroutine[Any, Any, Response | Effects], started: float
    ) -> Response | Effects:
        settled = await outcome
        self._note_handler(settled, started)
        return settled

    def _note_handler(self, settled: Response | Effects, started: float) -> None:
        refused = isinstance(settled, Response) and settled.code is not None
        self._trail.note(HANDLER, perf_counter() - started, passed=not refused)


def name_of(gate: Callable[..., Refused | None]) -> str:
    """Return the name of a gate, from that of its function: `agent_rate_gate` is the gate `agent rate`."""
    return getattr(gate, "__name__", "gate").strip("_").removesuffix("_gate").removeprefix("judge_").replace("_", " ")


_MOST_SHOWN: Final = 256 * 1024  # characters of a body that are shown
_TAKEN: Final = frozenset(
    {
        *KEPT_HEADERS,
        *(names.AUTHORIZATION, names.SEMANTIC_PROFILE, names.METHOD_GRAMMAR, names.PREFER, names.REQUEST_ID),
    }
)
"""Headers that a call may be given. A signature is one of another message."""
_SPELLED: Final = {
    f"{word}-id": f"{word.title()}-ID"
    for word in ("agent", "session", "task", "request", "confirmation", "negotiation", "synthesis")
}
_HIDDEN: Final = "(not shown)"
_MEANINGS: Final = {
    "server-id": "the server that answered (AGTP-API 2)",
    "agtp-api-version": "the version of the protocol that it speaks (AGTP-API 2)",
    "response-id": "the name of this answer, for questions about it",
    "request-id": "the name that the caller gave the request",
    "task-id": "the task that the call belongs to; CHECK asks about it",
    "audit-id": "the record of this call in the audit trail",
    "cost-estimate": "what the call costs at most (AGTP-API 6.2)",
    "retry-after": "seconds to wait before calling again",
    "idempotency-replayed": "the answer of an earlier call with the same Idempotency-Key",
    "supported-methods": "what the server offers, told once for each connection",
    ENDPOINT_WARNING.lower(): "the endpoint is deprecated (AGTP-API 6.4)",
    CATALOG_WARNING.lower(): "the verb is deprecated in the catalog (AGTP-API 4.4)",
    "semantic-mapping": "the call was understood through mappings of terms",
    "synthesis-id": "the endpoint was composed for this agent",
}


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """A call as the console sends it."""

    method: str
    path: str
    input: dict[str, Any] = {}
    as_: str | None = msgspec.field(name="as", default=None)  # a name from which an Agent-ID is derived
    agent_id: str | None = None
    scopes: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    confirmed: bool = False  # True if the person has pressed again for a call that cannot be undone


async def make_exchange(
    dispatcher: Dispatcher, asked: Asked, connection: Connection
) -> dict[str, Any] | Fault | Refused:
    """Call an endpoint through every gate and describe the exchange; a Fault for what cannot be sent at all.

    A call that cannot be undone is refused until it is confirmed.
    """
    headers = _headers_of(asked)
    if isinstance(headers, Fault):
        return headers
    filled = fill_path(asked.path, asked.input)
    if isinstance(filled, Fault):
        return filled
    target, given = filled
    path, _, query = target.partition("?")
    body = b"" if given is None else msgspec.json.encode(given)
    sent = {_SPELLED.get(name, name.title()): value for name, value in headers.items()}
    if body:
        sent["Content-Type"] = names.MEDIA_AGTP
    shown = {name: _HIDDEN if name.lower() == names.AUTHORIZATION else value for name, value in sent.items()}
    try:
        head = len(encode_request(asked.method, target, tuple(sent.items()), body)) - len(body)
        text = encode_request(asked.method, target, tuple(shown.items()), body)
    except LocalProtocolError as error:
        return Fault(str(error))
    if head > DEFAULT_LIMITS.head:  # no server would read it
        return Fault(f"The head of a request is at most {DEFAULT_LIMITS.head} bytes; this one has {head}. Shorten it.")
    trail = Trail()
    request = Request(asked.method, path, query, headers, body, connection.seen_as("console"))
    started = perf_counter()
    try:
        answer = TracedDispatcher(dispatcher, trail, confirmed=asked.confirmed)(request)
        response = answer if isinstance(answer, Response) else await answer
    except PressAgain as reason:
        message = f"{asked.method[:40]} {path[:120]} {reason}; send it again with confirmed: true."
        return Refused(status.CONFLICT, "press-again", message)
    seconds = perf_counter() - started
    trail.close(response.code)
    return _describe(response, trail, seconds, _cut(text), asked)


def _headers_of(asked: Asked) -> dict[str, str] | Fault:
    headers = {name.lower().strip(): value.strip() for name, value in asked.headers.items()}
    refused = next((name for name in headers if name not in _TAKEN), None)
    if refused is not None:
        return Fault(f"The header {refused[:80]!r} cannot be given here; known are {', '.join(sorted(_TAKEN))}.")
    if asked.as_ is not None:
        headers[names.AGENT_ID] = derived_id(asked.as_)
    elif asked.agent_id is not None:
        headers[names.AGENT_ID] = asked.agent_id.strip()
    if asked.scopes:
        headers[names.AUTHORITY_SCOPE] = ", ".join(asked.scopes)
    return headers


def _describe(response: Response, trail: Trail, seconds: float, request: str, asked: Asked) -> dict[str, Any]:
    number = response.status
    pairs = [*response.block.pairs, *response.headers]
    reason = status.REASONS.get(number, "")
    wire = encode_response(number, reason, response.block.encoded, response.headers, response.body)
    body = _decode(response.body)
    error = body.get("error") if isinstance(body, dict) and response.code is not None else None
    return {
        "request": request,
        "response": _cut(wire),
        "status": number,
        "reason": reason,
        "meaning": status.MEANINGS.get(number, ""),
        "refused": response.code is not None,
        "ms": round(seconds * 1000, 3),
        "body": body,
        "gates": list(_gates(trail)),
        "headers": [(name, value, _MEANINGS.get(name.lower(), "")) for name, value in pairs],
        "error": error,
        "remedies": [] if error is None else list(find_remedies(number, error, asked)),
    }


def _gates(trail: Trail) -> Iterator[dict[str, Any]]:
    """Return the gates that judged the call, and those that it did not reach because one before them refused."""
    seen = {one.name.rpartition(" ")[2] for one in trail.stations}
    for one in trail.stations:
        yield {"gate": one.name, "about": one.about, "ms": round(one.seconds * 1000, 4), "verdict": one.verdict}
    if trail.stations and trail.stations[-1].verdict == "refused":
        order = [name for name, _, _ in GATES]
        last = trail.stations[-1].name.rpartition(" ")[2]
        after = order[order.index(last) + 1 :] if last in order else []
        yield from (
            {"gate": name, "about": _ABOUT[name], "ms": None, "verdict": "not reached"}
            for name in after
            if name not in seen
        )


def find_remedies(number: int, error: Mapping[str, Any], asked: Asked) -> Iterator[dict[str, Any]]:
    """Return what the contract offers after a refusal, each with the change of the call that tries it."""
    allowed = error.get("allowed_methods_for_path")
    for method in allowed if isinstance(allowed, list) else ():
        yield _remedy("method", f"Call {method} {asked.path}", method=method)
    redirects = error.get("redirects_for_path")
    for method in redirects.values() if isinstance(redirects, dict) else ():
        if isinstance(method, str):
            yield _remedy("method", f"Call {method} {asked.path}", method=method)
    suggestions = error.get("suggestions")
    for verb in suggestions if isinstance(suggestions, list) else ():
        yield _remedy("verb", f"Use {verb}, the nearest verb of the catalog", method=verb)
    missing = error.get("missing_scopes")
    if isinstance(missing, list) and missing:
        scopes = list(dict.fromkeys([*asked.scopes, *missing]))
        yield _remedy("scopes", f"Declare {', '.join(map(str, missing))} too", scopes=scopes)
    if isinstance(case := error.get("confirmation_id"), str):
        yield _remedy("confirm", "Let somebody else decide it, then call again", headers={"Confirmation-ID": case})
    if number == status.NOT_FOUND and error.get("code") == "endpoint-not-found":
        yield _remedy("propose", "Propose an endpoint for it")
    if error.get("code") == "idempotency-key-required":
        yield _remedy("key", "Send an Idempotency-Key", headers={"Idempotency-Key": "console-1"})


def _remedy(kind: str, label: str, **change: Any) -> dict[str, Any]:
    return {"kind": kind, "label": label, "change": change}


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body) if body and len(body) <= _MOST_SHOWN else None
    except msgspec.DecodeError:
        return None


def _cut(wire: bytes) -> str:
    text = wire.decode("utf-8", "replace").replace("\r\n", "\n")
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}\n(cut: {len(text):,} characters)"

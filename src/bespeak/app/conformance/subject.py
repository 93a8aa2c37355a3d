"""The server under test: its manifest and endpoints, our identity, and requests that must not change anything."""

from __future__ import annotations

import asyncio
import hashlib
import re
import ssl
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, partial
from itertools import product
from typing import Any, Final, Literal, TypeVar, cast
from urllib.parse import quote

import msgspec

from bespeak.contract.grammar.syntax import Template, parse_template
from bespeak.contract.schema.view import sample
from bespeak.errors import BespeakError, LocalProtocolError, RemoteProtocolError
from bespeak.protocol.exchange.headers import MEDIA_AGTP, MEDIA_JSON
from bespeak.protocol.status import REASONS
from bespeak.protocol.wire.connection import ResponseReader
from bespeak.protocol.wire.messages import Malformed, ResponseMessage
from bespeak.text.diagnostics.diagnostic import printable
from bespeak.text.reading.json_data import decode_json

_CALLER: Final = re.compile(r"agent|identity|credential|caller|principal|canonical")
"""Words in the error code of a refusal that is about the caller: servers differ in their codes."""

_SHOWN: Final = 240  # limit of shown evidence; `bespeak call` shows the whole response


@dataclass(frozen=True)
class Exchanged:
    method: str
    target: str
    sent: bytes
    status: int
    reason: str
    headers: Mapping[str, str]  # headers with names in lower case
    body: bytes
    agent_id: str | None = None
    scope: str | None = None
    invented: bool = False  # True if the path is a template that was filled with made-up values

    def header(self, name: str) -> str | None:
        return self.headers.get(name.lower())

    @cached_property
    def json(self) -> Any:
        """Body as JSON, or None if it is not JSON."""
        try:
            return decode_json(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def field(self, name: str) -> Any:
        """Return a field of the body, at the top or inside `error`: the drafts do not say which (core 5.4)."""
        body = self.json
        error = body.get("error") if isinstance(body, dict) else None
        for place in (body, error, error.get("details") if isinstance(error, dict) else None):
            if isinstance(place, dict) and name in place:
                return place[name]
        return None

    def result(self, name: str) -> Any:
        """Return a field of an answer, at the top or in the envelope of a floor method."""
        found, body = self.field(name), self.json
        envelope = body.get("result") if isinstance(body, dict) else None
        return envelope.get(name) if found is None and isinstance(envelope, dict) else found

    @property
    def code(self) -> str:
        """Error code in lower case with hyphens; empty if the body has none."""
        error = self.json.get("error") if isinstance(self.json, dict) else None
        stated = (self.field("code"), self.field("error_code"), error)
        return next((text.lower().replace("_", "-") for text in stated if isinstance(text, str)), "")

    def names(self, text: str) -> bool:
        """Return True if the body contains a text as a whole word, in any case: `id` does not occur in `invalid`."""
        word = rf"(?<![A-Za-z0-9_]){re.escape(text)}(?![A-Za-z0-9_])"
        return re.search(word, self.body.decode(errors="replace"), re.IGNORECASE) is not None

    def requires(self, condition: str) -> bool:
        """Return True if the body states a condition such as `wildcards-required` in one of the usual fields."""
        return condition in (self.field("type"), self.field("reason"), self.field("condition"), self.code)

    @property
    def is_success(self) -> bool:
        """True if the request was carried out. A status from 260 on is an answer to a proposal, or a refusal."""
        return 200 <= self.status < 260

    @property
    def refuses_caller(self) -> bool:
        """True if the server refused our identity or authority, which may be before it looked at the request."""
        if self.status in (401, 403):
            return True
        if self.status == 262:
            return not self.requires("wildcards-required")
        return self.status in (400, 404, 405, 410, 503) and _CALLER.search(self.code) is not None

    def __str__(self) -> str:
        said = [f"{self.method} {self.target}"]
        if self.agent_id is not None:
            said.append(f"Agent-ID: {self.agent_id[:8]}…")
        if self.scope is not None:
            said.append(f"Authority-Scope: {self.scope}")
        if self.sent:
            said.append(_short(self.sent))
        return f"{' | '.join(said)} → {self.status} {self.reason} {_short(self.body)}".rstrip()


Send = Callable[[str, str, Mapping[str, str], bytes], Awaitable[Exchanged]]
"""Function that sends method, target, headers and body unchanged and returns any response, including refusals."""


def _short(body: bytes) -> str:
    text = printable(" ".join(body.decode("utf-8", "replace").split()))
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def direct_sender(host: str, port: int, *, tls: ssl.SSLContext | None, timeout: float) -> Send:
    """Return a sender for one server. A new connection per request suits servers that close after each reply."""

    async def send(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Exchanged:
        if not f"{method}{target}".isprintable() or " " in method + target:
            # Both may come from the server's own manifest.
            raise LocalProtocolError(f"{method[:40]!a} {target[:80]!a} cannot be sent on a request line.")
        lines = [f"AGTP/1.0 {method} {target}", *(f"{name}: {value}" for name, value in headers.items())]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""])
        async with asyncio.timeout(timeout):
            reply = await _exchange(host, port, tls, head.encode() + body)
        caller = headers.get("Agent-ID"), headers.get("Authority-Scope")
        return Exchanged(method, target, body, reply.status, reply.reason, reply.headers, reply.body, *caller)

    return send


async def _exchange(host: str, port: int, tls: ssl.SSLContext | None, data: bytes) -> ResponseMessage:
    incoming, outgoing = await asyncio.open_connection(host, port, ssl=tls)
    try:
        outgoing.write(data)
        with suppress(ConnectionError):  # a server may refuse and close before it has read everything
            await outgoing.drain()
        reader = ResponseReader()
        while not isinstance(event := reader.next_event(), ResponseMessage):
            if isinstance(event, Malformed):
                raise RemoteProtocolError(event.message)
            received = await incoming.read(65536)
            if not received:
                raise RemoteProtocolError("the server closed the connection before the response was complete")
            reader.receive_data(received)
        return event
    finally:
        outgoing.close()
        with suppress(OSError):
            await outgoing.wait_closed()


@dataclass(frozen=True, slots=True)
class InputForm:
    """How input is written: AGTP-API validates the body itself, the base protocol has an envelope (core 5.2)."""

    wrapped: bool = False
    media: str = MEDIA_AGTP

    def write(self, input: Any) -> Any:  # noqa: A002 - the draft's word
        """Return the body for an input. Only an object has an envelope."""
        return {"parameters": input} if self.wrapped and isinstance(input, dict) else input


_NOT_THERE: Final = "/zz-no-such-thing"
FORMS: Final = tuple(InputForm(*form) for form in product((False, True), (MEDIA_AGTP, MEDIA_JSON)))


def objects(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def method_names(value: Any) -> list[str]:
    """Return the names in a list of methods: the draft shows neither strings nor objects, and both occur."""
    entries = value if isinstance(value, list) else []
    names = (mapping(entry).get("name", mapping(entry).get("method", entry)) for entry in entries)
    return [name for name in names if isinstance(name, str)]


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def properties(endpoint: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(endpoint.get("input_schema")).get("properties"))


def path_parameters(endpoint: Mapping[str, Any]) -> tuple[str, ...]:
    parsed = parse_template(endpoint["path"])
    return parsed.parameters if isinstance(parsed, Template) else ()


def concrete_path(endpoint: Mapping[str, Any]) -> str:
    path: str = endpoint["path"]
    for name in path_parameters(endpoint):
        value = sample(mapping(properties(endpoint).get(name)))
        path = path.replace(f"{{{name}}}", quote(str(value if value is not None else "1"), safe=""))
    return path


def matches(template: str, path: str) -> bool:
    """Return True if a path, literal or with parameters, covers a request path."""
    parsed = parse_template(template)
    given = path[1:].split("/")
    if not isinstance(parsed, Template) or len(parsed.segments) != len(given):
        return False
    pairs = zip(parsed.segments, given, strict=True)
    return all(value if wanted is None else wanted == value for wanted, value in pairs)


def missing_path(endpoints: Iterable[Mapping[str, Any]]) -> str:
    """Return a path that no endpoint covers, not even by a template such as /{name}."""
    templates = [endpoint["path"] for endpoint in endpoints]
    path = _NOT_THERE
    while any(matches(template, path) for template in templates):
        path += _NOT_THERE
    return path


def is_informational(endpoint: Mapping[str, Any]) -> bool:
    return mapping(endpoint.get("semantic")).get("impact") == "informational"


def is_safe(endpoint: Mapping[str, Any]) -> bool:
    """Return True if input with only the probe field changes nothing, even on a server that accepts that field."""
    return is_informational(endpoint) or bool(required_fields(endpoint))


def required_fields(endpoint: Mapping[str, Any]) -> list[str]:
    required = strings(mapping(endpoint.get("input_schema")).get("required"))
    return [name for name in required if name not in path_parameters(endpoint)]


def valid_input(endpoint: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return valid input without path parameters for an endpoint that changes nothing; None for any other."""
    value = sample(mapping(endpoint.get("input_schema"))) if is_informational(endpoint) else None
    if not isinstance(value, dict):
        return None
    return {name: given for name, given in value.items() if name not in path_parameters(endpoint)}


PROBE_FIELD: Final = "conformance_probe"  # declared by no endpoint: inputs are closed, so it is refused (13.3)
PROBE_AGENT: Final = hashlib.sha256(b"bespeak conformance probe").hexdigest()  # our Agent-ID where any is accepted
PROBE_SCOPE: Final = "conformance:probe"  # scope that no endpoint requires
_HOSTED_TRIED: Final = 8
_FORMS_TRIED: Final = 3
_AGENT_ID: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")

T = TypeVar("T")


class Subject:
    """State that the checks share. Every exchange is recorded, because some checks are about all of them."""

    manifest_answer: Exchanged
    inventory_answer: Exchanged

    def __init__(self, send: Send, agent_id: str | None) -> None:
        self._send = send
        self._known: dict[object, Any] = {}
        self.agent_id = agent_id
        self.exchanges: list[Exchanged] = []
        self._made: dict[str, str | None] = {}  # ids of our proposals and syntheses, and the identity that asked
        self.manifest: Mapping[str, Any] = {}
        self.has_manifest = False
        self.identities: tuple[str | None, ...] = (agent_id,)  # identities that may be tried, ours first
        self.form: InputForm = FORMS[0]
        self.knows_form = False  # True if an input in our form was accepted: a 400 is about the input

    @classmethod
    async def meet(cls, send: Send, agent_id: str | None = None) -> Subject:
        """Read the manifest, find an identity that the server accepts, and the form in which it takes input."""
        subject = cls(send, agent_id)
        subject.manifest_answer = await subject.send("DISCOVER", "/")
        document = subject.manifest_answer.json
        if subject.manifest_answer.status == 200 and isinstance(document, dict):
            subject.manifest, subject.has_manifest = document, True
        await subject._choose_identity(agent_id)
        await subject._learn_form()
        return subject

    async def _choose_identity(self, agent_id: str | None) -> None:
        """Choose the identity that may do most: both list the endpoints and use a method."""
        # A server may accept any well-formed id, only the ids it hosts, or need no id.
        others = (PROBE_AGENT, *_hosted_ids(self.manifest.get("hosted_agents")), None)
        candidates: tuple[str | None, ...] = (agent_id,) if agent_id else others
        best = -1
        for candidate in candidates:
            inventory = await self.send("DISCOVER", "/methods", agent_id=candidate)
            accepted = int(not inventory.refuses_caller)
            if accepted:
                method = await self.send("QUERY", self.missing_path, agent_id=candidate)
                accepted += int(not method.refuses_caller and method.status != 405)
            if accepted > best:
                best, self.agent_id, self.inventory_answer = accepted, candidate, inventory
            if best == 2:
                break
        self.identities = (self.agent_id, *(each for each in candidates if each != self.agent_id))

    async def _learn_form(self) -> None:
        """Find the form of input that a harmless endpoint accepts; most servers accept the first."""
        free = [endpoint for endpoint in self.endpoints if not endpoint.get("required_scopes")]
        inputs = [(endpoint, given) for endpoint in free for given in _telling_inputs(endpoint)]
        # At a template, the server may find nothing for a value that is made up.
        inputs.sort(key=lambda pair: (bool(path_parameters(pair[0])), not pair[1]))
        for endpoint, given in inputs[:_FORMS_TRIED]:
            for form in FORMS:
                self.form = form
                if (await self.call(endpoint, given)).is_success:
                    self.knows_form = True
                    return
        self.form = FORMS[0]

    async def send(
        self,
        method: str,
        target: str,
        body: Any = None,
        *,
        agent_id: str | None = None,
        scope: str | None = None,
        task_id: str | None = None,
        media: str | None = None,
        invented: bool = False,
    ) -> Exchanged:
        """Send one request as given, anonymously unless an agent is named. `invented`: its path has made-up values."""
        named = {"Agent-ID": agent_id, "Authority-Scope": scope, "Task-ID": task_id}
        headers = {name: value for name, value in named.items() if value is not None}
        content = b""
        if body is not None:
            headers["Content-Type"] = media or self.form.media
            content = msgspec.json.encode(body)
        sending = asyncio.ensure_future(self._send(method, target, headers, content))
        try:
            seen = await asyncio.shield(sending)
        except asyncio.CancelledError:
            # What the server makes of it is only known from its answer, and must be released.
            with suppress(OSError, BespeakError):
                self._note(await sending, agent_id)
            raise
        seen = replace(seen, invented=True) if invented else seen
        self._note(seen, agent_id)
        return seen

    def _note(self, seen: Exchanged, agent_id: str | None) -> None:
        self.exchanges.append(seen)
        made_id = seen.result("synthesis_id") or seen.result("proposal_id") or seen.header("Synthesis-Id")
        if seen.method == "PROPOSE" and isinstance(made_id, str):
            self._made[made_id] = agent_id

    async def release(self) -> None:
        """Release every synthesis and withdraw every proposal that the server has made for us."""
        while self._made:
            made_id, agent_id = self._made.popitem()
            with suppress(OSError, BespeakError, RecursionError):
                await self.send("SUSPEND", "/", {"synthesis_id": made_id}, agent_id=agent_id)

    async def ask(self, method: str, target: str, body: Any = None, *, invented: bool = False) -> Exchanged:
        return await self.send(method, target, body, agent_id=self.agent_id, invented=invented)

    async def call(self, endpoint: Mapping[str, Any], input: Any = None, query: str = "") -> Exchanged:  # noqa: A002 - the draft's word
        """Call an endpoint with the scopes it requires, or with the agent's own where ours are not trusted."""
        target = concrete_path(endpoint) + (f"?{query}" if query else "")
        scopes = strings(endpoint.get("required_scopes")) or [PROBE_SCOPE]
        body, invented = self.form.write(input), bool(path_parameters(endpoint))
        scope = ", ".join(scopes)
        seen = await self.send(endpoint["method"], target, body, agent_id=self.agent_id, scope=scope, invented=invented)
        if seen.status == 262:
            seen = await self.ask(endpoint["method"], target, body, invented=invented)
        return seen

    async def once(self, question: Callable[[Subject], Awaitable[T]]) -> T:
        """Return the result of a question that several checks share; it is put once."""
        if question not in self._known:
            self._known[question] = await question(self)
        return cast("T", self._known[question])

    @property
    def endpoints(self) -> list[Mapping[str, Any]]:
        """Endpoints of the manifest that have a method and a path."""
        return [
            endpoint
            for endpoint in objects(self.manifest.get("endpoints"))
            if isinstance(endpoint.get("method"), str) and isinstance(endpoint.get("path"), str)
        ]

    @cached_property
    def missing_path(self) -> str:
        return missing_path(self.endpoints)

    @property
    def policies(self) -> Mapping[str, Any]:
        return mapping(self.manifest.get("policies"))

    @property
    def method_policy(self) -> Mapping[str, Any]:
        return mapping(self.policies.get("methods"))


def _hosted_ids(hosted: Any) -> list[str]:
    """Return ids of hosted agents, those with most methods first; the format of an entry is up to the operator."""
    entries = hosted if isinstance(hosted, list) else []
    counts = [mapping(entry).get("methods_count") for entry in entries]
    order = sorted(range(len(entries)), key=lambda at: -count if isinstance(count := counts[at], int) else 0)
    found = (_AGENT_ID.search(msgspec.json.encode(entries[at]).decode()) for at in order[: 4 * _HOSTED_TRIED])
    return list(dict.fromkeys(match.group() for match in found if match is not None))[:_HOSTED_TRIED]


def _telling_inputs(endpoint: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return valid inputs of a harmless endpoint. One with an optional field is first: empty ones look alike."""
    given = valid_input(endpoint)
    if given is None:
        return
    for name, schema in properties(endpoint).items():
        value = sample(mapping(schema))
        if name not in given and name not in path_parameters(endpoint) and value is not None:
            yield {**given, name: value}
            break
    yield given


_LISTED: Final = 5  # limit of named faults of the same kind


class Verdict(StrEnum):
    PASS = "pass"  # noqa: S105 - a verdict, no password
    WARN = "warn"  # a SHOULD is not met, or the drafts leave the answer open
    FAIL = "fail"
    COULD_NOT_TELL = "could-not-tell"  # no response shows it; neither pass nor failure
    NOT_APPLICABLE = "not-applicable"  # the server has nothing that the check is about


SEVERITY: Final = (Verdict.NOT_APPLICABLE, Verdict.PASS, Verdict.COULD_NOT_TELL, Verdict.WARN, Verdict.FAIL)
"""Verdicts from weakest to strongest: a statement about several things holds only if it is shown for each."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    verdict: Verdict
    note: str = ""
    evidence: tuple[Exchanged, ...] = ()


CheckRun = Callable[[Subject], Awaitable[CheckOutcome]]


@dataclass(frozen=True, slots=True)
class Check:
    """One question to a server. A failed SHOULD is a warning."""

    id: str
    title: str
    section: str
    run: CheckRun
    level: Literal["MUST", "SHOULD"] = "MUST"
    needs_manifest: bool = True  # True if the check compares the server with its manifest

    def judge(self, outcome: CheckOutcome) -> CheckOutcome:
        weaker = self.level == "SHOULD" and outcome.verdict is Verdict.FAIL
        return replace(outcome, verdict=Verdict.WARN) if weaker else outcome


def _outcome(verdict: Verdict, note: str, *evidence: Exchanged) -> CheckOutcome:
    return CheckOutcome(verdict, note, evidence)


passed: Final = partial(_outcome, Verdict.PASS, "")
failed: Final = partial(_outcome, Verdict.FAIL)
warned: Final = partial(_outcome, Verdict.WARN)
could_not_tell: Final = partial(_outcome, Verdict.COULD_NOT_TELL)
not_applicable: Final = partial(_outcome, Verdict.NOT_APPLICABLE)


def undecided(seen: Exchanged) -> CheckOutcome | None:
    """Return why a response says nothing about the request itself; None if it does say something."""
    if seen.refuses_caller or seen.status == 455:
        return could_not_tell(f"the server rejected the caller with {seen.status}; give --agent-id", seen)
    if seen.invented and seen.status == 404:
        return could_not_tell(f"nothing is found at {seen.target}, whose values are made up", seen)
    if seen.status in (429, 503):
        return could_not_tell(f"the server answered {seen.status} {REASONS[seen.status]}; try again later", seen)
    return None


def expect(seen: Exchanged, *statuses: int) -> CheckOutcome:
    refused = None if seen.status in statuses and not seen.refuses_caller else undecided(seen)
    if refused is not None:
        return refused
    if seen.status in statuses:
        return passed(seen)
    wanted = " or ".join(f"{number} {REASONS[number]}" for number in statuses)
    return failed(f"answered {seen.status}, expected {wanted}", seen)


async def first_told(attempts: Iterable[Awaitable[CheckOutcome]]) -> CheckOutcome | None:
    """Return the first outcome that tells something, else the first one; None without attempts."""
    first = None
    for attempt in attempts:
        outcome = await attempt
        if outcome.verdict is not Verdict.COULD_NOT_TELL:
            return outcome
        first = first or outcome
    return first


def all_of(outcomes: Iterable[CheckOutcome]) -> CheckOutcome:
    """Return the strongest of several outcomes, with the notes and evidence that share its verdict."""
    found = list(outcomes)
    if not found:
        return not_applicable("nothing to check")
    verdict = max((outcome.verdict for outcome in found), key=SEVERITY.index)
    same = [outcome for outcome in found if outcome.verdict is verdict]
    notes = dict.fromkeys(outcome.note for outcome in same if outcome.note)
    return CheckOutcome(verdict, "; ".join(notes), tuple(seen for outcome in same for seen in outcome.evidence))


def faults(found: Iterable[str], *evidence: Exchanged) -> CheckOutcome:
    """Pass if there are no faults, else fail and name the first few."""
    listed = list(found)
    if not listed:
        return passed(*evidence)
    more = f"; and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return failed("; ".join(listed[:_LISTED]) + more, *evidence)

"""A negotiation (AGTP-API 10.2): a proposal, PROPOSE, counter-proposals, an escalation; at its end a synthesis (10.4).

Fields of a proposal are written `email`, `limit?:integer`, `invoices[].total:number`.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.agent.client import errors
from bespeak.agent.client.errors import Reply
from bespeak.agent.client.sender import RetryPolicy
from bespeak.checks.evolution import schema_diff
from bespeak.checks.evolution.change import ChangeList, ContractChange
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import CAPABILITIES, IMPACTS, Endpoint
from bespeak.contract.handler import COMPOSITION_FAILED, Composition
from bespeak.contract.schema.subschemas import inline
from bespeak.documents.ai.param_notation import FORMATS, TYPES, parse_param
from bespeak.documents.manifest_json import parse_endpoint
from bespeak.documents.projections.agtp_manifest import project_endpoint
from bespeak.errors import ConfigError, RemoteProtocolError
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import MEDIA_ENDPOINT
from bespeak.protocol.exchange.principal import Scopes
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.identifiers import slug
from bespeak.text.reading.table import as_mapping, as_optional_text

if TYPE_CHECKING:
    from bespeak.agent.client.service import ServiceClient

# field = step *( "." step ) [ "?" ] [ ":" type ]      step = name *"[]"
_FIELD: Final = re.compile(r"([^\s.:?,\[\]{}]+(?:\[\])*(?:\.[^\s.:?,\[\]{}]+(?:\[\])*)*)(\?)?(?::(\S+))?")
_STEP: Final = re.compile(r"([^\[]+)((?:\[\])*)")
_LONGEST: Final = 500
_DEEPEST: Final = 16
_MOST: Final = 500  # most fields of one list: more than people write, and servers refuse more
_PYTHON: Final[Mapping[Any, str]] = {str: "string", int: "integer", float: "number", bool: "boolean"}
Fields = Iterable[str] | Mapping[str, Any]  # fields in the notation, a mapping of them to types, or a JSON Schema
_READING: Final = ("discovery", "retrieval", "analysis")  # capabilities whose verbs change nothing
_PARAMETER: Final = re.compile(r"\{([A-Za-z0-9_]+)\}")
_TYPED: Final = ("type", "format", "enum")


def read_fields(fields: Fields) -> dict[str, Any]:
    """Return the JSON Schema of an object with these fields. Raises ConfigError if one cannot be read.

    A mapping with `properties`, or with the type `object`, is a schema and returned as it is. In other mappings, each
    value is a type of the notation, a Python type or a schema.
    """
    if isinstance(fields, str):
        raise ConfigError(f"Fields must be a list, not the string {brief(fields)}; write [{brief(fields)}].")
    if isinstance(fields, Mapping) and (
        isinstance(fields.get("properties"), Mapping) or fields.get("type") == "object"
    ):
        return dict(fields)
    root: dict[str, Any] = {"type": "object", "properties": {}}
    pairs = list(fields.items()) if isinstance(fields, Mapping) else [(text, None) for text in fields]
    if len(pairs) > _MOST:
        raise ConfigError(f"At most {_MOST} fields can be named; got {len(pairs)}.")
    for text, given in pairs:
        path, optional, kind = _split(text)
        named = _PYTHON.get(given, given) if isinstance(given, type) else given
        schema = dict(named) if isinstance(named, Mapping) else read_type(named or kind, text)
        _add(root, path, schema, text, required=not optional)
    return root


def read_type(kind: Any, field: str) -> dict[str, Any]:
    """Return the schema of a type in the notation: a JSON type, a format or `TYPE[]`; None is any value."""
    if kind is None:
        return {}
    read = parse_param(kind) if isinstance(kind, str) else None
    if read is None or not read.schema or read.description:
        known = ", ".join((*TYPES, "object", *FORMATS[:6]))
        raise ConfigError(f"{brief(kind)} is not a valid type of the field {brief(field)}; use one of {known}.")
    return read.schema


def _split(text: Any) -> tuple[list[str], bool, str | None]:
    match = _FIELD.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    steps = match[1].split(".") if match else []
    if match is None or len(steps) > _DEEPEST or text.count("[]") > _DEEPEST:
        advice = "write it like email, limit?:integer or invoices[].total:number"
        raise ConfigError(f"{brief(text)} is not a valid field; {advice}.")
    return steps, bool(match[2]), match[3]


def _add(root: dict[str, Any], steps: list[str], schema: dict[str, Any], text: str, *, required: bool) -> None:
    node = root
    for number, step in enumerate(steps, 1):
        match = _STEP.fullmatch(step)
        assert match is not None
        name, arrays = match[1], match[2].count("[]")
        properties = _open(node, "object", text).setdefault("properties", {})
        is_leaf = number == len(steps)
        if (required or not is_leaf) and name not in node.setdefault("required", []):
            node["required"].append(name)
        node = properties.setdefault(name, {})
        for _ in range(arrays):
            node = _open(node, "array", text).setdefault("items", {})
        if is_leaf and schema and node and node != schema:
            raise ConfigError(f"The field {brief(text)} is named twice, as {_kind(node)} and as {_kind(schema)}.")
    node.update(schema)


def _open(node: dict[str, Any], kind: str, text: str) -> dict[str, Any]:
    if node.setdefault("type", kind) != kind:
        raise ConfigError(f"The field {brief(text)} lies in a field that is named as {_kind(node)}, not as {kind}.")
    return node


def _kind(schema: Mapping[str, Any]) -> str:
    return str(schema.get("format") or schema.get("type") or "any value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The definition of an endpoint as it is sent, and as the contract model reads it."""

    definition: Mapping[str, Any]
    endpoint: Endpoint


def read_proposal(definition: Mapping[str, Any]) -> Proposal:
    """Read a complete definition. Raises ConfigError if it is not one."""
    try:
        data = msgspec.json.encode(definition)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ConfigError(f"The definition of the endpoint is not JSON: {error}.") from error
    endpoint, findings = parse_endpoint(data)
    if endpoint is None:
        reason = findings[0].message if findings else "it needs a method and a path"
        raise ConfigError(f"The definition of the endpoint is not valid: {reason}.")
    return Proposal(definition=definition, endpoint=endpoint)


def define(
    method: str,
    path: str,
    *,
    given: Fields = (),
    needs: Fields = (),
    intent: str | None = None,
    impact: str | None = None,
    known: Iterable[Endpoint] = (),
) -> Proposal:
    """Define the endpoint that an agent asks for.

    `impact` is the worst effect that the agent accepts, by default that of the verb. Inputs without a type take the
    one that the `known` endpoints agree on, else they are strings.
    """
    if impact is not None and impact not in IMPACTS:
        raise ConfigError(f"impact must be one of {', '.join(IMPACTS)}; got {brief(impact)}.")
    method = method.upper()
    verb = load_bundled().verbs.get(method)
    capability = next((name for name in verb.categories if name in CAPABILITIES), "") if verb else ""
    worst = impact or ("informational" if capability in _READING else "irreversible")
    words = slug(_PARAMETER.sub("", path), " ")  # `/rooms/cheap` gives `rooms cheap`
    said = intent or f"{method.capitalize()} {words}.".replace(" .", ".")
    names = list(read_fields(needs).get("properties", ()))
    named = f"The caller has {', '.join(names[:8])}{' and more' if len(names) > 8 else ''}."
    return read_proposal(
        {
            "method": method,
            "path": path,
            "description": said,
            "semantic": {
                "intent": said,
                "actor": "agent",
                "outcome": named if names else "It is done.",
                "capability": capability or "domain_spanning",
                # The server lowers it to what its steps give; a lower value would be taken for theirs.
                "confidence": 1.0,
                "impact": worst,
                "is_idempotent": worst == "informational",
            },
            "input_schema": _input(path, read_fields(given), known),
            "output_schema": read_fields(needs),
            "errors": [COMPOSITION_FAILED],
            "handler": {"type": "composition"},
        }
    )


def _input(path: str, schema: dict[str, Any], known: Iterable[Endpoint]) -> dict[str, Any]:
    """Complete an input schema: the path's parameters, types where there are none, and no other fields."""
    properties = dict(schema.get("properties", {}))
    required = list(schema.get("required", ()))
    for name in _PARAMETER.findall(path):
        properties.setdefault(name, {})
        if name not in required:
            required.append(name)
    untyped = [name for name, one in properties.items() if one == {}]
    if untyped:
        endpoints = tuple(known)
        properties |= {name: _agreed_type(name, endpoints) for name in untyped}
    done = {**schema, "properties": properties, "additionalProperties": False}
    return {**done, "required": required} if required else done


def _agreed_type(name: str, known: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the type that every endpoint gives an input of this name; a string if they differ or none has it."""
    found = {
        msgspec.json.encode(kept, order="sorted")
        for endpoint in known
        if isinstance(properties := endpoint.input_schema.get("properties"), Mapping)
        and isinstance(one := inline(properties.get(name), endpoint.input_schema), Mapping)
        and (kept := {key: one[key] for key in _TYPED if key in one})
    }
    return dict(msgspec.json.decode(found.pop())) if len(found) == 1 else {"type": "string"}


JUDGED: Final = ("input_schema", "output_schema", "semantic")  # members by which a contract is judged
_HARMLESS: Final = frozenset({schema_diff.ANNOTATION_CHANGED, schema_diff.DEFAULT_CHANGED, schema_diff.FIELD_ADDED})
"""Changes of an output that take nothing away."""
_REFUSING: Final = frozenset({schema_diff.FIELD_REMOVED, schema_diff.TYPE_CHANGED, schema_diff.NOT_COMPARABLE})
"""Changes of an input after which a value that the agent has is not taken. A narrower value is only noted: the agent
learns it from the schema before it calls."""


@dataclass(frozen=True, slots=True)
class ContractFit:
    """What an offered contract lacks of the one that was asked for."""

    differences: tuple[str, ...]  # what was asked for and is not offered; empty if the contract can be used
    notes: tuple[str, ...]  # differences that take nothing away
    unstated: tuple[str, ...]  # members that the server did not state, so that they cannot be compared

    @property
    def fits(self) -> bool:
        """True if nothing that was asked for is missing, as far as the server states it."""
        return not self.differences


def _place(asked: Endpoint, offered: Endpoint, notes: list[str], *, elsewhere: bool) -> Iterator[str]:
    if asked.key == offered.key:
        return
    message = f"it is {offered}, not {asked}"
    # Two endpoints that change something may have the same fields and opposite effects.
    if elsewhere and asked.semantic.impact == "informational":
        notes.append(message)
    else:
        yield message


def _schemas(asked: Endpoint, offered: Endpoint, stated: Collection[str]) -> list[ContractChange]:
    changes = ChangeList(str(offered))
    if "input_schema" in stated:
        schema_diff.diff_schemas(asked.input_schema, offered.input_schema, "request", "/input_schema", changes)
    if "output_schema" in stated:
        schema_diff.diff_schemas(asked.output_schema, offered.output_schema, "response", "/output_schema", changes)
    return changes.found


def _is_refused(change: ContractChange) -> bool:
    """Return True if the endpoint does not take the inputs that the agent has."""
    return change.about in _REFUSING or (change.about == schema_diff.FIELD_ADDED and change.level == "breaking")


def _is_lost(change: ContractChange) -> bool:
    """Return True if the endpoint does not promise an output that the agent needs."""
    if change.about == schema_diff.FIELD_REMOVED:
        return change.level == "breaking"
    return change.level != "safe" and change.about not in _HARMLESS


def _semantics(asked: Endpoint, offered: Endpoint, confidence: float) -> Iterator[str]:
    before, after = asked.semantic, offered.semantic
    if IMPACTS.index(after.impact) > IMPACTS.index(before.impact):
        yield f"its impact is {after.impact}, and at most {before.impact} is allowed"
    if after.confidence < confidence:
        yield f"its confidence is {after.confidence}, and at least {confidence} is wanted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis:
    """An approved endpoint whose contract was compared with the one that was asked for."""

    endpoint: Endpoint
    """Contract of the endpoint."""
    synthesis_id: str | None
    """Id of the synthesis; None if the service has the endpoint anyway."""
    proposal_id: str | None = None
    negotiation_id: str | None = None
    expires_at: str | None = None
    """Time at which the endpoint ends, if the server gives one; without it, it ends with the session."""
    persistent: bool = False
    granted_duration: str | None = None
    is_counter_proposal: bool = False
    """True if the server made another proposal, which was followed. Look at what it does before you call it."""
    explanation: tuple[str, ...] = ()
    """How the server composes the endpoint, step by step, if it says so."""
    notes: tuple[str, ...] = ()
    """What is other than asked and takes nothing away, and what the server did not state."""
    invoke: Callable[[Mapping[str, Any]], Any]
    """Calls the endpoint with an input."""

    def call(self, **input: Any) -> Any:  # noqa: A002 - the draft's word
        """Call the endpoint and return its output, to be awaited unless the client is a blocking one.

        Raises a ServiceError if the service refuses.
        """
        return self.invoke(input)

    def to_json(self) -> dict[str, Any]:
        """Return the synthesis as data; the endpoint without its handler's details."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("endpoint", "invoke")}
        return {**own, "endpoint": project_endpoint(self.endpoint)}


MOST_TURNS: Final = 3  # AGTP-API 10.2: proposals of one negotiation; after three rejections the agent must ESCALATE
_CLEAR: Final = frozenset({"composition-impossible", "out-of-scope", "policy-refused"})
"""Reasons of a rejection whose counter-proposal is followed if it fits. With any other, above all `ambiguous`, the
service does not know what is meant, and a contract that fits may still do something else.
"""
_POLLING: Final = RetryPolicy(first_delay=0.5, longest_delay=5.0)
_MOST_POLLS: Final = 1000
_ID: Final = re.compile(r"[!-~]{1,200}")
_REASONS: Final = {"ambiguous": "ambiguous_instruction", "out-of-scope": "scope_limit", "policy-refused": "scope_limit"}
"""Reason of an escalation (core 4.9) by the reason of the rejection; `resource_unavailable` for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What an agent accepts, and how far it goes for it."""

    scopes: tuple[str, ...] | None = None
    """Scopes that it declares, and the widest that the endpoint may require; None for all that the server grants."""
    confidence: float = 0.0  # least confidence that the endpoint must have
    persistent: bool = False
    duration: str | None = None
    session_id: str | None = None
    escalate: bool = False
    follow_effects: bool = False  # True to follow counter-proposals that change something
    follow_ambiguous: bool | Callable[[errors.ProposalRejectedError], bool] = False
    """True to follow counter-proposals of a service that doubts what is meant, or a function that decides."""
    wait: float = 30.0  # seconds to wait for a decision that takes long
    polling: RetryPolicy = field(default_factory=lambda: _POLLING)

    def compare(
        self, asked: Endpoint, offered: Endpoint, definition: Collection[str] = JUDGED, *, elsewhere: bool = False
    ) -> ContractFit:
        """Compare an offered endpoint with the one that was asked for. `definition` has the members that are stated.

        `elsewhere` allows another method and path for an endpoint that changes nothing.
        """
        stated = {name for name in JUDGED if name in definition}
        notes: list[str] = []
        differences = [*_place(asked, offered, notes, elsewhere=elsewhere)]
        for change in _schemas(asked, offered, stated):
            worse = _is_refused(change) if change.direction == "request" else _is_lost(change)
            if worse or change.level != "safe":
                (differences if worse else notes).append(change.message)
        if "semantic" in stated:
            differences += _semantics(asked, offered, self.confidence)
            if asked.semantic.is_idempotent and not offered.semantic.is_idempotent:
                notes.append("it is not idempotent")
        missing = [] if self.scopes is None else Scopes(self.scopes).missing(offered.required_scopes)
        differences += [f"it requires the scope {scope}, which is not allowed here" for scope in missing]
        unstated = (f"the server does not state {name}" for name in JUDGED if name not in stated)
        return ContractFit(tuple(differences), tuple(notes), tuple(unstated))

    def members(self) -> dict[str, Any]:
        """Return the members of a proposal beside the definition (core 4.6, table B)."""
        members: dict[str, Any] = {
            "session_id": self.session_id,
            "persistent": self.persistent or None,
            "requested_duration": self.duration,
            "scope_requested": list(self.scopes) if self.scopes else None,
        }
        return {name: value for name, value in members.items() if value is not None}


class Negotiation:
    def __init__(self, service: ServiceClient, terms: Terms, *, negotiation_id: str | None = None) -> None:
        self._service = service
        self._terms = terms
        self._id = negotiation_id
        self._proposal_id: str | None = None
        self._notes: list[str] = []
        self._followed = False

    async def run(self, proposal: Proposal, existing: Iterable[Endpoint] = ()) -> Synthesis:
        """Negotiate an endpoint, unless one in `existing` fits. Raises a ServiceError if the server refuses."""
        known = {endpoint.key: endpoint for endpoint in existing}
        found = known.get(proposal.endpoint.key)
        # A composition may have been made for another agent, which alone may call it: the server knows.
        declared = found is not None and found.handler.type != Composition.type
        if found is not None and declared and self._terms.compare(proposal.endpoint, found).fits:
            self._notes.append("the service has this endpoint already")
            return self._use(found, {}, None)
        current, tried = proposal, [proposal.definition]
        while True:
            # `name` is the reference implementation's word for the method (core 4.6).
            body = {**current.definition, "name": current.endpoint.method, **self._terms.members()}
            reply = await self._decided(await self._send("PROPOSE", "/", body, **{"Content-Type": MEDIA_ENDPOINT}))
            if reply.status == status.PROPOSAL_APPROVED:
                return self._approved(proposal, current, reply)
            error = errors.error_of(reply)
            if not isinstance(error, errors.ProposalRejectedError):
                raise error
            counter = self._counter(proposal, error)
            if counter is not None and counter.endpoint.key in known:
                return self._use(counter.endpoint, {}, None)
            if counter is None or counter.definition in tried or len(tried) == MOST_TURNS:
                raise await self._rejected(proposal, error, last=len(tried) == MOST_TURNS)
            current = counter
            tried.append(current.definition)

    async def _send(self, method: str, path: str, given: Mapping[str, Any], **special: str) -> Reply:
        headers = {**special, "Negotiation-ID": self._id, "Session-ID": self._terms.session_id}
        sent = {name: text for name, text in headers.items() if text is not None}
        reply = await self._service.request(method, path, given, headers=sent, scopes=self._terms.scopes)
        # Core 2.3: the server makes the id, and every later turn repeats it.
        self._id = _read_id(reply, "negotiation-id") or self._id
        self._proposal_id = _read_id(reply, "proposal-id") or self._proposal_id
        return reply

    async def _decided(self, reply: Reply) -> Reply:
        """Poll while the server evaluates the proposal. Raises ProposalPendingError if that takes too long."""
        waited, polls = 0.0, 0
        while reply.status == status.NEGOTIATION_IN_PROGRESS:
            if self._proposal_id is None:
                raise RemoteProtocolError("The 261 reply has no proposal_id, so its proposal cannot be followed.")
            polls += 1
            told = reply.headers.get("retry-after", "")
            least = float(told) if told.isascii() and told.isdigit() and len(told) < 7 else 0.0
            delay = max(self._terms.polling.delay(polls), least)
            waited += delay
            if waited > self._terms.wait or polls > _MOST_POLLS:
                raise errors.ProposalPendingError(self._proposal_id, self._id, reply)
            await asyncio.sleep(delay)
            # The reference implementation takes the id in the body alone (core 11.3).
            path = "/proposals" if _members(reply).get("polling_path") == "/proposals" else "/proposals/{proposal_id}"
            reply = await self._send("QUERY", path, {"proposal_id": self._proposal_id})
        return reply

    def _approved(self, proposal: Proposal, current: Proposal, reply: Reply) -> Synthesis:
        """Return the synthesis of a 263. Raises ContractMismatchError if it is not what was asked for."""
        members = _members(reply)
        given = members.get("endpoint") or members.get("instantiated_endpoint")
        definition = given if isinstance(given, dict) else {}
        # The reference implementation names the verb `name`, and states the path beside the endpoint.
        method = definition.get("method") or definition.get("name") or members.get("method")
        path = definition.get("path") or members.get("path")
        try:
            offered = read_proposal({**definition, "method": method, "path": path}).endpoint
        except ConfigError as error:
            raise RemoteProtocolError(f"The 263 reply has no usable endpoint. {error}") from error
        # A path beside the endpoint is only where to call it.
        where = current.endpoint.path if "path" in definition else offered.path
        asked = replace(proposal.endpoint, method=current.endpoint.method, path=where)
        fit = self._terms.compare(asked, offered, definition)
        if not fit.fits:
            raise errors.ContractMismatchError(offered, fit.differences, reply)
        self._notes += (*fit.notes, *fit.unstated)
        if self._terms.persistent and members.get("persistent") is not True:
            # AGTP-API 10.5: granted or not, independently of the synthesis.
            self._notes.append("the server did not make it persistent")
        return self._use(offered, members, _read_id(reply, "synthesis-id"))

    def _counter(self, proposal: Proposal, error: errors.ProposalRejectedError) -> Proposal | None:
        """Return the counter-proposal of a rejection if its reason allows that, and it gives all that was asked."""
        offered = error.counter_proposal
        inner = offered.get("endpoint") if isinstance(offered, dict) else None
        definition = inner if isinstance(inner, dict) else offered
        if not isinstance(definition, dict):
            return None
        try:
            counter = read_proposal(definition)
        except ConfigError:
            return None
        fit = self._terms.compare(proposal.endpoint, counter.endpoint, definition, elsewhere=True)
        lacking = (*fit.differences, *fit.unstated)
        if counter.endpoint.semantic.impact != "informational" and not self._terms.follow_effects:
            # The server doubts what is meant: only the caller can say whether this effect is.
            lacking = (*lacking, "it changes something, and follow_effects is not set")
        wish = self._terms.follow_ambiguous
        if not lacking and error.rejection not in _CLEAR and not (wish(error) if callable(wish) else wish):
            lacking = ("the service doubts what is meant, and follow_ambiguous is not set",)
        if lacking:
            lacks = "; ".join(lacking[:5])
            error.add_note(f"Its counter-proposal {counter.endpoint} was not followed: {lacks}.")
            return None
        self._followed = True
        self._notes += [f"the server's counter-proposal was followed: {error.message}", *fit.notes]
        return counter

    async def _rejected(
        self, proposal: Proposal, error: errors.ProposalRejectedError, *, last: bool
    ) -> errors.ProposalRejectedError:
        """Return the error of a final rejection; first escalate it if the server demands that and the agent may."""
        if not (last or error.must_escalate) or not self._terms.escalate:
            return error
        rejection = {"reason": error.rejection, "explanation": error.message}
        context = {"negotiation_id": self._id, "proposal": proposal.definition, "rejection": rejection}
        reason = _REASONS.get(error.rejection or "", "resource_unavailable")
        point = f"PROPOSE {proposal.endpoint}"
        case_id, reply = await escalate(self._send, reason, context, point, self._id)
        if not reply.ok:
            error.add_note(f"It could not be escalated: {errors.error_of(reply)}")
            return error
        return errors.ProposalEscalatedError(error.reply, str(proposal.endpoint), case_id)

    def _use(self, endpoint: Endpoint, members: Mapping[str, Any], synthesis_id: str | None) -> Synthesis:
        headers = {"Synthesis-Id": synthesis_id, "Session-ID": self._terms.session_id}
        sent = {name: text for name, text in headers.items() if text is not None}

        async def invoke(given: Mapping[str, Any]) -> Any:
            scopes = self._terms.scopes
            reply = await self._service.request(*endpoint.key, given or None, headers=sent, scopes=scopes)
            output = errors.accepted(reply).output
            # The reference implementation wraps the output of a synthesis with its steps (core 11.3).
            wrapped = isinstance(output, dict) and "output" in output and "steps" in output
            return output["output"] if wrapped and output.get("synthesis_id") == synthesis_id is not None else output

        return Synthesis(
            endpoint=endpoint,
            synthesis_id=synthesis_id,
            proposal_id=self._proposal_id,
            negotiation_id=self._id,
            expires_at=as_optional_text(members.get("expires_at")),
            persistent=members.get("persistent") is True,
            granted_duration=as_optional_text(members.get("granted_duration")),
            is_counter_proposal=self._followed,
            explanation=_lines(members.get("plan")) or _lines(members.get("explanation")),
            notes=tuple(dict.fromkeys(self._notes)),
            invoke=invoke,
        )


async def escalate(
    send: Callable[[str, str, Mapping[str, Any]], Awaitable[Reply]],
    reason: str,
    context: Mapping[str, Any],
    point: str,
    task_id: str | None = None,
) -> tuple[str, Reply]:
    """Pass a decision on to the service's people; return the id of the case, and the reply (core 4.9)."""
    task_id = task_id or str(uuid.uuid4())
    given = {"task_id": task_id, "reason": reason, "context": context, "priority": "normal"}
    reply = await send("ESCALATE", "/", given)
    if reply.error is not None and reply.error.code == "missing-required-params":
        # The reference implementation's name for the same (core 11.2).
        reply = await send("ESCALATE", "/", {**given, "decision_point": point})
    return _read_id(reply, "escalation-id") or task_id, reply


def _members(reply: Reply) -> Mapping[str, Any]:
    if not reply.ok:
        return reply.error.members if reply.error is not None else {}
    return as_mapping(reply.output)


def _read_id(reply: Reply, name: str) -> str | None:
    """Return an id from the headers of a reply, else from its members; None unless a header can carry it."""
    found = reply.headers.get(name) or _members(reply).get(name.replace("-", "_"))
    return found if isinstance(found, str) and _ID.fullmatch(found) else None


def _lines(explanation: Any) -> tuple[str, ...]:
    if isinstance(explanation, str):
        return (explanation,)
    return tuple(map(str, explanation)) if isinstance(explanation, list) else ()

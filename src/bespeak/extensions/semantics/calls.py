"""Calls judged by what they mean: profiles of tasks, refusals, and the history of mapped calls (IoA 5.4, 7, 9)."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import parse_template
from bespeak.contract.schema.validation import INVALID_INPUT
from bespeak.errors import StoreError
from bespeak.extensions.semantics import store as registry
from bespeak.extensions.semantics.envelope.writer import open_message
from bespeak.extensions.semantics.layer import MOST_OUTCOMES, Meaning, SemanticLayer, refuse_input
from bespeak.extensions.semantics.negotiation import SemanticOutcome
from bespeak.extensions.semantics.profile import SemanticProfile
from bespeak.extensions.semantics.rules import UNCONFIRMED, UNSTABLE
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import SEMANTIC_PROFILE, TASK_ID
from bespeak.protocol.exchange.messages import Request
from bespeak.protocol.exchange.refusal import Fault, Refused
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.concurrency import cancel_tasks
from bespeak.runtime.exchange import Exchange
from bespeak.runtime.gates import judge_read
from bespeak.runtime.gates.input import (
    ENVELOPE,
    SEMANTIC,
    build_input_gate,
    coerce_texts,
    open_envelope,
    read_body,
)
from bespeak.runtime.settlement import TaskAdmission
from bespeak.state.store.commands.cases import PausedTask
from bespeak.state.store.store import Command, Store

PERIOD: Final = 5.0  # seconds for which calls are counted before they are stored together
MOST_MAPPINGS: Final = 1_000  # mappings that are counted in one period
LONGEST: Final = 500  # most bytes of an IRI that is counted: a longer one does not fit into an index
_FAILURES: Final = frozenset({status.TIMEOUT, status.SERVER_ERROR, status.DELEGATION_FAILURE})
"""What a wrong mapping may lead to. A refusal says nothing about it: a missing scope, a reused key, a busy server."""

_logger = logging.getLogger(__name__)


class MappingHistory:
    """A subscriber of exchanges. Calls that were counted in the last seconds before a crash are not stored."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._counts: dict[tuple[str, str], list[int]] = {}
        self._flushing: asyncio.Task[None] | None = None

    def __call__(self, exchange: Exchange) -> None:
        """Take in a call of an endpoint; built-in methods do not provide what a mapping leads to."""
        meaning: Meaning | None = exchange.call.request.semantic
        if meaning is None or not meaning.outcome.mappings:
            return
        route, answer = exchange.call.route, exchange.response
        succeeded = status.is_success(answer.status)
        if route is None or route.builtin or exchange.replayed or not (succeeded or answer.status in _FAILURES):
            return
        steps = (step for used in meaning.outcome.mappings for step in used.translation.steps)
        for pair in {(step.source, step.target) for step in steps}:
            fits = all(len(iri.encode(errors="replace")) <= LONGEST for iri in pair)
            if pair in self._counts or (len(self._counts) < MOST_MAPPINGS and fits):
                self._counts.setdefault(pair, [0, 0])[not succeeded] += 1
        if self._counts and self._flushing is None:
            self._flushing = asyncio.get_running_loop().create_task(self._flush_later(), name="mapping-history")

    async def flush(self) -> None:
        """Store what was counted; what a store that fails has not taken is dropped, so that nothing counts twice."""
        counts, self._counts = self._counts, {}
        calls = tuple(registry.MappedCalls(*pair, *two) for pair, two in counts.items())
        try:
            if calls:
                await self._store.do(registry.CountMappedCalls(calls))
        except StoreError as error:
            _logger.warning("the history of %d mappings could not be stored: %s", len(counts), error)

    async def close(self) -> None:
        await cancel_tasks(self._flushing)
        self._flushing = None
        await self.flush()

    async def _flush_later(self) -> None:
        while self._counts:
            await asyncio.sleep(PERIOD)
            await self.flush()
        self._flushing = None


_FILLING: Final = frozenset({"mcp", "a2a"})  # faces that fill the path themselves, from arguments with any names
_UNPLACED: Final = Refused(
    status.CONFLICT,
    "semantic-envelope-required",
    "The path of the endpoint has parameters, so its arguments need the envelope beside them: send it as `semantic`.",
)
CHANGED: Final = "semantic-profile-changed"  # error code of a call whose profile differs from that of its task
_CONTROL: Final = {  # the control exchange, which is separate from the messages of a task (IoA 9)
    "ask": {"method": "DESCRIBE", "path": "/", "parameters": ["semantic_profile", "alignments"]},
    "settle": {"method": "PROPOSE", "path": "/", "parameters": ["semantic_profile", "alignments"]},
}


def refuse_outcome(call: Call, outcome: SemanticOutcome, spoken: tuple[str, ...]) -> Refused:
    """Refuse a call without a match: for good, or with an offer to renegotiate."""
    verdict, withhold = outcome.verdict, call.server.part("semantic").withhold
    first = verdict.violations[0].message if verdict.violations else "There is no match"
    first, details = withhold(first, call.principal), withhold(outcome.document(), call.principal)
    if verdict.violations and all(one.rule == UNCONFIRMED.id for one in verdict.violations):
        message = (
            f"{first}. Use a profile in a vocabulary of the service, or ask its operator to run "
            f"`bespeak semantic confirm {verdict.violations[0].value}`."
        )
        return Refused(status.CONFLICT, "semantic-mapping-unconfirmed", message, details | offer_control(call, spoken))
    if verdict.status == "reject":
        message = f"{first}. Correct the semantic profile and repeat the call."
        return Refused(status.UNPROCESSABLE, "semantic-rejected", message, details)
    message = f"{first}. Ask with DESCRIBE what would match, and PROPOSE the new profile."
    return Refused(status.CONFLICT, "semantic-renegotiation", message, details | offer_control(call, spoken))


def refuse_change(call: Call, digest: str) -> Refused:
    task_id = call.request.headers.get(TASK_ID, "")
    message = (
        "The task has another semantic profile, which stays for the life of the task. "
        "PROPOSE the new profile with this Task-ID first, or begin a new task."
    )
    violation = {"rule": UNSTABLE.id, "path": "/semantic", "value": None, "message": UNSTABLE.text("/semantic")}
    details = {"task_id": task_id, "profile_digest": digest, "violations": [violation], "control": _CONTROL}
    return Refused(status.CONFLICT, CHANGED, message, details)


def refuse_missing(call: Call, spoken: tuple[str, ...]) -> Refused:
    message = (
        "This endpoint requires a semantic profile. Send an envelope as the member `semantic` of the body, "
        "or PROPOSE a profile for the task and send its Task-ID."
    )
    return Refused(status.UNPROCESSABLE, "semantic-profile-required", message, offer_control(call, spoken))


def refuse_unknown(reference: str) -> Refused:
    message = (
        f"Semantic-Profile {reference[:80]!r} is not a profile of this agent; "
        "PROPOSE the profile again, or send the envelope."
    )
    return Refused(status.UNPROCESSABLE, "semantic-profile-unknown", message)


def offer_control(call: Call, spoken: tuple[str, ...]) -> dict[str, Any]:
    """Return the control exchange, and the ontologies with which a match is certain."""
    told: dict[str, Any] = {"control": _CONTROL, "ontologies": list(spoken)}
    task_id = call.request.headers.get(TASK_ID)
    return told if task_id is None else told | {"task_id": task_id}


class _Recalled(NamedTuple):
    """The meaning of a call that did not say it: another process may know a later profile of its task."""

    profile: SemanticProfile
    outcome: SemanticOutcome


class CallJudge(SemanticLayer):
    """The semantic layer as gates use it; `server.part("semantic")`."""

    history: MappingHistory  # of mapped calls, where there is a store

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.recent: dict[tuple[str, str], SemanticProfile] = {}  # by owner and record

    def judge(self, call: RoutedCall) -> Refused | None:
        """Understand the envelope of a call, or refuse it. A profile that it refers to is looked up after the gates."""
        given, headers, endpoint = getattr(call, "semantic", None), call.request.headers, call.route.endpoint
        if given is None:
            known = call.server.store is not None
            if SEMANTIC_PROFILE in headers:
                return None if known else refuse_unknown(headers[SEMANTIC_PROFILE])
            if self.requires(endpoint) and not (known and TASK_ID in headers):
                return refuse_missing(call, self.spoken())
            return None
        return self.understand(call, *given)

    def report_unknown_concepts(self) -> None:
        """Warn of concepts that no registered ontology has: nobody can be understood through them."""
        view = self.view
        for concept in view.concepts:
            if concept not in view.registry.meanings:
                endpoint = next(one for one in view.endpoints if concept in one.semantic.concepts)
                _logger.warning(
                    "%s declares the concept %s, which no registered ontology has; correct it, or register its "
                    "ontology with `bespeak semantic register`",
                    *(endpoint, concept),
                )

    def recall(self, call: RoutedCall) -> SemanticProfile | None:
        """Return the profile that a call refers to, if it was agreed on or used here not long ago."""
        headers, owner = call.request.headers, call.agent_id or ""
        known = headers.get(SEMANTIC_PROFILE) or registry.record_id("task", owner, headers.get(TASK_ID, ""))
        return self.recent.get((owner, known))

    def place(self, endpoint: Endpoint, arguments: Mapping[str, Any]) -> Mapping[str, Any] | Refused:
        """Give arguments that a face puts into the path the names that they have there."""
        data = self.read(arguments[SEMANTIC], endpoint)[1].data if SEMANTIC in arguments else None
        if data is None:
            return arguments
        template = parse_template(endpoint.path)
        placed, faults = data.place(arguments, () if isinstance(template, Fault) else template.parameters)
        return refuse_input(faults) if faults else placed

    def remember(self, owner: str, record_id: str, profile: SemanticProfile | None) -> None:
        """Keep the profile of a record, so that the input of later calls can be read by it; None forgets it."""
        self.recent.pop((owner, record_id), None)
        if profile is not None:
            if len(self.recent) >= MOST_OUTCOMES:
                self.recent.pop(next(iter(self.recent)))
            self.recent[owner, record_id] = profile

    def understand(self, call: RoutedCall, profile: SemanticProfile | None, outcome: SemanticOutcome) -> Refused | None:
        """Keep what a call means with its request, where its handler and its steps find it; refuse it without."""
        if outcome.match == "none" or profile is None:
            return refuse_outcome(call, outcome, self.spoken(call.route.endpoint.semantic.concepts))
        call.request = msgspec.structs.replace(call.request, semantic=Meaning(profile, outcome))
        return None

    def judge_step(self, call: RoutedCall) -> Refused | None:
        """Judge a step that a built-in method makes for its caller by what the call of the method means.

        Such a step is one of EXECUTE or a plan. A composition is judged as a whole.
        """
        outer = call.parent
        if outer is None or not outer.route.builtin:
            return None
        while outer.parent is not None:
            outer = outer.parent
        meaning: Meaning | None = outer.request.semantic
        endpoint = call.route.endpoint
        if meaning is None:
            return refuse_missing(call, self.spoken()) if self.requires(endpoint) else None
        return self.understand(call, meaning.profile, self.negotiate(meaning.profile, endpoint))


class TaskProfiles:
    """Admits calls by the profile of their task, after the check whether the task is paused."""

    def __init__(self, layer: CallJudge, pausing: TaskAdmission) -> None:
        self._layer = layer
        self._pausing = pausing

    def concerns(self, call: RoutedCall) -> bool:
        """Return True if a call needs the store to be understood, or its task may be paused."""
        headers, known = call.request.headers, call.request.semantic is not None
        mine = TASK_ID in headers and (known or self._layer.judges(call.route))
        mine = mine or (SEMANTIC_PROFILE in headers and not known)
        return mine or self._layer.requires(call.route.endpoint) or self._pausing.concerns(call)

    def ask(self, call: RoutedCall) -> Command | Refused | None:
        """Return None if the call is admitted, a refusal, or a command whose result decides."""
        return self._pausing.ask(call) or self._ask(call)

    def judge(self, call: RoutedCall, found: Any) -> Command | Refused | None:
        """Judge what was found about the task: that it is paused, or its profile."""
        if found is None or isinstance(found, PausedTask):
            return self._pausing.judge(call, found) or self._ask(call)
        assert isinstance(found, registry.RecordedProfile)
        meaning: Meaning | None = call.request.semantic
        owner, reference = call.agent_id or "", call.request.headers.get(SEMANTIC_PROFILE)
        record_id = reference or registry.record_id("task", owner, call.request.headers.get(TASK_ID, ""))
        given = getattr(call, "semantic", None)
        if meaning is not None and (found.digest == meaning.digest or not isinstance(given, _Recalled)):
            same = found.digest == meaning.digest
            self._layer.remember(owner, record_id, meaning.profile if same else None)
            return None if same else refuse_change(call, found.digest)
        if not found.digest or found.owner != owner:
            refused = self._missing(call) if reference is None else refuse_unknown(reference)
            return refused or (given if isinstance(given, Refused) else None)
        profile = msgspec.convert(found.profile, SemanticProfile)
        self._layer.remember(owner, record_id, profile)
        outcome = self._layer.negotiate(profile, call.route.endpoint)
        if given is not None or outcome.data is not None:
            # This process knew another profile, or none, and took the input for one in other words.
            call.semantic = None
            refused = _read_named(call) or judge_read(call)
            if refused is not None:
                return refused
        refused = self._layer.understand(call, profile, outcome)
        return refused or (None if reference is None else self._ask(call))

    def _ask(self, call: RoutedCall) -> Command | Refused | None:
        meaning: Meaning | None = call.request.semantic
        headers, owner = call.request.headers, call.agent_id or ""
        task_id = headers.get(TASK_ID)
        if meaning is not None:
            if task_id is None:
                return None
            plain = msgspec.to_builtins(meaning.profile)
            return registry.RecordProfile(registry.record_id("task", owner, task_id), owner, meaning.digest, plain)
        reference = headers.get(SEMANTIC_PROFILE)
        if reference is not None:
            return registry.UseProfile(reference[:128])
        # Whether calls must say what they mean or not: the profile of a task is that of all its calls (IoA 9).
        if task_id is not None and self._layer.judges(call.route):
            return registry.UseProfile(registry.record_id("task", owner, task_id))
        return self._missing(call)

    def _missing(self, call: RoutedCall) -> Refused | None:
        """Refuse a call without a profile; what a built-in method calls is judged step by step."""
        return refuse_missing(call, self._layer.spoken()) if self._layer.requires(call.route.endpoint) else None


def _read_meaning(request: Request, call: RoutedCall) -> Any:
    """Decode the body, take the envelope out of it, and translate the input of a caller with another vocabulary.

    The envelope is the member `semantic`, unless the endpoint has one of that name; that of Figure 8, whose input is
    `payload`; or a part of an NLIP message. Whether its meaning is accepted is judged when the input is valid.
    """
    value = read_body(request, call)
    if type(value) is not dict:
        return value
    layer: CallJudge = call.server.part("semantic")
    declared = call.route.endpoint.input_schema.get("properties", {})
    message = open_message(value, call.route.endpoint.input_schema) if value else None
    if message is not None:
        refused = open_envelope(call, {"task_id": message.task_id})
        if refused is not None:
            return refused
        value, call.semantic = message.input, layer.read(message.envelope, call.route.endpoint)
    elif SEMANTIC in value and SEMANTIC not in declared:
        call.semantic = layer.read(value.pop(SEMANTIC), call.route.endpoint)
    elif layer.recent and not call.route.builtin and (profile := layer.recall(call)) is not None:
        outcome = layer.negotiate(profile, call.route.endpoint)
        if outcome.data is not None:
            if call.captures and request.connection.face in _FILLING:
                return _UNPLACED
            call.semantic = _Recalled(profile, outcome)
    given: tuple[SemanticProfile | None, SemanticOutcome] | None = getattr(call, "semantic", None)
    data = None if given is None else given[1].data
    if given is not None and (_is_foreign(call, *given) if data is None else data.missing):
        # Nobody could say what is wrong with an input in words that are not understood.
        return refuse_outcome(call, given[1], layer.spoken(call.route.endpoint.semantic.concepts))
    if data is None:
        return value
    inner = value.get("parameters") if value.keys() <= ENVELOPE and not call.route.has_parameters_field else None
    translated, faults = data.read(inner if type(inner) is dict else value)
    if faults:
        return refuse_input(faults)
    return {**value, "parameters": translated} if type(inner) is dict else translated


def _coerce_meant(call: RoutedCall, texts: Mapping[str, str], in_path: bool) -> Mapping[str, Any] | Refused:
    """Translate the parameters of a path or a query, which are in the words of the caller as the body is."""
    given: tuple[SemanticProfile | None, SemanticOutcome] | None = getattr(call, "semantic", None)
    if given is None or given[1].data is None:
        return coerce_texts(call, texts, in_path)
    translated, faults = given[1].data.read_texts(texts, in_path=in_path)
    if faults:
        return refuse_input(faults)
    coercions = call.route.coercions
    return {name: coercions.get(name, str)(one) if type(one) is str else one for name, one in translated.items()}


_read_input: Final = build_input_gate(_read_meaning, _coerce_meant)


def _read_named(call: RoutedCall) -> Refused | None:
    """Read the input of a call; say the names of the caller for members that the schema refuses."""
    refused = _read_input(call)
    given: tuple[SemanticProfile | None, SemanticOutcome] | None = getattr(call, "semantic", None)
    if refused is None or refused.code != INVALID_INPUT or given is None or given[1].data is None:
        return refused
    named = frozenset(re.findall(r"\w+", str(refused.details["violations"])))
    names = {member: own for own, member in given[1].data.inputs.items() if member in named}
    if not names:
        return refused
    told = ", ".join(f"{member} is {own}" for member, own in names.items())
    message = f"{refused.message} In your vocabulary, {told}."
    return msgspec.structs.replace(refused, message=message, details={**refused.details, "names": names})


def semantic_input_gate(call: RoutedCall) -> Refused | None:
    """Read the input of a call. If it refers to a profile that only the store may know, it is refused later."""
    refused, headers = _read_named(call), call.request.headers
    given = getattr(call, "semantic", None)
    if refused is None or not (isinstance(given, _Recalled) or (given is None and refused.code == INVALID_INPUT)):
        return refused
    refers = TASK_ID in headers or SEMANTIC_PROFILE in headers
    if not refers or call.route.builtin or call.server.store is None:
        return refused
    call.semantic = refused
    return None


def _is_foreign(call: RoutedCall, profile: SemanticProfile | None, outcome: SemanticOutcome) -> bool:
    layer: CallJudge = call.server.part("semantic")
    refused = profile is not None and outcome.match == "none" and outcome.ontology is None
    return refused and layer.judges(call.route) and profile is not None and profile.ontology_id not in layer.spoken()

"""The agent of a user: it decides what an instruction means, asks, calls with care, and reads what comes back."""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Self

from bespeak.agent.acting import decision as deciding
from bespeak.agent.acting import steps
from bespeak.agent.acting.decision import MOST_QUESTIONS, ActingRules, Decision, field_of, takes
from bespeak.agent.acting.model import ask_model
from bespeak.agent.acting.reply import Check, alternatives, check_transition, missing_scopes, wrong_fields
from bespeak.agent.acting.service_map import DiscoveryFailure, Place, ServiceMap
from bespeak.agent.acting.steps import Carried, Plan
from bespeak.agent.arguments.finding import Argument, Arguments, find_arguments
from bespeak.agent.client.called_service import call_name
from bespeak.agent.client.connect import connect
from bespeak.agent.client.errors import CallTimeoutError, Reply, UnreachableError, accepted, error_of
from bespeak.agent.client.negotiation import escalate
from bespeak.agent.client.service import ServiceClient, output_of
from bespeak.agent.discovery.agent_card import MESSAGE
from bespeak.contract.confirmation import LONGEST, cut_value, list_lines, list_named
from bespeak.contract.matching.vectors import Backend
from bespeak.contract.schema.validation import compile_schema
from bespeak.documents.projections.agtp_manifest import project_endpoint
from bespeak.errors import BespeakError, ConfigError
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.bindings.language_model import LanguageModel, LanguageModelSettings, open_language_model
from bespeak.text.diagnostics.diagnostic import brief, printable
from bespeak.text.values.mentions import find_mentions

YES: Final = frozenset(
    {"yes", "y", "yeah", "yep", "ok", "okay", "sure", "correct", "right", "please do", "go ahead", "do it"}
)
_VALUES: Final = ("date", "time", "datetime", "range", "money", "quantity", "email", "phone")
"""Kinds of values that are hardly said without a meaning."""
_UNSAID: Final = {"type": "object"}  # output schema of an endpoint on the web that declares none
_MOST_TURNS: Final = 3  # decisions again after a change of a contract or a refusal


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to the user: for the value of a field, or which of several endpoints is meant."""

    text: str
    decision: Decision
    name: str = ""
    """Field that is asked for; empty for a choice."""
    schema: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    """What can be chosen, or the values that the field takes, if they are few."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A call for a person to agree to."""

    text: str
    """What will be called, what the contract says of it, and the arguments."""
    decision: Decision
    needs_person: bool
    """True if nothing but a person may agree."""

    def __str__(self) -> str:
        return self.text


AskUser = Callable[[Asked], Any]
ConfirmCall = Callable[[Confirmation], Any]
StepUp = Callable[[Place, tuple[str, ...]], Any]
Opener = Callable[..., AbstractAsyncContextManager[ServiceClient]]
State = Literal["done", "open", "refused", "declined", "failed", "unknown", "none"]


@dataclass(frozen=True, slots=True)
class Acted:
    """What has become of an instruction."""

    decision: Decision
    state: State
    """`done`; `open` if something has to be asked and nobody answers; `refused` by this agent or the service;
    `declined` by the user; `failed`; `unknown` if no reply came, so that the call may have been carried out; `none`.
    """
    message: str = ""
    reply: Reply | None = None
    output: Any = None
    notes: tuple[str, ...] = ()
    transition: Check | None = None
    """Result of the check of `state_transition`; None if the contract declares none."""
    key: str | None = None
    """Idempotency key of the call: with it, the same call can be repeated safely."""
    earlier: tuple[Decision, ...] = ()
    """Decisions that were replaced, because a contract had changed or the service refused."""

    @property
    def ok(self) -> bool:
        """True if the call was carried out."""
        return self.state == "done"

    def to_json(self) -> dict[str, Any]:
        """Return the decision and what has become of it, as data."""
        replied = {} if self.reply is None else {"status": self.reply.status, "output": self.output}
        checked = {} if self.transition is None else {"transition": self.transition.to_json()}
        told = {"state": self.state, "message": self.message, "notes": list(self.notes)}
        return {**self.decision.to_json(), "result": {**told, **replied, **checked}}


class ActingAgent:
    """Acts on instructions in words, on behalf of one user. Use it as an `async with` block."""

    opener: Opener = staticmethod(connect)

    def __init__(
        self,
        services: Iterable[Any] | Mapping[str, Any],
        *,
        opener: Opener | None = None,
        confirm: ConfirmCall | None = None,
        ask: AskUser | None = None,
        step_up: StepUp | None = None,
        rules: ActingRules | None = None,
        language_model: LanguageModelSettings | None = None,
        now: datetime | Callable[[], datetime] | None = None,
        order: Literal["DMY", "MDY"] | None = None,
        escalate: bool = False,
        backend: Backend | None = None,
        **options: Any,
    ) -> None:
        """Prepare an agent for services: what `connect` takes. A mapping gives them names.

        - `confirm` shows a person a `Confirmation` and returns True to let the call run. Without it, calls that need
          a person's agreement end as `open`.
        - `ask` gets an `Asked` and returns the answer, a text or a value; None gives up.
        - `step_up` is told the scopes that a service asks for, and returns True to declare them for that call.
        - `rules` say what may be called without asking. Irreversible calls always need a person.
        - `now` is the time that "tomorrow" refers to, with its time zone; `order` that of `3/4`: `"DMY"` or `"MDY"`.
        - `language_model` fills arguments that rules do not find, under the same schema.
        - `escalate` passes what cannot be decided to the service with ESCALATE.
        - `backend` compares meanings of words, for instance those of another language.
        - `opener` opens the client of a service; the other options are its options, by default those of `connect`.
        """
        self.rules = rules or ActingRules()
        self._sources = services
        self._opener = opener or type(self).opener
        self._confirm, self._ask, self._step_up = confirm, ask, step_up
        self._language_model = language_model
        self._model: LanguageModel | None = None
        self._now = now
        self._order = order
        self._escalates = escalate
        self._backend = backend
        self._options = options
        self._stack = AsyncExitStack()
        self._map = ServiceMap(())
        self._asking = asyncio.Lock()

    async def __aenter__(self) -> Self:
        sources = self._sources
        if isinstance(sources, str):
            raise ConfigError(f"services must be a list, not the string {sources[:80]!r}; write [{sources[:80]!r}].")
        named = list(sources.items()) if isinstance(sources, Mapping) else [("", source) for source in sources]
        if not named:
            raise ConfigError("services is empty; give at least one.")
        opened: list[tuple[str, ServiceClient]] = []
        written: dict[int, str] = {}
        failures: list[DiscoveryFailure] = []
        try:
            if self._language_model is not None:
                self._model = await self._stack.enter_async_context(open_language_model(self._language_model))
            for name, source in named:
                try:
                    client = await self._stack.enter_async_context(self._opener(source, **self._options))
                except ConfigError:
                    raise
                except BespeakError as error:
                    failures.append(DiscoveryFailure(str(source), str(error), tuple(getattr(error, "findings", ()))))
                else:
                    written |= {len(opened): str(source)} if isinstance(source, str | Path) else {}
                    opened.append((name, client))
            self._map = await ServiceMap.read(opened, failures, self._backend, written)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    @property
    def service_map(self) -> ServiceMap:
        """Services that this agent knows, and those that could not be read."""
        return self._map

    @property
    def now(self) -> datetime:
        """Time that "tomorrow" refers to, with its time zone."""
        now = self._now() if callable(self._now) else self._now
        return datetime.now(UTC).astimezone() if now is None else now

    async def decide(
        self, instruction: str, *, place: Place | None = None, given: Mapping[str, Argument] | None = None
    ) -> Decision:
        """Return what an instruction means and whether it may be called. Nothing is called.

        `place` is the endpoint if the user has chosen one; `given` are arguments that are known already.
        """
        self._map = await self._map.renewed()
        decided = deciding.choose(self._map, instruction, self.rules)
        if place is not None and len(instruction) <= deciding.SEEN:
            decided = deciding.select(decided, self._map, place, self.rules, chosen=True)
        return await self.complete(decided, given or {})

    async def complete(self, decided: Decision, given: Mapping[str, Argument]) -> Decision:
        """Find the arguments of a decision, beside those that are given, and judge it."""
        if decided.place is None:
            return decided
        place = decided.place
        found = self.find_arguments(decided.instruction, place)
        if self._model is not None:
            found = await ask_model(self._model, found, decided.instruction, place, self.now)
        merged = {**{one.name: one for one in found.found}, **given}
        missing = tuple(name for name in found.missing if name not in merged)
        found = replace(found, found=tuple(merged.values()), missing=missing)
        spans = [one.span for one in found.found if one.span is not None]
        unused = tuple(
            decided.instruction[one.start : one.end]
            for one in find_mentions(decided.instruction, now=self.now, order=self._order)
            if one.kind in _VALUES and not any(start < one.end and one.start < end for start, end in spans)
        )
        decided = replace(decided, unused=unused)
        return deciding.judge(decided, found, self.rules, self._map.endpoints_beside(place))

    def find_arguments(self, text: str, place: Place) -> Arguments:
        """Return what a text says about the input of an endpoint, by rules."""
        if place.takes_words:
            whole = Argument(MESSAGE, text, (0, len(text)), 1.0, "the instruction itself")
            return Arguments((whole,), (), ())
        return find_arguments(text, place.endpoint, now=self.now, order=self._order)

    async def plan(self, instruction: str) -> Plan:
        """Return the steps of an instruction, each decided like an instruction of its own. Nothing is called."""
        self._map = await self._map.renewed()
        return await steps.make_plan(self, instruction)

    async def carry_out_plan(self, plan: Plan, tell: Callable[[Acted], None] = lambda acted: None) -> Carried:
        """Carry out a plan step by step, until the first that is not carried out. `tell` hears of each call."""
        return await steps.carry_out(self, plan, tell)

    async def act(self, instruction: str) -> Acted | Carried:
        """Decide, ask what is missing, ask for agreement where it is needed, and call: `Carried` for several steps."""
        plan = await self.plan(instruction)
        return await (self.carry_out_plan(plan) if len(plan.steps) > 1 else self.carry_out(plan.steps[0].decision))

    @property
    def can_confirm(self) -> bool:
        """True if somebody can be asked to agree to a call."""
        return self._confirm is not None

    async def ask_user(self, decided: Decision) -> Any:
        """Return the answer to the question of a decision; None if nobody gives one."""
        return None if self._ask is None else await self._put(self._ask, ask_for(decided))

    async def carry_out(self, decided: Decision, *, agreed: bool = False) -> Acted:
        """Carry out a decision. `agreed` is True if a person has agreed to exactly this call."""
        earlier: list[Decision] = []
        while True:
            settled = await self._settle(decided, agreed=agreed)
            if isinstance(settled, Acted):
                return await self._stuck(replace(settled, earlier=tuple(earlier)))
            done = await self._call(settled, last=len(earlier) >= _MOST_TURNS)
            if isinstance(done, Acted):
                return await self._stuck(replace(done, earlier=tuple(earlier)))
            # Whoever agreed has agreed to another call.
            earlier.append(settled)
            decided, agreed = done, False

    async def _settle(self, decided: Decision, *, agreed: bool) -> Decision | Acted:
        """Ask until a decision may be called; return it, or how it ends."""
        for _ in range(MOST_QUESTIONS):
            if decided.verdict == "call" or (decided.verdict == "confirm" and agreed):
                return decided
            if decided.verdict == "confirm":
                return await self._confirmed(decided)
            why = "; ".join(decided.reasons)
            if decided.verdict != "ask" or self._ask is None:
                states: dict[str, State] = {"none": "none", "refuse": "refused"}
                return Acted(decided, states.get(decided.verdict, "open"), why)
            answer = await self.ask_user(decided)
            if answer is None or answer == "":
                return Acted(decided, "declined", "the question was not answered; nothing was called")
            # Whoever agreed has not agreed to what the answer makes of the call.
            decided, agreed = await self.answer(decided, answer), False
        return Acted(decided, "open", f"after {MOST_QUESTIONS} questions it is still not clear what is meant")

    async def _confirmed(self, decided: Decision) -> Decision | Acted:
        """Return a decision if a person agrees to it, else how it ends."""
        if self._confirm is None:
            return Acted(decided, "open", "a person has to agree to this call, and none can be asked")
        text = describe_call(decided, self._map)
        if len(text) > LONGEST:
            return Acted(decided, "refused", f"the call cannot be shown to a person: it takes {len(text)} characters")
        if await self._put(self._confirm, Confirmation(text, decided, decided.needs_person(self.rules))) is True:
            return decided
        return Acted(decided, "declined", "nobody has agreed to the call; nothing was called")

    async def answer(self, decided: Decision, answer: Any, *, later: tuple[str, ...] = ()) -> Decision:
        """Return the decision with the answer to its question: a value, a text, or the number of an option.

        The arguments `later` are not asked for: an earlier step of a plan gives them.
        """
        asked = ask_for(decided)
        if not asked.name:
            place = _pick(decided, answer)
            if place is None:
                return replace(decided, reasons=(*decided.reasons, f"{brief(answer)} is not one of the options"))
            chosen = deciding.select(decided, self._map, place, self.rules, chosen=True)
            # What the user has said since stays, if this endpoint takes it.
            return await self.complete(
                chosen, {name: one for name, one in _said(decided) if takes(place, name, one.value)}
            )
        offered = decided.offered.get(asked.name)
        agrees = offered is not None and str(answer).strip().lower() in YES
        given = offered if agrees else await self.read_answer(decided, asked.name, answer)
        if given is None:
            reason = f"{brief(answer)} is not a valid {asked.name}"
            return replace(decided, reasons=(*decided.reasons, reason))
        again = replace(decided, verdict="call", missing=(), offered={})
        completed = await self.complete(again, {**decided.arguments, asked.name: given})
        return deciding.assume(again, completed, later, self.rules)

    async def read_answer(self, decided: Decision, name: str, answer: Any) -> Argument | None:
        """Return an answer as the value of a field; None if its schema does not take it."""
        place = decided.target
        schema = field_of(place, name)
        for value in _readings(answer, schema):
            if takes(place, name, value):
                return Argument(name, value, None, 1.0, "said in answer to a question")
        if isinstance(answer, str):
            for text in (answer, f"{name.replace('_', ' ')} {answer}"):
                found = self.find_arguments(text, place)
                for one in (*found.found, *found.offered):
                    if one.name == name:
                        return replace(one, span=None, reason=f'from the answer "{brief(answer)}"')
        return None

    async def _put(self, function: Callable[[Any], Any], question: Any) -> Any:
        """Put a question to a person, one after the other. A plain function runs in a thread, so it may block."""
        async with self._asking:
            if inspect.iscoroutinefunction(function):
                return await function(question)
            answer = await asyncio.to_thread(function, question)
            return await answer if inspect.isawaitable(answer) else answer

    async def _call(self, decided: Decision, *, last: bool) -> Acted | Decision:
        """Make one call. Return another decision if the contract has changed, or offers something instead."""
        place = decided.target
        changes = decided.effect != "informational"
        try:
            # AGTP-API-Version tells of a change; before a call that matters, the contract is compared by its ETag.
            self._map = await self._map.renewed(place.namespace if changes else None)
        except BespeakError as error:
            return Acted(decided, "failed", f"the contract could not be read again, so nothing was called: {error}")
        current = next((one for one in self._map.find(*place.endpoint.key, place.namespace)), None)
        if current is None or current.fingerprint != place.fingerprint:
            return await self._decide_again(decided, current, last=last)
        key = str(uuid.uuid4()) if changes else None
        try:
            reply = await self._send(current, decided.values, key)
        except (CallTimeoutError, UnreachableError) as error:
            harmless = "" if not changes else " The call may have been carried out; it is not repeated without a check."
            return Acted(decided, "unknown" if changes else "failed", f"{error}{harmless}", key=key)
        except BespeakError as error:
            return Acted(decided, "failed", str(error), key=key)
        if not reply.ok:
            return await self._refused(decided, current, reply, key, last=last)
        return await self._done(decided, current, reply, key)

    async def _send(self, place: Place, values: Mapping[str, Any], key: str | None, **more: Any) -> Reply:
        """Send a call. What changes something has a key, so that the client may repeat it (AGTP-API 7.1)."""
        named = call_name(place.client, place.endpoint)
        return await place.client.request(*named, values or None, idempotency_key=key, **more)

    async def _decide_again(self, decided: Decision, current: Place | None, *, last: bool) -> Acted | Decision:
        reason = "the contract has changed since the decision"
        if last:
            return Acted(decided, "failed", f"{reason} again and again; nothing was called")
        if current is None:
            place = decided.target
            ended = Acted(decided, "refused", f"the service has no {place.endpoint} any more")
            proposed = await self._propose(decided, place, ended)
            if proposed is not ended:
                return proposed
            again = await self.decide(decided.instruction)
        else:
            chosen = deciding.choose(self._map, decided.instruction, self.rules)
            chosen = deciding.select(chosen, self._map, current, self.rules, chosen=decided.chosen)
            # What the user has said stays; values that the new schema does not take are asked for again.
            again = await self.complete(chosen, dict(_said(decided)))
        return _instead(again, reason, asks=current is None or again.effect != "informational")

    async def _refused(
        self, decided: Decision, place: Place, reply: Reply, key: str | None, *, last: bool
    ) -> Acted | Decision:
        """Answer a refusal with what the contract offers; return another decision, or how it ends."""
        error = reply.error
        assert error is not None
        ended = Acted(decided, "refused", str(error_of(reply)), reply, key=key)
        if last:
            return ended
        if isinstance(case_id := error.members.get("confirmation_id"), str):
            if error.members.get("confirmation_status") == "accepted":
                return await self._again(ended, place, headers={"Confirmation-ID": case_id})
            return replace(ended, state="open", message=f"{ended.message} Another party has to confirm it: {case_id}.")
        scopes = missing_scopes(reply)
        if scopes and self._step_up is not None:
            if await self._put(partial(self._step_up, place), scopes) is True:
                own = filter(None, (place.client._scopes or "").split(", "))
                wanted = dict.fromkeys((*own, *place.endpoint.required_scopes, *scopes))
                return await self._again(ended, place, scopes=tuple(wanted))
            return replace(ended, state="declined", message=f"{ended.message} The scopes were not granted.")
        if reply.status == status.UNPROCESSABLE and (wrong := wrong_fields(reply, place, decided.arguments)):
            left = {name: one for name, one in decided.arguments.items() if name not in wrong}
            reasons = (*decided.reasons, *(f"{name}: {message}" for name, message in wrong.items()))
            return replace(decided, verdict="ask", arguments=left, missing=tuple(wrong), reasons=reasons)
        if other := next(iter(alternatives(self._map, place, reply)), None):
            again = deciding.select(decided, self._map, other, self.rules, chosen=False)
            again = await self.complete(replace(again, verdict="call", has_rival=False), {})
            reason = f"the service answered {reply.status} to {place}, and offers {other.endpoint}"
            return _instead(again, reason, asks={again.effect, decided.effect} != {"informational"})
        if reply.status in (status.NOT_FOUND, status.METHOD_NOT_ALLOWED, status.METHOD_VIOLATION):
            return await self._propose(decided, place, ended)
        return ended

    async def _again(self, ended: Acted, place: Place, **more: Any) -> Acted:
        """Send the same call again with what it lacked."""
        try:
            reply = await self._send(place, ended.decision.values, ended.key, **more)
        except BespeakError as error:
            return replace(ended, state="unknown" if ended.key else "failed", message=str(error))
        if not reply.ok:
            return replace(ended, message=str(error_of(reply)), reply=reply)
        return await self._done(ended.decision, place, reply, ended.key)

    async def _propose(self, decided: Decision, place: Place, ended: Acted) -> Acted:
        """Propose an endpoint that the contract has and the service does not serve, if it composes endpoints."""
        client = place.client
        try:
            manifest = await client.discover(refresh=True)
        except BespeakError:
            return ended
        composes = manifest.policies.synthesis_enabled and manifest.endpoint(*place.endpoint.key) is None
        if not composes or self._confirm is None:
            return ended
        asks = "The service no longer has this endpoint. Propose it, so that it is composed from others, and call it?"
        text = f"{asks}\n{describe_call(decided, self._map)}"
        if await self._put(self._confirm, Confirmation(text, decided, True)) is not True:
            return ended
        definition = project_endpoint(place.endpoint)
        try:
            made = await client.propose(*place.endpoint.key, definition=definition, escalate=self._escalates)
        except BespeakError as error:
            return replace(ended, message=f"{ended.message} Its proposal failed: {error}")
        try:
            output = await made.invoke(decided.values)
        except BespeakError as error:
            is_lost = isinstance(error, CallTimeoutError | UnreachableError) and decided.effect != "informational"
            message = f"{ended.message} The call of {made.synthesis_id}, composed for it, failed: {error}"
            return replace(ended, state="unknown" if is_lost else ended.state, message=message)
        return Acted(decided, "done", f"composed as {made.synthesis_id}", None, output, made.notes)

    async def _done(self, decided: Decision, place: Place, reply: Reply, key: str | None) -> Acted:
        notes = [*decided.notes]
        for one in reply.warnings:
            successor = f"; use {one.successor}" if one.successor else ""
            notes.append(f"this {'verb' if one.about == 'catalog' else 'endpoint'} is {one.kind}{successor}")
        try:
            output = output_of(place.client, reply)
        except BespeakError as error:
            return Acted(decided, "done", "", reply, None, (*notes, str(error)), key=key)
        declared = place.endpoint.output_schema
        validator = compile_schema({} if declared == _UNSAID else declared)
        if not isinstance(validator, Fault) and not validator.is_valid(output):
            wrong = validator.violations(output)[0]
            notes.append(f"the answer breaks the output schema at {wrong.pointer or '/'}: {wrong.message}")
        transition = await check_transition(self._map, place, decided.values, output, self.rules.refuse)
        if transition is not None and transition.state != "verified":
            notes.append(transition.message)
        return Acted(decided, "done", "", reply, output, tuple(dict.fromkeys(notes)), transition, key)

    async def _stuck(self, ended: Acted) -> Acted:
        """Pass on what this agent cannot decide to the service's people, if the user wants that (AGIS 11, step 5)."""
        place = ended.decision.place
        if not self._escalates or ended.state not in ("open", "refused", "unknown") or place is None:
            return ended
        reasons = {"open": "ambiguous_instruction", "unknown": "resource_unavailable", "refused": "scope_limit"}
        reason = "confidence_threshold" if ended.decision.verdict == "confirm" else reasons[ended.state]
        context = {"decision": ended.decision.to_json(), "message": ended.message}
        try:
            case_id, reply = await escalate(place.client.request, reason, context, str(place.endpoint))
            accepted(reply)
        except BespeakError as error:
            return replace(ended, notes=(*ended.notes, f"it could not be escalated: {error}"))
        return replace(ended, notes=(*ended.notes, f"escalated as case {case_id}"))


def _said(decided: Decision) -> Iterator[tuple[str, Argument]]:
    """Yield the arguments that are not from the instruction: the user has given them in other words."""
    return ((name, one) for name, one in decided.arguments.items() if one.span is None)


def _instead(again: Decision, reason: str, *, asks: bool) -> Decision:
    """Return a decision that replaces another one; a person has to agree if `asks`."""
    verdict: deciding.Verdict = "confirm" if asks and again.verdict == "call" else again.verdict
    return replace(again, verdict=verdict, reasons=(*again.reasons, reason))


def ask_for(decided: Decision) -> Asked:
    """Return the question that a decision waits for."""
    if decided.is_open or decided.place is None:
        options = tuple(f"{label} {one.place.endpoint.path}" for label, one in decided.candidates)
        # A service chooses its own name, and the user its address.
        places = [f" at {one.place.address}" for _, one in decided.candidates]
        shown = places if len(set(places)) > 1 else [""] * len(places)
        listed = (f"{number}. {printable(option + shown[number - 1])}" for number, option in enumerate(options, 1))
        return Asked("\n".join(("Which of these is meant?", *listed)), decided, options=options)
    name = decided.missing[0]
    schema = field_of(decided.place, name)
    enum = schema.get("enum")
    options = tuple(map(str, enum[:20])) if isinstance(enum, list) else ()
    offered = decided.offered.get(name)
    described = schema.get("description") or schema.get("title")
    text = name.replace("_", " ")
    text += f" ({described[:200]})" if isinstance(described, str) and described else ""
    text += f", one of {', '.join(options)}" if options else ""
    text += f": {offered.value}?" if offered is not None else "?"
    return Asked(printable(text), decided, name, schema, options)


def describe_call(decided: Decision, service_map: ServiceMap) -> str:
    """Say in words what will be called, with every argument and where it comes from."""
    place = decided.target
    semantic = place.endpoint.semantic
    lines = [f"{decided.label} {place.endpoint.path} at {place.address}"]
    said = semantic.intent or place.endpoint.description
    lines += [f"The service says: {said[:500]}"] if said and not place.doubt else []
    lines += ["This cannot be undone."] if decided.effect == "irreversible" else []
    calls = list_named(place.endpoint, decided.values, service_map.endpoints_beside(place))
    if calls and not isinstance(calls, Fault):
        lines += ["It makes these calls:", *list_lines(calls)]
    for name, one in decided.arguments.items():
        quoted = "" if one.span is None else f'  (from "{decided.instruction[slice(*one.span)]}")'
        lines.append(f"- {name}: {cut_value(one.value)}{quoted}")
    lines += [f"Note: {note}" for note in decided.notes]
    return "\n".join(map(printable, lines))  # a text of the service cannot look like a line of its own


def _readings(answer: Any, schema: Mapping[str, Any]) -> list[Any]:
    """Return what an answer may mean as JSON, the likeliest first."""
    if not isinstance(answer, str):
        return [answer]
    text, found = answer.strip(), list[Any]()
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if kinds == ["string"] and schema.get("format") in ("date", "date-time", "time", "duration"):
        return [text] if text[:4].isdigit() or text[:1] == "P" else []
    for converted in (int, float):
        try:
            found.append(converted(text.replace(",", "")))
        except ValueError:
            continue
    if text.lower() in ("yes", "true", "no", "false"):
        found.append(text.lower() in ("yes", "true"))
    enum = schema.get("enum")
    found += [one for one in (enum if isinstance(enum, list) else ()) if str(one).lower() == text.lower()]
    return [text, *found] if "string" in kinds and not enum else [*found, text]


def _pick(decided: Decision, answer: Any) -> Place | None:
    """Return the place that an answer names: by its number, or by its verb and path."""
    text = str(answer).strip().lower()
    if text.isdigit() and 0 < int(text) <= len(decided.candidates):
        return decided.candidates[int(text) - 1][1].place
    for named in ("{0} {1}", "{0}", "{1}"):
        texts = [named.format(label, one.place.endpoint.path).lower() for label, one in decided.candidates]
        if texts.count(text) == 1:  # what names several chooses none
            return decided.candidates[texts.index(text)][1].place
    return None

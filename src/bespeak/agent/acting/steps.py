"""Instructions of several steps: clauses, each decided like one instruction, and what they take from each other.

Endpoints that feed each other are found by the words of the user, and values are bound by the names of their fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bespeak.agent.acting import decision as deciding
from bespeak.agent.acting.decision import Decision, Verdict, field_of, takes
from bespeak.agent.acting.references import (
    Reference,
    Shape,
    UnclearError,
    choose_items,
    compared_fields,
    find_reference,
    items_in,
    member_for,
    shape_of,
    substitute,
)
from bespeak.agent.acting.service_map import Place
from bespeak.agent.arguments.finding import Argument
from bespeak.contract.matching.needs import read_need
from bespeak.text.diagnostics.diagnostic import brief, printable
from bespeak.text.language.verb_form import lemmas

if TYPE_CHECKING:
    from bespeak.agent.acting.agent import Acted, ActingAgent

MOST_STEPS: Final = 8
_MOST_BREAKS: Final = 40  # places where a clause may begin that are looked at
THE_ANSWER: Final = Reference("the answer", (0, 0), "it")
REMEMBERED: Final = -1  # source of a step that takes what an earlier instruction found
_LONGEST: Final = 500  # characters of a value that is passed on
_APART: Final = 0.7  # confidence from which words that were said for one endpoint are the argument of another
_SAME, _OTHER = 0.9, 0.6  # confidence of a value of the same service, and of another one: it is asked about
_BREAK: Final = re.compile(
    # Possessive, and never begun between two blanks: a text of blanks would take minutes.
    r"(?<!\s)\s*+(?:(;|[.!]\s|,?\s*+\b(?:and\s+)?(?:then|afterwards|after that)\b,?)|,?\s*+\band\b|,)\s*+"
    r"(?:(?:also|finally|please|then)\b\s*)*",
    re.IGNORECASE,
)
_KEPT: Final = re.compile(r'"[^"]*"|“[^”]*”|:\s.*', re.DOTALL)  # texts that are passed on as they are
_CONDITION: Final = re.compile(
    r"(?:^|[,;.]\s*|\b(?:and|but|then)\s+)(?:if|unless|otherwise|in case|do not|don't|never|not)\b", re.IGNORECASE
)
_ORDER: Final[tuple[Verdict, ...]] = ("none", "refuse", "ask", "confirm", "call")


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One call of a plan, or several calls of one endpoint."""

    decision: Decision
    """What is known of it before the plan runs. Spans of its arguments are in its own clause."""
    start: int = 0  # where its clause begins in the instruction
    reference: Reference | None = None
    source: int | None = None  # earlier step that it takes values from
    noun: str = ""
    binds: Mapping[str, str] = field(default_factory=dict)
    """Arguments that are taken from an item of the source, with the names of its members."""

    def bound(self) -> list[str]:
        """Say where each argument that is not known yet comes from."""
        source = "what was shown last" if self.source == REMEMBERED else f"step {(self.source or 0) + 1}"
        what = self.reference.words if self.reference is not None else "the answer"
        return [f"{name} = {member} of {what} of {source}" for name, member in self.binds.items()]

    def to_json(self) -> dict[str, Any]:
        found = self.decision.to_json()
        for one in found["arguments"].values():
            one["span"] = one["span"] and [at + self.start for at in one["span"]]
        words = None if self.reference is None else self.reference.words
        binds = {name: {"step": self.source, "member": to, "which": words} for name, to in self.binds.items()}
        return {**found, "binds": binds}


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps for an instruction, in their order. Nothing has been called."""

    instruction: str
    steps: tuple[PlanStep, ...]
    reasons: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Return the gravest verdict of the steps: nothing is begun that cannot be ended."""
        found: list[Verdict] = [step.decision.verdict for step in self.steps]
        return "refuse" if self.reasons else min(found, key=_ORDER.index)

    def objections(self) -> list[str]:
        """Return the reasons of the steps with the gravest verdict."""
        return [
            f"step {number} ({brief(step.decision.instruction)}): {'; '.join(step.decision.reasons)}"
            for number, step in enumerate(self.steps, 1)
            if step.decision.verdict == self.verdict
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the record of the plan; for one step that of its decision."""
        if len(self.steps) == 1 and not self.steps[0].binds:
            return self.steps[0].decision.to_json()
        return {"steps": [step.to_json() for step in self.steps], "decision": self.verdict}

    def explain(self) -> list[str]:
        """Return each step with its evidence and reasons, as lines of text."""
        lines = []
        for number, step in enumerate(self.steps, 1):
            lines += [f"step         {number} of {len(self.steps)}", *step.decision.explain()]
            lines += [f"later        {printable(bound)}" for bound in step.bound()]
        return [*lines, *(f"plan         {reason}" for reason in self.reasons)]


@dataclass(frozen=True, slots=True)
class Carried:
    """What has become of a plan."""

    plan: Plan
    state: str
    """State of the step that it ended with, as in `Acted`."""
    message: str
    done: tuple[Acted, ...]
    """What was called, in order; the last one may have failed."""

    @property
    def ok(self) -> bool:
        """True if all steps were carried out."""
        return self.state == "done"

    @property
    def output(self) -> Any:
        """Output of the last call."""
        return self.done[-1].output if self.done else None

    def to_json(self) -> dict[str, Any]:
        """Return the plan, the calls, and how it ended, as data."""
        result = {"state": self.state, "message": self.message, "calls": [one.to_json() for one in self.done]}
        return {**self.plan.to_json(), "result": result}


def split(text: str, serves: Callable[[str, str], bool]) -> list[tuple[int, int]]:
    """Return the places of the clauses of an instruction.

    `serves` is asked whether an endpoint serves a clause, given the text before it. A condition or a "do not" makes one
    clause of all: it is not carried out as if it had not been said.
    """
    hidden = _KEPT.sub(lambda found: "_" * len(found[0]), text)
    if _CONDITION.search(hidden):
        return [(0, len(text))]
    found = [
        (0, 0, True),
        *((one.start(), one.end(), one[1] is not None) for one in islice(_BREAK.finditer(hidden), _MOST_BREAKS)),
    ]
    ends = [*(start for start, _, _ in found[1:]), len(text)]
    clauses: list[tuple[int, int]] = []
    for (_, start, strong), end in zip(found, ends, strict=True):
        if not text[start:end].strip(" .!?"):
            continue
        before = text[slice(*clauses[-1])] if clauses else ""
        new = not clauses or (
            _commands(hidden[start:end], strong)
            and bool(read_need(before).verbs)
            and (strong or serves(before, text[start:end]))
        )
        clauses = [*clauses, (start, end)] if new else [*clauses[:-1], (clauses[-1][0], end)]
    return clauses or [(0, len(text))]


def _commands(clause: str, strong: bool) -> bool:
    """Return True if a clause begins with what is to be done: "book it", but not "chips" or "for two"."""
    words = clause.lower().split()
    verbs = read_need(clause).verbs
    if not verbs or (len(words) < 2 and not strong):
        return False
    first = words[0].strip(".,!?")
    return (strong and first not in verbs) or any(one.form == "base" and one.verb in verbs for one in lemmas(first))


class Shown(NamedTuple):
    """The list that was shown last."""

    noun: str = ""  # what its items are
    items: Sequence[Any] = ()
    namespace: str = ""  # of the service that gave it


NOTHING: Final = Shown()


async def make_plan(agent: ActingAgent, instruction: str, remembered: Shown = NOTHING) -> Plan:
    """Decide the steps of an instruction. `remembered` is the list that was shown last."""
    text = instruction

    def serves(before: str, clause: str) -> bool:
        found = agent.service_map.match(before, 1, floor=0.0)
        noun = shape_of(found[0].place.endpoint).noun if found else ""
        best = agent.service_map.match(_about(clause, noun), 1, floor=agent.rules.match_at)
        return bool(best) and best[0].parts.verb.value >= 0.5

    spans = split(text, serves) if len(text) <= deciding.SEEN else [(0, len(text))]
    planner = _Planner(agent, text if len(spans) > 1 else "", remembered)
    steps: list[PlanStep] = []
    for start, end in spans[:MOST_STEPS]:
        steps.append(await planner.decide(text[start:end], start, steps))
    most = f"it has {len(spans)} steps, and at most {MOST_STEPS} are planned at once"
    return Plan(instruction, tuple(steps), (most,) if len(spans) > MOST_STEPS else ())


def _about(clause: str, noun: str) -> str:
    found = find_reference(clause)
    return clause if found is None else substitute(clause, noun, found)


@dataclass(frozen=True, slots=True)
class _Planner:
    """Decides the clauses of one instruction."""

    agent: ActingAgent
    whole: str  # the instruction, if it has several clauses
    remembered: Shown = NOTHING

    async def decide(
        self, clause: str, start: int, earlier: Sequence[PlanStep], place: Place | None = None
    ) -> PlanStep:
        """Decide one clause with the steps before it; `place` is the endpoint if the user has chosen one."""
        agent, sources = self.agent, self._sources(earlier)
        noun = sources[-1][1].noun if sources else ""
        found = find_reference(clause) if sources else None
        if noun and found is None:
            named = re.search(rf"\b(?:the|that|this) {re.escape(noun)}\b", clause, re.IGNORECASE)
            found = None if named is None else Reference(named[0], named.span(), "it")
        about = clause if found is None else substitute(clause, noun, found)
        base = replace(deciding.choose(agent.service_map, about, agent.rules), instruction=clause, whole=self.whole)
        if place is not None:
            base = deciding.select(base, agent.service_map, place, agent.rules, chosen=True)
        decided = await agent.complete(base, {})
        chosen = decided.place
        if chosen is None or not sources:
            return PlanStep(decided, start)
        given = _said_before(agent, decided, earlier)
        if given:
            decided = await agent.complete(base, given)
        names = chosen.fields if found is not None else decided.missing
        wanted = [name for name in names if name not in decided.arguments]
        for at, shape in reversed(sources):
            if found is None and (shape.is_list or not shape.fields):
                continue
            unknown = {name: name for name in decided.missing}  # of an answer that the contract does not describe
            binds = _binds(chosen, wanted, shape) if shape.fields else unknown
            if binds:
                decided = deciding.assume(base, decided, binds, agent.rules)
                is_blind = found is not None and found.kind == "best" and shape.fields
                if found is not None and is_blind and not compared_fields(shape.fields, found):
                    decided = replace(decided, notes=(*decided.notes, f"no field says which is {found.words!r}"))
                return PlanStep(decided, start, found or THE_ANSWER, at, shape.noun, binds)
        return PlanStep(decided, start)

    def _sources(self, earlier: Sequence[PlanStep]) -> list[tuple[int, Shape]]:
        """Return what values may be taken from: what was shown last, and the answers of earlier steps."""
        noun, items, _ = self.remembered
        fields: dict[str, Any] = {name: {} for one in items[:1] if isinstance(one, Mapping) for name in one}
        shown = [(REMEMBERED, Shape(noun, fields, None, True))] if items else []
        places = ((at, step.decision.place) for at, step in enumerate(earlier))
        return [*shown, *((at, shape_of(place.endpoint)) for at, place in places if place is not None)]


def _said_before(agent: ActingAgent, decided: Decision, earlier: Sequence[PlanStep]) -> dict[str, Argument]:
    """Return what earlier clauses say about missing arguments: the same argument, or words that none took."""
    place, found = decided.target, dict[str, Argument]()
    for step in reversed(earlier):
        one = step.decision
        same = {name: one.arguments[name] for name in decided.missing if name in one.arguments}
        taken = [argument.span for argument in one.arguments.values() if argument.span is not None]
        read = agent.find_arguments(one.instruction, place).found if len(same) < len(decided.missing) else ()
        for argument in (*same.values(), *read):
            span, name = argument.span, argument.name
            free = (
                span is not None
                and argument.confidence >= _APART
                and not any(start < span[1] and span[0] < end for start, end in taken)
            )
            is_new = name in decided.missing and name not in found and (name in same or free)
            if is_new and takes(place, name, argument.value):
                quoted = f'"{one.instruction[slice(*span)]}"' if span else "what was said before"
                found[name] = replace(argument, span=None, reason=f"from {quoted}")
    return found


def _binds(place: Place, names: Sequence[str], shape: Shape) -> dict[str, str]:
    found = ((name, member_for(name, shape.fields, shape.noun)) for name in names)
    return {
        name: member
        for name, member in found
        if member is not None and _is_compatible(shape.fields[member], field_of(place, name))
    }


def _is_compatible(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return False if no value of one schema is one of the other."""
    kinds = [{one} if isinstance(one, str) else set(one or ()) for one in (given.get("type"), wanted.get("type"))]
    kinds = [kind | {"number", "integer"} if kind & {"number", "integer"} else kind for kind in kinds]
    formats = {one.get("format") for one in (given, wanted)} - {None}
    return (not all(kinds) or bool(kinds[0] & kinds[1])) and len(formats) < 2


def bind(
    item: Any, noun: str, place: Place, names: Mapping[str, str], reason: str, *, same: bool
) -> dict[str, Argument]:
    """Return arguments from an item of an answer. `names` are the members that are taken, by argument."""
    found = {}
    for name, member in names.items():
        if isinstance(item, Mapping):
            key = member if member in item else member_for(name, item, noun)
            value = None if key is None else item[key]
        else:
            value = item if len(names) == 1 else None
        is_plain = isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _LONGEST)
        if is_plain and takes(place, name, value):
            found[name] = Argument(name, value, None, _SAME if same else _OTHER, reason)
    return found


class Run:
    """A plan that is being carried out: it gives one decision after the other."""

    def __init__(self, agent: ActingAgent, plan: Plan, remembered: Shown = NOTHING) -> None:
        self.plan = plan
        self.done: list[Acted] = []
        self._agent = agent
        self._remembered = remembered
        self._items: dict[int, list[Any]] = {REMEMBERED: list(remembered.items)}
        self._waiting: list[Decision] = []
        self._at = -1  # step whose decisions are given

    async def next(self) -> Decision | None:
        """Return the next call; None at the end. Raises UnclearError if it cannot be said what it is about."""
        while not self._waiting:
            self._at += 1
            if self._at >= len(self.plan.steps):
                return None
            self._waiting = await self._decide(self.plan.steps[self._at])
        return self._waiting.pop(0)

    def record(self, acted: Acted) -> None:
        """Note what has become of the call, for the steps that follow."""
        self.done.append(acted)
        self._items.setdefault(self._at, []).extend(items_in(acted.output)[1] if acted.ok else ())

    def describe(self, why: str) -> str:
        """Say where the plan ended, and what was done."""
        done = [f"{one.decision.label} {one.decision.target.endpoint.path}" for one in self.done if one.ok]
        made = f"done before: {', '.join(done)}" if done else "nothing was done"
        return f"step {min(self._at + 1, len(self.plan.steps))} of {len(self.plan.steps)}: {why}; {made}"

    async def _decide(self, step: PlanStep) -> list[Decision]:
        decided, place = step.decision, step.decision.place
        if step.source is None or step.reference is None or place is None:
            return [decided]
        items, which = choose_items(self._items.get(step.source, []), step.reference)
        source = None if step.source == REMEMBERED else self.plan.steps[step.source].decision.place
        same = place.namespace == (self._remembered.namespace if source is None else source.namespace)
        reason = f"of {which}" if source is None else f"of {which}, from {source.endpoint}"
        found = []
        for item in items:
            bound = bind(item, step.noun, place, step.binds, reason, same=same)
            if not bound:
                raise UnclearError(
                    f"what was found has no {' or '.join(step.binds.values())} that {place.endpoint} takes"
                )
            made = await self._agent.complete(decided.unjudged(), {**decided.arguments, **bound})
            found.append(replace(made, notes=(*made.notes, f"{', '.join(bound)}: {reason}")))
        return found


async def carry_out(agent: ActingAgent, plan: Plan, tell: Callable[[Acted], None] = lambda acted: None) -> Carried:
    """Carry out a plan, step by step, until the first one that is not carried out. `tell` hears of each call."""
    plan = await _settle(agent, plan)
    states = {"none": "none", "refuse": "refused", "ask": "open"}
    unasked = plan.verdict == "confirm" and not agent.can_confirm
    if plan.verdict in states or unasked:
        reasons = [*plan.reasons, *plan.objections()]
        reasons += ["a person has to agree to a step, and none can be asked"] if unasked else []
        return Carried(plan, states.get(plan.verdict, "open"), f"nothing was called: {'; '.join(reasons)}", ())
    run = Run(agent, plan)
    try:
        while (decided := await run.next()) is not None:
            acted = await agent.carry_out(decided)
            run.record(acted)
            tell(acted)
            if not acted.ok:
                why = acted.message or acted.state
                return Carried(plan, acted.state, run.describe(why), tuple(run.done))
    except UnclearError as error:
        return Carried(plan, "open", run.describe(str(error)), tuple(run.done))
    return Carried(plan, "done", "", tuple(run.done))


async def _settle(agent: ActingAgent, plan: Plan) -> Plan:
    """Ask for what is missing in any step before the first one is carried out."""
    steps = list(plan.steps)
    for at in range(len(steps) if plan.verdict == "ask" else 0):
        for _ in range(deciding.MOST_QUESTIONS):
            step = steps[at]
            if step.decision.verdict != "ask" or (answer := await agent.ask_user(step.decision)) in (None, ""):
                break
            answered = await agent.answer(step.decision, answer, later=tuple(step.binds))
            if answered.chosen and step.decision.is_open:
                planner = _Planner(agent, step.decision.whole)
                steps[at] = await planner.decide(step.decision.instruction, step.start, steps[:at], answered.place)
            else:
                steps[at] = replace(step, decision=answered)
    return replace(plan, steps=tuple(steps))

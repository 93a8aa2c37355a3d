"""A conversation with an agent: it remembers what was asked, what is open, and what was shown last."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from bespeak.agent.acting.agent import YES, Acted, ActingAgent, ask_for, describe_call
from bespeak.agent.acting.decision import SEEN, Decision
from bespeak.agent.acting.references import UnclearError, choose_items, find_reference, items_in
from bespeak.agent.acting.steps import Plan, Run, Shown, bind, make_plan
from bespeak.agent.arguments.finding import Argument
from bespeak.agent.discovery.agent_card import MESSAGE
from bespeak.contract.confirmation import LONGEST
from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.names import singular

_NO: Final = frozenset(
    {"no", "n", "nope", "cancel", "stop", "never mind", "nevermind", "don't", "do not", "leave it", "forget it"}
)
_FOLLOWING: Final = re.compile(
    r"(?:and|also|but|or|(?:what|how) about|instead|rather|(?:make|change) (?:it|that)|no,|for|from|on|at|with|to)\b",
    re.IGNORECASE,
)
_NEW_AT: Final = 0.6  # confidence from which a text with a verb is a new instruction while something is open
_SHORT: Final = 60  # characters of an answer without a verb of its own


@dataclass(frozen=True, slots=True)
class Turn:
    """What the agent says: a question, a call to agree to, or what it has done."""

    text: str
    decision: Decision | None = None
    acted: Acted | None = None
    needs_person: bool = False
    """True if the next "yes" releases a call that only a person may agree to."""
    plan: Plan | None = None
    """Steps that are begun with this turn, if there are several."""
    before: tuple[Acted, ...] = ()
    """Calls of the plan that were made in this turn before the last one."""


class Conversation:
    """One user's conversation. Nothing of it leaves this process, but for the calls."""

    def __init__(self, agent: ActingAgent) -> None:
        self._agent = agent
        self._open: Decision | None = None  # decision that waits for an answer
        self._last: Decision | None = None  # last decision about an endpoint
        self._shown = Shown("one")  # list that was shown last
        self._run: Run | None = None  # plan that is being carried out

    async def say(self, text: str, *, by_person: bool = True) -> Turn:
        """Take what the user says, and answer. `by_person` is False if nobody vouches that a person says it."""
        said = " ".join(text.split())
        if not said:
            return Turn("Say what you want to have done.")
        if len(said) > SEEN:
            return await self._next(await self._agent.decide(said))
        plain = said.lower().strip(" .!")
        pending, self._open = self._open, None
        if pending is not None:
            if plain in _NO:
                return self._ended("nothing more is called", pending) or Turn("Nothing was called.", pending)
            if pending.verdict == "confirm" and plain in YES:
                if not by_person:
                    return Turn("Only a person at a terminal can agree to this call; nothing was called.", pending)
                return await self._told(await self._agent.carry_out(pending, agreed=True))
            if (answered := await self._answered(pending, said)) is not None:
                return await self._next(answered)
        self._run = None
        plan = await make_plan(self._agent, said, self._shown)
        run, found = Run(self._agent, plan, self._shown), find_reference(said)
        if len(plan.steps) > 1 or (found is not None and found.many and plan.steps[0].binds):
            self._run = run
            return replace(await self._go_on(run), plan=plan)
        if (changed := await self._changed(said, pending or self._last)) is not None:
            return await self._next(changed)
        try:
            decided = await run.next()
        except UnclearError:
            decided = None
        return await self._next(decided or plan.steps[0].decision)

    async def _go_on(self, run: Run) -> Turn:
        """Carry out the steps of a plan up to one that a person has to answer."""
        if run.plan.verdict in ("none", "refuse"):
            self._run = None
            return Turn("; ".join((*run.plan.reasons, *run.plan.objections())))
        try:
            decided = await run.next()
        except UnclearError as error:
            self._run = None
            return Turn(run.describe(str(error)))
        if decided is None:
            self._run = None
            return Turn("", acted=run.done[-1] if run.done else None)
        return await self._next(decided)

    def _ended(self, why: str, pending: Decision) -> Turn | None:
        """End the plan that is being carried out; None without one."""
        run, self._run = self._run, None
        return None if run is None else Turn(run.describe(why), pending)

    async def _answered(self, pending: Decision, said: str) -> Decision | None:
        """Return the decision with an answer to its question; None if the text is something else."""
        if pending.is_open:
            found = find_reference(said)
            answer = (
                said if found is None or found.kind != "number" else str(found.number % len(pending.candidates) + 1)
            )
            decided = await self._agent.answer(pending, answer)
            return decided if decided.place is not pending.place or decided.chosen else None
        if pending.verdict != "ask":
            return None
        fresh = await self._agent.decide(said)
        is_new = bool(head_verbs(said)) and fresh.confidence >= _NEW_AT and fresh.place is not None
        if is_new and fresh.place is not pending.place:
            return None
        name = pending.missing[0]
        picked = self._pick(said, pending)
        more = {**self._stated(pending, said), **({name: picked[name]} if name in picked else {})}
        if name not in more and len(said) <= _SHORT:
            decided = await self._agent.answer(pending, said)
            if name in decided.arguments or not more:
                return decided
        return await self._with(pending, more) if more else None

    async def _changed(self, said: str, before: Decision | None) -> Decision | None:
        """Return the instruction before with what a text adds to it; None if the text is an instruction of its own."""
        if before is None or (_FOLLOWING.match(said) is None and head_verbs(said)):
            return None
        more = {**self._pick(said, before), **self._stated(before, said)}
        return await self._with(before, more) if more else None

    async def _with(self, decided: Decision, more: Mapping[str, Argument]) -> Decision:
        """Return a decision with further arguments. What was said before keeps its value, not its place in the text."""
        kept = {
            name: replace(one, span=None, reason=one.reason or "said before") for name, one in decided.arguments.items()
        }
        return await self._agent.complete(decided.unjudged(), {**kept, **more})

    def _stated(self, decided: Decision, said: str) -> dict[str, Argument]:
        place = decided.place
        if place is None:
            return {}
        before = decided.arguments.get(MESSAGE)
        if place.takes_words and before is not None:  # the agent has not seen what was said before
            said = f"{before.value}\n{said}"
        found = self._agent.find_arguments(said, place)
        return {
            one.name: replace(one, span=None, reason=f'from "{said[slice(*one.span)] if one.span else said}"')
            for one in found.found
        }

    def _pick(self, said: str, decided: Decision) -> dict[str, Argument]:
        """Return the members of an item of the last list as arguments: "book the second one"."""
        found = find_reference(said) if self._shown.items else None
        if found is None or decided.place is None:
            return {}
        try:
            (item, *others), which = choose_items(self._shown.items, found)
        except UnclearError:
            return {}
        named = {name: name for name in decided.place.fields}
        same = decided.place.namespace == self._shown.namespace
        return {} if others else bind(item, self._shown.noun, decided.place, named, f"of {which}", same=same)

    async def _next(self, decided: Decision) -> Turn:
        """Call if nothing stands against it, else ask."""
        if decided.place is not None and decided.verdict != "none":
            self._last = decided
        if decided.verdict == "ask":
            self._open = decided
            return Turn(ask_for(decided).text, decided)
        if decided.verdict == "confirm":
            self._open = decided
            needs = decided.needs_person(self._agent.rules)
            text = describe_call(decided, self._agent.service_map)
            if len(text) > LONGEST:  # nobody agrees to what they have not read
                self._open = None
                why = f"the call cannot be shown to a person: it takes {len(text)} characters"
                return self._ended(why, decided) or Turn(f"{why}; nothing was called.".capitalize(), decided)
            return Turn(text, decided, needs_person=needs)
        return await self._told(await self._agent.carry_out(decided))

    async def _told(self, acted: Acted) -> Turn:
        """Remember what came back, and what is open now; go on with the plan."""
        name, items = items_in(acted.output)
        if items and (isinstance(acted.output, list) or name):
            place = acted.decision.place
            self._shown = Shown(_noun_of(name, acted.decision), items, "" if place is None else place.namespace)
        if acted.state == "open" and acted.decision.verdict in ("ask", "confirm"):
            if acted.earlier:  # what a changed contract makes of the call is shown before anybody agrees to it
                return await self._next(acted.decision)
            self._open = acted.decision
        if self._run is None:
            return Turn(acted.message, acted.decision, acted)
        self._run.record(acted)
        if self._open is not None:
            return Turn(acted.message, acted.decision, acted)
        if not acted.ok:
            ended = self._ended(acted.message or acted.state, acted.decision)
            return Turn(ended.text if ended else "", acted.decision, acted)
        turn = await self._go_on(self._run)
        return turn if turn.acted is acted else replace(turn, before=(acted, *turn.before))


def _noun_of(name: str, decided: Decision) -> str:
    """Return what the items of a list are: by the name of the list, else by the path."""
    path = "" if decided.place is None else decided.place.endpoint.path.strip("/").partition("/")[0]
    return singular((name or path).replace("_", " ").replace("-", " ")) or "one"

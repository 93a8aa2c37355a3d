"""A conversation with an agent: it remembers what was asked, what is open, and what was shown last."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from bespeak.agent.acting.agent import YES, Acted, ActingAgent, ask_for, describe_call
from bespeak.agent.acting.decision import Decision
from bespeak.agent.arguments.finding import Argument
from bespeak.documents.adoption.naming import singular
from bespeak.text.language.head_verb import head_verbs

_NO: Final = frozenset(
    {"no", "n", "nope", "cancel", "stop", "never mind", "nevermind", "don't", "do not", "leave it", "forget it"}
)
_FOLLOWING: Final = re.compile(
    r"(?:and|also|but|or|(?:what|how) about|instead|rather|(?:make|change) (?:it|that)|no,|for|from|on|at|with|to)\b",
    re.IGNORECASE,
)
_ORDINALS: Final = {
    word: number
    for number, words in enumerate(
        ("first 1st", "second 2nd", "third 3rd", "fourth 4th", "fifth 5th", "sixth 6th", "seventh 7th", "eighth 8th",
         "ninth 9th", "tenth 10th")
    )
    for word in words.split()
}  # fmt: skip
_ORDINAL: Final = re.compile(
    rf"\b(?:the\s+)?({'|'.join(_ORDINALS)}|last)(?:\s+(?:one|option|of (?:these|them)))?\b", re.IGNORECASE
)
_NEW_AT: Final = 0.6  # confidence from which a text with a verb is a new instruction while something is open
_SHORT: Final = 60  # characters of an answer without a verb of its own
_MOST_ITEMS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Turn:
    """What the agent says: a question, a call to agree to, or what it has done."""

    text: str
    decision: Decision | None = None
    acted: Acted | None = None
    needs_person: bool = False
    """True if the next "yes" releases a call that only a person may agree to."""


class Conversation:
    """One user's conversation. Nothing of it leaves this process, but for the calls."""

    def __init__(self, agent: ActingAgent) -> None:
        self._agent = agent
        self._open: Decision | None = None  # decision that waits for an answer
        self._last: Decision | None = None  # last decision about an endpoint
        self._items: list[Any] = []  # list that was shown last
        self._noun = "one"  # what its items are

    async def say(self, text: str, *, by_person: bool = True) -> Turn:
        """Take what the user says, and answer. `by_person` is False if nobody vouches that a person says it."""
        said = " ".join(text.split())
        if not said:
            return Turn("Say what you want to have done.")
        plain = said.lower().strip(" .!")
        pending, self._open = self._open, None
        if pending is not None:
            if plain in _NO:
                return Turn("Nothing was called.", pending)
            if pending.verdict == "confirm" and plain in YES:
                if pending.needs_person(self._agent.rules) and not by_person:
                    return Turn("Only a person at a terminal can agree to this call; nothing was called.", pending)
                return self._told(await self._agent.carry_out(pending, agreed=True))
            if (answered := await self._answered(pending, said)) is not None:
                return await self._next(answered)
        return await self._next(await self._understood(said, pending or self._last))

    async def _answered(self, pending: Decision, said: str) -> Decision | None:
        """Return the decision with an answer to its question; None if the text is something else."""
        if pending.is_open:
            number = _ordinal(said, len(pending.candidates))
            answer = said if number is None else str(number + 1)
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

    async def _understood(self, said: str, before: Decision | None) -> Decision:
        """Return the decision for a new instruction, or for a change of the one before."""
        # "book the second one" is about a room if rooms were shown.
        about = said if _ordinal(said, len(self._items)) is None else _ORDINAL.sub(self._noun, said, count=1)
        fresh = await self._agent.decide(about)
        follows = _FOLLOWING.match(said) is not None or not head_verbs(said)
        if before is not None and before.place is not None and follows:
            more = {**self._pick(said, before), **self._stated(before, said)}
            if more:
                return await self._with(before, more)
        picked = self._pick(said, fresh)
        return await self._with(fresh, picked) if picked else fresh

    async def _with(self, decided: Decision, more: Mapping[str, Argument]) -> Decision:
        """Return a decision with further arguments. What was said before keeps its value, not its place in the text."""
        kept = {
            name: replace(one, span=None, reason=one.reason or "said before") for name, one in decided.arguments.items()
        }
        again = replace(decided, verdict="call", missing=(), offered={}, reasons=())
        return await self._agent.complete(again, {**kept, **more})

    def _stated(self, decided: Decision, said: str) -> dict[str, Argument]:
        place = decided.place
        if place is None:
            return {}
        found = self._agent.find_arguments(said, place)
        return {
            one.name: replace(one, span=None, reason=f'from "{said[slice(*one.span)] if one.span else said}"')
            for one in found.found
        }

    def _pick(self, said: str, decided: Decision) -> dict[str, Argument]:
        """Return the members of an item of the last list as arguments: "book the second one"."""
        number = _ordinal(said, len(self._items))
        if number is None or decided.place is None:
            return {}
        item = self._items[number]
        properties = decided.place.endpoint.input_schema.get("properties")
        names = list(properties) if isinstance(properties, Mapping) else []
        reason = f"of number {number + 1} of the last answer"
        if not isinstance(item, Mapping):
            return {names[0]: Argument(names[0], item, None, 0.9, reason)} if len(names) == 1 else {}
        resource = decided.place.endpoint.path.strip("/").partition("/")[0].removesuffix("s")
        named = {name: name for name in names if name in item}
        if "id" in item and f"{resource}_id" in names:
            named.setdefault(f"{resource}_id", "id")
        return {name: Argument(name, item[key], None, 0.9, reason) for name, key in named.items()}

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
            return Turn(describe_call(decided, self._agent.service_map), decided, needs_person=needs)
        return self._told(await self._agent.carry_out(decided))

    def _told(self, acted: Acted) -> Turn:
        """Remember what came back, and what is open now."""
        if acted.state in ("open", "declined") and acted.decision.verdict in ("ask", "confirm"):
            self._open = acted.decision
        if items := _list_in(acted.output):
            self._items = items[:_MOST_ITEMS]
            self._noun = _noun_of(acted.output, acted.decision)
        return Turn(acted.message, acted.decision, acted)


def _ordinal(said: str, count: int) -> int | None:
    found = _ORDINAL.search(said)
    if found is not None and count:
        number = count - 1 if found[1].lower() == "last" else _ORDINALS[found[1].lower()]
        return number if number < count else None
    digits = re.fullmatch(r"(?:number |no\. ?|#)?(\d{1,4})", said, re.IGNORECASE)
    return int(digits[1]) - 1 if digits and 0 < int(digits[1]) <= count else None


def _noun_of(output: Any, decided: Decision) -> str:
    """Return what the items of a list are: by the name of the list, else by the path."""
    names = [name for name, one in output.items() if isinstance(one, list)] if isinstance(output, Mapping) else []
    path = "" if decided.place is None else decided.place.endpoint.path.strip("/").partition("/")[0]
    return singular((names or [path])[0].replace("_", " ").replace("-", " ")) or "one"


def _list_in(output: Any) -> list[Any]:
    """Return the list that an output is, or its only list of objects."""
    if isinstance(output, list):
        return output
    lists = [one for one in output.values() if isinstance(one, list) and one] if isinstance(output, Mapping) else []
    return lists[0] if len(lists) == 1 else []

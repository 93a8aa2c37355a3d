"""Arguments found in an instruction: candidates and slots are paired by weight, the best pair first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any, Final, Literal

from bespeak.agent.arguments.candidates import Candidate, Reading, read
from bespeak.agent.arguments.conversion import convert, find_faults
from bespeak.agent.arguments.slots import Slot, listed, related, slots_of, stems
from bespeak.agent.arguments.weighing import Pair, Weighing, kind_of, weigh, weights
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.validation import shorten
from bespeak.text.values.mentions import find_mentions

FILL: Final = 0.5  # least confidence of an optional argument that is filled in
REQUIRED: Final = 0.6  # that of a required one: it is asked for anyway, and a question is better than a guess
OFFER: Final = 0.3  # least confidence of one that is offered as a question
_MOST_SLOTS: Final = 40  # of more, those are weighed that the instruction names or that are required
_MOST_PAIRS: Final = 1_000  # about 20 ms


@dataclass(frozen=True, slots=True)
class Argument:
    """A value for one parameter."""

    name: str  # with the name of its object before it: guest.name
    value: Any
    span: tuple[int, int] | None  # its place in the instruction
    confidence: float
    reason: str


@dataclass(frozen=True, slots=True)
class Arguments:
    """What an instruction says about the input of an endpoint."""

    found: tuple[Argument, ...]
    offered: tuple[Argument, ...]  # doubtful values, to be asked for; those that the schema refuses say so
    missing: tuple[str, ...]  # required parameters that are not found

    @property
    def values(self) -> dict[str, Any]:
        """The found values as the input of a call."""
        return nest({argument.name: argument.value for argument in self.found})


def nest(values: dict[str, Any]) -> dict[str, Any]:
    """Return values by name as an object; `guest.name` becomes a member of `guest`."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        outer, dot, inner = name.partition(".")
        if dot and isinstance(found.setdefault(outer, {}), dict):
            found[outer][inner] = value
        else:
            found[name] = value
    return found


def find_arguments(
    instruction: str, endpoint: Endpoint, *, now: datetime, order: Literal["DMY", "MDY"] | None = None
) -> Arguments:
    """Find the arguments of an endpoint in an instruction, without a language model.

    `now` must be aware: relative dates are read from it, in its time zone. `order` says how 3/4 is read; without it,
    the words must tell.
    """
    slots, own = slots_of(endpoint), own_words(endpoint)
    reading, pairs = propose(instruction, slots, own, now=now, order=order)
    pairs = weigh(pairs, slots, weights())
    chosen, doubtful = _assign(reading, slots, pairs)
    found = {slots[number].name: _argument(slots[number], parts, reading) for number, parts in chosen.items()}
    _end_period(reading, slots, pairs, found)
    _end_stay(reading, slots, found)
    offered = {
        slots[number].name: _argument(slots[number], [pair], reading)
        for number, pair in doubtful.items()
        if slots[number].name not in found
    }
    disordered = _order_ends(reading, slots, found, now)
    # A literal dot in a name of the contract would be taken for a member; such a name is not filled.
    faults = find_faults(endpoint, nest({name: one.value for name, one in found.items()})) | disordered
    for name, fault in faults.items():
        if name in found:
            refused = found.pop(name)
            offered[name] = Argument(name, refused.value, refused.span, min(refused.confidence, FILL - 0.01), fault)
    missing = tuple(slot.name for slot in slots if slot.required and slot.name not in found)
    return Arguments(tuple(found.values()), tuple(offered.values()), missing)


def own_words(endpoint: Endpoint) -> frozenset[str]:
    """Return the stems of the words that an endpoint uses for itself, such as those of its path."""
    intent = endpoint.semantic.intent
    return frozenset(
        word
        for text in (endpoint.method, endpoint.path.replace("{", "").replace("}", ""), endpoint.description, intent)
        for word in stems(text)[:40]
        if len(word) > 2 and not word.isdigit() and word not in listed("small")
    )


def propose(
    instruction: str, slots: Sequence[Slot], own: frozenset[str], *, now: datetime, order: Any = None
) -> tuple[Reading, list[Pair]]:
    """Return the candidates of an instruction, and every pair of one with a slot that takes it."""
    reading = read(instruction, slots, own, now=now, order=order)
    _join_moments(reading, slots, now)
    weighing = Weighing(reading, slots, related(own))
    pairs: list[Pair] = []
    numbers = _worth_weighing(reading, slots)
    hinted = {(one.slot, one.first) for one in reading.candidates if one.match == "hint"}
    joined = any(candidate.also != (0, 0) for candidate in reading.candidates)
    for candidate in reading.candidates:
        for number in numbers if candidate.slot < 0 else (candidate.slot,):
            if joined and slots[number].family == "datetime" and candidate.kind in ("date", "time"):
                continue  # the moment has both
            if candidate.slot < 0 and (number, candidate.first) in hinted:
                continue  # the same words, of which a hint says more
            made = convert(candidate, slots[number], now)
            if made is None:
                continue
            if len(pairs) >= _MOST_PAIRS:
                return reading, pairs
            features = list(weighing.features(candidate, number))
            doubt = 0.5 if weighing.contradicts(candidate, number) else 0.6 if made.fault else 1.0
            doubt *= 0.5 + candidate.certainty / 2
            kind = kind_of(candidate, slots[number])
            pairs.append(Pair(candidate, number, made.value, made.fault, kind, features, doubt))
    return reading, pairs


def _worth_weighing(reading: Reading, slots: Sequence[Slot]) -> list[int]:
    """Return the slots to weigh: all of a usual endpoint; of many, first those that the instruction names."""
    if len(slots) <= _MOST_SLOTS:
        return list(range(len(slots)))
    said = {token.stem for token in reading.tokens}
    ranked = sorted(range(len(slots)), key=lambda at: (said.isdisjoint(slots[at].words), not slots[at].required, at))
    return sorted(ranked[:_MOST_SLOTS])


def _join_moments(reading: Reading, slots: Sequence[Slot], now: datetime) -> None:
    """Add a moment for each date with a time elsewhere in the instruction: "on Friday for two people at 7 pm"."""
    if not any(slot.family == "datetime" for slot in slots):
        return
    dates = [one for one in reading.candidates if one.kind == "date" and isinstance(one.value, date)]
    times = [one for one in reading.candidates if one.kind == "time" and isinstance(one.value, time)]
    if len(dates) == len(times) == 1 and (dates[0].last <= times[0].first or times[0].last <= dates[0].first):
        day, clock = dates[0], times[0]
        moment = datetime.combine(day.value, clock.value.replace(tzinfo=None), now.tzinfo)
        reading.candidates.append(
            Candidate("datetime", moment, day.start, day.end, day.first, day.last, min(day.certainty, clock.certainty),
                      also=(clock.first, clock.last))
        )  # fmt: skip


def _assign(
    reading: Reading, slots: Sequence[Slot], pairs: list[Pair]
) -> tuple[dict[int, list[Pair]], dict[int, Pair]]:
    """Give each slot its best pair whose text is not taken, the most likely first. Flags may share their text."""
    taken: dict[int, Pair] = {}
    chosen: dict[int, list[Pair]] = {}
    doubtful: dict[int, Pair] = {}
    for pair in sorted(pairs, key=lambda one: (-one.confidence, one.candidate.first - one.candidate.last)):
        if pair.confidence < OFFER:
            break
        if pair.slot in chosen or pair.slot in doubtful or not _is_free(pair, slots, taken):
            continue
        if pair.confidence < (REQUIRED if slots[pair.slot].required else FILL) or pair.fault:
            doubtful[pair.slot] = pair
            continue
        chosen[pair.slot] = [pair]
        _take(pair, slots, taken)
        if slots[pair.slot].many:
            chosen[pair.slot] = _listed(reading, pair, [one for one in pairs if one.slot == pair.slot], slots, taken)
    return chosen, doubtful


def _cells(candidate: Candidate) -> list[int]:
    return [*range(candidate.first, candidate.last), *range(*candidate.also)]


def _is_free(pair: Pair, slots: Sequence[Slot], taken: dict[int, Pair]) -> bool:
    others = (taken[at] for at in _cells(pair.candidate) if at in taken)
    return slots[pair.slot].family == "flag" or all(_may_share(pair, other, slots) for other in others)


def _may_share(pair: Pair, other: Pair, slots: Sequence[Slot]) -> bool:
    """Return True for a date and a time of one moment, an amount and its currency, and the two ends of a weekend."""
    one, two = pair.candidate, other.candidate
    kinds, families = {one.kind, two.kind}, {slots[pair.slot].family, slots[other.slot].family}
    if kinds == {"datetime"}:
        return families == {"date", "time"}
    if kinds in ({"choice", "money"}, {"choice", "datetime"}):
        return not families.isdisjoint(("number", "time"))
    if one.kind == two.kind and one.edge != two.edge and (one.start, one.end) == (two.start, two.end):
        return True
    return kinds == {"money"} and len(families) == 2 and "number" in families


def _take(pair: Pair, slots: Sequence[Slot], taken: dict[int, Pair]) -> None:
    if slots[pair.slot].family != "flag":
        taken.update(dict.fromkeys(_cells(pair.candidate), pair))


def _listed(
    reading: Reading, best: Pair, pairs: list[Pair], slots: Sequence[Slot], taken: dict[int, Pair]
) -> list[Pair]:
    """Return the pairs of a list: those that only commas and "and" separate from the best one."""
    found, ranked = [best], sorted((one for one in pairs if not one.fault), key=lambda one: -one.confidence)
    for _ in range(50):
        first, last = found[0].candidate.first, found[-1].candidate.last
        for pair in ranked:
            one = pair.candidate
            behind = _separates(reading, last, one.first)
            if (behind or _separates(reading, one.last, first)) and _is_free(pair, slots, taken):
                found = [*found, pair] if behind else [pair, *found]
                _take(pair, slots, taken)
                break
        else:
            break
    return found


def _separates(reading: Reading, first: int, last: int) -> bool:
    between = {token.lower for token in reading.tokens[first:last]}
    return last - first in (1, 2, 3) and bool(between & listed("between")) and between <= listed("between-too")


def _argument(slot: Slot, parts: list[Pair], reading: Reading) -> Argument:
    values = list(dict.fromkeys(part.value for part in parts))
    start, end = min(part.candidate.start for part in parts), max(part.candidate.end for part in parts)
    confidence = min(parts[0].confidence, FILL - 0.01) if parts[0].fault else parts[0].confidence
    reason = shorten(parts[0].fault) or _reason(slot, parts[0], reading)
    return Argument(slot.name, values if slot.many else values[0], (start, end), round(confidence, 3), reason)


_KINDS: Final = {
    **dict.fromkeys(("phrase", "modifier", "object"), "words"),
    **dict.fromkeys(("tail", "task"), "the rest of a sentence"),
    "datetime": "a date with time",
    "money": "an amount",
    "email": "an email address",
    "quoted": "a quoted text",
    "identifier": "an identifier",
    "url": "an address",
}


def _reason(slot: Slot, pair: Pair, reading: Reading) -> str:
    """Return in a few words why a value was taken."""
    one = pair.candidate
    text = reading.text[one.start : one.end]
    if one.match == "hint":
        return f'"{text}" matches a hint of {slot.name}'
    if one.kind == "flag":
        return f'"{text}" says {slot.name}' if pair.value else f'"{text}" is denied'
    if one.kind == "choice":
        return f'"{text}" is one of the listed values' if one.match == "exact" else f'"{text}" means {pair.value!r}'
    before = reading.tokens[one.first - 1].text if one.first else ""
    behind = reading.tokens[one.last].lower if one.last < len(reading.tokens) else ""
    kind = _KINDS.get(one.kind, f"a {one.kind}")
    if behind and any(word in slot.words for word in stems(behind)):
        return f'{kind} before "{behind}"'
    return f'{kind} after "{before}"' if before else f"{kind} at the beginning"


def _end_period(reading: Reading, slots: Sequence[Slot], pairs: Sequence[Pair], found: dict[str, Argument]) -> None:
    """Fill both ends of a period that is said in one word: "next weekend" has a first and a last day."""
    numbers = {slot.edge: number for number, slot in enumerate(slots) if slot.family == "date" and not slot.many}
    periods: dict[tuple[int, int], dict[str, Pair]] = {}
    for pair in pairs:
        one = pair.candidate
        if one.edge and pair.slot == numbers.get(one.edge) and not pair.fault:
            periods.setdefault((one.start, one.end), {})[one.edge] = pair
    for span, ends in periods.items():
        filled = [found[name] for name in (slots[pair.slot].name for pair in ends.values()) if name in found]
        sure = max(pair.confidence for pair in ends.values())
        if len(ends) == 2 and sure >= OFFER and all(one.span == span for one in filled):
            for pair in ends.values():
                likely = pair._replace(confidence=max(FILL, sure))
                found.setdefault(slots[pair.slot].name, _argument(slots[pair.slot], [likely], reading))
            return


def _end_stay(reading: Reading, slots: Sequence[Slot], found: dict[str, Argument]) -> None:
    """Add the last day where only the first one and a number of nights or weeks are said: three nights from Friday."""
    ends = {slot.edge: slot for slot in slots if slot.family == "date" and not slot.many}
    stays = [one for one in reading.candidates if one.kind == "duration" and one.unit in ("night", "week")]
    if "from" not in ends or "to" not in ends or ends["to"].name in found or len(stays) != 1:
        return
    first, stay = found.get(ends["from"].name), stays[0]
    is_day = first is not None and re.fullmatch(r"\d{4}-\d\d-\d\d", str(first.value))
    if first is not None and is_day and stay.value < timedelta(366) and first.value < "9998":
        last = (date.fromisoformat(first.value) + stay.value).isoformat()
        reason = f'"{reading.text[stay.start : stay.end]}" after {first.value}'
        found[ends["to"].name] = Argument(ends["to"].name, last, (stay.start, stay.end), first.confidence, reason)


def _order_ends(reading: Reading, slots: Sequence[Slot], found: dict[str, Argument], now: datetime) -> dict[str, str]:
    """Read the end of a range from its start: 24 December, back on the 28th. Refuse ends that are before it.

    Times may pass midnight.
    """
    faults: dict[str, str] = {}
    for families in (("date", "datetime"), ("number",)):
        named = [slot for slot in slots if slot.family in families and slot.name in found]
        starts, ends = ([found[slot.name] for slot in named if slot.edge == edge] for edge in ("from", "to"))
        if len(starts) != 1 or len(ends) != 1 or not _is_after(starts[0].value, ends[0].value):
            continue
        start, end = starts[0], _read_from(reading, ends[0], starts[0], now)
        found[end.name] = end
        if _is_after(start.value, end.value):
            faults[start.name] = faults[end.name] = f"{start.name} ({start.value}) is after {end.name} ({end.value})"
    return faults


def _is_after(start: Any, end: Any) -> bool:
    if isinstance(start, str) and isinstance(end, str):  # a day and a moment are compared by their days
        return start[: len(end)] > end[: len(start)]
    return isinstance(start, int | float) and isinstance(end, int | float) and start > end


def _read_from(reading: Reading, end: Argument, start: Argument, now: datetime) -> Argument:
    """Return the end of a range as somebody means it who thinks of its start."""
    day = re.match(r"\d{4}-\d\d-\d\d", str(start.value))
    if end.span is None or day is None or re.fullmatch(r"\d{4}-\d\d-\d\d", str(end.value)) is None:
        return end
    first = datetime.combine(date.fromisoformat(day[0]), time(), now.tzinfo)
    said = reading.text[max(end.span[0] - len("the "), 0) : end.span[1]]
    days = [one.value for one in find_mentions(said, now=first) if one.kind == "date"]
    return replace(end, value=days[0].isoformat()) if len(days) == 1 else end

"""Conversion of candidates to what a schema takes, and the check that every proposed argument must pass."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.agent.arguments.candidates import Candidate
from bespeak.agent.arguments.slots import Slot
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.validation import Validator, compile_schema, shorten

_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "night": 86_400, "week": 604_800}
_NUMERIC: Final = frozenset({"number", "money", "percent", "quantity", "duration"})
_TEMPORAL: Final = frozenset({"date", "time", "datetime"})
_TEXTUAL: Final = frozenset({"name", "phrase", "modifier", "object", "tail", "task", "quoted"})
_OF_ROLE: Final = {"email": "email", "url": "url", "phone": "phone"}
_LAYOUTS: Final = (
    ("yyyy-mm-dd", "%Y-%m-%d"), ("dd/mm/yyyy", "%d/%m/%Y"), ("mm/dd/yyyy", "%m/%d/%Y"), ("dd.mm.yyyy", "%d.%m.%Y"),
    ("dd-mm-yyyy", "%d-%m-%Y"), ("mm-dd-yyyy", "%m-%d-%Y"), ("yyyy/mm/dd", "%Y/%m/%d"), ("yyyymmdd", "%Y%m%d"),
)  # fmt: skip


class Converted(NamedTuple):
    """A value in the form of its slot, or the reason why the schema refuses it."""

    value: Any
    fault: str = ""


def convert(candidate: Candidate, slot: Slot, now: datetime) -> Converted | None:
    """Return the value that a candidate has in a slot; None if the slot does not take such candidates."""
    if candidate.slot >= 0 and candidate.kind in ("choice", "flag"):
        return Converted(candidate.value)
    if slot.family in ("choice", "flag", "list"):
        return _currency(candidate, slot)
    forms = list(_forms(candidate, slot, now))
    if not forms:
        return _currency(candidate, slot)
    if candidate.kind == "number" and slot.family == "number" and candidate.value and forms[0] == candidate.value * 100:
        return Converted(forms[0], f"{slot.name} counts minor units; is {candidate.value} the amount in the main unit?")
    if slot.family == "datetime" and candidate.kind == "date":
        return Converted(forms[0], "the instruction names no time of day")
    first = ""
    for form in forms:
        fault = _fault(slot, form)
        if not fault:
            return Converted(form)
        first = first or fault
    return None if candidate.kind in _TEXTUAL else Converted(forms[0], first)


def _forms(candidate: Candidate, slot: Slot, now: datetime) -> Iterator[Any]:
    """Yield the forms of a value, the likeliest first; the schema decides."""
    kind, value = candidate.kind, candidate.value
    match slot.family:
        case "number":
            if kind in _NUMERIC:
                yield from _numbers(candidate, slot)
            elif kind == "date" and slot.schema.get("type") == "integer" and "year" in slot.words:
                yield _moment(value).year
        case "date" if kind in ("date", "datetime"):
            yield from _dates(_moment(value), slot)
        case "time" if kind in ("time", "datetime"):
            yield from _times(_clock(value), slot, now)
        case "datetime" if kind in _TEMPORAL:
            yield from _datetimes(kind, value, slot, now)
        case "duration" if kind == "duration":
            yield _iso_duration(value)
        case "text":
            yield from _texts(candidate, slot)
        case _:
            return


def _moment(value: Any) -> date:
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.date() if isinstance(value, datetime) else value


def _clock(value: Any) -> time:
    if isinstance(value, str):
        value = time.fromisoformat(value)
    return value.timetz().replace(tzinfo=None) if isinstance(value, datetime) else value


def _dates(day: date, slot: Slot) -> Iterator[str]:
    described = slot.description.lower()
    named = [layout for words, layout in _LAYOUTS if words in described]
    for layout in [*named, *([] if named else ["%Y-%m-%d"])]:
        yield day.strftime(layout)
    if "pattern" in slot.schema:
        yield from (day.strftime(layout) for _, layout in _LAYOUTS)


def _times(clock: time, slot: Slot, now: datetime) -> Iterator[str]:
    if slot.schema.get("format") == "time":
        zoned = datetime.combine(now.date(), clock, now.tzinfo)
        yield zoned.timetz().isoformat("seconds")
        yield clock.isoformat("seconds")
        return
    yield clock.isoformat("minutes")
    if "pattern" in slot.schema or "ss" in slot.description.lower():
        yield clock.isoformat("seconds")
        yield f"{(clock.hour - 1) % 12 + 1}:{clock:%M %p}"


def _datetimes(kind: str, value: Any, slot: Slot, now: datetime) -> Iterator[str]:
    if kind == "datetime":
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    elif kind == "time":
        moment = datetime.combine(now.date(), _clock(value), now.tzinfo)
        if moment < now:
            moment += timedelta(days=1)
    else:
        moment = datetime.combine(_moment(value), time(), now.tzinfo)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=now.tzinfo)
    yield moment.isoformat(timespec="seconds")
    yield moment.replace(tzinfo=None).isoformat(timespec="seconds")
    yield moment.strftime("%Y-%m-%d %H:%M")


def _numbers(candidate: Candidate, slot: Slot) -> Iterator[int | float]:
    value: Any = candidate.value
    kind = candidate.kind
    if kind == "duration":
        value = _in_units(candidate, slot)
    if isinstance(value, bool) or value is None:
        return
    number = float(value)
    if not abs(number) < 1e15:
        return
    if "minor" in slot.units and "major" not in slot.units and "money" in slot.roles + slot.hinted:
        number = float(round(number * 100))
    top = slot.schema.get("maximum")
    if kind == "percent" and isinstance(top, int | float) and top <= 1:
        number /= 100
    if number.is_integer():
        yield int(number)
    else:
        yield round(number, 9)


def _in_units(candidate: Candidate, slot: Slot) -> float | None:
    """Return a duration in the unit that the slot names, else in its own."""
    value, said = candidate.value, candidate.unit.removesuffix("s")
    if not isinstance(value, timedelta):
        return None
    seconds = value.total_seconds()
    months = {"month": 30 * 86_400, "year": 365 * 86_400}
    named = [unit for unit in slot.units if unit in _SECONDS or unit in months]
    if said in slot.units or (not named and said):
        unit = said
    elif len(named) == 1 and said not in months:
        unit = named[0]
    else:
        return None
    return seconds / (_SECONDS | months).get(unit, 1)


def _iso_duration(value: Any) -> str:
    if not isinstance(value, timedelta):
        return str(value)
    seconds = int(value.total_seconds())
    days, rest = divmod(seconds, 86_400)
    if not rest:
        return f"P{days // 7}W" if days and days % 7 == 0 else f"P{days}D"
    parts = zip((rest // 3_600, rest % 3_600 // 60, rest % 60), "HMS", strict=True)
    return "P" + (f"{days}D" if days else "") + "T" + "".join(f"{count}{letter}" for count, letter in parts if count)


def _texts(candidate: Candidate, slot: Slot) -> Iterator[str]:
    kind, value = candidate.kind, candidate.value
    form = slot.schema.get("format")
    wanted = {"email": "email", "uri": "url", "uri-reference": "url", "uuid": "identifier"}.get(str(form), "")
    if not wanted:
        wanted = next((_OF_ROLE[role] for role in slot.roles[:1] if role in _OF_ROLE), "")
        if wanted == "email" and "address" not in slot.words and len(slot.words) > 1:
            wanted = ""
    if wanted and kind != wanted and not (wanted == "phone" and kind in ("number", "identifier")):
        return
    if kind in _TEXTUAL or kind in ("email", "url", "phone", "version", "path", "identifier"):
        yield str(value)
        if isinstance(value, str) and value.lower() == value and "pattern" in slot.schema:
            yield value.upper()
    elif kind in ("number", "money", "percent", "quantity") and not isinstance(value, str):
        yield f"{value:g}" if isinstance(value, float) else str(value)
    elif kind in _TEMPORAL and slot.edge and not slot.roles and not isinstance(value, str):
        yield value.isoformat()
    elif kind == "duration" and "duration" in slot.roles:
        yield f"{candidate.value}" if isinstance(value, str) else _iso_duration(value)


def _currency(candidate: Candidate, slot: Slot) -> Converted | None:
    """Return the currency of an amount for a slot that takes its code."""
    if (
        candidate.kind != "money"
        or not candidate.unit
        or ("currency" not in slot.words and "currenc" not in slot.words)
    ):
        return None
    for phrase in slot.phrases:
        if phrase.weight == "exact" and phrase.words == (candidate.unit.lower(),):
            return Converted(phrase.value)
    if slot.family != "text":
        return None
    return Converted(candidate.unit) if not _fault(slot, candidate.unit) else None


@lru_cache(maxsize=4096)
def _compiled(key: bytes) -> Validator | None:
    found = compile_schema(msgspec.json.decode(key))
    return found if isinstance(found, Validator) else None


_CHECKED: Final = ("type", "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
                   "multipleOf", "minLength", "maxLength", "enum", "const")  # fmt: skip


def _fault(slot: Slot, value: Any) -> str:
    """Return why one value does not fit its slot; references below it are left to the check of the whole."""
    facts = {name: slot.schema[name] for name in _CHECKED if name in slot.schema}
    if facts.keys() <= {"type"} and isinstance(value, str):
        return "" if "string" in str(facts.get("type", "string")) else f"{value!r} is not of the type {facts['type']}"
    validator = _compiled(msgspec.json.encode(facts))
    if validator is None or validator.is_valid(value):
        return ""
    return validator.violations(value)[0].message


def find_faults(endpoint: Endpoint, values: Mapping[str, Any]) -> dict[str, str]:
    """Return why the schema of an endpoint refuses proposed arguments, by the name of each refused one.

    A missing required argument is not a fault: it can still be asked for.
    """
    compiled = compile_schema(endpoint.input_schema)
    if not isinstance(compiled, Validator):
        return {"": compiled.message}
    if compiled.is_valid(dict(values)):
        return {}
    found: dict[str, str] = {}
    for one in compiled.violations(dict(values)):
        parts = [part.replace("~1", "/").replace("~0", "~") for part in one.pointer.split("/")[1:]]
        if one.keyword in ("required", "unevaluatedProperties"):
            continue
        if one.keyword == "additionalProperties" and not parts:
            for name in re.findall(r"'([^']+)'", one.message):
                if name in values:
                    found.setdefault(name, shorten(f"{name} is not a parameter of {endpoint}"))
        elif parts and parts[0] in values:
            inner = parts[1] if len(parts) > 1 and isinstance(values[parts[0]], Mapping) else ""
            found.setdefault(f"{parts[0]}.{inner}" if inner else parts[0], one.message)
    return found

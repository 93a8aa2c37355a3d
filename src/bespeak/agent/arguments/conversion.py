"""Conversion of candidates to what a schema takes, and the check that every proposed argument must pass."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from typing import Any, Final, NamedTuple

from bespeak.agent.arguments.candidates import Candidate
from bespeak.agent.arguments.slots import Slot
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.validation import Validator, compile_schema, shorten

_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "night": 86_400, "week": 604_800,
                   "month": 2_592_000, "year": 31_536_000}  # fmt: skip
_NUMERIC: Final = frozenset({"number", "money", "percent", "quantity", "duration"})
_TEMPORAL: Final = frozenset({"date", "time", "datetime"})
_TEXTUAL: Final = frozenset({"name", "phrase", "modifier", "object", "tail", "task", "quoted"})
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
    if not forms or (candidate.kind == "money" and "currency" in slot.words):
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
    day = value.date() if isinstance(value, datetime) else value if isinstance(value, date) else None
    clock = value.timetz() if isinstance(value, datetime) else value if isinstance(value, time) else None
    match slot.family:
        case "number" if kind in _NUMERIC:
            yield from _numbers(candidate, slot)
        case "number" if day and slot.schema.get("type") == "integer" and "year" in slot.words:
            yield day.year
        case "date" if day:
            yield from _dates(day, slot)
        case "time" if clock:
            yield from _times(clock.replace(tzinfo=None), slot, now)
        case "datetime" if day or clock:
            moment = datetime.combine(day or now.date(), clock or time(), (clock and clock.tzinfo) or now.tzinfo)
            if day is None and moment < now:
                moment += timedelta(days=1)
            yield moment.isoformat(timespec="seconds")
            yield moment.replace(tzinfo=None).isoformat(timespec="seconds")
            yield moment.strftime("%Y-%m-%d %H:%M")
        case "duration" if kind == "duration":
            yield _iso_duration(value)
        case "text":
            yield from _texts(candidate, slot)
        case _:
            return


def _dates(day: date, slot: Slot) -> Iterator[str]:
    described = slot.description.lower()
    for layout in [layout for words, layout in _LAYOUTS if words in described] or ["%Y-%m-%d"]:
        yield day.strftime(layout)
    if "pattern" in slot.schema:
        yield from (day.strftime(layout) for _, layout in _LAYOUTS)


def _times(clock: time, slot: Slot, now: datetime) -> Iterator[str]:
    if slot.schema.get("format") == "time":
        # The offset is that of today: a time alone has none in a zone with summer time.
        yield datetime.combine(now.date(), clock, now.tzinfo).isoformat(timespec="seconds").partition("T")[2]
        yield clock.isoformat("seconds")
        return
    yield clock.isoformat("minutes")
    if "pattern" in slot.schema or "ss" in slot.description.lower():
        yield clock.isoformat("seconds")
        yield f"{(clock.hour - 1) % 12 + 1}:{clock:%M %p}"


def _numbers(candidate: Candidate, slot: Slot) -> Iterator[int | float]:
    value = _in_units(candidate, slot) if candidate.kind == "duration" else candidate.value
    if value is None or not abs(float(value)) < 1e15:
        return
    number, top = float(value), slot.schema.get("maximum")
    if "minor" in slot.units and "major" not in slot.units and "money" in slot.roles + slot.hinted:
        number = float(round(number * 100))
    if candidate.kind == "percent" and isinstance(top, int | float) and top <= 1:
        number /= 100
    yield int(number) if number.is_integer() else round(number, 9)


def _in_units(candidate: Candidate, slot: Slot) -> float | None:
    """Return a duration in the unit that the slot names, else in its own."""
    said = candidate.unit.removesuffix("s")
    named = [unit for unit in slot.units if unit in _SECONDS]
    is_exact = len(named) == 1 and said not in ("month", "year")
    unit = said if said in slot.units or not named else named[0] if is_exact else ""
    return float(candidate.value.total_seconds()) / _SECONDS[unit] if unit in _SECONDS else None


def _iso_duration(value: timedelta) -> str:
    days, rest = divmod(int(value.total_seconds()), 86_400)
    if not rest:
        return f"P{days // 7}W" if days and days % 7 == 0 else f"P{days}D"
    parts = zip((rest // 3_600, rest % 3_600 // 60, rest % 60), "HMS", strict=True)
    return "P" + (f"{days}D" if days else "") + "T" + "".join(f"{count}{letter}" for count, letter in parts if count)


def _texts(candidate: Candidate, slot: Slot) -> Iterator[str]:
    kind, value = candidate.kind, candidate.value
    form = slot.schema.get("format")
    wanted = {"email": "email", "uri": "url", "uri-reference": "url", "uuid": "identifier"}.get(str(form), "")
    if not wanted:
        wanted = next((role for role in slot.roles[:1] if role in ("email", "url", "phone")), "")
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
        yield _iso_duration(value)


def _currency(candidate: Candidate, slot: Slot) -> Converted | None:
    """Return the currency of an amount for a slot that takes its code."""
    if candidate.kind != "money" or not candidate.unit or "currency" not in slot.words:
        return None
    for phrase in slot.phrases:
        if phrase.weight == "exact" and phrase.words == (candidate.unit.lower(),):
            return Converted(phrase.value)
    if slot.family != "text":
        return None
    return Converted(candidate.unit) if not _fault(slot, candidate.unit) else None


_CHECKED: Final = ("type", "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
                   "multipleOf", "minLength", "maxLength", "enum", "const")  # fmt: skip


def _fault(slot: Slot, value: Any) -> str:
    """Return why one value does not fit its slot; references below it are left to the check of the whole."""
    facts = {name: slot.schema[name] for name in _CHECKED if name in slot.schema}
    if facts.keys() <= {"type"} and isinstance(value, str):
        return "" if "string" in str(facts.get("type", "string")) else f"{value!r} is not of the type {facts['type']}"
    validator = compile_schema(facts)
    if not isinstance(validator, Validator) or validator.is_valid(value):
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

"""Arguments with the help of a language model: optional, under the same schema, each with its place in the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from bespeak.agent.acting.decision import field_of, takes
from bespeak.agent.acting.service_map import Place
from bespeak.agent.arguments.finding import Argument, Arguments
from bespeak.documents.adoption.sanitizer import instruction_in, plain_text
from bespeak.runtime.bindings.language_model import LanguageModel, ModelError

_TASK: Final = (
    "Find the values of `fields` that `instruction` states. `now` is the time that relative dates refer to. Leave out"
    " every field that the instruction does not state; never guess one. `quotes` has, for each field in `values`, the"
    " words of the instruction that state it, copied exactly."
)
_QUOTED: Final = 0.7  # confidence of a value with a place in the instruction; below that of a certain one
_TOLD: Final = ("type", "format", "enum", "minimum", "maximum", "items", "pattern", "minLength", "maxLength")
_MOST_FIELDS: Final = 60
_LONGEST: Final = 300


async def ask_model(model: LanguageModel, found: Arguments, instruction: str, place: Place, now: datetime) -> Arguments:
    """Have a model fill what rules did not find. If it fails, nothing is added."""
    fields = _fields(place, {one.name for one in found.found})
    if not fields:
        return found
    given = {"instruction": instruction, "now": now.isoformat(), "fields": fields}
    try:
        answer = await model.ask(_TASK, given, _schema(fields))
    except ModelError:
        return found
    more = {one.name: one for one in _accepted(place, instruction, answer.value)}
    certain = [one for one in more.values() if one.span is not None]
    known = {one.name for one in certain}
    doubtful = {**{one.name: one for one in found.offered}, **more}
    return replace(
        found,
        found=(*found.found, *certain),
        offered=tuple(one for name, one in doubtful.items() if name not in known),
        missing=tuple(name for name in found.missing if name not in known),
    )


def _fields(place: Place, known: set[str]) -> dict[str, Any]:
    """Return the fields that a model may fill. Texts of the contract are data: plain, short, without instructions."""
    found: dict[str, Any] = {}
    for name in place.fields:
        one = field_of(place, name)
        told = {key: one[key] for key in _TOLD if key in one}
        if name in known or instruction_in({name: told}) or not name.isprintable() or len(found) >= _MOST_FIELDS:
            continue
        described = one.get("description")
        if isinstance(described, str) and not place.doubt:
            told["description"] = plain_text(described, _LONGEST, field=True).text
        found[name] = told
    return found


def _schema(fields: Mapping[str, Any]) -> dict[str, Any]:
    def an_object(members: dict[str, Any]) -> dict[str, Any]:
        return {"type": "object", "properties": members, "additionalProperties": False}

    values = {name: {key: one for key, one in told.items() if key != "description"} for name, told in fields.items()}
    quotes = an_object({name: {"type": "string", "maxLength": 500} for name in fields})
    return {**an_object({"values": an_object(values), "quotes": quotes}), "required": ["values", "quotes"]}


def _accepted(place: Place, instruction: str, answer: Any) -> list[Argument]:
    """Return what the contract's own schema takes; a value whose quote is not in the instruction has no span."""
    found = []
    for name, value in answer["values"].items():
        if value is None or not takes(place, name, value):
            continue
        quote = answer["quotes"].get(name, "")
        at = instruction.lower().find(quote.lower()) if quote.strip() else -1
        span = (at, at + len(quote)) if at >= 0 else None
        found.append(Argument(name, value, span, _QUOTED if span else 0.3, "by the language model"))
    return found

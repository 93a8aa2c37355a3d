"""Endpoints as skills of A2A: their ids, the message that calls one, and numbers that A2A carries as doubles."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import capability_ids, describe_tool
from bespeak.contract.matching import EndpointIndex
from bespeak.contract.mcp_tool import check_arguments
from bespeak.contract.schema.subschemas import closed
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.protocol.exchange.refusal import Outcome
from bespeak.text.reading.json_data import decode_json
from bespeak.text.source.pointer import is_index, unescaped, value_at

LARGEST: Final = 2**53  # largest integer up to which a double holds every one
_DIGITS: Final = re.compile(r"-?[0-9]{16,40}")
_LONGEST_SCHEMA: Final = 16 * 1024  # bytes of a schema that an answer repeats; the published documents have all of them
SKILL: Final = ("skill", "skillId", "skill_id")  # members of a data part that name the skill; agents use different ones
INPUT: Final = ("input", "arguments", "parameters", "params")  # members that hold the arguments
FORM: Final = '{"skill": ID, "input": {...}}'


def restore_integers(value: Any) -> Any:
    """Turn whole numbers into integers: a client that has only doubles sends 3.0 for 3."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= LARGEST else value
    return _convert_within(value, restore_integers)


def _convert_within(value: Any, convert: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {name: convert(item) for name, item in value.items()}
    return [convert(item) for item in value] if isinstance(value, list) else value


def restore_large(arguments: dict[str, Any], validator: Validator) -> None:
    """Turn texts into integers where the schema asks for one: a client that has only doubles sends large ones so."""
    for violation in validator.violations(arguments):
        if violation.keyword != "type" or '"integer"' not in violation.message.rpartition("is not of type")[2]:
            continue
        value = value_at(arguments, violation.pointer)
        if isinstance(value, str) and _DIGITS.fullmatch(value):
            above, _, name = violation.pointer.rpartition("/")
            holder = value_at(arguments, above)
            if isinstance(holder, dict):
                holder[unescaped(name)] = int(value)
            elif isinstance(holder, list) and is_index(name, holder):
                holder[int(name)] = int(value)


def write_large(value: Any) -> Any:
    if isinstance(value, int):
        return value if abs(value) <= LARGEST else str(value)
    return _convert_within(value, write_large)


@dataclass(frozen=True, slots=True, eq=False)
class Skill:
    name: str
    endpoint: Endpoint
    description: str
    input: Validator | None  # refuses undeclared arguments; None if the schema is not usable

    def check(self, arguments: dict[str, Any]) -> Outcome | dict[str, Any]:
        """Return the arguments with exact numbers, or the refusal of arguments that break the contract."""
        declared = self.endpoint.input_schema.get("properties", {})
        # A2A loses the order of members, and people read them in the order of the contract.
        ordered = {name: arguments[name] for name in (*declared, *arguments) if name in arguments}
        restored: dict[str, Any] = restore_integers(ordered)
        refusal = check_arguments(self.endpoint, self.input, restored)
        if refusal is not None and self.input is not None and "violations" in refusal.error:
            restore_large(restored, self.input)
            refusal = check_arguments(self.endpoint, self.input, restored)
        return restored if refusal is None else refusal

    @property
    def entry(self) -> dict[str, Any]:
        """Description for a client that does not know how to call it."""
        entry: dict[str, Any] = {"id": self.name, "description": self.description}
        if len(msgspec.json.encode(self.endpoint.input_schema)) <= _LONGEST_SCHEMA:
            entry["inputSchema"] = dict(self.endpoint.input_schema)
        if self.endpoint.required_scopes:
            entry["scopes"] = list(self.endpoint.required_scopes)
        return entry


class Skills(dict[str, Skill]):
    """The skills of one route table, by id. Internal endpoints have none."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        super().__init__()
        listed = [endpoint for endpoint in endpoints if endpoint.is_listed]
        ids = capability_ids(listed)
        for one in listed:
            compiled = compile_schema(closed(one.input_schema))
            validator = compiled if isinstance(compiled, Validator) else None
            self[ids[one.key]] = Skill(ids[one.key], one, describe_tool(one, ids), validator)

    @cached_property
    def _index(self) -> EndpointIndex:
        return EndpointIndex([skill.endpoint for skill in self.values()], list(self))

    def suggest(self, text: str) -> list[Skill]:
        """Return the skills that fit a text best; the first ones if none does."""
        skills = list(self.values())
        return ([skills[index] for _, index in self._index.rank(text)] or skills)[:5]


@dataclass(frozen=True, slots=True)
class SkillCall:
    """A call. Without a skill it is for the one that the task has."""

    skill: str | None
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Misread:
    message: str
    is_file: bool = False  # True if it has a part of a kind that no skill takes


def read_call(parts: Sequence[Any]) -> SkillCall | str | Misread:
    """Read the parts of a message, as they were sent. A text calls nothing. Parts of A2A 0.3 have a `kind` besides."""
    objects: list[Any] = []
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, dict) or part.keys() & {"file", "raw", "url"}:
            return Misread("Skills take data, not files: nothing is fetched. Send one data part.", is_file=True)
        if "data" in part:
            objects.append(part["data"])
        elif isinstance(part.get("text"), str):
            texts.append(part["text"])
    if len(objects) > 1:
        return Misread(f"A message calls one skill; it has {len(objects)} data parts.")
    if objects:
        return _wanted(objects[0])
    written = _written(texts[0]) if len(texts) == 1 else None
    return "\n".join(texts) if written is None else _wanted(written)


def _written(text: str) -> dict[str, Any] | None:
    """Return the data part that a text is; None for any other text. Some clients can send nothing but texts."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = decode_json(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) and not found.keys().isdisjoint(SKILL) else None


def _wanted(data: Any) -> SkillCall | Misread:
    if not isinstance(data, dict):
        return Misread(f"The data part must be an object: {FORM}.")
    named, given = [name for name in SKILL if name in data], [name for name in INPUT if name in data]
    for found in (named, given):
        if len(found) > 1:
            return Misread(f"The data part has {' and '.join(found)}, which mean the same; keep one of them.")
    others = [name for name in data if name not in (*named, *given)]
    if others:
        shown = ", ".join(repr(name[:80]) for name in others[:5])
        return Misread(f"The data part has unknown members: {shown}. Arguments go into `input`: {FORM}.")
    if not named and not given:
        return Misread(f"The data part does not name a skill: {FORM}.")
    skill = data[named[0]] if named else None
    arguments = data[given[0]] if given else {}
    if named and not isinstance(skill, str):
        return Misread(f"`{named[0]}` must be the id of a skill; got {type(skill).__name__}.")
    if not isinstance(arguments, dict):
        return Misread(f"`{given[0]}` must be an object; got {type(arguments).__name__}.")
    return SkillCall(skill, arguments)

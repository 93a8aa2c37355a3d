"""Tools as candidates for endpoints: names without their service, sentences, hints, and signs of a change."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bespeak.documents.adoption.candidate import Candidate
from bespeak.documents.adoption.naming import singular, words
from bespeak.documents.adoption.taking_back import takes_back
from bespeak.documents.adoption.verb_words import base, changes
from bespeak.documents.mcp.tool_list import ListedTool, ToolList
from bespeak.documents.mcp.tool_name import ToolName, split_names
from bespeak.documents.mcp.tool_text import effects, goal
from bespeak.text.language.operation_class import operation_classes

_CHOOSING: Final = frozenset({"action", "operation", "command", "subcommand", "method", "verb", "op", "task"})
"""Fields whose value says what is done."""
_PROGRAMS: Final = frozenset({"sql", "script", "code", "command", "commands", "statement", "javascript", "function"})
"""Fields that hold a program, which may do anything."""
_LANGUAGES: Final = frozenset({"sql", "js", "javascript", "python", "shell", "source", "bash"})
_READING: Final = re.compile(r"\bread[- ]?only\b", re.IGNORECASE)
_ARITHMETIC: Final = {"add": "sum", "sum": "sum", "subtract": "difference", "multiply": "product", "divide": "quotient"}
_MOST_VALUES: Final = 50


def as_candidates(listed: ToolList) -> list[tuple[Candidate, ToolName]]:
    """Convert the tools of a server to the form that the importers' common judgement needs."""
    names = split_names([tool.name for tool in listed.tools], listed.title)
    siblings = _Siblings(names)
    several = len({name.namespace for name in names if name.namespace}) > 1
    return [
        (_candidate(tool, name, siblings, several=several), name)
        for tool, name in zip(listed.tools, names, strict=True)
    ]


def _candidate(tool: ListedTool, name: ToolName, siblings: _Siblings, *, several: bool) -> Candidate:
    hints = tool.hints
    worked_out = _worked_out(tool, name.bare)
    return Candidate(
        name=f"calculate_{worked_out}" if worked_out else name.bare,
        full_name=tool.name,
        name_kind="the name",
        summary=f"Calculate the {worked_out} of the numbers"
        if worked_out
        else goal(tool.description) or goal(tool.title),
        description=tool.description,
        tags=(name.namespace,) if name.namespace else (),
        service=name.namespace if several else "",
        returns_list=_is_list(tool.output_schema),
        signs=tuple(_signs(tool)),
        has_readable_state=siblings.has_readable_state(name.bare),
        is_undone=siblings.is_undone(name.bare),
        read_only=hints.get("readOnlyHint"),
        destructive=hints.get("destructiveHint"),
        idempotent=hints.get("idempotentHint"),
    )


def _worked_out(tool: ListedTool, name: str) -> str:
    """Return what a tool calculates from numbers alone: the sum for `add`, which elsewhere means to create."""
    properties = tool.input_schema.get("properties")
    parts = list(properties.values()) if isinstance(properties, Mapping) else []
    numbers = all(isinstance(part, Mapping) and part.get("type") in ("integer", "number") for part in parts)
    return _ARITHMETIC.get(name.removesuffix("_numbers"), "") if parts and numbers else ""


def _signs(tool: ListedTool) -> Iterator[str]:
    """Yield reasons to believe that a tool changes something, beside its name and its first sentence."""
    yield from (f"its description says '{effect}'" for effect in effects(tool.description))
    properties = tool.input_schema.get("properties")
    for field, schema in properties.items() if isinstance(properties, Mapping) else ():
        named = words(field)
        values = schema.get("enum") if isinstance(schema, Mapping) else None
        if named and named[-1] in _CHOOSING and isinstance(values, list):
            doing = (value for value in values[:_MOST_VALUES] if isinstance(value, str) and _is_change(value))
            yield from (f"its field '{field[:60]}' may be '{value[:60]}'" for value in doing)
        elif _holds_program(named) and not _READING.search(tool.description[:2_000]):
            yield f"its field '{field[:60]}' holds a program"


def _holds_program(named: Sequence[str]) -> bool:
    """Return True for `sql`, `code` and `python_code`, but not for `language_code`."""
    return bool(named) and named[-1] in _PROGRAMS and (len(named) == 1 or named[0] in _LANGUAGES)


def _is_change(value: str) -> bool:
    first = words(value)[:1]
    return bool(first) and changes(base(first[0]) or first[0])


def _is_list(schema: Mapping[str, Any] | None) -> bool:
    """Return True for a list, or an object around one."""
    if schema is None:
        return False
    if schema.get("type") == "array":
        return True
    properties = schema.get("properties")
    parts = list(properties.values()) if isinstance(properties, Mapping) else []
    return len(parts) == 1 and isinstance(parts[0], Mapping) and parts[0].get("type") == "array"


class _Siblings:
    """The tools of one server, by the things they are about."""

    def __init__(self, names: Sequence[ToolName]) -> None:
        self._deeds: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        for name in names:
            for thing, verb in _deeds(name.bare):
                self._deeds[thing].add(verb)

    def has_readable_state(self, name: str) -> bool:
        """Return True if another tool returns what this one overwrites."""
        return any(_main(other) == "READ" for thing, _ in _deeds(name) for other in self._deeds[thing])

    def is_undone(self, name: str) -> bool:
        """Return True if another tool deletes what this one makes, or reverses what it does."""
        return any(
            takes_back(other, verb) or (_main(verb) == "CREATE" and _main(other) == "DELETE")
            for thing, verb in _deeds(name)
            for other in self._deeds[thing]
        )


def _deeds(name: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the first and the last word of a name that may be its verb, with the thing that the others name."""
    parts = tuple(singular(part) for part in words(name))
    if len(parts) > 1:
        yield parts[1:], parts[0]
        yield parts[:-1], parts[-1]


def _main(verb: str) -> str:
    classes = operation_classes(verb)
    return classes.main if classes is not None else ""

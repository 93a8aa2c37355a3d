"""Tools as candidates for endpoints: names without their service, sentences, hints, and signs of a change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bespeak.documents.adoption.candidate import Candidate
from bespeak.documents.adoption.deed_text import deeds, sentences
from bespeak.documents.adoption.field_signs import change_signs, program_field
from bespeak.documents.adoption.naming import singular, words
from bespeak.documents.adoption.plain_text import first_sentence
from bespeak.documents.adoption.taking_back import takes_back
from bespeak.documents.mcp.tool_list import ListedTool, ToolList
from bespeak.documents.mcp.tool_name import ToolName, split_names
from bespeak.documents.mcp.tool_text import goal
from bespeak.text.language.operation_class import operation_classes

_ARITHMETIC: Final = {"add": "sum", "sum": "sum", "subtract": "difference", "multiply": "product", "divide": "quotient"}


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
    summary = goal(tool.description) or goal(tool.title)
    return Candidate(
        name=f"calculate_{worked_out}" if worked_out else name.bare,
        full_name=tool.name,
        name_kind="the name",
        summary=f"Calculate the {worked_out} of the numbers" if worked_out else summary,
        description=tool.description,
        tags=(name.namespace,) if name.namespace else (),
        service=name.namespace if several else "",
        returns_list=_is_list(tool.output_schema),
        signs=tuple(_signs(tool, summary)),
        program=program_field(
            _fields(tool), tool.description, reads=False, read_only=hints.get("readOnlyHint") is True
        ),
        has_readable_state=siblings.has_readable_state(name.bare),
        is_undone=siblings.is_undone(name.bare),
        read_only=hints.get("readOnlyHint"),
        destructive=hints.get("destructiveHint"),
        idempotent=hints.get("idempotentHint"),
    )


def _worked_out(tool: ListedTool, name: str) -> str:
    """Return what a tool calculates from numbers alone: the sum for `add`, which elsewhere means to create."""
    parts = list(_fields(tool).values())
    numbers = all(isinstance(part, Mapping) and part.get("type") in ("integer", "number") for part in parts)
    return _ARITHMETIC.get(name.removesuffix("_numbers"), "") if parts and numbers else ""


def _signs(tool: ListedTool, summary: str) -> Iterator[str]:
    """Yield reasons to believe that a tool changes something, beside its name and the sentence that says its goal."""
    for text in (tool.description, tool.title):
        others = "\n".join(line for line in sentences(text) if first_sentence(line) != summary)
        yield from (f"its description says '{deed.words}'" for deed in deeds(others, broad=True))
    yield from change_signs(_fields(tool), reads=False)


def _fields(tool: ListedTool) -> Mapping[str, Any]:
    properties = tool.input_schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


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

"""Tools as candidates for endpoints: names without their service, the sentence of the goal, hints, signs of change."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from bespeak.documents.adoption.evidence import change_signs, deeds, program_field, sentences, takes_back
from bespeak.documents.adoption.facade import Candidate
from bespeak.documents.adoption.naming import MANNERS, main_class, singular, words
from bespeak.documents.adoption.sanitizer import first_sentence
from bespeak.documents.adoption.verb_words import base, is_verb
from bespeak.documents.mcp.tools import ListedTool, ToolList
from bespeak.text.language.head_verb import head_verbs
from bespeak.text.language.lexicon import lexicon

_ARTICLES: Final = frozenset({"a", "an", "the"})
_NOTHING: Final = frozenset({"api", "mcp", "rest", "tool", "tools"})  # prefixes that do not name a service
_FEW: Final = 2  # tools that a prefix must have in common
_LONGEST: Final = 2  # words of a prefix: `browserbase_stagehand_act`


class ToolName(NamedTuple):
    namespace: str  # service that the name begins with, in words joined by hyphens; empty if it begins with none
    bare: str  # the rest in snake_case, without articles: `create_comment` of `API-create-a-comment`


def split_names(names: Sequence[str], title: str = "") -> list[ToolName]:
    """Split the names of all tools of one server with a title.

    A prefix names a service if all tools have it, or if in most of its tools a verb and a thing follow it:
    `jira_get_issue`. The first word of `collection-schema` and `screencast_start` is a thing.
    """
    parts = [words(name) for name in names]
    prefixes = _prefixes(parts, frozenset(words(title)))
    return [_split(one, prefixes) for one in parts]


def _prefixes(parts: Sequence[tuple[str, ...]], title: frozenset[str]) -> frozenset[tuple[str, ...]]:
    rests: defaultdict[tuple[str, ...], list[tuple[str, ...]]] = defaultdict(list)
    for one in parts:
        for length in range(1, min(_LONGEST, len(one) - 1) + 1):
            rests[one[:length]].append(one[length:])
    return frozenset(
        prefix
        for prefix, after in rests.items()
        if len(after) >= _FEW
        and MANNERS.isdisjoint(prefix)
        and _names_service(prefix, after, shared=len(after) == len(parts), titled=title.issuperset(prefix))
    )


def _names_service(prefix: tuple[str, ...], rests: Sequence[tuple[str, ...]], *, shared: bool, titled: bool) -> bool:
    acting = [rest for rest in rests if _acts(rest[0])]
    follows = any(len(rest) > 1 for rest in acting)
    if len(prefix) > 1:
        # The second word may be the thing: browser_mouse_down.
        return len(acting) == len(rests) and all(len(rest) > 1 for rest in rests) and not any(map(_acts, prefix))
    if follows and 2 * len(acting) >= len(rests):
        return not _acts(prefix[-1]) or (titled and shared)
    # Tools that have only their thing in common are not of a service of that name: user_create, user_delete.
    return shared and (follows or not acting) and (titled or not any(map(_acts, prefix)))


def _acts(word: str) -> bool:
    """Return True if a word before others is rather a verb: `list`, `search`, `start`."""
    counts = lexicon().counts(word)
    return is_verb(word) or word == "list" or (base(word) == word and counts.verb > counts.noun)


def _split(parts: tuple[str, ...], prefixes: frozenset[tuple[str, ...]]) -> ToolName:
    cut = next((length for length in range(_LONGEST, 0, -1) if parts[:length] in prefixes), 0)
    *inner, last = parts[cut:] or ("",)
    rest = [part for part in inner if part not in _ARTICLES] + [last]
    return ToolName("-".join([part for part in parts[:cut] if part not in _NOTHING]), "_".join(rest))


_SEEN: Final = 4_000  # characters of a description that are searched
_PURPOSE: Final = re.compile(r"^\W*(?:purpose|what it does|overview|summary)\b\W*$", re.IGNORECASE | re.MULTILINE)
"""A heading before the sentence that matters."""
_TOOL_TEXT_FEW: Final = 3  # words from which a line counts as a sentence


def goal(description: str) -> str:
    """Return the first sentence that says what a tool does, without headings, bullets and labels before it."""
    first = ""
    purpose = _PURPOSE.search(description[:_SEEN])
    for line in sentences(description[purpose.end() :] if purpose else description):
        sentence = first_sentence(line)
        if len(sentence.split()) < _TOOL_TEXT_FEW and not head_verbs(sentence):
            continue
        if head_verbs(sentence):
            return sentence
        first = first or sentence
    return first


_ARITHMETIC: Final = {"add": "sum", "sum": "sum", "subtract": "difference", "multiply": "product", "divide": "quotient"}


def as_candidates(listed: ToolList) -> list[tuple[Candidate, ToolName]]:
    """Convert the tools of a server to the form that the importers' common judgement needs."""
    names = split_names([tool.name for tool in listed.tools], listed.title)
    siblings = _ToolSiblings(names)
    several = len({name.namespace for name in names if name.namespace}) > 1
    pairs = zip(listed.tools, names, strict=True)
    return [(_candidate(tool, name, siblings, several=several), name) for tool, name in pairs]


def _candidate(tool: ListedTool, name: ToolName, siblings: _ToolSiblings, *, several: bool) -> Candidate:
    hints = tool.hints
    fields = _fields(tool)
    # From numbers alone `add` calculates the sum; elsewhere it means to create.
    numbers = all(isinstance(part, Mapping) and part.get("type") in ("integer", "number") for part in fields.values())
    worked_out = _ARITHMETIC.get(name.bare.removesuffix("_numbers"), "") if fields and numbers else ""
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
        program=program_field(fields, tool.description, reads=False, read_only=hints.get("readOnlyHint") is True),
        has_readable_state=siblings.has_readable_state(name.bare),
        is_undone=siblings.is_undone(name.bare),
        read_only=hints.get("readOnlyHint"),
        destructive=hints.get("destructiveHint"),
        idempotent=hints.get("idempotentHint"),
    )


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
    if schema is None or schema.get("type") == "array":
        return schema is not None
    properties = schema.get("properties")
    parts = list(properties.values()) if isinstance(properties, Mapping) else []
    return len(parts) == 1 and isinstance(parts[0], Mapping) and parts[0].get("type") == "array"


class _ToolSiblings:
    def __init__(self, names: Sequence[ToolName]) -> None:
        self._deeds: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        for name in names:
            for thing, verb in _deeds(name.bare):
                self._deeds[thing].add(verb)

    def has_readable_state(self, name: str) -> bool:
        """Return True if another tool returns what this one overwrites."""
        return any(main_class(other) == "READ" for thing, _ in _deeds(name) for other in self._deeds[thing])

    def is_undone(self, name: str) -> bool:
        """Return True if another tool deletes what this one makes, or reverses what it does."""
        return any(
            takes_back(other, verb) or (main_class(verb) == "CREATE" and main_class(other) == "DELETE")
            for thing, verb in _deeds(name)
            for other in self._deeds[thing]
        )


def _deeds(name: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the first and the last word of a name that may be its verb, with the thing that the others name."""
    parts = tuple(singular(part) for part in words(name))
    if len(parts) > 1:
        yield parts[1:], parts[0]
        yield parts[:-1], parts[-1]

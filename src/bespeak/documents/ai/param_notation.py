"""A parameter in one line of a /.well-known/ai document: `integer, optional, max 50 -- how many to return`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bespeak.contract.schema.shape import shape_of
from bespeak.documents.ai.param_constraint import read_constraint, split, write_constraints
from bespeak.documents.ai.returns_notation import FORMATS

TYPES: Final = ("string", "integer", "number", "boolean", "array")
"""Types of ai-discovery 3.3. There is none for an object: it is a `string` with the constraint `JSON object`."""

_LONGEST_READ: Final = 2000
_LONGEST_TEXT: Final = 100
_CUT: Final = "..."

_KIND: Final[Mapping[str, dict[str, Any]]] = {
    **{name: {"type": name} for name in (*TYPES, "object")},
    **{name: {"type": "string"} for name in ("str", "text")},
    **{name: {"type": "integer"} for name in ("int", "long")},
    **{name: {"type": "number"} for name in ("float", "double", "decimal")},
    "bool": {"type": "boolean"},
    "list": {"type": "array"},
    **{name: {"type": "object"} for name in ("json", "dict", "map")},
    **{name: {"type": "string", "format": "date-time"} for name in ("datetime", "timestamp")},
    "url": {"type": "string", "format": "uri"},
    "file": {"type": "string"},
    "enum": {"type": "string"},
    **{name: {"type": "string", "format": name} for name in FORMATS},
}
_WORD: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)(?:[\[<]([A-Za-z-]+)[\]>])?((?:\[\])?)(\??)")
_REQUIREMENT: Final = re.compile(r"(?i)(required|mandatory|optional|not required)(?:\s*[:=]\s*(true|false))?")
_QUOTED: Final = r'"(?:[^"\\]|\\.)*+"'
_DASH: Final = re.compile(rf"{_QUOTED}|\s*(?:--|[—–])\s*")
_HYPHEN: Final = re.compile(rf"{_QUOTED}|\s+-\s+")
_BREAKS: Final = re.compile(r"[\t\r\n]+")
_AT_END: Final = re.compile(r"\(([^()]*)\)\.?$")


@dataclass(frozen=True, slots=True)
class ParamNotation:
    """The content of a parameter line."""

    schema: dict[str, Any]
    """JSON Schema; empty if the line does not name a type."""
    required: bool
    description: str


def write_param(
    schema: object, *, required: bool, root: Mapping[str, Any] | None = None, longest: int = _LONGEST_TEXT
) -> str:
    """Write the line of a parameter. `root` resolves references of its schema; `longest` limits the description."""
    within = root or {}
    shape = shape_of(schema, within)
    parts = [shape.kind if shape.kind in TYPES else "string", "required" if required else "optional"]
    text = ", ".join((*parts, *write_constraints(shape, within)))
    about = shape.schema.get("description") or shape.schema.get("title")
    description_text = cut(about, longest) if isinstance(about, str) and longest else ""
    return f"{text} -- {description_text}" if description_text else text


def cut(text: str, most: int) -> str:
    """Return a text on one line of at most `most` characters, cut between words."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    kept = line[: most - len(_CUT) + 1].rpartition(" ")[0] or line[: most - len(_CUT)]
    return kept.rstrip(" ,;:-") + _CUT


def parse_param(text: str) -> ParamNotation:
    """Parse a line in any notation in use. Never raises; parts that are not recognised become the description.

    `string, required, max 5 -- text`, the same with a dash; `string (required) — text`; `string (required - text)`;
    `text (string, required)`.
    """
    line = _BREAKS.sub(" ", text[:_LONGEST_READ]).strip()
    found = _by_type(line) or _by_end(line)
    if found is not None:
        return found
    lone = _REQUIREMENT.fullmatch(split(line, ",")[0])
    return ParamNotation({}, lone is not None and _requires(lone), line)


def _by_type(line: str) -> ParamNotation | None:
    """Parse a line that begins with a type."""
    word = _WORD.match(line)
    kind = _KIND.get(word[1].lower()) if word is not None else None
    if word is None or kind is None:
        return None
    rest = line[word.end() :].lstrip()
    if rest[:1] == "(":
        inside, behind = _parentheses(rest)
        head, about = _described(inside)
        more, after = _described(behind.lstrip(" ,:"), bare=True)
        items, description_text = [*split(head, ","), *split(more, ",")], f"{about} {after}"
    elif rest[:1] == ":":
        items, description_text = [], rest[1:]
    elif rest[:1] in (",", "", "—", "–") or rest[:2] in ("--", "- ") or _goes_on(rest, kind):
        head, description_text = _described(f" {rest.lstrip(', ')}")
        items = split(head, ",")
    elif word[1].lower() in TYPES:
        items, description_text = [], line  # a sentence that begins with its type
    else:
        return None
    return _read(kind, word, items, description_text)


def _by_end(line: str) -> ParamNotation | None:
    """Parse a text that ends with type and requirement in parentheses."""
    found = _AT_END.search(line)
    word = _WORD.match(found[1]) if found is not None else None
    kind = _KIND.get(word[1].lower()) if word is not None else None
    if found is None or word is None or kind is None or found[1][word.end() :].lstrip()[:1] not in (",", ""):
        return None
    return _read(kind, word, split(found[1][word.end() :].lstrip(", "), ","), line[: found.start()])


def _read(kind: Mapping[str, Any], word: re.Match[str], items: list[str], description_text: str) -> ParamNotation:
    schema = dict(kind)
    if word[3]:
        schema = {"type": "array", "items": schema}
    if word[2]:
        schema["items"] = dict(_KIND.get(word[2].lower(), {}))
    name = schema["type"]
    required, unknown = False, []
    for item in filter(None, items):
        found = _REQUIREMENT.fullmatch(item)
        first, _, rest = item.partition(" ")
        if found is not None:
            required = _requires(found)
        elif _REQUIREMENT.fullmatch(first) is not None and read_constraint(rest, name, schema):
            required = first.lower() in ("required", "mandatory")
        elif not read_constraint(item, name, schema):
            unknown.append(item)
    if word[4]:
        required = False
    about = ", ".join(unknown)
    return ParamNotation(schema, required, " ".join(f"{about} {description_text}".split()).strip(" -:—–"))


def _requires(found: re.Match[str]) -> bool:
    negated = (found[2] or "").lower() == "false"
    return (found[1].lower() in ("required", "mandatory")) is not negated


def _goes_on(rest: str, kind: Mapping[str, Any]) -> bool:
    """Return True if a requirement or the items of an array follow a type without a comma."""
    first = split(rest, ",")[0].partition(" ")[0]
    return _REQUIREMENT.fullmatch(first) is not None or (first == "of" and kind["type"] == "array")


def _described(text: str, *, bare: bool = False) -> tuple[str, str]:
    """Split a text at the separator of its description; with `bare`, text without a separator is the description."""
    for separators in (_DASH, _HYPHEN):
        for found in separators.finditer(text):
            if found[0][0] != '"':
                return text[: found.start()], text[found.end() :]
    return ("", text) if bare else (text, "")


def _parentheses(text: str) -> tuple[str, str]:
    """Split a text into the content of its leading parentheses and the rest."""
    level = 0
    for at, letter in enumerate(text):
        level += (letter == "(") - (letter == ")")
        if level == 0:
            return text[1:at], text[at + 1 :]
    return text[1:], ""

"""Sentences for what a schema can no longer say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

_LONGEST: Final = 200
"""Maximum characters of a value in a sentence."""

_SIMPLE: Final[Mapping[str, str]] = {
    "minLength": "At least {} characters.",
    "maxLength": "At most {} characters.",
    "pattern": "It matches the pattern {}",
    "format": "Format: {}.",
    "minimum": "At least {}.",
    "maximum": "At most {}.",
    "exclusiveMinimum": "More than {}.",
    "exclusiveMaximum": "Less than {}.",
    "multipleOf": "A multiple of {}.",
    "minItems": "At least {} items.",
    "maxItems": "At most {} items.",
    "minProperties": "At least {} members.",
    "maxProperties": "At most {} members.",
    "contentEncoding": "Encoded as {}.",
    "contentMediaType": "Media type: {}.",
    "default": "Default: {}.",
    "const": "Always {}.",
}
_NUMERIC: Final = frozenset(
    {"int32", "int64", "float", "double", "int8", "int16", "uint8", "uint16", "uint32", "uint64"}
)
"""Formats that say nothing to a model."""


def sentence(keyword: str, value: Any) -> Iterator[str]:
    """Yield the sentences that say what a keyword says."""
    if keyword in _SIMPLE:
        if (keyword, value) != ("default", None) and (keyword != "format" or value not in _NUMERIC):
            text = _SIMPLE[keyword].format(_text(value))
            yield text.replace("s.", ".") if value == 1 and value is not True else text
    elif keyword in _WRITERS:
        yield from _WRITERS[keyword](value)
    else:
        yield f"It also meets this JSON Schema: {_quoted({keyword: value})}."


def _values(values: list[Any]) -> Iterator[str]:
    yield f"One of: {', '.join(map(_quoted, values[:20]))}{', ...' if len(values) > 20 else ''}."


def _dependent(needs: Any) -> Iterator[str]:
    for name, needed in needs.items() if isinstance(needs, Mapping) else ():
        if isinstance(needed, list) and needed:
            yield f"If {name} is given, so is {' and '.join(map(str, needed))}."


def _choices(choices: list[list[str]]) -> str:
    return f"one of these must be given: {'; '.join(' and '.join(names) for names in choices)}."


_WRITERS: Final[Mapping[str, Callable[[Any], Iterable[str]]]] = {
    "enum": _values,
    "uniqueItems": lambda unique: ["No item twice."] if unique else [],
    "examples": lambda examples: [f"Example: {_quoted(examples[0])}."] if examples else [],
    "deprecated": lambda deprecated: ["Deprecated."] if deprecated is True else [],
    "dependentRequired": _dependent,
    "anyOf-required": lambda choices: [f"At least {_choices(choices)}"],
    "oneOf-required": lambda choices: [f"Exactly {_choices(choices)}"],
    "oneOf": lambda _: ["Exactly one of the alternatives may fit."],
}


def _text(value: Any) -> str:
    return value[:_LONGEST] if isinstance(value, str) else _quoted(value)


def _quoted(value: Any) -> str:
    """Write a value as JSON, cut if it is long."""
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = repr(value)[:_LONGEST]
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."

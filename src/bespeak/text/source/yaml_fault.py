"""libyaml's error messages in words that an author can act on."""

from __future__ import annotations

import re
from typing import Final

import yaml

from bespeak.text.source.text_position import location_of
from bespeak.text.source.tree import SyntaxFault

_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")

_QUOTES: Final = "Put the value in quotes."
_INDENT: Final = "Indent it like its neighbours, with spaces."
_CLOSED: Final = "Close what is open, or put the text in quotes."

_WORDS: Final[tuple[tuple[str, str, str], ...]] = (
    ("tab character", "a tab is used for indentation", "Indent with spaces."),
    (
        "mapping values are not allowed",
        "a second ': ' on this line, or a key that is not indented like its neighbours",
        "Put a value that contains ': ' in quotes; indent keys of one mapping alike.",
    ),
    ("unexpected ':'", "a ':' that neither follows a key nor stands inside quotes", _QUOTES),
    ("could not find expected ':'", "the key has no ':' after it", "Write `key: value`, or put the text in quotes."),
    ("did not find expected key", "a key is expected here", _INDENT),
    ("expected <block end>", "this line does not belong to the block above it", _INDENT),
    ("did not find expected '-' indicator", "a list item ('- ') is expected here", _INDENT),
    ("',' or ']'", "a list in brackets is not closed, or a comma is missing", _CLOSED),
    ("',' or '}'", "a mapping in braces is not closed, or a comma is missing", _CLOSED),
    ("expected node content", "a value is expected here", "Write the value, or remove what stands before it."),
    ("node content", "a value is expected here", "Write the value, or remove what stands before it."),
    ("unexpected end of stream", "a quoted text is not closed", "Write the closing quote."),
    ("unexpected document indicator", "a quoted text is not closed", "Write the closing quote."),
    ("sequence entries are not allowed", "a list item cannot start here", "Start the list on its own line."),
    ("mapping keys are not allowed", "a key cannot start here", "Start the mapping on its own line."),
    ("unknown escape character", "an escape that YAML does not know", "Write \\\\ for a backslash."),
    ("hexdecimal numbers", "an escape without its hexadecimal digits", "Write \\\\ for a backslash."),
    ("hexadecimal", "an escape without its hexadecimal digits", "Write \\\\ for a backslash."),
    ("invalid Unicode character escape", "an escape for half a character", "Write the character itself."),
    ("undefined alias", "an alias (*) to an anchor that does not exist", "Write the anchor (&) before it is used."),
    ("duplicate anchor", "an anchor (&) is declared twice", "Give one of them another name."),
    ("undefined tag handle", "a tag is not supported", "Remove the tag: JSON has none."),
    ("another document", "the text holds several documents", "Put each document into its own file."),
    ("<document start>", "something follows the end of the document", "Remove it, or indent it into the document."),
    ("indentation indicator", "the number after | or > is not an indentation", "Write | or > alone."),
    ("incompatible YAML document", "this version of YAML is not known", "Remove the %YAML line."),
    ("control characters", "a control character", "Remove it."),
)


def unprintable(text: str, file: str) -> SyntaxFault | None:
    """Return the Fault for characters that YAML does not allow."""
    found = _UNPRINTABLE.search(text)
    if found is None:
        return None
    code = ord(found[0])
    name = "half a surrogate pair" if 0xD800 <= code <= 0xDFFF else f"the control character U+{code:04X}"
    advice = "Remove it; inside double quotes, write it as an escape."
    return SyntaxFault(location_of(text, file, found.start(), found.end()), f"{name} is not allowed", advice)


def fault_of(error: yaml.YAMLError, text: str, file: str) -> SyntaxFault:
    """Return the Fault for a text that libyaml refused."""
    if not isinstance(error, yaml.MarkedYAMLError):
        offset = getattr(error, "position", None)
        place = (
            location_of(text, file, min(offset, len(text))) if isinstance(offset, int) else location_of(text, file, 0)
        )
        return SyntaxFault(place, str(getattr(error, "reason", error)).partition("\n")[0])
    problem = error.problem or error.context or "it cannot be read"
    mark = error.problem_mark or error.context_mark
    at = min(mark.index, len(text)) if mark is not None else 0
    if "cannot start any token" in problem:
        return _bad_start(text, file, at)
    for part, message, advice in _WORDS:
        if part in problem:
            if "not closed" in message and error.context_mark is not None and not text[at:].strip():
                at = error.context_mark.index  # where it was opened says more than the end of the file
            return SyntaxFault(location_of(text, file, at), message, advice)
    return SyntaxFault(location_of(text, file, at), problem)


def _bad_start(text: str, file: str, at: int) -> SyntaxFault:
    place = location_of(text, file, at)
    char = text[at : at + 1]
    if char == "\t":
        return SyntaxFault(place, "a tab is used for indentation", "Indent with spaces.")
    return SyntaxFault(place, f"a value cannot start with {char!r}", _QUOTES)

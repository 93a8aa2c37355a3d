"""Signs in the fields of an input that a call changes something: an action to choose, a program, what a text says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bespeak.documents.adoption.deed_text import field_deeds
from bespeak.documents.adoption.naming import is_plural, words
from bespeak.documents.adoption.verb_words import base, changes

CHOOSING: Final = frozenset({"action", "operation", "command", "subcommand", "method", "verb", "op", "task", "cmd"})
"""Fields whose value says what is done."""
_PROGRAMS: Final = frozenset(
    {
        *("sql", "script", "code", "command", "commands", "cmd", "statement", "javascript", "function", "expression"),
        *("expr", "eval", "shell", "program", "snippet", "bash", "powershell", "lua", "macro", "formula"),
    }
)
"""Fields that hold a program, which may do anything."""
_LANGUAGES: Final = frozenset(
    {"sql", "js", "javascript", "python", "shell", "source", "bash", "node", "lua", "ruby", "php"}
)
_IDENTIFYING: Final = frozenset({"code", "function", "statement", "formula", "macro", "program"})
"""Names that are also those of a value: a country code, a bank statement. In a GET they are."""
_DESCRIBED: Final = re.compile(
    r"\b(?:code|scripts?|commands?|programs?|expressions?|snippets?|statements?|functions?) (?:that is |which is "
    r"|to be |to )(?:run|executed?"
    r"|evaluated?|eval)\b|\b(?:javascript|python|shell|bash|sql|cypher|graphql|powershell|groovy|lua"
    r"|typescript) (?:code|expressions?|functions?"
    r"|commands?|scripts?|quer(?:y|ies)|statements?|snippets?|source)\b|\b(?:quer(?:y|ies)|statements?) in (?:sql"
    r"|cypher|graphql)\b",
    re.IGNORECASE,
)
_VALUE: Final = re.compile(
    r"\b(?:country|currency|language|postal|zip|status|error|product|discount|promo|coupon|airport|station|area"
    r"|verification|iso|invite"
    r"|invitation|authorization|auth|locale|region|state|security|confirmation|access|booking|tracking|stock|ticker"
    r"|iata|icao|voucher"
    r"|reference|one-time|short|cron|regular|regex|bank|account|glob|response|exit|room|gift|station|department|unit"
    r"|item|article)\b",
    re.IGNORECASE,
)
"""Words that make a field of such a name an ordinary value: `cron expression`."""
_PERFORMED: Final = re.compile(r"\bto (?:be )?(?:perform|take|execute|run|apply|do|carry)", re.IGNORECASE)
_READ_ONLY: Final = re.compile(r"\bread[- ]?only\b", re.IGNORECASE)
_QUERIES: Final = frozenset({"sql", "query", "statement"})
_MOST: Final = 200
_MOST_VALUES: Final = 50
_SEEN: Final = 2_000


def change_signs(fields: Mapping[str, Any], *, reads: bool) -> Iterator[str]:
    """Yield why the fields of an input say that a call changes something.

    `reads` means a GET, whose fields mostly filter: there only a text says what a field with an action does.
    """
    for field, schema in list(fields.items())[:_MOST]:
        part = schema if isinstance(schema, Mapping) else {}
        named, said, values = words(field), str(part.get("description") or "")[:_SEEN], part.get("enum")
        if named and named[-1] in CHOOSING and isinstance(values, list) and (not reads or _PERFORMED.search(said)):
            doing = (value for value in values[:_MOST_VALUES] if isinstance(value, str) and _is_change(value))
            yield from (f"its field '{field[:60]}' may be '{value[:60]}'" for value in doing)
            continue
        for deed in field_deeds(said) if not reads else ():
            yield f"its field '{field[:60]}' says '{deed.words}'"
            break


def program_field(fields: Mapping[str, Any], description: str, *, reads: bool, read_only: bool = False) -> str:
    """Return the field that holds a program, which may do anything; empty if there is none.

    Only a statement of a query language can be believed to read, if the text and the hint say so.
    """
    for field, schema in list(fields.items())[:_MOST]:
        part = schema if isinstance(schema, Mapping) else {}
        if not _holds_program(words(field), part, reads=reads):
            continue
        believed = read_only and not _QUERIES.isdisjoint(words(field)[-1:])
        if not (believed and _READ_ONLY.search(description[:_SEEN])):
            return field[:60]
    return ""


def _holds_program(named: Sequence[str], schema: Mapping[str, Any], *, reads: bool) -> bool:
    """Return True for `sql`, `code`, `python_code` and a described program, but not for `language_code`."""
    said = f"{schema.get('title') or ''} {schema.get('description') or ''}"[:_SEEN]
    kind, values = schema.get("type", "string"), schema.get("enum")
    if isinstance(values, list) or kind in ("integer", "number", "boolean"):
        return False
    media = schema.get("contentMediaType")
    if _DESCRIBED.search(said) or (isinstance(media, str) and re.search(r"javascript|python|x-sh|sql", media)):
        return True
    if not named or named[-1] not in _PROGRAMS or (len(named) > 1 and named[0] not in _LANGUAGES):
        return False
    return not _VALUE.search(said) and not (reads and named[-1] in _IDENTIFYING)


def _is_change(value: str) -> bool:
    first = next(iter(words(value)), "")
    return bool(first) and not is_plural(first) and changes(base(first) or first)

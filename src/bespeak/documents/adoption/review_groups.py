"""Entries of REVIEW.md that say the same about many endpoints, as one entry each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from bespeak.text.diagnostics.printable import printable

_WIDTH: Final = 116
_VARYING: Final = re.compile(
    r"'[^']*'|\{[^{}]*\}|\b[0-9][0-9.,]*\b|\b(?!HTTP\b|AGTP\b)[A-Z]{3,}\b|(?<!\w)/[\w{}./~-]++|(?<=: ).*", re.DOTALL
)
"""Parts of a reason that differ from endpoint to endpoint: quoted words, parameters, numbers, methods, paths, and what
follows a colon."""

Entry = TypeVar("Entry")


def kind_of(reason: str) -> str:
    """Return a reason without its varying parts, so that reasons of one kind are equal."""
    return _VARYING.sub(
        lambda found: found.group()[0] + "…" + found.group()[-1] if found.group()[:1] in "'{" else "…", reason
    )


def grouped(entries: Iterable[Entry], key: Callable[[Entry], Hashable]) -> list[list[Entry]]:
    """Group entries by a key, in the order of the first of each."""
    groups: dict[Hashable, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return list(groups.values())


def shown(names: Sequence[str], most: int) -> str:
    """List names on one line; count those after the first `most`."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def counted(texts: Iterable[str], most: int = 4) -> str:
    """List the different texts, the most frequent first, each with its number if there are several."""
    counts = Counter(texts)
    if len(counts) == 1:
        return next(iter(counts))
    return shown([f"{text} ({number})" for text, number in counts.most_common()], most)


def wrapped(names: Sequence[str], most: int) -> Iterator[str]:
    """Yield indented lines with many names; count those after the first `most`."""
    here = " "
    for index, name in enumerate(names[:most]):
        part = f" {name}{',' if index < min(len(names), most) - 1 else ''}"
        if len(here) + len(part) > _WIDTH and here.strip():
            yield here
            here = " "
        here += part
    yield here + (f" and {len(names) - most} more" if len(names) > most else "")


def plain(text: str) -> str:
    """Return a text on one line, without markup and terminal controls."""
    return printable(" ".join(text.split()))[:300].replace("`", "'").replace("<", "&lt;")


def code(text: str) -> str:
    """Return a text as a code span."""
    return f"`{plain(text)}`"

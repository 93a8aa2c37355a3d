"""Marks of prompt injection: speaker labels, invisible characters, links, encoded text (AGIS 13).

Honest descriptions sometimes say `you are` and `you must`, so such words count only in an intent and an outcome, which
address nobody. What the sentences of a text ask for is judged in `instruction`.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import Final

from bespeak.text.language.late_pattern import LatePattern

_ROLES: Final = LatePattern(
    r"<\|[a-z_]{1,32}\|>|\[/?(?:inst|system|assistant|admin)\]|<</?sys>>|</?(?:system|assistant|instructions?|prompt"
    r"|important|secret|hidden|admin|override)>"
    r"|(?:^|[.!?\"'>)\]#*-] ?)(?:system|assistant|human|developer) ?:(?!\w)"
    r"|### ?(?:instructions?|response|assistant|human) ?:"
)
_STRICT: Final = LatePattern(r"\bsystem ?:(?!//)")
_ADDRESSED: Final = LatePattern(
    r"\byou (?:are|must|should|need to|have to|will|shall|may not|cannot)\b|\byou['’](?:re|ll)\b|\bact as\b"
    r"|\b(?:call|use|invoke|run) this (?:(?:tool|endpoint|method|function|service|api) )?(?:first|before|instead"
    r"|always)\b"
    r"|\bbefore (?:using|calling) (?:any|all) other\b"
)
_SELECTORS: Final = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_INVISIBLE: Final = LatePattern(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2028\u2029\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffc\U000e0000-\U000e00ff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
    "|(?<=[\x00-\x7f])[\u200c-\u200f](?=[\x00-\x7f]|$)"
    f'|(?:^|(?<=[\x00-"$-)+-/:-\x7f{_SELECTORS}]))[{_SELECTORS}]+'
)
"""Invisible characters, except the joiners and marks that scripts and emoji need."""
_FLAG: Final = LatePattern("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{2,8}\U000e007f")
"""Flags of England, Scotland and others, which are written with invisible letters."""

_LINK: Final = LatePattern(
    r"\b(?:https?|ftp|wss?|file|agtp)://\S|\bwww\.[a-z0-9-]{1,63}\.|\bjavascript:\S|\bdata:[a-z]{1,20}/"
    r"|\]\([^()\s]{1,500}\)"
    r"|<(?:/?(?:a|script|img|iframe|svg|style|object|embed|form|link|meta|base|html|body|div|span)\b|!--)",
    re.IGNORECASE,
)
_BLOB: Final = LatePattern(
    r"(?<![\w+/=.-])[A-Za-z0-9+/]{40,}={0,2}|(?:\\u[0-9a-fA-F]{4}){4}|(?:\\x[0-9a-fA-F]{2}){6}"
    r"|(?:%[0-9A-Fa-f]{2}){8}|(?:&#x?[0-9A-Fa-f]{1,6};){4}"
)
_GAP: Final = LatePattern(r"(?<![\s|])\s{40,}+(?!\|)")
"""Long gap, not the spaces of a table."""


def role_marker(text: str, *, strict: bool) -> str | None:
    """Return a marker that starts another speaker's turn; with `strict`, `system:` counts anywhere."""
    plain = normal(text)
    if ":" not in plain and "<" not in plain and "[" not in plain and "#" not in plain:
        return None
    found = _ROLES.search(plain) or (_STRICT.search(plain) if strict else None)
    return found[0].strip() if found else None


def addressed(text: str) -> str | None:
    """Return words that address the reader."""
    found = _ADDRESSED.search(normal(text))
    return found[0].strip() if found else None


def visible(text: str) -> str | None:
    """Return the text without invisible characters if it has any."""
    if (text.isascii() and text.isprintable()) or _INVISIBLE.search(text) is None:
        return None
    if "\U0001f3f4" not in text:
        return _INVISIBLE.compiled.sub("", text)
    flags = [*_FLAG.compiled.findall(text), ""]
    parts = (_INVISIBLE.compiled.sub("", part) for part in _FLAG.compiled.split(text))
    clean = "".join(part + flag for part, flag in zip(parts, flags, strict=True))
    return clean if clean != text else None


def link(text: str) -> str | None:
    """Return a URL or a piece of markup."""
    found = _LINK.search(text) if ":" in text or "](" in text or "<" in text or "www." in text.lower() else None
    return found[0] if found else None


def blob(text: str) -> str | None:
    """Return a run of characters that people do not read."""
    if max(map(len, text.split()), default=0) < 24:
        return None
    for found in _BLOB.compiled.finditer(text):
        run = found[0][:200]
        if run[0] in "\\%&" or _is_mixed(run):
            return run
    return None


def gap(text: str) -> bool:
    """Return True if a long gap hides the second part of a text."""
    return ("    " in text or "\n\n" in text or "\t\t" in text) and _GAP.search(text.strip()) is not None


def _is_mixed(run: str) -> bool:
    """Return True if capitals, small letters and digits alternate more often than in joined words."""
    kinds = [char.isdigit() + 2 * char.isupper() for char in run]
    if set(kinds) != {0, 1, 2}:
        return False
    changes = sum(one != other for one, other in pairwise(kinds))
    return changes > len(run) * 0.3


def normal(text: str) -> str:
    """Normalize a text for matching: lower case, single spaces, no invisible characters, no width variants."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _INVISIBLE.compiled.sub("", text))
    return " ".join(text.lower().split())

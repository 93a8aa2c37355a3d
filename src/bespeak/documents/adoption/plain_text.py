"""Texts of a description made safe for a contract: plain, visible, short, and without instructions to a model.

A text ends before the first sentence that instructs a model: what follows may depend on it.
"""

from __future__ import annotations

import html
import re
from functools import lru_cache
from typing import Final, NamedTuple

from bespeak.text.language.injection import blob, role_marker, visible
from bespeak.text.language.instruction import instruction, may_inject

_COMMENT: Final = re.compile(r"<!--.{0,4000}?(?:-->|\Z)", re.DOTALL)
_TAG: Final = re.compile(r"</?[A-Za-z][^<>]{0,300}>")
_LINK: Final = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,500}\)")
_ADDRESS: Final = re.compile(r"<?\b(?:https?|ftp)://[^\s<>()]{0,500}>?")
_MARKS: Final = re.compile(r"[`*]{1,3}|^#{1,6} ", re.MULTILINE)
_END: Final = re.compile(r"(?<=[.!?])\s")
_SEEN: Final = 20_000
"""Number of characters that are examined."""
_NEVER: Final = re.compile("[\ud800-\udfff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class PlainText(NamedTuple):
    """A text and the reason why something was removed from it; removed markup and length need no reason."""

    text: str
    fault: str = ""


@lru_cache(maxsize=8192)
def plain_text(text: str, most: int = 500, *, field: bool = False) -> PlainText:
    """Return a text on one line, without markup and instructions to a model, cut at the end of a sentence.

    `field` means the text of a field of a schema, whose commands are addressed to the caller.
    """
    seen = _NEVER.sub("", text[:_SEEN])
    clean = visible(seen)
    fault = "invisible characters" if clean is not None else ""
    # Names of parameters in backticks and markup that hides text count, so instructions are found before both go.
    seen, spoken = _until_instruction(seen if clean is None else clean, field=field)
    seen = _TAG.sub(" ", _LINK.sub(r"\1", _COMMENT.sub(" ", seen)))
    seen = html.unescape(seen) if "&" in seen else seen
    seen, hidden = _until_instruction(" ".join(_MARKS.sub("", seen).split()), field=field)
    fault = spoken or hidden or fault
    coded = blob(seen)
    while coded is not None:
        seen, fault = " ".join(seen.replace(coded, "").split()), fault or "something encoded"
        coded = blob(seen)
    return PlainText(_cut(seen, most), fault)


def _until_instruction(text: str, *, field: bool) -> tuple[str, str]:
    """Return a text up to the first instruction to a model, and the reason if it ends there."""
    if not may_inject(text):
        return text, ""
    found = instruction(text, field=field)
    marker = role_marker(text, strict=False)
    if marker is not None:
        at = max(text.lower().find(marker), 0)
        if found is None or at <= found.start:
            return text[:at].rstrip(), f"a text that {found.kind}" if found else "a text with a speaker label"
    return (text, "") if found is None else (text[: found.start].rstrip(), f"a text that {found.kind}")


def first_sentence(text: str, most: int = 300) -> str:
    """Return the first sentence of a text without URLs and its full stop."""
    plain = " ".join(_ADDRESS.sub("", plain_text(text, 2_000).text).split())
    first = _END.split(plain, maxsplit=1)[0]
    return _cut(first, most).rstrip(" .!:;,").strip()


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head = text[:most]
    stop = max(head.rfind(". "), head.rfind("! "), head.rfind("? "))
    return head[: stop + 1] if stop > most // 3 else head[: max(head.rfind(" "), most // 2)].rstrip(" ,;:")

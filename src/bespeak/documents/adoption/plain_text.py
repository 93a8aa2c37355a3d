"""Texts of a description made safe for a contract: plain, visible, short, and without instructions to a model."""

from __future__ import annotations

import html
import re
from functools import lru_cache
from typing import Final, NamedTuple

from bespeak.text.language.injection import blob, injection, may_inject, role_marker, visible

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
def plain_text(text: str, most: int = 500) -> PlainText:
    """Return a text on one line, without markup and cut at the end of a sentence; empty if it addresses a model."""
    seen = _NEVER.sub("", text[:_SEEN])
    clean = visible(seen)
    fault = "invisible characters" if clean is not None else ""
    seen = _TAG.sub(" ", _LINK.sub(r"\1", seen if clean is None else clean))
    seen = html.unescape(seen) if "&" in seen else seen
    seen = " ".join(_MARKS.sub("", seen).split())
    coded = blob(seen)
    while coded is not None:
        seen, fault = " ".join(seen.replace(coded, "").split()), "something encoded"
        coded = blob(seen)
    if may_inject(seen):
        spoken = injection(seen)
        if spoken is not None:
            return PlainText("", f"a text that {spoken.kind}")
        if role_marker(seen, strict=False) is not None:
            return PlainText("", "a text with a speaker label")
    return PlainText(_cut(seen, most), fault)


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

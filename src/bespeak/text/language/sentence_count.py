"""Detection of several sentences in a text, despite the full stops of abbreviations and numbers."""

from __future__ import annotations

import re
from typing import Final

_STOPS: Final = frozenset(".!?。！？\n")
_WIDE: Final = "。！？"
_SEEN: Final = 4_000
"""Limit of characters that are read; another rule reports longer texts."""

_END: Final = re.compile(
    r"""(?P<stop>[.!?…]++)["'”’»)\]]*+\s++["'“‘«(\[]*+(?=(?P<next>\S))|\n[^\S\n]*+\n|\n[^\S\n]*+[-*•]\s|[。！？]"""
)
_LAST_WORD: Final = re.compile(r"[^\s\"'“‘«(\[]{1,24}$")

_ABBREVIATIONS: Final = """
abbr abs adj al alt approx apt assn assoc attn ave avg bldg blvd ca capt cf co col corp cont dept dia dir div dr ed
eds eg eq esp est etc ex excl ext fig figs fl fr freq ft gen gov govt hon hr hrs hwy ie incl inc ind intl jr kg km
lat lb lbs lon ltd lt max mfg mgr mi min mins misc mm mr mrs ms mt mtn mx natl neg no nos nr op orig oz para pct pg
phd pos pp prev prof pt qty rd ref refs reg rel rep resp rev sec secs sen seq sgt sr ss st std ste subj supt tbsp
tech tel temp tsp univ viz vol vols vs wk wt yd yr yrs
jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun
"""
_NO_END: Final = frozenset(_ABBREVIATIONS.split())
"""Abbreviations written with a full stop."""


def is_several(text: str) -> bool:
    """Return True if a text certainly has more than one sentence."""
    seen = text.strip()[:_SEEN].rstrip(".!?…。！？ \n\"'”’)")
    return not _STOPS.isdisjoint(seen) and any(_ends(match, seen) for match in _END.finditer(seen))


def _ends(match: re.Match[str], text: str) -> bool:
    stop = match["stop"]
    if stop is None:
        return True
    first, before = match["next"], _LAST_WORD.search(text, max(0, match.start() - 24), match.start())
    if before is None or not (first.isalnum() or first in _WIDE):
        return False
    if stop != ".":
        return "!" in stop or "?" in stop or (first.isupper() and "…" not in stop and "..." not in stop)
    word = before[0]
    if len(word) == 1 or "." in word or word.lower() in _NO_END:
        return False  # an initial, U.S., e.g., v1.2, approx.
    if first.isupper():
        return True
    # A lower-case start is a sentence only after a plain word: authors forget capitals, and invent abbreviations.
    return len(word) > 3 and word.isalpha() and word.islower() and (first.islower() or first.isdigit())

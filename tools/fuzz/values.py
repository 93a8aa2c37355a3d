"""Invariant: no text makes the search for values raise, and every mention is a place inside of the text, in order.

Run `python tools/fuzz/values.py --seconds 60`. It prints how many texts it tried, or the one that broke the invariant.
"""

from __future__ import annotations

import random
import sys
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

from campaign import campaign

from bespeak.text.values import LONGEST, Mention, find_mentions
from bespeak.text.values.numbers import STARTS as NUMBERS
from bespeak.text.values.times import STARTS as TIMES

_SAID = """
of in on at to from until between and the a half past quarter week month year weeks hours ago now % km pm am utc - – — :
0 1 3 5 12 24 29 30 31 99 2026 9999 10000 1.5 1,000 3/5 2026-02-29 29.02.2027 2026-12-01T10:00Z 7:30 24:61 , . / # $ € '
" ( ) order AB-12 v1.2 a@b.example https://a.example /tmp/x.csv İ ß \u0660\u0663 ² ½ \x00 \ud800
"""
_WORDS = [*sorted(NUMBERS | TIMES), *_SAID.split()]
_CLOCKS = (
    datetime(2026, 11, 19, 10, 30, tzinfo=UTC),
    datetime(2028, 2, 29, 23, 59, 59, 999999, tzinfo=ZoneInfo("Europe/Berlin")),
    datetime(2026, 3, 29, 1, 30, tzinfo=ZoneInfo("Europe/Berlin")),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    datetime.max.replace(tzinfo=timezone(-timedelta(hours=12))),
)


def check(text: str, mentions: list[Mention]) -> None:
    """Check the places of the mentions of one text."""
    for mention in mentions:
        assert 0 <= mention.start < mention.end <= min(len(text), LONGEST), mention
        assert 0 < mention.certainty <= 1, mention
        assert (mention.kind == "range") == isinstance(mention.value, tuple), mention
        assert mention.kind != "range" or mention.value[0] <= mention.value[1] or not mention.unit, mention
    for one, other in pairwise(mentions):
        assert one.start <= other.start, (one, other)
        # Only the ends of a range are inside of another mention.
        assert one.end <= other.start or one.kind == "range" or other.edge == "to", (one, other)


def trial(source: random.Random, noted: list[object]) -> None:
    """Try one text of words that the grammars know, with one clock and one order."""
    joints = (" ", " ", " ", "", "-", "\n")
    text = "".join(source.choice(_WORDS) + source.choice(joints) for _ in range(source.randrange(1, 40)))
    now, order = source.choice(_CLOCKS), source.choice((None, "DMY", "MDY"))
    noted[:] = [text, now, order]
    found = find_mentions(text, now=now, order=order)
    check(text, found)
    assert found == find_mentions(text, now=now, order=order), "the answer differs"


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))

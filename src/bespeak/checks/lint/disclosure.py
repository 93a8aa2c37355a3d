"""Detection of texts that disclose data or storage details in a public description."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from bespeak.text.language.late_pattern import LatePattern

_SEEN: Final = 10_000
"""Maximum number of characters to examine."""


class Disclosed(NamedTuple):
    """Match in a text."""

    kind: str
    text: str


_HELD: Final = (
    r"(?:records?|rows?|entries|customers?|users?|patients?|accounts?|clients?|transactions?|documents?|members?|guests?"
    r"|files|profiles|subscribers?|employees|orders|bookings|reservations|people|objects|items)\b"
)
_CONTENTS: Final = (
    ("an e-mail address", LatePattern(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")),
    (
        "a connection string",
        LatePattern(
            r"\b[a-z][a-z0-9+]{1,20}://[^\s/@:]{1,64}:[^\s/@]{1,64}@|\b(?:jdbc:\w|mongodb(?:\+srv)?://|postgres(?:ql)?://"
            r"|mysql://|redis://|amqps?://|(?:server|host|data source)=[^;\s]{1,100};)",
            re.IGNORECASE,
        ),
    ),
    (
        "a key or secret",
        LatePattern(
            r"\b(?:AKIA[0-9A-Z]{16}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|xox[abpr]-[A-Za-z0-9-]{10,}"
            r"|eyJ[A-Za-z0-9_-]{10,}\.|AIza[0-9A-Za-z_-]{30,})|-----BEGIN "
            r"|\b(?:password|passwd|pwd|secret|api[_ -]?key|token)\s?[:=]\s?\S{4,}",
            re.IGNORECASE,
        ),
    ),
    (
        "an internal host or address",
        LatePattern(
            r"\b(?:\d{1,3}\.){3}\d{1,3}\b|\\\\[\w.-]{2,64}\\\w|\bs3://\S"
            r"|\b(?:[a-z0-9-]{1,63}\.){1,6}(?:internal|local|lan|intranet|corp|svc|cluster|prod|rds\.amazonaws\.com)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "a telephone number",
        LatePattern(
            r"(?<![\w+.-])\+\d{1,3}[ .()-]{0,2}\d(?:[ .()-]{0,2}\d){6,13}(?!\w)"
            r"|(?<![\w.-])\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?![\w.-])"
        ),
    ),
    (
        "an account or card number",
        LatePattern(r"\b\d{3}-\d{2}-\d{4}\b|\b(?:\d{4}[ -]?){3}\d{4}\b|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}\b"),
    ),
)
_DETAILS: Final = (
    (
        "a record count",
        LatePattern(
            r"\b(?:\d{1,3}(?:[,.]\d{3}){1,5}|\d{5,15}|\d[\d,.]{0,20}\s?(?:k|m|b|bn|thousand|million|billion|trillion))"
            rf"\+?\s(?:[a-z-]{{1,30}}\s){{0,3}}?{_HELD}"
            rf"|\b(?:hundreds|thousands|millions|billions)\sof\s(?:[a-z-]{{1,30}}\s){{0,2}}?{_HELD}",
            re.IGNORECASE,
        ),
    ),
    (
        "a field name",
        LatePattern(
            r"(?<![\w./-])[a-z][a-z0-9]{0,40}(?:_[a-z0-9]{1,40}){1,6}(?![\w/])"
            r"|(?<![\w./-])[a-z]{2,20}(?:[A-Z][a-z]{1,20}){1,4}(?:ID)?(?![\w/])"
        ),
    ),
    (
        "a storage detail",
        LatePattern(
            r"\b(?:SELECT\s.{1,80}?\sFROM|INSERT INTO|CREATE TABLE|VARCHAR|(?:primary|foreign) key|NOT NULL)\b"
            r"|\b(?:columns?|fields?|tables?)\s?(?:named|called|:)\s?\S|\b\w{1,40}\.\w{1,40}\scolumn",
            re.IGNORECASE,
        ),
    ),
)


def contents(text: str) -> Disclosed | None:
    """Find data itself, or a way to access it."""
    return _search(_CONTENTS, text[:_SEEN])


def details(text: str) -> Disclosed | None:
    """Find amounts of data, field names, or storage details."""
    return _search(_DETAILS, text[:_SEEN])


def _search(patterns: tuple[tuple[str, LatePattern], ...], text: str) -> Disclosed | None:
    for kind, pattern in patterns:
        found = pattern.search(text)
        if found is not None:
            return Disclosed(kind, found[0])
    return None

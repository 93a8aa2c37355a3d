"""Values in headers: budgets, Session-IDs, Task-IDs, and base64url.

Core 8 requires 128 random bits of a Session-ID. `estimated_bits` is an upper estimate: a weak id may pass.
"""

from __future__ import annotations

import re
from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from itertools import pairwise
from math import log2
from typing import Final

from bespeak.protocol.exchange.headers import is_header_value
from bespeak.protocol.exchange.refusal import Fault

# Core 2.3:  budget = entry *( "," entry )      entry = unit "=" amount
_AMOUNT: Final = re.compile(r"([0-9]{1,15})(?:\.([0-9]{1,9}))?")
UNITS: Final[Mapping[str, int]] = {"tokens": 0, "compute-seconds": 9, "USD": 2, "EUR": 2, "GBP": 2, "calls": 0}
"""Registered units (core 7.7), each with the number of decimal places allowed."""
ONE_CALL: Final = Decimal(1)  # cost of every invocation in `calls`


def parse_budget(text: str) -> dict[str, Decimal] | Fault:
    """Parse a list `unit=value, unit=value`; return the fault of its first entry that is not valid."""
    amounts: dict[str, Decimal] = {}
    # One comma more than there are units: the rest is one entry too many, and is read as one text.
    for part in text.split(",", len(UNITS)):
        entry = part.strip()
        unit, equals, value = entry.partition("=")
        unit = unit.rstrip()
        if not equals:
            return Fault("it is not of the form unit=value", entry)
        amount = parse_amount(unit, value.strip())
        if isinstance(amount, str):
            return Fault(amount, entry)
        if unit in amounts:
            return Fault(f"{unit} is limited twice", entry)
        amounts[unit] = amount
    return amounts


def parse_amount(unit: str, text: str) -> Decimal | str:
    """Parse an amount of a unit, or return what is wrong with it."""
    places = UNITS.get(unit)
    if places is None:
        return f"{unit[:40]!r} is not one of the units {', '.join(UNITS)}"
    found = _AMOUNT.fullmatch(text)
    if found is None:
        return f"{text[:40]!r} is not a valid amount: write digits, and for some units a point and decimals"
    if len(found[2] or "") > places:
        form = f"has at most {places} decimal places" if places else "is a whole number"
        return f"an amount of {unit} {form}, not {text[:40]}"
    return Decimal(text)


def format_amount(unit: str, amount: Decimal) -> str:
    """Format an amount as the registry writes it: money with two places, others without trailing zeros."""
    if UNITS[unit] == 2:
        return f"{amount:.2f}"
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_budget(amounts: Mapping[str, Decimal]) -> str:
    return ", ".join(f"{unit}={format_amount(unit, amount)}" for unit, amount in amounts.items())


def exceeded_units(cost: Mapping[str, Decimal], limit: Mapping[str, Decimal]) -> list[str]:
    """Return the units in which a cost exceeds a limit. A unit that only one of the two names limits nothing."""
    return [unit for unit, bound in limit.items() if unit in cost and cost[unit] > bound]


WANTED_BITS: Final = 128
_SESSION_ID = re.compile(r"[A-Za-z0-9._~:@+/=-]{1,256}")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-([0-9a-f])[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
# A leading word is skipped, unless it may be part of the number.
_HEX = re.compile(r"(?:[A-Za-z]{1,16}[._:-])??([0-9a-f-]+|[0-9A-F-]+)")
_OF_TIME: Final = frozenset("1267")  # versions of UUIDs made of clock and counter; others have 122 bits
_OTHER_BITS: Final = 6.0  # bits per character of any other alphabet, as in base64: a text need not show it all
_SPREAD: Final = 2.0  # minimum share of entropy that a random text of this length shows in its character frequencies


def is_session_id(text: str) -> bool:
    return _SESSION_ID.fullmatch(text) is not None


def estimated_bits(session_id: str) -> float:
    """Estimate the bits that an attacker has to guess, at most."""
    hexadecimal = _HEX.fullmatch(session_id)
    uuid = _UUID.fullmatch(hexadecimal[1]) if hexadecimal else None
    if uuid is not None and uuid[1] in _OF_TIME:
        return 0.0
    text = hexadecimal[1].replace("-", "") if hexadecimal else session_id
    if not text:
        return 0.0
    length = (text + text).find(text, 1)  # of the part that is repeated
    each = _OTHER_BITS if hexadecimal is None else log2(10) if text.isdigit() else 4.0
    steps = [ord(after) - ord(before) for before, after in pairwise(text)]
    return length * min(each, _SPREAD * _entropy(text), _SPREAD * _entropy(steps))


def _entropy(items: Sequence[Hashable]) -> float:
    count = len(items)
    return sum(-n / count * log2(n / count) for n in Counter(items).values())


LONGEST_TASK_ID: Final = 65_536  # maximum characters: what the head of a request may have
_LONGEST_STORED: Final = 512  # maximum bytes of a Task-ID in an index of a store


def is_task_id(text: str) -> bool:
    """Return True if a text can be sent as the header Task-ID and arrives unchanged."""
    return 0 < len(text) <= LONGEST_TASK_ID and text == text.strip() and is_header_value(text)


def stored_task_id(task_id: str) -> str:
    """Return the text by which a store finds a Task-ID: a digest if it is too long for an index."""
    encoded = task_id.encode(errors="surrogatepass")
    return task_id if len(encoded) <= _LONGEST_STORED else f"sha256:{sha256(encoded).hexdigest()}"


_FROM_URL: Final = str.maketrans("-_+/=", "+/!!!")  # characters outside base64url become others outside base64


def encode64(data: bytes) -> bytes:
    # Both characters are rare in the base64 of JSON, and `replace` returns bytes without them as they are.
    return b2a_base64(data, newline=False).rstrip(b"=").replace(b"+", b"-").replace(b"/", b"_")


def decode64(text: str) -> bytes | None:
    """Decode base64url text; return None if it is not the canonical text of a value."""
    try:
        data = a2b_base64(text.translate(_FROM_URL) + "=" * (-len(text) % 4), strict_mode=True)
    except (NotBase64, ValueError):
        return None
    return data if encode64(data) == text.encode() else None

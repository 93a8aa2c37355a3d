"""Money: a whole number of the smallest unit of a currency, so that nothing is rounded."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

import msgspec

MOST: Final = 10**15
"""Largest amount, in smallest units: sums of a thousand of them still fit into the integers of every database."""

_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_VALUE: Final = re.compile(r"[0-9]{1,15}(?:[.]([0-9]{1,6}))?")
# ISO 4217; every other currency has two decimal places.
_WITHOUT_DECIMALS: Final = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_WITH_THREE: Final = "BHD IQD JOD KWD LYD OMR TND"
_PLACES: Final = {**dict.fromkeys(_WITHOUT_DECIMALS.split(), 0), **dict.fromkeys(_WITH_THREE.split(), 3)}


class Money(msgspec.Struct, frozen=True):
    """An amount of a currency."""

    minor: int
    """Amount in the smallest unit, such as cents."""
    currency: str

    @property
    def amount(self) -> Decimal:
        """The amount in units of the currency."""
        return Decimal(self.minor).scaleb(-places_of(self.currency))

    def document(self) -> dict[str, str]:
        """Return the form of inputs and receipts."""
        return {"value": f"{self.amount:f}", "currency": self.currency}

    def __str__(self) -> str:
        """Return the amount for people."""
        return f"{self.amount:f} {self.currency}"


def is_currency(text: str) -> bool:
    """Return True for a currency code."""
    return _CURRENCY.fullmatch(text) is not None


def places_of(currency: str) -> int:
    """Return the number of decimal places of a currency."""
    return _PLACES.get(currency, 2)


def read_money(value: str | float, currency: str) -> Money | str:
    """Parse an amount, or return what is wrong with it. A JSON number has no decimals here: they would be binary."""
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    found = None if isinstance(value, float) and not value.is_integer() else _VALUE.fullmatch(text)
    if found is None:
        return f"is {text[:40]!r}; write a string of digits, with decimals behind a point"
    places = places_of(currency)
    if len((found[1] or "").rstrip("0")) > places:
        return f"is {text[:40]}, but {currency} has {places} decimal places"
    minor = int(Decimal(text).scaleb(places))
    return Money(minor, currency) if minor <= MOST else f"is {text[:40]}, which is more than {Money(MOST, currency)}"

"""Values that a text mentions: dates, times, numbers, money, quantities, addresses and names of things."""

from bespeak.text.values.mentions import LONGEST, Kind, Mention, find_mentions

__all__ = ["LONGEST", "Kind", "Mention", "find_mentions"]

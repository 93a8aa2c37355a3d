"""Words for the same thing, as services and their users say them: what one calls an invoice, another calls a bill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bespeak.text.language.sentence import word_set

_GROUPS: Final = (
    "account profile",
    "address location place",
    "application app",
    "article post blog page story",
    "authentication authorization auth login signin",
    "cart basket",
    "catalog catalogue listing",
    "client customer",
    "comment remark note",
    "company organization organisation org business firm",
    "configuration config settings preferences options",
    "contract agreement",
    "conversation channel chat thread",
    "credential secret key token",
    "database db",
    "deal discount coupon promotion voucher",
    "directory folder",
    "document doc file",
    "email mail",
    "employee staff worker",
    "environment env",
    "event appointment meeting",
    "flight trip journey travel",
    "holiday vacation leave absence",
    "image picture photo avatar logo icon",
    "information info details",
    "instance machine server vm node droplet",
    "invoice bill receipt",
    "issue ticket bug case incident",
    "job task workflow pipeline",
    "label tag",
    "language locale",
    "log logs history",
    "message mail sms text dm",
    "metric statistic stats analytics report",
    "money balance funds cash",
    "movie film",
    "order purchase",
    "password passphrase pin",
    "payment charge transaction",
    "payout transfer",
    "permission role access right",
    "person people user member contact",
    "phone telephone call",
    "price cost fee rate tariff",
    "product item article goods",
    "question query",
    "repository repo",
    "reservation booking",
    "room accommodation",
    "salary wage pay payroll",
    "shipment delivery parcel package",
    "shop store",
    "song track music playback",
    "stock inventory",
    "subscription plan membership",
    "team group crew",
    "temperature weather forecast",
    "webhook callback",
)


def _by_word() -> Mapping[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for number, group in enumerate(_GROUPS):
        for word in word_set(group):
            found[word] = (*found.get(word, ()), number)
    return found


THINGS: Final = _by_word()
"""Things by word: the numbers of the groups that it belongs to."""

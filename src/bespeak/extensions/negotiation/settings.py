"""Settings of negotiation: which proposals are accepted, and how long their endpoints live (AGTP-API 10)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bespeak.contract.limits import Rate, parse_rate
from bespeak.text.reading.settings import setting, tables

APPROVALS: Final = ("none", "irreversible", "changing", "persistent", "all")  # which approvals wait for an operator
_DAY: Final = 86400.0
_YEAR: Final = 366 * _DAY


def _read_rate(text: str) -> Rate | None:
    rate = parse_rate(text)
    return rate if isinstance(rate, Rate) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForbiddenCombination:
    """What must not meet in one composition, although each part is allowed."""

    together: tuple[str, ...] = setting(
        (),
        "Two or more of `METHOD /path`, `scope:NAME`, `data:CLASS` and `namespace:NAME`; `*` stands for any text. A "
        "composition that has all of them is refused.",
        required=True,
    )
    reason: str = setting("", "What the refusal says.")


@dataclass(frozen=True, slots=True, kw_only=True)
class NegotiationSettings:
    """Which proposals are accepted, and how long their endpoints live."""

    approval: str = setting("none", "Which approvals wait for an operator.", choices=APPROVALS, security=True)
    decision: float = setting(
        7 * _DAY, "Seconds that a proposal waits for an operator.", kind="seconds", bounds=(1, _YEAR)
    )
    persistent: bool = setting(False, "True to let agents keep endpoints beyond their session.")
    default_duration: float = setting(
        _DAY, "Seconds that a persistent endpoint lives unless asked otherwise.", kind="seconds", bounds=(60, _YEAR)
    )
    max_duration: float = setting(
        30 * _DAY, "Seconds that a persistent endpoint lives at most.", kind="seconds", bounds=(60, _YEAR)
    )
    internal: tuple[str, ...] = setting(
        (), "Internal endpoints that compositions may call, as `METHOD /path`; `*` stands for any text.", security=True
    )
    forbidden: tuple[ForbiddenCombination, ...] = tables(ForbiddenCombination)
    rate: Rate = setting(
        Rate(30, "min", 30),
        "How often one agent may propose; agents of one address that are not verified together ten times as often.",
        kind="string",
        parse=_read_rate,
        form="a rate",
        advice='Write it like "30/min".',
        security=True,
    )
    most_live: int = setting(100, "The most living endpoints of one agent.", bounds=(1, 10_000), security=True)
    most_rows: int = setting(100, "The most rows for each of which a composition may make a call.", bounds=(1, 10_000))
    failed_row: str = setting(
        "fail", "What a failed call for a row does: it fails the composition, or its row is left out.",
        choices=("fail", "skip"),
    )  # fmt: skip
    expansions: int = setting(10_000, "The most endpoints that one search for a plan looks at.", bounds=(1, 1_000_000))

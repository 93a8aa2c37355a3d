"""Rules of contract changes: each names a kind of change, and its category says whom it concerns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from bespeak.text.diagnostics.rule import Normative, Rule

Kind = Literal["added", "removed", "narrowed", "widened", "changed"]
Category = Literal["WIRE", "CONTRACT", "PROSE"]

CATEGORIES: Final[tuple[Category, ...]] = ("WIRE", "CONTRACT", "PROSE")
"""Nested categories: CONTRACT includes WIRE, and PROSE includes everything."""

WHY: Final[dict[Kind, str]] = {
    "added": "Existing callers are not affected, unless a response contains it. Announce it, and let callers adopt it "
    "when they are ready.",
    "removed": "Callers that use it are refused, or wait for something that no longer comes. Deprecate it first, with "
    "a successor, and remove it with a new major version.",
    "narrowed": "For input, calls that worked are refused; for output, callers can rely on more. Keep accepting the "
    "old form for a while, or approve the change and announce it.",
    "widened": "For input, more calls work than before; for output, callers may receive values they do not expect. "
    "Announce a wider output before you release it.",
    "changed": "The same call may have another meaning, and no error reports it. Offer the new meaning beside the old "
    "one, or approve the change with a reason.",
}
"""Effect of each kind of change on callers, and what to do about it."""


_NORMATIVE: Final[dict[Kind, Normative]] = {"removed": "MUST", "narrowed": "MUST", "changed": "SHOULD"}
"""Usual gravity of a change; the level of each change decides."""


@dataclass(frozen=True, slots=True)
class ChangeRule(Rule):
    """One kind of change. It is declared beside the check that reports it."""

    kind: Kind = "changed"
    category: Category = "WIRE"


def _rule(category: Category, rule: str, name: str, kind: Kind, summary: str) -> ChangeRule:
    normative = _NORMATIVE.get(kind, "style")
    return ChangeRule((rule, name, normative, ""), summary, WHY[kind], kind=kind, category=category)


wire_rule: Final = partial(_rule, "WIRE")
contract_rule: Final = partial(_rule, "CONTRACT")
prose_rule: Final = partial(_rule, "PROSE")

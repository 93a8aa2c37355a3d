"""Comparison of a contract that a server offers with the one that an agent asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from bespeak.checks.evolution.change import ChangeList, ContractChange
from bespeak.checks.evolution.schema_diff import (
    ANNOTATION_CHANGED,
    DEFAULT_CHANGED,
    FIELD_ADDED,
    FIELD_REMOVED,
    NOT_COMPARABLE,
    TYPE_CHANGED,
    diff_schemas,
)
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.semantic import IMPACTS
from bespeak.protocol.exchange.scope import Scopes

JUDGED: Final = ("input_schema", "output_schema", "semantic")
"""Members by which a contract is judged."""
_HARMLESS: Final = frozenset({ANNOTATION_CHANGED, DEFAULT_CHANGED, FIELD_ADDED})
"""Changes of an output that take nothing away."""
_REFUSING: Final = frozenset({FIELD_REMOVED, TYPE_CHANGED, NOT_COMPARABLE})
"""Changes of an input after which a value that the agent has is not taken. A narrower value is only noted: the agent
learns it from the schema before it calls."""


@dataclass(frozen=True, slots=True)
class ContractFit:
    """What an offered contract lacks of the one that was asked for."""

    differences: tuple[str, ...]
    """What was asked for and is not offered; empty if the contract can be used."""
    notes: tuple[str, ...]
    """Differences that take nothing away."""

    unstated: tuple[str, ...]
    """Members that the server did not state, so that they cannot be compared."""

    @property
    def fits(self) -> bool:
        """True if nothing that was asked for is missing, as far as the server states it."""
        return not self.differences


def compare_contracts(
    asked: Endpoint,
    offered: Endpoint,
    definition: Collection[str] = JUDGED,
    *,
    scopes: Scopes | None,
    confidence: float = 0.0,
    elsewhere: bool = False,
) -> ContractFit:
    """Compare an offered endpoint with the one that was asked for. `definition` has the members that the server states.

    `scopes` are the widest that it may require; None for any. `confidence` is the least that it must have.
    `elsewhere` allows another method and path for an endpoint that changes nothing.
    """
    stated = {name for name in JUDGED if name in definition}
    notes: list[str] = []
    differences = [*_place(asked, offered, notes, elsewhere=elsewhere)]
    for changes in _schemas(asked, offered, stated):
        worse = _is_refused(changes) if changes.direction == "request" else _is_lost(changes)
        if worse or changes.level != "safe":
            (differences if worse else notes).append(changes.message)
    if "semantic" in stated:
        differences += _semantics(asked, offered, confidence)
        if asked.semantic.is_idempotent and not offered.semantic.is_idempotent:
            notes.append("it is not idempotent")
    missing = [] if scopes is None else scopes.missing(offered.required_scopes)
    differences += [f"it requires the scope {scope}, which is not allowed here" for scope in missing]
    unstated = (f"the server does not state {name}" for name in JUDGED if name not in stated)
    return ContractFit(tuple(differences), tuple(notes), tuple(unstated))


def _place(asked: Endpoint, offered: Endpoint, notes: list[str], *, elsewhere: bool) -> Iterator[str]:
    if asked.key == offered.key:
        return
    message = f"it is {offered}, not {asked}"
    # Two endpoints that change something may have the same fields and opposite effects.
    if elsewhere and asked.semantic.impact == "informational":
        notes.append(message)
    else:
        yield message


def _schemas(asked: Endpoint, offered: Endpoint, stated: Collection[str]) -> list[ContractChange]:
    changes = ChangeList(str(offered))
    if "input_schema" in stated:
        diff_schemas(asked.input_schema, offered.input_schema, "request", "/input_schema", changes)
    if "output_schema" in stated:
        diff_schemas(asked.output_schema, offered.output_schema, "response", "/output_schema", changes)
    return changes.found


def _is_refused(change: ContractChange) -> bool:
    """Return True if the endpoint does not take the inputs that the agent has."""
    return change.about in _REFUSING or (change.about == FIELD_ADDED and change.level == "breaking")


def _is_lost(change: ContractChange) -> bool:
    """Return True if the endpoint does not promise an output that the agent needs."""
    if change.about == FIELD_REMOVED:
        return change.level == "breaking"
    return change.level != "safe" and change.about not in _HARMLESS


def _semantics(asked: Endpoint, offered: Endpoint, confidence: float) -> Iterator[str]:
    before, after = asked.semantic, offered.semantic
    if IMPACTS.index(after.impact) > IMPACTS.index(before.impact):
        yield f"its impact is {after.impact}, and at most {before.impact} is allowed"
    if after.confidence < confidence:
        yield f"its confidence is {after.confidence}, and at least {confidence} is wanted"

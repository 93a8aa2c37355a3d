"""Drafts: complete plans before they are judged, with the choices made for every wanted value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from bespeak.extensions.negotiation.planner.operation import OutputRows, PlanField, PlanOperation
from bespeak.extensions.negotiation.planner.wish import WantedTable


class Decision(NamedTuple):
    """Something that was decided, and might have been meant otherwise."""

    about: str  # what is decided: the same decision in two places counts once
    quality: float
    cost: float = 0.0
    doubt: str = ""  # what is open, and what would settle it; empty if nothing is


@dataclass(frozen=True, eq=False)
class Value:
    @property
    def calls(self) -> frozenset[PlannedCall]:
        return frozenset()

    @property
    def givens(self) -> frozenset[str]:
        return frozenset()

    @property
    def is_per_row(self) -> bool:
        return False


@dataclass(frozen=True, eq=False)
class Given(Value):
    field: PlanField

    @property
    def givens(self) -> frozenset[str]:
        return frozenset((self.field.name,))


@dataclass(frozen=True, eq=False)
class Fixed(Value):
    value: Any


@dataclass(frozen=True, eq=False)
class RowValue(Value):
    """A column of the row for which a call is made."""

    field: PlanField

    @property
    def is_per_row(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class KeyMatch:
    column: PlanField
    value: Value


@dataclass(frozen=True, eq=False)
class Pick:
    matches: tuple[KeyMatch, ...] = ()
    is_first: bool = False  # True for the first of several; else there must be one


@dataclass(frozen=True, eq=False)
class CallResult(Value):
    call: PlannedCall
    field: PlanField
    pick: Pick | None = None  # how one value of a list is chosen; None for a single value, or for all of them

    @cached_property
    def calls(self) -> frozenset[PlannedCall]:
        own = frozenset((self.call,)) | self.call.before
        return own.union(*(match.value.calls for match in self.pick.matches)) if self.pick else own

    @cached_property
    def givens(self) -> frozenset[str]:
        own = self.call.givens
        return own.union(*(match.value.givens for match in self.pick.matches)) if self.pick else own

    @property
    def is_per_row(self) -> bool:
        picked = self.pick.matches if self.pick else ()
        return self.call.is_per_row or any(match.value.is_per_row for match in picked)


@dataclass(frozen=True, eq=False)
class PlannedCall:
    """An operation with the values of its inputs. Equal calls of one plan are one object."""

    number: int  # order of creation: sets of calls are sorted by it, since nothing may depend on the hash seed
    operation: PlanOperation
    bindings: tuple[tuple[PlanField, Value], ...]

    @cached_property
    def before(self) -> frozenset[PlannedCall]:
        return frozenset[PlannedCall]().union(*(value.calls for _, value in self.bindings))

    @cached_property
    def givens(self) -> frozenset[str]:
        return frozenset[str]().union(*(value.givens for _, value in self.bindings))

    @cached_property
    def is_per_row(self) -> bool:
        return any(value.is_per_row for _, value in self.bindings)

    @property
    def cost(self) -> float:
        """One for the call, more for what it changes."""
        return 1.0 + 3.0 * self.operation.impact


def cost_of(calls: Iterable[PlannedCall], decisions: Iterable[Decision]) -> float:
    """Add up calls and decisions, in an order that does not depend on the hash seed."""
    return sum(call.cost for call in calls) + sum(decision.cost for decision in sorted(decisions))


def quality_of(decisions: Iterable[Decision]) -> float:
    """Multiply what the decisions leave of certainty."""
    return prod(decision.quality for decision in sorted(decisions))


@dataclass(frozen=True, eq=False)
class Option:
    """One way to get a value, with everything that was decided for it."""

    value: Value
    decisions: frozenset[Decision]
    calls: frozenset[PlannedCall]

    @cached_property
    def quality(self) -> float:
        return quality_of(self.decisions)

    @cached_property
    def cost(self) -> float:
        return cost_of(self.calls, self.decisions)


@dataclass(frozen=True, eq=False)
class Filter:
    """A local condition on rows: a column compared with a value."""

    column: PlanField
    op: str
    value: Value


@dataclass(frozen=True, eq=False)
class Listing:
    """How a wanted list is made: the rows of a call, filtered, sorted and cut, with a value for each column."""

    table: WantedTable
    call: PlannedCall
    rows: OutputRows
    columns: tuple[tuple[PlanField, Value], ...]
    filters: tuple[Filter, ...] = ()
    sort: PlanField | None = None
    limit: PlanField | None = None
    decisions: frozenset[Decision] = frozenset()
    weakest: float = 1.0  # likeness of the column that fits least

    @cached_property
    def givens(self) -> frozenset[str]:
        ordering = {one.name for one in (self.sort, self.limit) if one}
        return self.call.givens.union(ordering, *(value.givens for value in self.values))

    @cached_property
    def calls(self) -> frozenset[PlannedCall]:
        return self.call.before.union((self.call,), *(value.calls for value in self.values))

    @cached_property
    def values(self) -> tuple[Value, ...]:
        return (*(value for _, value in self.columns), *(one.value for one in self.filters))


@dataclass(frozen=True, eq=False)
class Draft:
    singles: tuple[tuple[PlanField, Value], ...] = ()
    listings: tuple[Listing, ...] = ()
    deed: PlannedCall | None = None  # the call that changes something
    decisions: frozenset[Decision] = frozenset()
    weakest: float = 1.0

    @property
    def outputs(self) -> list[tuple[PlanField, Value]]:
        return [*self.singles, *(column for listing in self.listings for column in listing.columns)]

    @cached_property
    def calls(self) -> tuple[PlannedCall, ...]:
        """Calls in an order in which each comes after those that it needs."""
        found: set[PlannedCall] = set()
        for _, value in self.singles:
            found |= value.calls
        for listing in self.listings:
            found |= listing.calls
        if self.deed is not None:
            found |= self.deed.before | {self.deed}
        return tuple(sorted(found, key=lambda call: (len(call.before), call.number)))

    @cached_property
    def givens(self) -> frozenset[str]:
        found = self.deed.givens if self.deed is not None else frozenset[str]()
        found = found.union(*(value.givens for _, value in self.singles if value.calls))
        return found.union(*(listing.givens for listing in self.listings))

    @cached_property
    def quality(self) -> float:
        """Product of the decisions and of the weakest field: ten fields of one call are one decision."""
        return quality_of(self.decisions) * self.weakest

    @cached_property
    def cost(self) -> float:
        return cost_of(self.calls, self.decisions)

    def judged(self, *decisions: Decision) -> Draft:
        return replace(self, decisions=self.decisions.union(decisions))

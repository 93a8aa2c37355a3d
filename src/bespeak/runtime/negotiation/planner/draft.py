"""Drafts: complete plans before they are judged, with every value that the proposal wants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from bespeak.runtime.negotiation.planner.choice import Call, Decision, Value, cost_of, quality_of
from bespeak.runtime.negotiation.planner.field import Field
from bespeak.runtime.negotiation.planner.operation import Rows
from bespeak.runtime.negotiation.planner.wish import Table


@dataclass(frozen=True, eq=False)
class Filter:
    """A local condition on rows: a column compared with a value."""

    column: Field
    op: str
    value: Value


@dataclass(frozen=True, eq=False)
class Listing:
    """How a wanted list is made: the rows of a call, filtered, sorted and cut, with a value for each column."""

    table: Table
    call: Call
    rows: Rows
    columns: tuple[tuple[Field, Value], ...]
    filters: tuple[Filter, ...] = ()
    sort: Field | None = None
    limit: Field | None = None
    decisions: frozenset[Decision] = frozenset()
    weakest: float = 1.0
    """Likeness of the column that fits least."""

    @cached_property
    def is_local(self) -> bool:
        """True if all rows must be known, because they are filtered or sorted here."""
        return bool(self.filters or self.sort)

    @cached_property
    def givens(self) -> frozenset[str]:
        """Inputs of the proposal that change the list."""
        ordering = {one.name for one in (self.sort, self.limit) if one}
        return self.call.givens.union(ordering, *(value.givens for value in self.values))

    @cached_property
    def calls(self) -> frozenset[Call]:
        """Calls that it needs."""
        return self.call.before.union((self.call,), *(value.calls for value in self.values))

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """Values of columns and filters."""
        return (*(value for _, value in self.columns), *(one.value for one in self.filters))


@dataclass(frozen=True, eq=False)
class Draft:
    """A complete plan."""

    singles: tuple[tuple[Field, Value], ...] = ()
    listings: tuple[Listing, ...] = ()
    deed: Call | None = None
    """The call that changes something."""
    decisions: frozenset[Decision] = frozenset()
    weakest: float = 1.0

    @property
    def outputs(self) -> list[tuple[Field, Value]]:
        """Wanted fields with their values, those of lists included."""
        return [*self.singles, *(column for listing in self.listings for column in listing.columns)]

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """Calls in an order in which each comes after those that it needs."""
        found: set[Call] = set()
        for _, value in self.singles:
            found |= value.calls
        for listing in self.listings:
            found |= listing.calls
        if self.deed is not None:
            found |= self.deed.before | {self.deed}
        return tuple(sorted(found, key=lambda call: (len(call.before), call.number)))

    @cached_property
    def givens(self) -> frozenset[str]:
        """Inputs of the proposal that change something."""
        found = self.deed.givens if self.deed is not None else frozenset[str]()
        found = found.union(*(value.givens for _, value in self.singles if value.calls))
        return found.union(*(listing.givens for listing in self.listings))

    @cached_property
    def quality(self) -> float:
        """Product of the decisions and of the weakest field: ten fields of one call are one decision."""
        return quality_of(self.decisions) * self.weakest

    @cached_property
    def cost(self) -> float:
        """Calls and decisions together."""
        return cost_of(self.calls, self.decisions)

    def judged(self, *decisions: Decision) -> Draft:
        """Return the draft with further decisions."""
        return replace(self, decisions=self.decisions.union(decisions))

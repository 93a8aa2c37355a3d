"""Choices of a plan: where a value comes from, which calls are made for it, and how sure each decision is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

from bespeak.runtime.negotiation.planner.field import Field
from bespeak.runtime.negotiation.planner.operation import Operation


class Decision(NamedTuple):
    """Something that was decided, and might have been meant otherwise."""

    about: str
    """What is decided: the same decision in two places counts once."""
    quality: float
    cost: float = 0.0
    doubt: str = ""
    """What is open, and what would settle it; empty if nothing is."""


@dataclass(frozen=True, eq=False)
class Value:
    """A value at run time."""

    @property
    def calls(self) -> frozenset[Call]:
        """Calls that it needs."""
        return frozenset()

    @property
    def givens(self) -> frozenset[str]:
        """Inputs of the proposal that it depends on."""
        return frozenset()

    @property
    def is_per_row(self) -> bool:
        """True if it differs from row to row."""
        return False


@dataclass(frozen=True, eq=False)
class Given(Value):
    """An input of the proposal."""

    field: Field

    @property
    def givens(self) -> frozenset[str]:
        return frozenset((self.field.name,))


@dataclass(frozen=True, eq=False)
class Fixed(Value):
    """A constant."""

    value: Any


@dataclass(frozen=True, eq=False)
class RowValue(Value):
    """A column of the row for which a call is made."""

    field: Field

    @property
    def is_per_row(self) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class Match:
    """A condition on rows: a column equals a value."""

    column: Field
    value: Value


@dataclass(frozen=True, eq=False)
class Pick:
    """Which element of a list is taken."""

    matches: tuple[Match, ...] = ()
    is_first: bool = False
    """True for the first of several; else there must be one."""


@dataclass(frozen=True, eq=False)
class Result(Value):
    """A field of what a call returned."""

    call: Call
    field: Field
    pick: Pick | None = None
    """How one value of a list is chosen; None for a single value, or for all of them."""

    @cached_property
    def calls(self) -> frozenset[Call]:
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
class Call:
    """An operation with the values of its inputs. Equal calls of one plan are one object."""

    number: int
    """Order of creation: sets of calls are sorted by it, since nothing may depend on the hash seed."""
    operation: Operation
    bindings: tuple[tuple[Field, Value], ...]

    @cached_property
    def before(self) -> frozenset[Call]:
        """Calls that must have been made."""
        return frozenset[Call]().union(*(value.calls for _, value in self.bindings))

    @cached_property
    def givens(self) -> frozenset[str]:
        """Inputs of the proposal that it depends on."""
        return frozenset[str]().union(*(value.givens for _, value in self.bindings))

    @cached_property
    def is_per_row(self) -> bool:
        """True if it is made once for each row."""
        return any(value.is_per_row for _, value in self.bindings)

    @property
    def cost(self) -> float:
        """One for the call, more for what it changes."""
        return 1.0 + 3.0 * self.operation.impact


def cost_of(calls: Iterable[Call], decisions: Iterable[Decision]) -> float:
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
    calls: frozenset[Call]

    @cached_property
    def quality(self) -> float:
        """Product of the decisions."""
        return quality_of(self.decisions)

    @cached_property
    def cost(self) -> float:
        """Calls and decisions together."""
        return cost_of(self.calls, self.decisions)

"""Single values: a beam over the wanted fields, in which a call that is already made costs nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bespeak.runtime.negotiation.planner.choice import Call, Decision, Given, Option, Result, Value, cost_of
from bespeak.runtime.negotiation.planner.field import Field
from bespeak.runtime.negotiation.planner.operation import Operation
from bespeak.runtime.negotiation.planner.search import Search

_BEAM: Final = 12


@dataclass(frozen=True, eq=False)
class State:
    """Values for some of the wanted fields."""

    values: tuple[tuple[Field, Value], ...]
    calls: frozenset[Call]
    decisions: frozenset[Decision]
    weakest: float = 1.0

    @property
    def cost(self) -> float:
        """Calls and decisions together; a weak field counts too."""
        return cost_of(self.calls, self.decisions) + 2 * (1 - self.weakest)


class SingleSearch:
    """Finds values for fields outside of lists."""

    def __init__(self, search: Search, fields: tuple[Field, ...], depth: int, most_calls: int) -> None:
        self._search = search
        self._fields = fields
        self._depth = depth
        self._most_calls = most_calls
        self._answers: dict[tuple[Field, int], tuple[float, Field | None]] = {}
        self.missing: Field | None = None
        """The first field without any value, after a run that found nothing."""

    def run(self, start: State) -> list[State]:
        """Return the cheapest ways to have all fields; empty if one of them has no value, or only by too many calls."""
        states = [start]
        given = {id(field) for field in self._fields if self._search.at_hand(field, self._search.given)}
        for field in sorted(self._fields, key=lambda one: id(one) in given):
            found = [after for state in states for after in self._extend(state, field)]
            found = [state for state in found if len(state.calls) <= self._most_calls]
            if not found:
                self.missing = field
                return []
            covered = self._search.covered
            states = sorted(found, key=lambda one: (one.cost - covered(one.calls), len(one.calls)))[:_BEAM]
        return states

    def _extend(self, state: State, field: Field) -> list[State]:
        self._search.spend()
        found = []
        for call in sorted(state.calls, key=lambda one: (not one.operation.impact, one.number)):
            score, other = (0.0, None) if call.is_per_row else self._answer(field, call.operation)
            if other is not None:
                found.append(_with(state, field, Option(Result(call, other), frozenset(), frozenset((call,))), score))
            if found and call.operation.impact:
                return found  # what a change answers is about the change, and nothing else is
        exact = [one for one in found if one.weakest == state.weakest]
        if exact:
            return exact[:2]
        at_hand = self._search.at_hand(field, self._search.given)
        if at_hand and field.identifies and _is_same_form(field, at_hand[0]):
            return [*found, _with(state, field, at_hand[0], 1.0)]
        options = self._search.computed(field, self._search.given, self._depth)
        return [*found, *(_with(state, field, option, 1.0) for option in options)]

    def _answer(self, need: Field, operation: Operation) -> tuple[float, Field | None]:
        """Return the field of an answer that fits best."""
        key = need, operation.number
        if key not in self._answers:
            fields = [field for field in operation.outputs if not field.lists]
            self._search.spend(len(fields))
            self._answers[key] = self._search.best(need, fields)
        return self._answers[key]


def _is_same_form(field: Field, option: Option) -> bool:
    """Return True if a given id may be repeated as it is."""
    return isinstance(option.value, Given) and field.facts.format in ("", option.value.field.facts.format)


def _with(state: State, field: Field, option: Option, score: float) -> State:
    return State(
        (*state.values, (field, option.value)),
        state.calls | option.value.calls,
        state.decisions | option.decisions,
        min(state.weakest, score),
    )

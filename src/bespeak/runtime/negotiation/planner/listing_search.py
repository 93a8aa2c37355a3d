"""Lists: a call whose rows are what is wanted, missing columns by a call or a lookup for each row, filters on top."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bespeak.runtime.negotiation.planner.choice import Call, Decision, Given, Result, RowValue, Value, cost_of
from bespeak.runtime.negotiation.planner.draft import Filter, Listing
from bespeak.runtime.negotiation.planner.field import Field
from bespeak.runtime.negotiation.planner.operation import CURSORS, LIMITS, PLACES, SORTS, TIMES, Operation, Rows
from bespeak.runtime.negotiation.planner.search import WHOLE, Search
from bespeak.runtime.negotiation.planner.slot import ITEM
from bespeak.runtime.negotiation.planner.term import join, other_names
from bespeak.runtime.negotiation.planner.wish import Table

_DRIVERS: Final = 12
"""Most lists that are tried."""
_KEPT: Final = 3
_FAN_OUT: Final = 1.5
_ORDERED: Final = frozenset(("integer", "number"))
_TIME_ENDINGS: Final = ("at", "on", "date", "time")
"""What columns of times add to the word that a bound uses: `placed_after` is about `placed_at`."""
_ANY_TIME: Final = frozenset(("date", "time", "day"))
"""What a bound is about that names no column: the only date of the rows."""


class ListingSearch:
    """Finds the ways to make one wanted list."""

    def __init__(self, search: Search, table: Table, depth: int, deed: Call | None = None) -> None:
        """Prepare a search. The lists of a `deed` are those that it answers with: others are not its results."""
        self._search = search
        self._table = table
        self._depth = depth
        self._deed = deed

    def run(self) -> list[Listing]:
        """Return the ways, cheapest first."""
        found: list[Listing] = []
        if self._deed is not None:
            return self._answered(self._deed)
        for operation, rows in self._drivers():
            for called in self._search.call(operation, self._search.given, self._depth - 1, rows.nouns[0]):
                assert isinstance(called.value, Result)
                listing = self._fill(called.value, rows, called.decisions)
                if listing is not None:
                    found.append(listing)
        missing = len(self._search.wish.givens)
        return sorted(found, key=lambda one: (missing - len(one.givens), self._cost(one), one.call.number))[:_KEPT]

    def _cost(self, listing: Listing) -> float:
        return cost_of(listing.calls, listing.decisions) - self._search.covered(listing.calls)

    def _answered(self, deed: Call) -> list[Listing]:
        known = deed.before | {deed}
        lists = [rows for rows in deed.operation.lists if ITEM not in rows.path]
        lists = [rows for rows in lists if set(rows.nouns) & set(self._table.nouns)]
        made = [self._fill(Result(deed, WHOLE), rows, frozenset()) for rows in lists]
        return [listing for listing in made if listing is not None and listing.calls <= known]

    def _drivers(self) -> list[tuple[Operation, Rows]]:
        found: dict[tuple[int, str], tuple[int, Operation, Rows]] = {}
        for noun in self._table.nouns:
            for name in (noun, *other_names(noun)):
                for operation, rows in self._search.index.listing(name):
                    key = operation.number, rows.dotted
                    if key in found or operation.impact or ITEM in rows.path or not self._search.allows(operation):
                        continue
                    self._search.spend(len(self._table.columns) * len(rows.fields))
                    hits = sum(self._search.best(field, rows.fields)[0] > 0 for field in self._table.columns)
                    found[key] = hits, operation, rows
        said = self._search.wish.said
        ranked = sorted(
            found.values(),
            key=lambda one: (
                -one[0],
                sum(segment.term not in said for segment in one[1].resource.literals),
                len(one[1].required),
                one[1].number,
            ),
        )
        return [(operation, rows) for hits, operation, rows in ranked if hits][:_DRIVERS]

    def _fill(self, result: Result, rows: Rows, decided: frozenset[Decision]) -> Listing | None:
        scope = self._search.row_scope(rows)
        columns: list[tuple[Field, Value]] = []
        decisions = {*decided, *self._search.searched(result.call, rows)}
        weakest = 1.0
        per_row: set[int] = set()
        for need in self._table.columns:
            self._search.spend(len(rows.fields))
            score, field = self._search.best(need, rows.fields)
            if field is not None:
                columns.append((need, RowValue(field)))
                weakest = min(weakest, score)
                continue
            options = self._search.value(need, scope, self._depth - 1)
            if need.identifies & set(self._table.nouns):
                options = [option for option in options if option.calls]  # a row has its own id, not the one given
            if not options:
                return None
            best = min(
                options, key=lambda one: (len(one.calls - {call for _, v in columns for call in v.calls}), one.cost)
            )
            columns.append((need, best.value))
            decisions |= best.decisions
            for call in best.calls:
                if call.is_per_row and call.number not in per_row:
                    per_row.add(call.number)
                    decisions.add(Decision(f"for each {call.number}", 1.0, _FAN_OUT))
        return self._local(
            Listing(self._table, result.call, rows, tuple(columns), (), None, None, frozenset(decisions), weakest)
        )

    def _local(self, listing: Listing) -> Listing:
        """Turn inputs that are left over into filters, an order and a limit of the rows."""
        filters: list[Filter] = []
        decisions = set(listing.decisions)
        sort = None
        for given in self._search.wish.givens:
            if given.name in listing.givens or given.term in LIMITS:
                continue
            if given.term in SORTS and self._sorts(given, listing.rows):
                sort = given
            else:
                made = self._filter(given, listing.rows) or self._related(given, listing, decisions)
                if made is not None:
                    filters.append(made)
                    decisions.add(Decision(f"filter {given.name}", 1.0, 0.2))
        call = listing.call
        if filters or sort:
            call = self._search.unlimited(call)
            decisions |= self._scanned(call)
        limits = (field for field in self._search.wish.givens if field.term in LIMITS and _is_count(field))
        limit = next((field for field in limits if field.name not in call.givens), None)
        return replace(
            listing, call=call, filters=tuple(filters), sort=sort, limit=limit, decisions=frozenset(decisions)
        )

    def _scanned(self, call: Call) -> set[Decision]:
        """Return what is doubtful about a list that must be read as a whole."""
        operation = call.operation
        placed = any(field.term in PLACES | CURSORS for field, _ in call.bindings)
        if operation.pages is not None and not placed:
            return {Decision(f"scan {operation.number}", 0.95, 0.8)}
        if operation.is_partial or placed:
            doubt = f"`{operation.endpoint}` shows its list in pages, and nothing says how to read all of them."
            return {Decision(f"scan {operation.number}", 0.6, 0.8, doubt)}
        return set()

    def _sorts(self, given: Field, rows: Rows) -> bool:
        """Return True if an input can only name columns; `-` before a name reverses the order."""
        columns = {field.column for field in rows.fields}
        values = given.facts.values
        return values is not None and all(str(value).lstrip("-") in columns for _, value in values)

    def _filter(self, given: Field, rows: Rows) -> Filter | None:
        compared = given.comparison
        if compared is not None:
            if compared.attribute in _ANY_TIME:
                times = [field for field in rows.fields if field.facts.format in TIMES and field.lists == 1]
                return Filter(times[0], compared.op, Given(given)) if len(times) == 1 else None
            for ending in ("", *_TIME_ENDINGS):
                attribute = (*compared.attribute.split("_"), *ending.split())
                readings = self._search.index.vocabulary.read_name(attribute, rows.nouns, given.facts)
                need = Field((join(attribute),), readings, given.facts)
                made = self._compared(need, given, compared.op, rows)
                if made is not None and (not ending or made.column.facts.format in TIMES):
                    return made
            return None
        score, column = self._search.best(given, rows.fields, sent=True)
        enough = 0.95 if given.identifies else 0.8
        return Filter(column, "eq", Given(given)) if column is not None and score >= enough else None

    def _related(self, given: Field, listing: Listing, decisions: set[Decision]) -> Filter | None:
        """Return the condition that rows refer to the thing that an input identifies."""
        for column in listing.rows.fields:
            own = column.identifies & set(listing.rows.nouns)
            if column.identifies and not own and not self._search.at_hand(column, self._search.given):
                for option in self._search.computed(column, self._search.given, self._depth - 1):
                    if given.name in option.value.givens and self._search.is_of(option.value):
                        decisions |= option.decisions
                        return Filter(column, "eq", option.value)
        return None

    def _compared(self, need: Field, given: Field, op: str, rows: Rows) -> Filter | None:
        for field in rows.fields:
            if need.meanings.isdisjoint(field.meanings):
                continue
            kinds = field.facts.kind, given.facts.kind or field.facts.kind
            if op == "contains":
                return Filter(field, op, Given(given)) if set(kinds) <= {"string"} else None
            times = field.facts.format in TIMES and given.facts.format in (*TIMES, "")
            if set(kinds) <= _ORDERED or (set(kinds) <= {"string"} and times):
                return Filter(field, op, Given(given))
        return None


def _is_count(field: Field) -> bool:
    return field.facts.kind in ("integer", "")

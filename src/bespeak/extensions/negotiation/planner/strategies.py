"""Strategies of the planner: for single values, lists, and calls that change something; and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from dataclasses import field as member
from typing import Final

from bespeak.extensions.negotiation.plan import CERTAIN, Miss
from bespeak.extensions.negotiation.planner.draft import (
    CallResult,
    Decision,
    Given,
    KeyMatch,
    Listing,
    Option,
    PlannedCall,
    RowValue,
    Value,
    WantedTable,
    cost_of,
)
from bespeak.extensions.negotiation.planner.operation import SORTS, TIMES, OutputRows, PlanField, PlanOperation
from bespeak.extensions.negotiation.planner.search import WHOLE, PlanSearch
from bespeak.extensions.negotiation.planner.slot import ITEM
from bespeak.text.language.lexicon import meanings
from bespeak.text.language.names import LIMITS, join, other_names
from bespeak.text.language.operation_class import operation_classes

_BEAM: Final = 12


@dataclass(frozen=True, eq=False)
class State:
    values: tuple[tuple[PlanField, Value], ...]
    calls: frozenset[PlannedCall]
    decisions: frozenset[Decision]
    weakest: float = 1.0

    @property
    def cost(self) -> float:
        """Calls and decisions together; a weak field counts too."""
        return cost_of(self.calls, self.decisions) + 2 * (1 - self.weakest)


@dataclass(eq=False)
class SingleSearch:
    _search: PlanSearch
    _fields: tuple[PlanField, ...]
    _depth: int
    _most_calls: int
    missing: PlanField | None = None  # the first field without any value, after a run that found nothing
    _answers: dict[tuple[PlanField, int], tuple[float, PlanField | None]] = member(default_factory=dict)

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

    def _extend(self, state: State, field: PlanField) -> list[State]:
        self._search.spend()
        found = []
        for call in sorted(state.calls, key=lambda one: (not one.operation.impact, one.number)):
            score, near = (0.0, None) if call.is_per_row else self._answer(field, call.operation)
            if near is not None:
                found.append(_with(state, field, Option(CallResult(call, near), frozenset()), score))
            if found and call.operation.impact:
                return found  # what a change answers is about the change, and nothing else is
        exact = [one for one in found if one.weakest == state.weakest]
        if exact:
            return exact[:2]
        at_hand = self._search.at_hand(field, self._search.given)
        given = at_hand[0].value if at_hand and field.identifies else None
        if isinstance(given, Given) and field.facts.format in ("", given.field.facts.format):
            return [*found, _with(state, field, at_hand[0], 1.0)]  # a given id may be repeated as it is
        options = self._search.computed(field, self._search.given, self._depth)
        return [*found, *(_with(state, field, option, 1.0) for option in options)]

    def _answer(self, need: PlanField, operation: PlanOperation) -> tuple[float, PlanField | None]:
        key = need, operation.number
        if key not in self._answers:
            fields = [field for field in operation.outputs if not field.lists]
            self._search.spend(len(fields))
            self._answers[key] = self._search.best(need, fields)
        return self._answers[key]


def _with(state: State, field: PlanField, option: Option, score: float) -> State:
    return State(
        (*state.values, (field, option.value)),
        state.calls | option.value.calls,
        state.decisions | option.decisions,
        min(state.weakest, score),
    )


_DRIVERS: Final = 12  # most lists that are tried
_KEPT: Final = 3
_TIME_ENDINGS: Final = ("at", "on", "date", "time", " date", " time")
"""What columns of times add to the word that a bound uses: `placed_after` is about `placed_at`, or `date_placed`."""
_ANY_TIME: Final = frozenset(("date", "time", "day"))  # a bound that names no column means the only date of the rows


@dataclass(frozen=True, eq=False)
class ListingSearch:
    _search: PlanSearch
    _table: WantedTable
    _depth: int
    _deed: PlannedCall | None = None  # call whose lists are those that it answers with: others are not its results

    def run(self) -> list[Listing]:
        found: list[Listing] = []
        deed = self._deed
        if deed is not None:
            lists = [rows for rows in deed.operation.lists if ITEM not in rows.path]
            lists = [rows for rows in lists if set(rows.nouns) & set(self._table.nouns)]
            made = [self._fill(CallResult(deed, WHOLE), rows, frozenset()) for rows in lists]
            return [listing for listing in made if listing is not None and listing.calls <= deed.before | {deed}]
        for operation, rows in self._drivers():
            for called in self._search.call(operation, self._search.given, self._depth - 1, rows.nouns[0]):
                assert isinstance(called.value, CallResult)
                listing = self._fill(called.value, rows, called.decisions)
                if listing is not None:
                    found.append(listing)
        required = {field.name for field in self._search.wish.givens if field.required}
        if not any(required <= listing.givens for listing in found):
            found += self._bridged()

        def rank(one: Listing) -> tuple[int, float, int]:
            cost = cost_of(one.calls, one.decisions) - self._search.covered(one.calls)
            return -len(one.givens), cost, one.call.number

        return sorted(found, key=rank)[:_KEPT]

    def _bridged(self) -> list[Listing]:
        """Return lists of other things, each of which is the key to one that is wanted: invoices by order."""
        found: list[Listing] = []
        seen: set[tuple[int, str]] = set()
        search, table, near = self._search, self._table, replace(self, _depth=min(self._depth, 2))
        for _, single, field in search.providers(table.columns[0]) if table.columns else ():
            if field.lists or single.resource.noun not in table.nouns or single.resource.is_collection:
                continue
            for operation, rows in self._key_lists(single.required):
                place = operation.number, rows.dotted
                if place in seen or operation.impact or ITEM in rows.path or not search.allows(operation):
                    continue
                seen.add(place)
                own = any(one.tells & set(rows.nouns) for one in single.required)
                doubt = "" if own else f"The same {table.nouns[0]} may be listed more than once."
                via = Decision(f"via {operation.number}", 0.95 if own else 0.6, 0.5, doubt)
                for called in search.call(operation, search.given, self._depth - 1, rows.nouns[0]):
                    assert isinstance(called.value, CallResult)
                    listing = near._fill(called.value, rows, called.decisions | {via})
                    if listing is not None and any(one.is_per_row and one.calls for _, one in listing.columns):
                        found.append(listing)
        return found

    def _key_lists(self, keys: Iterable[PlanField]) -> Iterator[tuple[PlanOperation, OutputRows]]:
        """Yield the lists of other things whose rows have a key as a column."""
        for reading in (reading for key in keys for reading in key.readings if reading.noun in key.tells):
            for operation, field in self._search.index.yielding.get(reading, ()):
                for rows in operation.lists:
                    if rows.path == field.rows and not set(rows.nouns) & set(self._table.nouns):
                        yield operation, rows

    def _drivers(self) -> list[tuple[PlanOperation, OutputRows]]:
        found: dict[tuple[int, str], tuple[int, PlanOperation, OutputRows]] = {}
        for noun in self._table.nouns:
            for name in (noun, *other_names(noun)):
                for operation, rows in self._search.index.listing.get(name, ()):
                    key = operation.number, rows.dotted
                    if not self._table.columns and rows.nouns[0] != name:
                        continue  # what is only counted must certainly be that
                    if key in found or operation.impact or ITEM in rows.path or not self._search.allows(operation):
                        continue
                    self._search.spend(len(self._table.columns) * len(rows.fields))
                    hits = sum(self._search.best(field, rows.fields)[0] > 0 for field in self._table.columns)
                    found[key] = hits, operation, rows
        said = self._search.wish.said

        def rank(hits: int, operation: PlanOperation, _: OutputRows) -> tuple[int, int, int, int]:
            unsaid = sum(segment.term not in said for segment in operation.resource.literals)
            return -hits, unsaid, len(operation.required), operation.number

        ranked = sorted(found.values(), key=lambda one: rank(*one))
        wanted = bool(self._table.columns)
        return [(operation, rows) for hits, operation, rows in ranked if hits or not wanted][:_DRIVERS]

    def _fill(self, result: CallResult, rows: OutputRows, decided: frozenset[Decision]) -> Listing | None:
        scope = self._search.row_scope(rows)
        columns: list[tuple[PlanField, Value]] = []
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
            if self._table.way:
                return None  # of one row, or of all, only what the rows have
            options = self._search.value(need, scope, self._depth - 1)
            if need.identifies & set(self._table.nouns):
                options = [
                    option for option in options if option.value.calls
                ]  # a row has its own id, not the one given
            if not options:
                return None
            best = min(
                options,
                key=lambda one: (len(one.value.calls - {call for _, v in columns for call in v.calls}), one.cost),
            )
            columns.append((need, best.value))
            decisions |= best.decisions
            for call in best.value.calls:
                if call.is_per_row and call.number not in per_row:
                    per_row.add(call.number)
                    decisions.add(Decision(f"for each {call.number}", 1.0, 1.5))
        return self._local(
            Listing(self._table, result.call, rows, tuple(columns), (), None, None, frozenset(decisions), weakest)
        )

    def _local(self, listing: Listing) -> Listing | None:
        """Turn inputs that are left over into filters, an order and a limit of the rows."""
        filters: list[KeyMatch] = []
        decisions = set(listing.decisions)
        sort: PlanField | str | None = None
        order = listing.table.order
        if order is not None:
            column, sure = order.column(listing.rows, listing.table.columns)
            if column is None:
                return None
            sort = f"{'-' if order.is_most else ''}{column.column}"
            words = " ".join(sorted(order.words))
            doubt = "" if sure > CERTAIN else f"Is `{words}` by `{column.column}`? Say by what, or take it as an input."
            decisions.add(Decision(f"order {listing.call.number}", sure, 0.2, doubt))
        for given in self._search.wish.givens:
            if given.name in listing.givens or given.term in LIMITS:
                continue
            values, columns = given.facts.values, {field.column for field in listing.rows.fields}
            # `-` before the name of a column reverses the order.
            names_columns = values is not None and all(str(value).lstrip("-") in columns for _, value in values)
            if given.term in SORTS and names_columns:
                sort = sort or given
            else:
                made = self._filter(given, listing.rows) or self._related(given, listing, decisions)
                if made is not None:
                    filters.append(made)
                    decisions.add(Decision(f"filter {given.name}", 1.0, 0.2))
        call = listing.call
        if filters or sort or listing.table.way:
            call = self._search.unlimited(call)
            decisions |= self._scanned(call)
        elif call.operation.resource.noun in listing.rows.nouns and call.operation.pages is None:
            asked = any(field.term in LIMITS for field, _ in call.bindings)
            decisions |= set() if asked else self._scanned(call)
        givens = (field for field in self._search.wish.givens if field.term in LIMITS and field.name not in call.givens)
        limit = next((field for field in givens if field.facts.kind in ("integer", "")), None)
        if listing.table.way:
            limit = None
        elif order is not None and limit is None:
            doubt = "All of them would be listed, in this order; add an input `limit`, or ask for the fields of one."
            decisions.add(Decision(f"unlimited {listing.call.number}", 0.6, 0.0, doubt))
        return replace(
            listing, call=call, filters=tuple(filters), sort=sort, limit=limit, decisions=frozenset(decisions)
        )

    def _scanned(self, call: PlannedCall) -> set[Decision]:
        """Return what is doubtful about a list that must be read as a whole."""
        operation = call.operation
        placed = any(field.name in operation.places for field, _ in call.bindings)
        if operation.pages is not None and not placed:
            return {Decision(f"scan {operation.number}", 0.95, 0.8)}
        if operation.is_partial or placed:
            doubt = f"`{operation.endpoint}` shows its list in pages, and nothing says how to read all of them."
            return {Decision(f"scan {operation.number}", 0.61, 0.8, doubt)}
        return set()

    def _filter(self, given: PlanField, rows: OutputRows) -> KeyMatch | None:
        compared = given.comparison
        if compared is not None:
            if compared.attribute in _ANY_TIME:
                times = [field for field in rows.fields if field.facts.format in TIMES and field.lists == 1]
                return KeyMatch(times[0], Given(given), compared.op) if len(times) == 1 else None
            for ending in ("", *_TIME_ENDINGS):
                named = tuple(compared.attribute.split("_"))
                attribute = (*ending.split(), *named) if ending.startswith(" ") else (*named, *ending.split())
                readings = self._search.index.vocabulary.read_name(attribute, rows.nouns, given.facts)
                made = self._compared(PlanField((join(attribute),), readings, given.facts), given, compared.op, rows)
                if made is not None and (not ending or made.column.facts.format in TIMES):
                    return made
            return None
        score, column = self._search.best(given, rows.fields, sent=True)
        enough = 0.95 if given.identifies else 0.8
        return KeyMatch(column, Given(given)) if column is not None and score >= enough else None

    def _related(self, given: PlanField, listing: Listing, decisions: set[Decision]) -> KeyMatch | None:
        """Return the condition that rows refer to the thing that an input identifies."""
        for column in listing.rows.fields:
            for option in self._search.played(column, self._search.given, self._depth):
                if given.name in option.value.givens:
                    decisions |= option.decisions
                    return KeyMatch(column, option.value)
            own = column.identifies & set(listing.rows.nouns)
            if column.identifies and not own and not self._search.at_hand(column, self._search.given):
                for option in self._search.computed(column, self._search.given, self._depth - 1):
                    if given.name in option.value.givens and self._search.is_of(option.value):
                        decisions |= option.decisions
                        return KeyMatch(column, option.value)
        return None

    def _compared(self, need: PlanField, given: PlanField, op: str, rows: OutputRows) -> KeyMatch | None:
        for field in rows.fields:
            if need.meanings.isdisjoint(field.meanings):
                continue
            kinds = field.facts.kind, given.facts.kind or field.facts.kind
            if op == "contains":
                return KeyMatch(field, Given(given), op) if set(kinds) <= {"string"} else None
            times = field.facts.format in TIMES and given.facts.format in (*TIMES, "")
            if set(kinds) <= {"integer", "number"} or (set(kinds) <= {"string"} and times):
                return KeyMatch(field, Given(given), op)
        return None


_DEEDS: Final = 12
_MAKING: Final = frozenset(("ADD", "CREATE", "INSERT", "MAKE", "REGISTER"))  # verbs whose object does not exist yet
_SYNONYM: Final = 0.85
_CLASS: Final = 0.5  # verbs of one class, such as PAY and REFUND, may do different things


def deeds(search: PlanSearch, depth: int) -> tuple[list[Option], Miss | None]:
    """Return the ways to do what the proposal says within the impact that it claims, and what it lacks for the best."""
    wish = search.wish
    found: list[tuple[float, PlanOperation]] = []
    beyond: PlanOperation | None = None
    elsewhere: PlanOperation | None = None
    for operation in search.index.operations:
        if not operation.impact or not search.allows(operation):
            continue
        if not _is_about(operation, search):
            elsewhere = elsewhere or (operation if operation.endpoint.method == wish.endpoint.method else None)
            continue
        search.spend()
        score = _alike(operation.endpoint.method, wish.endpoint.method)
        if operation.impact > wish.impact:
            beyond = beyond or (operation if score > _CLASS else None)
        elif score:
            found.append((score, operation))
    ranked = sorted(found, key=lambda one: (-one[0], one[1].impact, len(one[1].required), one[1].number))
    options = []
    for score, operation in ranked[:_DEEDS]:
        doubt = "" if score > _CLASS else f"Is {operation.endpoint.method} what {wish.endpoint.method} means?"
        verb = frozenset((Decision(f"verb {operation.number}", score, 2 * (1 - score), doubt),))
        ways = [way for way in search.call(operation, search.given, depth) if not _makes_known(operation, way)]
        options += [Option(way.value, way.decisions | verb) for way in ways]
    if beyond is not None and (not ranked or ranked[0][0] < 1):
        reason = f"`{beyond.endpoint}` is {beyond.endpoint.semantic.impact}; the proposal claims less."
        return options, Miss(field="semantic.impact", reason=reason, nearest=beyond.endpoint)
    if ranked:
        nearest = ranked[0][1]
        lacking = [field for field in nearest.required if not search.at_hand(field, search.given, nearest)]
        if options and not lacking:
            return options, None
        names = ", ".join(f"`{field.name}`" for field in lacking) or "its inputs"
        return options, Miss(field="input", reason=f"`{nearest.endpoint}` needs {names}.", nearest=nearest.endpoint)
    if not wish.impact:
        reason = f"{wish.endpoint.method} changes something, but the proposal claims that it is informational."
        return [], Miss(field="semantic.impact", reason=reason)
    reason = f"No usable endpoint does {wish.endpoint.method} to a {wish.noun}."
    return [], Miss(field=wish.endpoint.path, reason=reason, nearest=elsewhere.endpoint if elsewhere else None)


def _makes_known(operation: PlanOperation, way: Option) -> bool:
    """Return True if something is to be created that was looked up before: another thing is meant."""
    assert isinstance(way.value, CallResult)
    own = [value for field, value in way.value.call.bindings if operation.resource.noun in field.identifies]
    return operation.endpoint.method in _MAKING and any(value.calls for value in own)


def _is_about(operation: PlanOperation, search: PlanSearch) -> bool:
    """Return True if an operation acts on the noun of the proposal, and on no part of another thing."""
    wish = search.wish
    own, parent = operation.resource.noun, operation.resource.parent
    if own != wish.noun and own not in other_names(wish.noun):
        # A seat is booked with its flight if the flight is told which; an assignment of a policy is another thing.
        last = wish.resource.literals[-1].stems if wish.resource.literals else ()
        told = {word for field in operation.inputs for word in field.stems}
        whole = search.index.vocabulary.knows(join(last))
        if whole or not any(own == join(last[:at]) and told.issuperset(last[at:]) for at in range(1, len(last))):
            return False
    return not (parent and wish.resource.parent) or parent in wish.path_terms


def _alike(verb: str, wanted: str) -> float:
    verb, wanted = verb.lower(), wanted.lower()
    if verb == wanted:
        return 1.0
    if meanings().synonymous(verb, wanted):
        return _SYNONYM
    one, other = operation_classes(verb), operation_classes(wanted)
    return _CLASS if one is not None and other is not None and one.main == other.main else 0.0


_COUNTED: Final = 12  # wanted fields by which the nearest endpoint is chosen


def nearest(search: PlanSearch, fields: tuple[PlanField, ...], text: str) -> Miss:
    """Return why the first of the fields that no operation can supply is missing."""
    for field in fields:
        if search.providers(field):
            continue
        operation, is_meant = _closest(search, field)
        reason = f"No usable endpoint yields `{field.name}`" + (f" of a {_noun(field)}." if _noun(field) else ".")
        if operation is not None and is_meant:
            reason = f"`{operation.endpoint}` yields `{field.name}`, but of another type."
        return Miss(field=field.text, reason=reason, nearest=None if operation is None else operation.endpoint)
    for field in fields:
        for _, operation, _ in search.providers(field)[:1]:
            lacking = [one.name for one in operation.required if not search.at_hand(one, search.given, operation)]
            reason = "It cannot be combined with the rest."
            if lacking:
                reason = f"`{operation.endpoint}` yields it, but needs {', '.join(f'`{name}`' for name in lacking)}."
            return Miss(field=text, reason=reason, nearest=operation.endpoint)
    return Miss(field=text, reason="No usable endpoint yields it.")


def _noun(field: PlanField) -> str:
    return field.readings[0].noun.replace("_", " ") if field.readings else ""


def _closest(search: PlanSearch, field: PlanField) -> tuple[PlanOperation | None, bool]:
    """Return the closest operation that yields a field of this name, and whether it means the same."""
    meant = [operation for reading in field.readings for operation, _ in search.index.yielding.get(reading, ())]
    meant = [operation for operation in meant if not operation.impact and search.allows(operation)]
    named = [operation for reading in field.readings for operation in search.index.near.get(reading.attribute, ())]
    wanted = [one.attributes for one in search.wish.wanted[:_COUNTED]]

    def closeness(operation: PlanOperation) -> tuple[bool, int, int]:
        yielded = sum(not operation.attributes.isdisjoint(attributes) for attributes in wanted)
        return operation.resource.noun == search.wish.noun, yielded, -operation.number

    near = meant or [operation for operation in named if search.allows(operation)]
    return max(near, key=closeness, default=None), bool(meant)

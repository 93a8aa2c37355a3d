"""Search: backwards from what is needed to calls whose inputs are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from typing import Any, Final

from bespeak.extensions.negotiation.planner.draft import (
    CallResult,
    Decision,
    Fixed,
    Given,
    KeyMatch,
    Option,
    Pick,
    PlannedCall,
    RowValue,
    Value,
    Wish,
)
from bespeak.extensions.negotiation.planner.operation import (
    SORTS,
    OperationIndex,
    OutputRows,
    PlanField,
    PlanOperation,
    Usable,
    alternatives,
    likeness,
)
from bespeak.extensions.negotiation.planner.slot import MISSING, Facts, fit
from bespeak.extensions.negotiation.planner.vocabulary import SEARCHES, SHARED, NounReading
from bespeak.text.language.names import LIMITS, with_article

_PROVIDERS: Final = 24  # most operations that are tried for one value
_KEPT: Final = 4  # most ways to get one value that are kept
_COMBINED: Final = 4  # inputs of a call above which only the best way to get each is kept
_CLOSE: Final = 0.8  # likeness from which a given value is used for an input
_SAME: Final = 0.95  # likeness from which two ids are compared
_CONVERTED: Final = 0.99  # quality of a key that is converted: it loses nothing
_OTHER_TEXT: Final = 0.55  # quality of a search for the name of another noun than the one that is listed


class Exhausted(Exception):
    """The search ended at its bound. What was found before is as good as ever, unless the clock ended it."""

    def __init__(self, *, by_clock: bool) -> None:
        super().__init__()
        self.by_clock = by_clock


class PlanScope:
    """The values at hand: those given, and the columns of a row if calls are made for each row."""

    def __init__(self, values: Iterable[tuple[PlanField, Value]]) -> None:
        self.values = tuple(values)
        self._places: dict[object, list[int]] = {}  # places of values by all that a need may find them by
        for place, (field, _) in enumerate(self.values):
            for name in (*field.attributes, field.stems, field.comparison):
                self._places.setdefault(name, []).append(place)

    def near(self, need: PlanField, *, is_searched: bool) -> list[tuple[PlanField, Value]]:
        """Return the values that may be what is needed; whatever is left out cannot be."""
        if is_searched or need.term in SORTS:
            return list(self.values)
        names = (*need.attributes, need.stems, *([need.comparison] if need.comparison else []))
        places = {place for name in names for place in self._places.get(name, ())}
        return [self.values[place] for place in sorted(places)]


class PlanSearch:
    """The search for one proposal. It is bounded by expansions, which are the same on every machine."""

    def __init__(
        self, index: OperationIndex, wish: Wish, usable: Usable, expansions: int, stop: Callable[[], bool]
    ) -> None:
        self.index = index
        self.wish = wish
        self.given = PlanScope((field, Given(field)) for field in wish.givens)
        self._usable = usable
        # Things whose id is given: no other way leads to the same one, although its type may not fit.
        self._told = frozenset[str]().union(*(field.identifies for field in wish.givens if field.is_id))
        self.left = expansions
        self.depth = 0  # longest chain of calls that is tried at the moment
        self._asked = 0
        self._stop = stop
        self._calls: dict[tuple[int, tuple[tuple[str, int], ...]], PlannedCall] = {}
        self._values: list[Value] = []
        self._memo: dict[Any, list[Option]] = {}
        self._providers: dict[Any, list[tuple[float, PlanOperation, PlanField]]] = {}
        self._may: dict[int, bool] = {}
        self._rows: dict[OutputRows, PlanScope] = {}
        self._named: dict[int, int] = {}

    def row_scope(self, rows: OutputRows) -> PlanScope:
        """Return the scope of calls that are made for each row: its columns before what is given."""
        if rows not in self._rows:
            columns = [(field, RowValue(field)) for field in rows.fields if not field.inner]
            self._rows[rows] = PlanScope([*columns, *self.given.values])
        return self._rows[rows]

    def spend(self, compared: int = 0) -> None:
        """Count one expansion, and one more for every 64 fields that it compares."""
        self.left -= 1 + compared // 64
        self._asked += 1
        if self.left < 0:
            raise Exhausted(by_clock=False)
        if self._asked % 16 == 0 and self._stop():
            raise Exhausted(by_clock=True)

    def allows(self, operation: PlanOperation) -> bool:
        """Return True if an operation may be a step: the caller may use it, and it is not a view that nobody named."""
        known = self._may.get(operation.number)
        if known is None:
            view = operation.resource.view
            known = self._usable(operation.endpoint) and (not view or view in self.wish.views)
            self._may[operation.number] = known
        return known

    def providers(self, need: PlanField) -> list[tuple[float, PlanOperation, PlanField]]:
        """Return the operations that yield a value, best first; those that change something never do."""
        asked = need.readings, need.facts.kind, need.facts.format, need.facts.values, need.is_wanted, need.path[-2:]
        if asked in self._providers:
            return self._providers[asked]
        found: dict[tuple[int, str], tuple[float, PlanOperation, PlanField]] = {}
        for reading in alternatives(need, self.index.vocabulary):
            for operation, field in self.index.yielding.get(reading, ()):
                key = operation.number, field.text
                if operation.impact or key in found or not self.allows(operation):
                    continue
                self.spend()
                score = self.score(need, field)
                if score:
                    found[key] = score, operation, field
        self._providers[asked] = sorted(found.values(), key=lambda one: self._order(need, *one))[:_PROVIDERS]
        return self._providers[asked]

    def _order(
        self, need: PlanField, score: float, operation: PlanOperation, field: PlanField
    ) -> tuple[float, int, int, int, bool, str]:
        named = self._named.get(operation.number)
        if named is None:
            named = sum(1 if segment.term in self.wish.said else -1 for segment in operation.resource.literals)
            self._named[operation.number] = named
        elsewhere = field.path[-2:] != need.path[-2:]
        return -2 * score - named, field.lists, len(operation.required), operation.number, elsewhere, field.text

    def score(self, need: PlanField, have: PlanField, *, sent: bool = False) -> float:
        """Judge whether a field may stand for another: by name and noun, and by everything its schema says."""
        alike = likeness(need, have, self.index.vocabulary)
        return alike * match_facts(need, have, sent=sent) if alike else 0.0

    def best(
        self, need: PlanField, fields: Iterable[PlanField], *, sent: bool = False
    ) -> tuple[float, PlanField | None]:
        """Return the field that fits best, with its score; of equal ones that in a container of the same name."""
        best, found = (0.0, False), None
        for field in fields:
            score = self.score(need, field, sent=sent)
            if score and (score, field.path[-2:] == need.path[-2:]) > best:
                best, found = (score, field.path[-2:] == need.path[-2:]), field
        return best[0], found

    def value(self, need: PlanField, scope: PlanScope, depth: int) -> list[Option]:
        return self.at_hand(need, scope) or self.computed(need, scope, depth)

    def computed(self, need: PlanField, scope: PlanScope, depth: int) -> list[Option]:
        if depth <= 0 or not need.identifies.isdisjoint(self._told):
            return []
        key = (need.readings, need.facts.kind, id(scope), depth)
        if key in self._memo:
            return self._memo[key]
        found: list[Option] = []
        vocabulary = self.index.vocabulary
        for score, operation, field in self.providers(need):
            # An operation that needs what it should give is of no use.
            is_echo = not need.meanings.isdisjoint(operation.asked_for) and any(
                likeness(need, one, vocabulary) == 1.0 for one in operation.required
            )
            if field.lists > 1 or is_echo:
                continue
            self.spend()
            about = f"{need.text} from {operation.number} {field.text}"
            own = frozenset((Decision(about, score, 2 * (1 - score)),)) if score < 1 else frozenset[Decision]()
            noun = operation.nouns_of(field)[0] if len(operation.lists) > 1 else ""  # what it is told to list
            for called in self.call(operation, scope, depth - 1, noun):
                for value, picked in self.picks(called, field, scope, depth - 1):
                    found.append(Option(value, called.decisions | own | picked))
        found += self._followed(need, scope, depth)
        self._memo[key] = self._best(found)
        return self._memo[key]

    def _followed(self, need: PlanField, scope: PlanScope, depth: int) -> list[Option]:
        """Return ways to look up what plays a role, by the key that names the role: the manager by `manager_id`."""
        found: list[Option] = []
        for role, attribute in need.roles:
            for operation in self.index.roles.get(role, ()) if attribute != "id" else ():
                noun, (key, *_) = operation.resource.noun, operation.required
                own = replace(need, readings=(NounReading(noun, attribute),))
                score, field = self.best(own, (one for one in operation.outputs if not one.lists))
                if field is None or not self.allows(operation):
                    continue
                named = PlanField((f"{role}_id",), (NounReading(role, "id"),), key.facts)
                for option in self.value(named, scope, depth - 1):
                    self.spend()
                    asked = f"`{operation.endpoint}` would be asked for the id of the {role}."
                    doubt = f"Is the {role} {with_article(noun)}? {asked}"
                    about = Decision(f"role {role} {operation.number}", 0.6 * score, 1.0, doubt)
                    value = CallResult(self._make(operation, [(key, option.value)]), field)
                    found.append(Option(value, option.decisions | {about}))
        return found

    def played(self, column: PlanField, scope: PlanScope, depth: int) -> list[Option]:
        """Return ways to have the key of what may play the role that a column names: an agent for `assignee_id`."""
        found: list[Option] = []
        for role in sorted(column.identifies):
            for operation in self.index.roles.get(role, ()):
                noun = operation.resource.noun
                if not self.allows(operation) or role in operation.identified:
                    continue  # it has the role beside it, so that it is not the role: the workspace of a task
                need = PlanField((f"{noun}_id",), (NounReading(noun, "id"),), column.facts)
                doubt = Decision(f"role {role} {operation.number}", 0.6, 1.0, f"Is the {role} meant by the {noun}?")
                options = self.at_hand(need, scope) or self.computed(need, scope, depth - 1)
                found += [Option(one.value, one.decisions | {doubt}) for one in options]
        return found

    def at_hand(self, need: PlanField, scope: PlanScope, searched: PlanOperation | None = None) -> list[Option]:
        key = (need, id(scope))
        if key in self._memo:
            return self._memo[key]
        found: list[tuple[float, bool, Option]] = []
        is_searched = searched is not None and need.term in SEARCHES
        for field, value in scope.near(need, is_searched=is_searched):
            score = self._sent(need, field, searched)
            if score >= _CLOSE * 0.9:
                about = f"{need.text} of {searched.number if searched else ''} is {field.text}"
                decisions = frozenset((Decision(about, score, 2 * (1 - score)),)) if score < 1 else frozenset()
                option = Option(value, decisions)
                found.append((-option.quality, field.name != need.name, option))
        self._memo[key] = [option for *_, option in sorted(found, key=lambda one: one[:2])]
        return self._memo[key]

    def _sent(self, need: PlanField, have: PlanField, operation: PlanOperation | None) -> float:
        if need.comparison or have.comparison:
            alike = need.comparison == have.comparison and bool(need.nouns & have.nouns)
            return match_facts(need, have, sent=True) if alike else 0.0
        score = self.score(need, have, sent=True)
        if not score and {need.term, have.term} <= SORTS:
            values = have.facts.values
            return 1.0 if values is not None and values <= (need.facts.values or frozenset()) else 0.0
        if score or need.identifies or have.identifies:
            return score
        if need.stems == have.stems and len(need.stems) > 1:
            return 0.98 * match_facts(need, have, sent=True)
        if operation is not None and need.term in SEARCHES and have.facts.kind in ("string", ""):
            return match_facts(need, have, sent=True) if have.texts else 0.0
        return 0.0

    def searched(self, call: PlannedCall, rows: OutputRows) -> frozenset[Decision]:
        """Return a doubt if a list is searched for the name of something else."""
        for field, value in call.bindings:
            if field.term in SEARCHES and isinstance(value, Given) and not value.field.texts & set(rows.nouns):
                doubt = f"Is `{value.field.name}` something to search {rows.text} for?"
                return frozenset((Decision(f"searched {call.number}", _OTHER_TEXT, 2.5, doubt),))
        return frozenset()

    def _best(self, options: list[Option]) -> list[Option]:
        """Keep the cheapest ways, and the best for each set of words of the path that their calls deal with."""
        ranked = sorted(options, key=lambda option: (option.cost - self.covered(option.value.calls), -option.quality))
        kept = ranked[:2]
        seen = {self._words(option.value.calls) for option in kept}
        for option in ranked[2:]:
            words = self._words(option.value.calls)
            if words not in seen and len(kept) < _KEPT:
                seen.add(words)
                kept.append(option)
        return kept

    def covered(self, calls: frozenset[PlannedCall]) -> float:
        """Return how much cheaper calls are because the proposal names their segments."""
        return min(0.9, 0.45 * len(self._words(calls)))

    def _words(self, calls: frozenset[PlannedCall]) -> frozenset[str]:
        said = self.wish.said
        return frozenset(s.term for call in calls for s in call.operation.resource.literals if s.term in said)

    def call(self, operation: PlanOperation, scope: PlanScope, depth: int, noun: str = "") -> list[Option]:
        """Return the ways to call an operation, cheapest first; the value of each is a Result of the whole output."""
        key = (operation.number, id(scope), depth, noun)
        if key not in self._memo:
            self._memo[key] = []  # a call that needs itself has no way
            self._memo[key] = self._called(operation, scope, depth, noun)
        return self._memo[key]

    def _called(self, operation: PlanOperation, scope: PlanScope, depth: int, noun: str) -> list[Option]:
        ways: list[list[Option]] = []
        for field in operation.required:
            self.spend()
            way = self.at_hand(field, scope, operation) or self._supplied(field, scope, depth, noun)
            if not way:
                return []
            most = _KEPT if len(operation.required) == 1 else 2 if len(operation.required) <= _COMBINED else 1
            ways.append(way[:most])
        found = []
        for chosen in product(*ways):
            self.spend()
            bound = list(zip(operation.required, chosen, strict=True))
            values = [id(option.value) for option in chosen if not isinstance(option.value, Fixed)]
            if len(set(values)) == len(values):
                found.append(self._filled(operation, bound, scope))
                if depth >= self.depth - 1:  # a call for what is wanted, not one that supplies another
                    found += self._related(operation, bound, found[-1], scope, depth)
        return self._best(found)

    def _filled(self, operation: PlanOperation, bound: list[tuple[PlanField, Option]], scope: PlanScope) -> Option:
        """Complete a call by the optional inputs that a value at hand is meant for: filters work best at the source."""
        bound = list(bound)
        used = {id(option.value) for _, option in bound}
        told = frozenset[str]().union(*(option.value.givens for _, option in bound))
        for field in operation.inputs:
            if not field.required and all(field is not other for other, _ in bound):
                for option in self.at_hand(field, scope, operation):
                    if field.term in SEARCHES and option.value.givens <= told:
                        continue  # it was looked up by what one would search for
                    if option.quality >= _CLOSE and id(option.value) not in used:
                        bound.append((field, option))
                        used.add(id(option.value))
                        break
        call = self._make(operation, [(field, option.value) for field, option in bound])
        decisions = frozenset[Decision]().union(*(option.decisions for _, option in bound))
        return Option(CallResult(call, WHOLE), decisions)

    def _related(
        self,
        operation: PlanOperation,
        bound: list[tuple[PlanField, Option]],
        filled: Option,
        scope: PlanScope,
        depth: int,
    ) -> list[Option]:
        """Return the call with one more optional key, looked up by inputs that the call does not use yet."""
        assert isinstance(filled.value, CallResult)
        told = (value.givens for field, value in filled.value.call.bindings if field.term not in SEARCHES)
        used = frozenset[str]().union(*told)
        taken = {field.name for field, _ in filled.value.call.bindings}
        if all(field.name in used for field in self.wish.givens):
            return []
        for field in operation.inputs:
            is_free = field.identifies and not field.required and field.name not in taken
            if is_free and not self.at_hand(field, self.given, operation):
                options = [one for one in self.computed(field, scope, depth) if self.is_of(one.value)]
                for option in options or self.played(field, scope, depth):
                    if option.value.givens - used:
                        return [self._filled(operation, [*bound, (field, option)], scope)]
        return []

    def is_of(self, value: Value) -> bool:
        """Return True if a value is the id of what it was read from or of a thing in the path, not of a third thing."""
        nouns = value.field.identifies if isinstance(value, CallResult) else frozenset[str]()
        return not nouns.isdisjoint(self.wish.path_terms) or _is_own(value, nouns)

    def _supplied(self, field: PlanField, scope: PlanScope, depth: int, noun: str) -> list[Option]:
        """Return ways to supply a required input that is not given: a constant, or a value that is looked up."""
        fixed = field.facts.constant
        if fixed is not MISSING:
            return [Option(Fixed(fixed), frozenset((Decision(f"{field.name} fixed", 1.0, 0.1),)))]
        for _, value in sorted(field.facts.values or (), key=repr):
            if isinstance(value, str) and value == noun:
                return [Option(Fixed(value), frozenset((Decision(f"{field.name} {value}", 0.97, 0.1),)))]
        if not field.tells:
            return []
        return [*self.played(field, scope, depth)[:1], *self.computed(field, scope, depth)]

    def _make(self, operation: PlanOperation, bindings: list[tuple[PlanField, Value]]) -> PlannedCall:
        key = operation.number, tuple((field.name, id(value)) for field, value in bindings)
        if key not in self._calls:
            self._values += [value for _, value in bindings]  # kept alive, so that their ids stay theirs
            self._calls[key] = PlannedCall(len(self._calls), operation, tuple(bindings))
        return self._calls[key]

    def unlimited(self, call: PlannedCall) -> PlannedCall:
        """Return a call without its limit, for rows that are filtered or sorted before they are cut."""
        kept = [(field, value) for field, value in call.bindings if field.term not in LIMITS]
        return call if len(kept) == len(call.bindings) else self._make(call.operation, kept)

    def picks(
        self, called: Option, field: PlanField, scope: PlanScope, depth: int
    ) -> list[tuple[CallResult, frozenset[Decision]]]:
        """Return the values of a field in what a call returned: itself, or one of a list."""
        assert isinstance(called.value, CallResult)
        call, operation = called.value.call, called.value.call.operation
        if not field.lists:
            return [(CallResult(call, field), frozenset())]
        rows = next(rows for rows in operation.lists if rows.path == field.rows)
        about = f"{operation.number} {rows.dotted}"
        other = self.searched(call, rows)
        keyed = [(one, value) for one, value in call.bindings if value.givens or value.calls]
        # An optional text, or one of a row, is not a key.
        searched = [one for one, by in keyed if one.term in SEARCHES and isinstance(by, Given) and by.field.required]
        paged = 1.0 if searched else 0.9 if operation.pages else 0.6 if operation.is_partial else 1.0
        unread = f"`{operation.endpoint}` is paged and may not show every element." if paged < 0.9 else ""
        for column, option, certain in self._keys(rows, field, scope, depth):
            cost = 0.4 + (0.8 if paged < 1 else 0)
            decision = Decision(f"where {about} {column.text}", certain * paged, cost, unread)
            pick = Pick((KeyMatch(column, option.value),))
            return [(CallResult(call, field, pick), option.decisions | {decision} | other)]
        if searched:
            decision = Decision(f"first {about}", 0.9, 0.3, "")
        elif operation.resource.is_collection and any(
            one.tells & set(rows.nouns) and not one.is_in_path
            for one, _ in keyed  # in a path it is that of the parent
        ):
            return [(CallResult(call, field, Pick()), frozenset((Decision(f"only {about}", 0.93, 0.3),)))]
        elif operation.resource.view:
            decision = Decision(f"first {about}", 0.8, 0.3)
        else:
            doubt = f"Which of the {rows.text} of `{operation.endpoint}`? Give a key of it."
            decision = Decision(f"first {about}", 0.5, 2.5, doubt)
        return [(CallResult(call, field, Pick(is_first=True)), other | {decision})]

    def _keys(
        self, rows: OutputRows, field: PlanField, scope: PlanScope, depth: int
    ) -> list[tuple[PlanField, Option, float]]:
        """Return a column that identifies a row with the value to compare it with, ids first."""
        for column in rows.keys:
            for option in self.at_hand(column, scope):
                if isinstance(option.value, RowValue) and any(one.attribute in SHARED for one in column.readings):
                    continue
                enough = _SAME if column.identifies else _CLOSE
                if option.quality >= enough and not _is_of_another(rows, column, option):
                    return [(column, option, 0.97 if column.identifies else 0.93)]
        for column in rows.ids[:1]:
            if column is not field and depth > 0:
                found = [one for one in self.value(column, scope, depth - 1) if not _is_of_another(rows, column, one)]
                return [(column, option, 0.97) for option in found[:1]]
        return []


def _is_of_another(rows: OutputRows, column: PlanField, option: Option) -> bool:
    value = option.value
    return isinstance(value, Given | RowValue | CallResult) and rows.is_of_another(column, value.field)


def _is_own(value: Value, nouns: frozenset[str]) -> bool:
    """Return True if a value is of one of the nouns, and so is every key by which it was found."""
    if not isinstance(value, CallResult):
        return True
    keys = [one for field, one in value.call.bindings if field.tells & nouns]
    keys += [match.value for match in value.pick.matches] if value.pick is not None else []
    own = not nouns.isdisjoint(value.call.operation.nouns_of(value.field))
    return own and all(_is_own(one, nouns) for one in keys)


WHOLE: Final = PlanField(("",), (), Facts())


_FORMS: Final = {("string", "integer"): "text", ("integer", "string"): "integer", ("number", "string"): "integer"}


def form_of(need: PlanField, have: PlanField) -> str:
    """Return the form that a key must be converted to; empty if none is needed, or none would help."""
    kinds = need.facts.kind, have.facts.kind
    keys = (need.is_id and have.is_id) or (need.is_in_path and have.is_in_path and need.term == have.term)
    if not keys or need.is_wanted or need.facts.values is not None or need.is_uuid or have.is_uuid:
        return ""
    return _FORMS.get(kinds, "")


def match_facts(need: PlanField, have: PlanField, *, sent: bool = False) -> float:
    """Judge types, formats and values; of lists also those of the elements, of objects those of the members."""
    quality = fit(need.facts, have.facts, sent=sent) or (_CONVERTED if form_of(need, have) else 0.0)
    if quality and need.item is not None and have.item is not None:
        quality *= fit(need.item, have.item, sent=sent)
    if quality and need.inner:
        members = {field.path: field for field in have.inner}
        for field in need.inner:
            other = members.get(field.path)
            quality *= 0.0 if other is None else fit(field.facts, other.facts, sent=sent)
    return quality

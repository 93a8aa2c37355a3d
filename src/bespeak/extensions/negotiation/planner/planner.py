"""The planner of a service: from a proposal to a plan, or to what is missing."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Any, Final, NamedTuple

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.recipe import Condition, Paging, Recipe, RecipeStep, Source, constant
from bespeak.extensions.negotiation.plan import CERTAIN, PLAUSIBLE, Impossible, Miss, Plan
from bespeak.extensions.negotiation.planner.aggregate import ordered_wish, reduced_wish
from bespeak.extensions.negotiation.planner.draft import (
    NO_OUTPUT,
    TOP_LIST,
    CallResult,
    Decision,
    Draft,
    Fixed,
    Given,
    KeyMatch,
    Listing,
    PlannedCall,
    RowValue,
    Value,
    Wish,
    find_noun,
    matches_of,
    read_wish,
)
from bespeak.extensions.negotiation.planner.guards import judge
from bespeak.extensions.negotiation.planner.operation import OperationIndex, PlanField, Usable
from bespeak.extensions.negotiation.planner.search import Exhausted, PlanSearch, form_of
from bespeak.extensions.negotiation.planner.slot import ITEM
from bespeak.extensions.negotiation.planner.strategies import ListingSearch, SingleSearch, State, deeds, nearest
from bespeak.text.language.names import LIMITS, join, plural, stems, with_article


class FanOut(NamedTuple):
    """What holds for calls that are made for each row: how many at most, and what a failed one does."""

    most: int = 100
    on_failure: str = "fail"  # or `skip`, so that the row is left out

    @property
    def policy(self) -> str:
        return "if one fails, all fail" if self.on_failure == "fail" else "rows that fail are left out"


class _RecipeWriter:
    def __init__(self, draft: Draft, fan_out: FanOut) -> None:
        self._draft = draft
        self._fan_out = fan_out
        plain = [call for call in draft.calls if not call.is_per_row]
        after = [call for call in plain if draft.deed is not None and draft.deed in call.before]
        ordered = [call for call in plain if call is not draft.deed and call not in after]
        ordered += [draft.deed] if draft.deed is not None else []
        self._order = [*ordered, *after]
        self._rows: dict[PlannedCall, tuple[Listing, int]] = {}  # calls for each row: their list and place among its
        for listing in draft.listings:
            walked = [call for call in draft.calls if call.is_per_row and call in listing.calls]
            for place, call in enumerate(walked):
                self._rows[call] = listing, place
            self._order += walked
        self._names = {call: f"step_{number}" for number, call in enumerate(self._order, 1)}

    def write(self, proposal: Endpoint) -> tuple[Recipe, tuple[PlannedCall, ...]]:
        steps = tuple(self._step(call) for call in self._order)
        output: dict[str, Any] = {}
        for field, value in self._draft.singles:
            _put(output, field.path, self._source(value, None))
        for listing in self._draft.listings:
            for path, source in self._made(listing):
                _put(output, path, source)
        digest = hashlib.sha256(f"{proposal.method} {proposal.path}".encode()).hexdigest()[:12]
        recipe = Recipe(
            name=f"{proposal.method.lower()}-{digest}",
            steps=steps,
            description=proposal.description,
            output={name: _close(value) for name, value in output.items()},
        )
        return recipe, tuple(self._order)

    def _step(self, call: PlannedCall) -> RecipeStep:
        operation = call.operation
        walked = self._rows.get(call)
        depth = None if walked is None else walked[1]
        return RecipeStep(
            method=operation.endpoint.method,
            path=operation.endpoint.path,
            input={field.name: self._source(value, depth, field) for field, value in call.bindings},
            output=self._names[call],
            for_each=None if walked is None else self._walk(*walked),
            max_items=self._fan_out.most,
            on_failure="fail" if walked is None else self._fan_out.on_failure,
            pages=self._pages(call),
        )

    def _pages(self, call: PlannedCall) -> Paging | None:
        """Follow the pages of a list that is used as a whole."""
        pages = call.operation.pages
        if pages is None or any(field.name == pages.parameter for field, _ in call.bindings):
            return None
        listed = [listing for listing in self._draft.listings if listing.call is call]
        limited = any(field.term in LIMITS for field, _ in call.bindings)
        # Rows that are filtered, sorted or cut here must all be known.
        asked = limited and any(not (one.filters or one.sort or one.limit or one.table.way) for one in listed)
        results = (value for value in self._draft.values if isinstance(value, CallResult) and value.call is call)
        return pages if (listed and not asked) or any(map(matches_of, results)) else None

    def _walk(self, listing: Listing, place: int) -> Source:
        """Return the list that a step walks: the rows, or what the step before it made of them."""
        if place == 0:
            return self._kept(listing)
        before = next(call for call, found in self._rows.items() if found == (listing, place - 1))
        return Source(kind="previous_step", value=self._names[before])

    def _kept(self, listing: Listing, select: dict[str, Source] | None = None) -> Source:
        return Source(
            kind="previous_step",
            value=_joined(f"{self._names[listing.call]}.", listing.rows.dotted),
            where=self._conditions(listing.filters, None),
            sort=_order(listing.sort),
            limit=None if listing.limit is None else Source(kind="proposal", value=listing.limit.name),
            select=select,
        )

    def _made(self, listing: Listing) -> Iterator[tuple[tuple[str, ...], Source]]:
        """Yield what is made of a list, each with its path in the output."""
        if not listing.table.way:
            yield listing.table.path, self._listed(listing)
            return
        rows, columns = self._kept(listing), dict(listing.columns)
        for field, way, column in listing.table.reduced or ((one, "", one) for one in listing.table.columns):
            value = columns[column] if column is not None else None
            get = value.field.column if isinstance(value, RowValue) else ""
            yield field.path, replace(rows, get=get, reduce=way, pick="all" if way else "first")

    def _listed(self, listing: Listing) -> Source:
        walked = [call for call, found in self._rows.items() if found[0] is listing]
        members: dict[str, Any] = {}
        for field, value in listing.columns:
            _put(members, field.path[len(listing.table.path) + 1 :], self._source(value, len(walked)))
        select = {name: _close(value) for name, value in members.items()}
        if not walked:
            return self._kept(listing, select)
        return Source(kind="previous_step", value=self._names[walked[-1]], select=select)

    def _source(self, value: Value, depth: int | None, need: PlanField | None = None) -> Source:
        """Write a value for a need; `depth` is how many steps have already walked the rows."""
        form = _form(value, need)
        if form:
            return replace(self._source(value, depth), form=form)
        if isinstance(value, Given):
            return Source(kind="proposal", value=value.field.name)
        if isinstance(value, Fixed):
            return constant(value.value)
        if isinstance(value, RowValue):
            return _item(_joined("item." * (depth or 0), value.field.column))
        assert isinstance(value, CallResult)
        if value.call in self._rows:
            inside = "item." * ((depth or 0) - self._rows[value.call][1] - 1)
            return self._picked(value, Source(kind="item", value=f"{inside}output"), depth)
        return self._picked(value, Source(kind="previous_step", value=self._names[value.call]), depth)

    def _picked(self, value: CallResult, start: Source, depth: int | None) -> Source:
        field = value.field
        if value.pick is None:
            return Source(kind=start.kind, value=_joined(f"{start.value}.", field.dotted))
        rows = ".".join(name for name in field.rows if name not in ("", ITEM))
        return Source(
            kind=start.kind,
            value=_joined(f"{start.value}.", rows),
            where=self._conditions(value.pick.matches, depth),
            pick="first" if value.pick.is_first else "only",
            get=field.column,
        )

    def _conditions(self, matches: Iterable[KeyMatch], depth: int | None) -> tuple[Condition, ...]:
        return tuple(
            Condition(left=_item(one.column.column), op=one.op, right=self._source(one.value, depth, one.column))
            for one in matches
        )


def _form(value: Value, need: PlanField | None) -> str:
    """Return the form that a value must be converted to for a need; empty if it is right as it is."""
    if need is None or not isinstance(value, Given | RowValue | CallResult):
        return ""
    return form_of(need, value.field)


def _order(by: PlanField | str | None) -> Source | None:
    if by is None or isinstance(by, str):
        return None if by is None else constant(by)
    return Source(kind="proposal", value=by.name)


def _item(path: str) -> Source:
    return Source(kind="item", value=path)


def _joined(start: str, path: str) -> str:
    return f"{start}{path}".rstrip(".")


def _put(tree: dict[str, Any], path: tuple[str, ...], source: Source) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = source


def _close(value: Any) -> Source:
    """Make an object of sources into one source."""
    if isinstance(value, Source):
        return value
    return Source(kind="constant", value={}, select={name: _close(inner) for name, inner in value.items()})


_COMPARED: Final = {"eq": "equals", "lt": "is below", "lte": "is at most", "gt": "is above", "gte": "is at least"}


def explain(draft: Draft, calls: tuple[PlannedCall, ...], fan_out: FanOut) -> tuple[str, ...]:
    """Return a sentence for each step, and one for what is made of the results."""
    numbers = {call: number for number, call in enumerate(calls, 1)}
    found = []
    for number, call in enumerate(calls, 1):
        inputs = [f"{field.name} = {_value(value, numbers, field)}" for field, value in call.bindings]
        each = f" for each row, of at most {fan_out.most} ({fan_out.policy})" if call.is_per_row else ""
        sent = f" with {', '.join(inputs)}" if inputs else ""
        found.append(f"Step {number}: call {call.operation.endpoint}{each}{sent}.")
    found += [_listing(listing, numbers) for listing in draft.listings]
    if draft.singles:
        parts = [f"{field.text} = {_value(value, numbers)}" for field, value in draft.singles]
        found.append(f"Result: {'; '.join(parts)}.")
    return tuple(found)


def _listing(listing: Listing, numbers: dict[PlannedCall, int]) -> str:
    rows = f"the {listing.rows.text} of step {numbers[listing.call]}"
    kept = _where(listing.filters, numbers)
    by = listing.sort if isinstance(listing.sort, str) else f"the input {listing.sort.name}" if listing.sort else ""
    order = f", sorted by {by}" if by else ""
    most = f", at most {listing.limit.name} of them" if listing.limit else ""
    columns = [f"{field.name} = {_value(value, numbers)}" for field, value in listing.columns]
    if listing.table.reduced:
        made = (
            f"{field.name} = the {way}{f' of {column.name}' if column else ''}"
            for field, way, column in listing.table.reduced
        )
        return f"Result: {'; '.join(made)} of {rows}{kept}."
    if listing.table.way:
        return f"Result: the first of {rows}{kept}{order}, with {'; '.join(columns)}."
    return f"Result: {listing.table.text} are {rows}{kept}{order}{most}, each with {'; '.join(columns)}."


def _value(value: Value, numbers: dict[PlannedCall, int], need: PlanField | None = None) -> str:
    form = _form(value, need)
    if form:
        return f"{_value(value, numbers)} as {with_article(form)}"
    if isinstance(value, Given):
        return f"the input {value.field.name}"
    if isinstance(value, Fixed):
        return f"the constant {value.value!r}"
    if isinstance(value, RowValue):
        return f"{value.field.column} of the row"
    assert isinstance(value, CallResult)
    where = ""
    if value.pick is not None:
        other = " (the first)" if value.pick.is_first else " (the only one)"
        where = _where(value.pick.matches, numbers) or other
    return f"{value.field.dotted} of step {numbers[value.call]}{where}"


def _where(matches: Iterable[KeyMatch], numbers: dict[PlannedCall, int]) -> str:
    parts = [
        f"{one.column.column} {_COMPARED.get(one.op, one.op)} {_value(one.value, numbers, one.column)}"
        for one in matches
    ]
    return f" where {' and '.join(parts)}" if parts else ""


_DEPTHS: Final = (1, 2, 4)  # longest chains of calls that depend on each other, in the order in which they are tried
_STEPS: Final = 8
_COMBINATIONS: Final = 12  # most combinations of ways to make several lists
_MISSES: Final = 8
_SECONDS: Final = 2.0  # time after which a search is given up: only a safety stop, far above what the expansions take

_AT_BOUND: Final = Miss(
    field="output", reason="The search ended at its bound; propose fewer fields, or name more of them."
)
_NEAREST: Final = 4  # endpoints or names that are tried in place of what a proposal does not say
_UNSTATED: Final = 0.6  # quality of a plan whose output the proposal did not state
_NOTHING: Final = Miss(field="output", reason="No plan was found.")


@dataclass
class _Bounds:
    usable: Usable
    steps: int
    left: int  # expansions
    until: float


def _wrapped(schema: Mapping[str, Any], noun: str) -> dict[str, Any]:
    """Return the schema of an object whose field is a list; references to definitions of the list stay valid."""
    name = plural(noun or "item")
    rest = {key: value for key, value in schema.items() if key not in ("$defs", "definitions", "$schema")}
    kept = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return {"type": "object", "properties": {name: rest}, "required": [name], **kept}


class Planner:
    """Plans over a fixed set of endpoints. It may be used from several threads."""

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        fan_out: FanOut = FanOut(),  # noqa: B008
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fan_out = fan_out
        self._index = OperationIndex(endpoints)
        self._clock = clock

    def plan(
        self, proposal: Endpoint, usable: Usable = lambda _: True, *, depth: int = 10, expansions: int = 10_000
    ) -> Plan | Impossible:
        """Return the best plan of at most `depth` steps that are `usable`, or what no plan covers; always the same."""
        bounds = _Bounds(usable, min(depth, _STEPS), expansions, self._clock() + _SECONDS)
        found = self._best(proposal, bounds)
        if isinstance(found, Plan):
            return found
        for stated, doubt in self._stated(proposal, found.misses, usable):
            planned = self._best(stated, bounds)
            if isinstance(planned, Plan):
                doubts = (doubt, *planned.doubts)
                quality = min(planned.quality, _UNSTATED)
                return replace(planned, quality=quality, doubts=doubts, output=stated.output_schema)
        return replace(found, misses=tuple(self._advised(proposal, miss, bounds) for miss in found.misses))

    def _best(self, proposal: Endpoint, bounds: _Bounds) -> Plan | Impossible:
        best: Plan | Impossible | None = None
        for wish in self._wishes(proposal):
            if isinstance(wish, Miss):
                return best or Impossible(misses=(wish,))
            search = PlanSearch(self._index, wish, bounds.usable, bounds.left, lambda: self._clock() > bounds.until)
            planned = _PlanAttempt(search, bounds.steps, self._fan_out).run()
            bounds.left = max(search.left, 0)
            if isinstance(planned, Plan) and planned.is_certain:
                return planned
            if best is None or (isinstance(planned, Plan) and not isinstance(best, Plan)):
                best = planned
        assert best is not None
        return best

    def _stated(self, proposal: Endpoint, misses: tuple[Miss, ...], usable: Usable) -> Iterator[tuple[Endpoint, str]]:
        """Yield a proposal with the output of the nearest endpoints if it states none that can be composed."""
        noun = find_noun(proposal, self._index.vocabulary)
        if TOP_LIST in misses:
            yield replace(proposal, output_schema=_wrapped(proposal.output_schema, noun)), TOP_LIST.reason
        elif NO_OUTPUT in misses:
            near = [one for one in self._index.operations if one.resource.noun == noun and not one.impact]
            many = not proposal.path.endswith("}")
            near.sort(key=lambda one: (bool(one.lists) != many, len(one.required), one.number))
            # An output says everything about an endpoint, so that of an internal one is never offered.
            for operation in [one for one in near if usable(one.endpoint) and not one.endpoint.internal][:_NEAREST]:
                schema = operation.endpoint.output_schema
                is_list = schema.get("type") == "array"
                doubt = f"The proposal does not say which fields it wants; `{operation.endpoint}` yields these."
                yield replace(proposal, output_schema=_wrapped(schema, noun) if is_list else schema), doubt

    def _advised(self, proposal: Endpoint, miss: Miss, bounds: _Bounds) -> Miss:
        """Add to a Miss about an input a name for it with which there is a plan."""
        properties = proposal.input_schema.get("properties")
        name, term = miss.field, join(stems(miss.field))
        if not isinstance(properties, dict) or name not in properties or f"{{{name}}}" in proposal.path:
            return miss
        nouns = {reading.noun for reading in self._index.yielding if reading.attribute == term and reading.noun}
        for noun in sorted(nouns & self._index.listing.keys())[:_NEAREST]:
            other = f"{noun}_{name}"
            renamed = {other if key == name else key: value for key, value in properties.items()}
            required = [other if key == name else key for key in proposal.input_schema.get("required", ())]
            schema = {**proposal.input_schema, "properties": renamed, "required": required}
            planned = self._best(replace(proposal, input_schema=schema), bounds)
            if isinstance(planned, Plan):
                reason = (
                    f"The input `{name}` was not understood: call it `{other}`, or name the {plural(noun)} in the path."
                )
                return replace(miss, reason=reason)
        return miss

    def _wishes(self, proposal: Endpoint) -> Iterator[Wish | Miss]:
        """Yield what a proposal may mean, likelier ones first."""
        index = self._index
        wish = read_wish(proposal, index.vocabulary)
        if isinstance(wish, Miss):
            yield wish
            return
        ordered = ordered_wish(wish, index)
        if ordered is not None:
            yield ordered
        yield wish
        if wish.is_effect:
            return
        reduced = reduced_wish(wish, index)
        if reduced is not None:
            yield reduced
        if wish.resource.is_collection and len(wish.resource.nouns) > 1:
            yield read_wish(proposal, index.vocabulary, is_part=True)


class _PlanAttempt:
    def __init__(self, search: PlanSearch, most_steps: int, fan_out: FanOut) -> None:
        self._fan_out = fan_out
        self._search = search
        self._wish = search.wish
        self._depth = 0
        self._most_steps = most_steps
        self._best: Draft | None = None
        self._misses: dict[tuple[str, str], Miss] = {}

    def run(self) -> Plan | Impossible:
        """Look for short plans first, so that one of a single call never waits for what a longer one could be."""
        exhausted: Exhausted | None = None
        try:
            for depth in _DEPTHS:
                self._depth = self._search.depth = min(depth, self._most_steps)
                self._misses = {}
                for draft in self._drafts():
                    self._consider(draft)
                if self._best is not None and self._best.quality >= CERTAIN:
                    break
        except Exhausted as error:
            exhausted = error
        if exhausted is not None and (exhausted.by_clock or self._best is None):
            return Impossible(misses=(_AT_BOUND,), exhausted=True)
        if self._best is not None:
            recipe, calls = _RecipeWriter(self._best, self._fan_out).write(self._wish.endpoint)
            return Plan(
                recipe=recipe,
                endpoints=tuple(call.operation.endpoint for call in calls),
                quality=round(self._best.quality, 4),
                explanation=explain(self._best, calls, self._fan_out),
                doubts=_doubts(self._best),
            )
        return Impossible(misses=tuple(self._misses.values())[:_MISSES] or (_NOTHING,))

    def _consider(self, draft: Draft) -> None:
        judged = judge(draft, self._wish, self._search.index.vocabulary)
        if isinstance(judged, Miss):
            self._miss(judged)
        elif judged.quality < PLAUSIBLE:
            doubts = _doubts(judged) or ("The plans found are too doubtful.",)
            self._miss(Miss(field=self._wish.endpoint.path, reason=doubts[0]))
        elif self._best is None or self._rank(judged) < self._rank(self._best):
            self._best = judged

    def _rank(self, draft: Draft) -> tuple[bool, float, float]:
        """Order certain plans before doubtful ones, then cheap ones first."""
        return draft.quality < CERTAIN, draft.cost - self._search.covered(frozenset(draft.calls)), -draft.quality

    def _miss(self, miss: Miss) -> None:
        self._misses.setdefault((miss.field, miss.reason), miss)

    def _drafts(self) -> Iterator[Draft]:
        if not self._wish.is_effect:
            yield from self._completed(None, frozenset())
            return
        found, lacking = deeds(self._search, self._depth)
        if lacking is not None:
            self._miss(lacking)
        for option in found:
            assert isinstance(option.value, CallResult)
            yield from self._completed(option.value.call, option.decisions)

    def _completed(self, deed: PlannedCall | None, decided: frozenset[Decision]) -> Iterator[Draft]:
        tables: list[list[Listing]] = []
        for table in self._wish.tables:
            listings = ListingSearch(self._search, table, self._depth, deed).run()
            if not listings:
                self._miss(nearest(self._search, table.columns, table.text))
                return
            tables.append(listings)
        for chosen in islice(product(*tables), _COMBINATIONS):
            calls = frozenset[PlannedCall]().union(*(listing.calls for listing in chosen))
            decisions = decided.union(*(listing.decisions for listing in chosen))
            if deed is not None:
                calls |= deed.before | {deed}
            singles = SingleSearch(self._search, self._wish.singles, self._depth, self._most_steps)
            states = singles.run(State((), calls, decisions))
            if singles.missing is not None:
                self._miss(nearest(self._search, (singles.missing,), singles.missing.text))
            for state in states:
                weakest = min([state.weakest, *(listing.weakest for listing in chosen)])
                draft = Draft(state.values, chosen, deed, state.decisions, weakest)
                if draft.calls and len(draft.calls) <= self._most_steps:
                    yield draft


def _doubts(draft: Draft) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.doubt for one in sorted(draft.decisions) if one.doubt))

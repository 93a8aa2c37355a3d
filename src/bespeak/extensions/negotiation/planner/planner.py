"""The planner of a service: from a proposal to a plan, or to what is missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, product
from typing import Final

from bespeak.contract.endpoint import Endpoint
from bespeak.extensions.negotiation.plan import CERTAIN, PLAUSIBLE, Impossible, Miss, Plan
from bespeak.extensions.negotiation.planner.draft import CallResult, Decision, Draft, Listing, PlannedCall
from bespeak.extensions.negotiation.planner.guards import judge
from bespeak.extensions.negotiation.planner.operation import OperationIndex, Usable
from bespeak.extensions.negotiation.planner.search import Exhausted, PlanSearch
from bespeak.extensions.negotiation.planner.strategies import ListingSearch, SingleSearch, State, deeds, nearest
from bespeak.extensions.negotiation.planner.wish import read_wish
from bespeak.extensions.negotiation.planner.writing import explain, write_recipe

_DEPTHS: Final = (1, 2, 4)  # longest chains of calls that depend on each other, in the order in which they are tried
_STEPS: Final = 8
_COMBINATIONS: Final = 12  # most combinations of ways to make several lists
_MISSES: Final = 8
_SECONDS: Final = 2.0  # time after which a search is given up: only a safety stop, far above what the expansions take

_AT_BOUND: Final = Miss(
    field="output", reason="The search ended at its bound; propose fewer fields, or name more of them."
)
_NOTHING: Final = Miss(field="output", reason="No plan was found.")


class Planner:
    """Plans over a fixed set of endpoints. It may be used from several threads."""

    def __init__(self, endpoints: Iterable[Endpoint], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._index = OperationIndex(endpoints)
        self._clock = clock

    def plan(
        self, proposal: Endpoint, usable: Usable = lambda _: True, *, depth: int = 10, expansions: int = 10_000
    ) -> Plan | Impossible:
        """Return the best plan of at most `depth` steps that are `usable`, or what no plan covers; always the same."""
        until = self._clock() + _SECONDS
        found: list[Impossible] = []
        for is_part in (False, True):
            wish = read_wish(proposal, self._index.vocabulary, is_part=is_part)
            if isinstance(wish, Miss):
                return Impossible(misses=(wish,))
            search = PlanSearch(self._index, wish, usable, expansions, lambda: self._clock() > until)
            planned = _PlanAttempt(search, min(depth, _STEPS)).run()
            if isinstance(planned, Plan):
                return planned
            found.append(planned)
            expansions = search.left
            if wish.is_effect or not wish.resource.is_collection or len(wish.resource.nouns) < 2:
                break
        return found[0]


class _PlanAttempt:
    def __init__(self, search: PlanSearch, most_steps: int) -> None:
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
                self._depth = min(depth, self._most_steps)
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
            recipe, calls = write_recipe(self._best, self._wish.endpoint)
            return Plan(
                recipe=recipe,
                endpoints=tuple(call.operation.endpoint for call in calls),
                quality=round(self._best.quality, 4),
                explanation=explain(self._best, calls),
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
        cost = draft.cost - self._search.covered(frozenset(draft.calls))
        return draft.quality < CERTAIN, cost, -draft.quality

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

"""Lists of several pages: how to ask for the next one, and what all of them are together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bespeak.contract.recipe import Paging
from bespeak.runtime.composition.scope import MISSING, UnmetError, is_there
from bespeak.runtime.composition.values import follow, split_path


@dataclass(frozen=True, slots=True, eq=False)
class PagePlan:
    """How all pages of a list are read."""

    parameter: str
    cursor: tuple[str, ...]
    items: tuple[str, ...]
    most: int
    counts: str


def plan_pages(pages: Paging) -> PagePlan:
    """Plan the paging of a recipe."""
    return PagePlan(pages.parameter, split_path(pages.cursor), split_path(pages.items), pages.most, pages.counts)


@dataclass(slots=True, eq=False)
class Pages:
    """The pages of one list so far."""

    plan: PagePlan
    count: int = 0
    _first: Any = None
    _items: list[Any] = field(default_factory=list)
    _last: list[Any] = field(default_factory=list)
    _number: int = 0
    """Number of the page that was asked for last; 0 for the first one, which is asked for without a number."""

    def add(self, output: Any) -> Any:
        """Add a page; return the cursor or number of the next one, MISSING after the last.

        Raises UnmetError for too many.
        """
        plan = self.plan
        if not self.count:
            self._first = output
        self.count += 1
        found = follow(output, plan.items)
        rows = found if type(found) is list else []
        following = follow(output, plan.cursor) if plan.cursor else True
        if plan.counts:
            number = self._count(rows)
            following = number if _continues(following) else MISSING
        else:
            self._items += rows
        if not _continues(following):
            return MISSING
        if self.count == plan.most:
            raise UnmetError("too-many-pages", f"its list has more than {plan.most} pages; ask for fewer elements")
        return following

    def _count(self, rows: list[Any]) -> Any:
        """Add a page; return the number of the next one.

        An empty page is the last, and so is one that repeats the page before it: the endpoint ignores the number. But
        page 1 is the first one again where pages are counted from 1, which is found out by asking for it.
        """
        by_page = self.plan.counts == "pages"
        if self.count > 1 and rows == self._last:
            if not by_page or self._number != 1:
                return MISSING
        elif rows:
            self._items += rows
            self._last = rows
        else:
            return MISSING
        self._number = self._number + 1 if by_page else len(self._items)
        return self._number

    @property
    def output(self) -> Any:
        """The first page with the elements of all pages, and without a cursor."""
        first = _replaced(self._first, self.plan.cursor, MISSING) if self.plan.cursor else self._first
        return _replaced(first, self.plan.items, self._items)


def _continues(cursor: Any) -> bool:
    return is_there(cursor) and cursor is not False and cursor != ""


def _replaced(value: Any, names: tuple[str, ...], new: Any) -> Any:
    if not names:
        return new
    if type(value) is not dict:
        return value
    kept = {name: inner for name, inner in value.items() if name != names[0]}
    inner = _replaced(value.get(names[0], {}), names[1:], new)
    return kept if inner is MISSING else {**kept, names[0]: inner}

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


def plan_pages(pages: Paging) -> PagePlan:
    """Plan the paging of a recipe."""
    return PagePlan(pages.parameter, split_path(pages.cursor), split_path(pages.items), pages.most)


@dataclass(slots=True, eq=False)
class Pages:
    """The pages of one list so far."""

    plan: PagePlan
    count: int = 0
    _first: Any = None
    _items: list[Any] = field(default_factory=list)

    def add(self, output: Any) -> Any:
        """Add a page; return the cursor of the next one, MISSING after the last. Raises UnmetError for too many."""
        plan = self.plan
        if not self.count:
            self._first = output
        self.count += 1
        found = follow(output, plan.items)
        self._items += found if type(found) is list else []
        cursor = follow(output, plan.cursor)
        if not is_there(cursor) or cursor is False or cursor == "":
            return MISSING
        if self.count == plan.most:
            raise UnmetError("too-many-pages", f"its list has more than {plan.most} pages; ask for fewer elements")
        return cursor

    @property
    def output(self) -> Any:
        """The first page with the elements of all pages, and without a cursor."""
        return _replaced(_replaced(self._first, self.plan.cursor, MISSING), self.plan.items, self._items)


def _replaced(value: Any, names: tuple[str, ...], new: Any) -> Any:
    if not names:
        return new
    if type(value) is not dict:
        return value
    kept = {name: inner for name, inner in value.items() if name != names[0]}
    inner = _replaced(value.get(names[0], {}), names[1:], new)
    return kept if inner is MISSING else {**kept, names[0]: inner}

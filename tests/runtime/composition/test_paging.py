"""Pages of a list, one after the other."""

from __future__ import annotations

import pytest

from bespeak.contract.recipe import Paging
from bespeak.runtime.composition.paging import Pages, plan_pages
from bespeak.runtime.composition.scope import MISSING, UnmetError

PLAN = plan_pages(Paging(parameter="after", cursor="meta.next", items="data.rows", most=2))


def test_pages_are_joined_into_the_first_one_without_its_cursor() -> None:
    pages = Pages(PLAN)
    assert pages.add({"data": {"rows": [1], "of": "x"}, "meta": {"next": "c", "total": 2}}) == "c"
    assert pages.add({"data": {"rows": [2]}, "meta": {}}) is MISSING
    assert pages.output == {"data": {"rows": [1, 2], "of": "x"}, "meta": {"total": 2}}


@pytest.mark.parametrize("end", [{}, {"meta": None}, {"meta": {"next": None}}, {"meta": {"next": ""}}])
def test_a_page_without_a_cursor_is_the_last(end: dict[str, object]) -> None:
    assert Pages(PLAN).add({"data": {"rows": [1]}, **end}) is MISSING


def test_one_page_more_than_allowed_fails() -> None:
    pages = Pages(PLAN)
    more = {"data": {"rows": [1]}, "meta": {"next": 1}}
    pages.add(more)
    with pytest.raises(UnmetError, match="more than 2 pages"):
        pages.add(more)

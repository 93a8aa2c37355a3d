"""A chart is an SVG with a bar for each number, whatever its labels are."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from bespeak.runtime.reports.formats import bar_chart

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32)
LABELS = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=40)


@given(st.dictionaries(LABELS, NUMBERS, max_size=5))
def test_every_number_has_a_bar(numbers: dict[str, float]) -> None:
    root = ElementTree.fromstring(bar_chart(numbers, "Numbers"))
    assert len(root.findall("{*}rect")) == len(numbers)


def test_a_chart_is_the_same_for_the_same_numbers_and_has_no_markup_of_its_labels() -> None:
    chart = bar_chart({"<b>": 2, "c": -1}, "<i>")
    assert chart == bar_chart({"<b>": 2, "c": -1}, "<i>")
    assert "<b>" not in chart
    assert "<title>&lt;i&gt;</title>" in chart
    assert 'width="360.0"' in chart
    assert 'width="180.0"' in chart

"""Every format has the same content, and what was recorded stays text."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.extensions.reports.sample import HOSTILE, SAMPLE

from bespeak.extensions.reports.formats import (
    bar_chart,
    has_typst,
    numeric_columns,
    write_html,
    write_json,
    write_markdown,
    write_pdf,
)


class Page(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_json_has_rows_by_column() -> None:
    content = json.loads(write_json(SAMPLE))
    assert content["rows"][0] == {"Id": "pur-1", "Item": HOSTILE, "Amount": 12.5, "Refunded": None}
    assert content["chart"] == {"settled, EUR": 312.5, HOSTILE: -7}


def test_html_shows_markup_as_text_and_loads_nothing() -> None:
    page = Page(write_html(SAMPLE).decode())
    assert page.texts.count(HOSTILE) == 1
    assert not page.tags & {"script", "link", "img", "iframe", "a", "form"}
    assert {"svg", "rect", "table"} <= page.tags


def test_markdown_shows_markup_as_text() -> None:
    text = write_markdown(SAMPLE).decode()
    rows = [line for line in text.splitlines() if line.startswith("| pur-1")]
    assert rows == [r'| pur-1 | \<script\>alert(1)\</script\> \| \#panic("x") \*bold\* \[a\](b) $x$ \& łčü | 12.5 |  |']


def test_the_same_report_makes_the_same_bytes() -> None:
    for write in (write_json, write_html, write_markdown):
        assert write(SAMPLE) == write(SAMPLE)


def test_columns_of_numbers_are_known() -> None:
    assert numeric_columns(SAMPLE) == {2}


def test_a_report_becomes_the_same_pdf_each_time() -> None:
    assert has_typst()
    made = write_pdf(SAMPLE)
    assert made is not None
    assert made.startswith(b"%PDF-")
    assert made == write_pdf(SAMPLE)


def test_a_report_without_rows_or_chart_is_a_pdf_too() -> None:
    empty = msgspec.structs.replace(SAMPLE, rows=(), chart={}, columns=("Id",))
    assert (write_pdf(empty) or b"").startswith(b"%PDF-")


def test_what_cannot_be_set_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    import typst

    def fail(*_: object, **__: object) -> bytes:
        raise typst.TypstError("no font", [], "")

    monkeypatch.setattr(typst, "compile", fail)
    assert write_pdf(SAMPLE) is None
    assert "could not be written as PDF" in caplog.text


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

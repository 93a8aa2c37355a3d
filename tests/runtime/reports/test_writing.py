"""Every format has the same content, and what was recorded stays text."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from tests.runtime.reports.sample import HOSTILE, SAMPLE

from bespeak.runtime.reports.formats import numeric_columns, write_html, write_json, write_markdown


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

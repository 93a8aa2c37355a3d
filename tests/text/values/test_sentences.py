"""What is found in sentences: kind, words, value, unit and edge of every mention."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.cases import check_each

from bespeak.text.values import Mention, find_mentions

NOW = datetime(2026, 11, 19, 10, 30, tzinfo=timezone(timedelta(hours=1)))  # a Thursday


def tell(text: str, mention: Mention) -> str:
    """Write a mention in one line."""
    value = " .. ".join(map(_write, mention.value if mention.kind == "range" else [mention.value]))
    marks = "".join(f" [{mark}]" for mark in (mention.unit, mention.edge) if mark)
    return f"{mention.kind} {text[mention.start : mention.end]} = {value}{marks}"


def _write(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="minutes").removesuffix("+01:00")
    return value.isoformat("minutes") if isinstance(value, time) else str(value)


def _sections() -> list[tuple[str, list[str]]]:
    text = Path(__file__).with_name("sentences.txt").read_text(encoding="utf-8")
    blocks = [block.splitlines() for block in text.split("\n\n") if not block.startswith("#")]
    return [(lines[0], [line.strip() for line in lines[1:]]) for lines in blocks]


def test_values_of_sentences_are_found() -> None:
    def check(case: tuple[str, list[str]]) -> None:
        assert [tell(case[0], one) for one in find_mentions(case[0], now=NOW)] == case[1]

    check_each(_sections(), check, lambda case: case[0])


@pytest.mark.parametrize(
    "text",
    [
        "May I see the march of the sun?", "Please list all of the open invoices", "An answer to the question, again",
        "He may or may not marry her", "and/or", "Is there a day for it?", "Don't stop the others' work", "second",
        "the last week of work", "2026-02-30", "C", "-", "a", "in the", "between and",
    ],
)  # fmt: skip
def test_ordinary_words_are_not_values(text: str) -> None:
    assert [one for one in find_mentions(text, now=NOW) if one.unit != "ordinal"] == []


def test_dates_of_other_languages_are_found_with_a_year() -> None:
    for text in ("am 3. Mai 2027", "le 3 mai 2027", "el 3 de mayo de 2027"):
        [found] = find_mentions(text, now=NOW)
        assert (found.kind, found.value) == ("date", date(2027, 5, 3))
    assert [one.kind for one in find_mentions("3. Foo 2027", now=NOW)] == ["number", "number"]

"""The rules of readers have something to say for themselves."""

from __future__ import annotations

from bespeak.checks.lint.passes import RULES
from bespeak.checks.lint.reader_pages import PAGES
from bespeak.contract.catalog.document import RULES as CATALOG_RULES
from bespeak.text.reading.findings import RULES as READER_RULES


def test_every_rule_of_a_reader_has_its_page_and_no_other() -> None:
    assert PAGES.keys() == {*READER_RULES, *CATALOG_RULES} - RULES.keys()


def test_a_page_says_why_and_what_to_do() -> None:
    assert [rule for rule, page in PAGES.items() if page.why.count(". ") < 1 or not page.why.endswith(".")] == []


def test_an_example_has_both_halves() -> None:
    assert [rule for rule, page in PAGES.items() if bool(page.bad) is not bool(page.good)] == []

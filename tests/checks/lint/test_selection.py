"""Selectors: the one that means a rule most exactly decides."""

from __future__ import annotations

import pytest

from bespeak.checks.lint.config import enabled, means_any, severities, specificity
from bespeak.text.diagnostics.diagnostic import Rule

S401 = Rule(("S401", "missing-text", "MUST", "AGTP-API 6.2"), "A text.")
S450 = Rule(("S450", "contradiction", "SHOULD", "AGIS 9.1"), "No contradiction.")
P302 = Rule(("P302", "method-name-in-path", "MUST", "AGTP-API 5.1"), "No verb.")
RULES = (S401, S450, P302)


@pytest.mark.parametrize(
    ("select", "ignore", "on"),
    [
        (["ALL"], [], {"S401", "S450", "P302"}),
        (["S"], [], {"S401", "S450"}),
        (["S4", "P302"], [], {"S401", "S450", "P302"}),
        (["contradiction"], [], {"S450"}),
        (["ALL"], ["S"], {"P302"}),
        (["ALL", "S450"], ["S4"], {"S450", "P302"}),
        (["S450"], ["contradiction"], set()),
        (["S4"], ["S4"], set()),
        (["ALL"], ["ALL"], set()),
        ([], [], set()),
    ],
)
def test_the_most_exact_selector_decides_and_of_two_equals_ignore(
    select: list[str], ignore: list[str], on: set[str]
) -> None:
    assert enabled(RULES, select, ignore) == on


def test_a_conformance_run_has_every_must() -> None:
    assert enabled(RULES, ["ALL"], ["ALL"], conformance=True) == {"S401", "P302"}


@pytest.mark.parametrize("selector", ["s401", "S4010", "S-", "", "text", "X", "missing"])
def test_selector_without_a_match_is_reported(selector: str) -> None:
    assert not means_any(selector, RULES)
    assert specificity(selector, S401) == -1


def test_the_most_exact_severity_holds() -> None:
    assert severities(RULES, {"S": "info", "contradiction": "error"}) == {"S401": "info", "S450": "error"}
    assert severities(RULES, {}) == {}

"""One change: its fingerprint, and its forms for people and programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.checks.evolution.contracts import MIRRORED

from bespeak.checks.evolution.change import MOST_CHANGES, ChangeList, ChangeRule, ContractChange, canonical
from bespeak.checks.evolution.contract_diff import ENDPOINT_ADDED
from bespeak.checks.evolution.rule_index import RULES
from bespeak.checks.evolution.schema_diff import LIMIT_LOOSENED, LIMIT_TIGHTENED
from bespeak.text.source.tree import Location

CHANGE = ContractChange(
    about=LIMIT_TIGHTENED,
    direction="request",
    level="breaking",
    endpoint="BOOK /room",
    pointer="/input_schema/properties/nights/maximum",
    message="input `nights`: `maximum` 30 -> 14",
    help="Accept 30 nights.",
    old=30,
    new=14,
    location=Location("book.toml", 7, 1),
)


def test_fingerprint_does_not_depend_on_wording_and_place() -> None:
    assert replace(CHANGE, message="fewer nights", help="", location=None).fingerprint == CHANGE.fingerprint
    assert CHANGE.fingerprint == "af64c750d091a9f9"


@pytest.mark.parametrize(
    "other",
    [
        {"about": LIMIT_LOOSENED},
        {"endpoint": "BOOK /suite"},
        {"pointer": "/input_schema"},
        {"old": 31},
        {"new": 13},
        {"new": None},
    ],
    ids=str,
)
def test_different_changes_have_different_fingerprints(other: dict[str, Any]) -> None:
    assert replace(CHANGE, **other).fingerprint != CHANGE.fingerprint


def test_a_change_is_a_finding_at_its_place() -> None:
    finding = CHANGE.diagnostic()
    assert (finding.rule, finding.severity, finding.pointer) == ("C129", "error", f"/endpoint{CHANGE.pointer}")
    assert finding.message == "BOOK /room: input `nights`: `maximum` 30 -> 14 [breaking]"
    assert finding.location == CHANGE.location
    assert replace(CHANGE, level="risky").diagnostic().severity == "warning"
    assert replace(CHANGE, level="safe", endpoint="").diagnostic().pointer == CHANGE.pointer


def test_change_as_data_has_its_kind() -> None:
    data = CHANGE.to_json()
    assert (data["name"], data["kind"], data["category"]) == ("limit-tightened", "narrowed", "WIRE")
    assert data["location"] == "book.toml:7:1"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ((1, 2), [1, 2], True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        (None, "null", False),
        (float("inf"), float("-inf"), False),
        (float("inf"), None, False),
        (1 << 64, (1 << 64) + 1, False),
        (1e300, int(1e300), True),
    ],
)
def test_canonical_texts_are_equal_for_equal_values_only(one: Any, other: Any, same: bool) -> None:
    assert (canonical(one) == canonical(other)) is same


def test_full_list_is_reported_once_and_stops_growing() -> None:
    changes = ChangeList("BOOK /room")
    for number in range(MOST_CHANGES + 10):
        changes.add(ENDPOINT_ADDED, "safe", f"/{number}", "new")
    assert len(changes.found) == MOST_CHANGES + 1
    assert changes.found[-1].rule == "C199"


def test_huge_numbers_have_a_canonical_text() -> None:
    assert canonical(10**5000) != canonical(10**5000 + 1)


CHANGES = {rule.id: rule for rule in RULES.values() if isinstance(rule, ChangeRule)}


def test_mirror_of_an_addition_is_a_removal_and_of_narrowing_widening() -> None:
    opposite = {
        "added": "removed",
        "removed": "added",
        "narrowed": "widened",
        "widened": "narrowed",
        "changed": "changed",
    }
    assert all(CHANGES[MIRRORED[rule.id]].kind == opposite[rule.kind] for rule in CHANGES.values())


def test_mirrors_are_of_the_same_category() -> None:
    assert all(CHANGES[MIRRORED[rule.id]].category == rule.category for rule in CHANGES.values())


def test_what_takes_something_away_is_usually_an_error() -> None:
    severities = {rule.kind: rule.severity for rule in CHANGES.values()}
    assert severities == {
        "removed": "error",
        "narrowed": "error",
        "changed": "warning",
        "widened": "info",
        "added": "info",
    }

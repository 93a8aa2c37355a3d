"""One change: its fingerprint, and its forms for people and programs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.cases import rows
from tests.checks.evolution.contracts import MIRRORED

from bespeak.checks.evolution.change import MOST_CHANGES, ChangeList, ChangeRule, ContractChange, canonical
from bespeak.checks.evolution.change_report import RULES
from bespeak.checks.evolution.contract_diff import ENDPOINT_ADDED
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


def test_fingerprint_depends_on_the_change_and_not_on_wording_and_data_has_its_kind() -> None:
    assert replace(CHANGE, message="fewer nights", help="", location=None).fingerprint == CHANGE.fingerprint
    assert CHANGE.fingerprint == "af64c750d091a9f9"
    others = ({"about": LIMIT_LOOSENED}, {"endpoint": "BOOK /suite"}, {"pointer": "/input_schema"}, {"old": 31})
    changes = [CHANGE, *(replace(CHANGE, **other) for other in (*others, {"new": 13}, {"new": None}))]  # type: ignore[arg-type]
    assert len({change.fingerprint for change in changes}) == len(changes)
    data = CHANGE.to_json()
    assert (data["name"], data["kind"], data["category"]) == ("limit-tightened", "narrowed", "WIRE")
    assert data["location"] == "book.toml:7:1"


def test_a_change_is_a_finding_at_its_place() -> None:
    finding = CHANGE.diagnostic()
    assert (finding.rule, finding.severity, finding.pointer) == ("C129", "error", f"/endpoint{CHANGE.pointer}")
    assert finding.message == "BOOK /room: input `nights`: `maximum` 30 -> 14 [breaking]"
    assert finding.location == CHANGE.location
    assert replace(CHANGE, level="risky").diagnostic().severity == "warning"
    assert replace(CHANGE, level="safe", endpoint="").diagnostic().pointer == CHANGE.pointer


@rows(
    "one, other, same",
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
    (10**5000, 10**5000 + 1, False),
)
def test_canonical_texts_are_equal_for_equal_values_only(one: Any, other: Any, same: bool) -> None:
    assert (canonical(one) == canonical(other)) is same


def test_full_list_is_reported_once_and_stops_growing() -> None:
    changes = ChangeList("BOOK /room")
    for number in range(MOST_CHANGES + 10):
        changes.add(ENDPOINT_ADDED, "safe", f"/{number}", "new")
    assert len(changes.found) == MOST_CHANGES + 1
    assert changes.found[-1].rule == "C199"


CHANGES = {rule.id: rule for rule in RULES.values() if isinstance(rule, ChangeRule)}


def test_mirror_of_an_addition_is_a_removal_and_of_narrowing_widening() -> None:
    pairs = (("added", "removed"), ("narrowed", "widened"), ("changed", "changed"))
    opposite = {**dict(pairs), **{other: one for one, other in pairs}}
    for rule in CHANGES.values():
        mirror = CHANGES[MIRRORED[rule.id]]
        assert (mirror.kind, mirror.category) == (opposite[rule.kind], rule.category)


def test_what_takes_something_away_is_usually_an_error() -> None:
    errors, infos = dict.fromkeys(("removed", "narrowed"), "error"), dict.fromkeys(("widened", "added"), "info")
    assert {rule.kind: rule.severity for rule in CHANGES.values()} == {**errors, **infos, "changed": "warning"}

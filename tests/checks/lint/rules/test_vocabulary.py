from __future__ import annotations

from typing import Any

import pytest
from tests.cases import rows
from tests.checks.lint.agis_text import GONE, advice, document, endpoint, findings, rules

FIND = endpoint(
    method="FIND",
    semantic={
        "intent": "Finds a room for the guest",
        "outcome": "A list of rooms is returned",
        "capability": "discovery",
        "impact_tier": "informational",
        "is_idempotent": True,
    },
)


def vocabulary(verbs: Any, **fields: Any) -> dict[str, Any]:
    block = {"declared_verbs": verbs, "domain": "hospitality", **fields}
    return document(endpoint(), FIND, vocabulary={key: value for key, value in block.items() if value is not GONE})


BOTH = ["BOOK", "FIND"]


@pytest.mark.requirement("AGIS-8.2-3")
@rows(
    "whole, expected",
    (vocabulary(BOTH), []),
    (vocabulary([*BOTH, "Book"]), ["V504"]),
    *((vocabulary(BOTH, domain=domain), ["V506"]) for domain in (GONE, " ")),
    *((vocabulary(BOTH, namespace=name), []) for name in ("acme", "acme-rooms", "acme_rooms2")),
    *((vocabulary(BOTH, namespace=name), ["V507"]) for name in ("Acme", "acme.rooms", "acme rooms", "", "-")),
    *((vocabulary(BOTH, version=version), []) for version in ("1.2.0", "2.0.0-rc.1")),
    *((vocabulary(BOTH, version=version), ["V508"]) for version in ("1.2", "v1")),
)
def test_vocabulary_lists_verbs_once_and_says_where_they_come_from(whole: dict[str, Any], expected: list[str]) -> None:
    assert rules(whole) == expected


@pytest.mark.requirement("AGIS-8.2-1")
def test_a_verb_in_use_is_declared_and_added_safely() -> None:
    found = advice("V501", vocabulary(["BOOK"]))
    assert (found.severity, found.pointer) == ("error", "/endpoints/1/method")
    assert found.fix is not None
    assert found.fix.safe
    (change,) = found.fix.changes
    assert (change.op, change.at, change.value) == ("append", "/vocabulary/declared_verbs", "FIND")


def test_missing_verb_is_one_finding_however_many_use_it_and_the_author_says_which_is_wrong() -> None:
    entries = [{**endpoint(), "path": f"/room-{number}"} for number in range(3)]
    found = advice("V501", document(*entries, FIND, vocabulary={"declared_verbs": ["FIND"], "domain": "hospitality"}))
    assert "3 endpoints use it" in found.message
    mismatch = vocabulary(["BOOK", "SEARCH"])
    fixes = [finding.fix for finding in findings(mismatch) if finding.rule in {"V501", "V502"}]
    assert [fix.safe for fix in fixes if fix] == [False, False]
    assert advice("V501", mismatch).help.endswith("or write a verb that is declared: SEARCH.")


@pytest.mark.requirement("AGIS-8.2-2")
def test_a_declared_verb_is_in_use_or_removed() -> None:
    found = advice("V502", vocabulary(["BOOK", "CANCEL", "FIND"]))
    assert found.severity == "error"
    assert found.fix is not None
    (change,) = found.fix.changes
    assert (change.op, change.at) == ("remove", "/vocabulary/declared_verbs/1")


@pytest.mark.parametrize(("verbs", "op"), [(GONE, "insert"), (None, "replace"), ([], "replace")])
def test_a_vocabulary_without_verbs_gets_those_in_use(verbs: Any, op: str) -> None:
    found = advice("V503", vocabulary(verbs))
    assert found.fix is not None
    (change,) = found.fix.changes
    assert (change.op, change.value) == (op, ["BOOK", "FIND"])


@pytest.mark.requirement("AGIS-4.1-7")
def test_verbs_are_compared_without_case_and_blanks_and_written_in_capitals() -> None:
    block = {"declared_verbs": ["BOOK "], "domain": "hospitality"}
    found = rules(document(endpoint(method="BOOK "), vocabulary=block))
    assert {"V501", "V502"}.isdisjoint(found)
    assert "M210" in found
    found = findings(vocabulary(["book", "FIND"]))
    assert [finding.rule for finding in found] == ["V505"]
    assert found[0].fix is not None
    assert found[0].fix.changes[0].value == "BOOK"


@pytest.mark.parametrize("block", [GONE, None, [], "BOOK", {}])
def test_block_of_wrong_type_is_left_to_the_reader(block: Any) -> None:
    assert not [rule for rule in rules(document(vocabulary=block)) if rule.startswith("V")]

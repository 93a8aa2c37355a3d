from __future__ import annotations

from typing import Any

import pytest
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


def test_the_verbs_in_use_are_the_declared_ones() -> None:
    assert rules(vocabulary(["BOOK", "FIND"])) == []


@pytest.mark.requirement("AGIS-8.2-1")
def test_a_verb_in_use_is_declared_and_added_safely() -> None:
    found = advice("V501", vocabulary(["BOOK"]))
    assert (found.severity, found.pointer) == ("error", "/endpoints/1/method")
    assert found.fix is not None
    assert found.fix.safe
    (change,) = found.fix.changes
    assert (change.op, change.at, change.value) == ("append", "/vocabulary/declared_verbs", "FIND")


def test_a_missing_verb_is_one_finding_however_many_use_it() -> None:
    entries = [{**endpoint(), "path": f"/room-{number}"} for number in range(3)]
    found = advice("V501", document(*entries, FIND, vocabulary={"declared_verbs": ["FIND"], "domain": "hospitality"}))
    assert "3 endpoints use it" in found.message


@pytest.mark.requirement("AGIS-8.2-2")
def test_a_declared_verb_is_in_use_or_removed() -> None:
    found = advice("V502", vocabulary(["BOOK", "CANCEL", "FIND"]))
    assert found.severity == "error"
    assert found.fix is not None
    (change,) = found.fix.changes
    assert (change.op, change.at) == ("remove", "/vocabulary/declared_verbs/1")


def test_which_of_two_verbs_is_wrong_is_for_the_author_to_say() -> None:
    mismatch = vocabulary(["BOOK", "SEARCH"])
    fixes = [finding.fix for finding in findings(mismatch) if finding.rule in {"V501", "V502"}]
    assert [fix.safe for fix in fixes if fix] == [False, False]
    assert advice("V501", mismatch).help.endswith("or write a verb that is declared: SEARCH.")


@pytest.mark.parametrize(("verbs", "op"), [(GONE, "insert"), (None, "replace"), ([], "replace")])
def test_a_vocabulary_without_verbs_gets_those_in_use(verbs: Any, op: str) -> None:
    found = advice("V503", vocabulary(verbs))
    assert found.fix is not None
    (change,) = found.fix.changes
    assert (change.op, change.value) == (op, ["BOOK", "FIND"])


def test_blanks_around_a_method_are_for_pass_two_and_do_not_hide_its_declaration() -> None:
    block = {"declared_verbs": ["BOOK "], "domain": "hospitality"}
    found = rules(document(endpoint(method="BOOK "), vocabulary=block))
    assert {"V501", "V502"}.isdisjoint(found)
    assert "M210" in found


def test_a_verb_is_listed_once_in_whatever_case() -> None:
    assert rules(vocabulary(["BOOK", "FIND", "Book"])) == ["V504"]


@pytest.mark.requirement("AGIS-4.1-7")
def test_verbs_are_compared_without_case_and_written_in_capitals() -> None:
    found = findings(vocabulary(["book", "FIND"]))
    assert [finding.rule for finding in found] == ["V505"]
    assert found[0].fix is not None
    assert found[0].fix.changes[0].value == "BOOK"


@pytest.mark.requirement("AGIS-8.2-3")
@pytest.mark.parametrize("domain", [GONE, " "])
def test_a_vocabulary_names_its_domain(domain: Any) -> None:
    assert rules(vocabulary(["BOOK", "FIND"], domain=domain)) == ["V506"]


@pytest.mark.parametrize("namespace", ["acme", "acme-rooms", "acme_rooms2"])
def test_a_namespace_is_one_small_word(namespace: str) -> None:
    assert rules(vocabulary(["BOOK", "FIND"], namespace=namespace)) == []


@pytest.mark.parametrize("namespace", ["Acme", "acme.rooms", "acme rooms", "", "-"])
def test_another_namespace_is_a_warning(namespace: str) -> None:
    assert rules(vocabulary(["BOOK", "FIND"], namespace=namespace)) == ["V507"]


@pytest.mark.parametrize(
    ("version", "expected"), [("1.2.0", []), ("2.0.0-rc.1", []), ("1.2", ["V508"]), ("v1", ["V508"])]
)
def test_a_version_is_three_numbers(version: str, expected: list[str]) -> None:
    assert rules(vocabulary(["BOOK", "FIND"], version=version)) == expected


@pytest.mark.parametrize("block", [GONE, None, [], "BOOK", {}])
def test_block_of_wrong_type_is_left_to_the_reader(block: Any) -> None:
    assert not [rule for rule in rules(document(vocabulary=block)) if rule.startswith("V")]

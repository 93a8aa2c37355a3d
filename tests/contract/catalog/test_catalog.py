"""Look-up of verbs in a catalog."""

from __future__ import annotations

import pytest

from bespeak.contract.catalog.catalog import Verb
from bespeak.contract.catalog.document import load_bundled


def test_near_verbs_are_suggested_for_a_typo() -> None:
    assert load_bundled().near("RESERV")[0] == "RESERVE"


@pytest.mark.parametrize(("legacy", "preferred"), [("GET", "FETCH"), ("post", "CREATE"), ("Delete", "REMOVE")])
def test_the_preferred_verb_is_suggested_for_a_legacy_verb(legacy: str, preferred: str) -> None:
    assert load_bundled().near(legacy) == [preferred]


def test_nothing_is_suggested_for_a_text_far_too_long_to_be_a_verb() -> None:
    assert load_bundled().near("BOOK" * 5_000) == []


def test_a_category_holds_primary_and_secondary_members() -> None:
    names = [verb.name for verb in load_bundled("1.0.0").verbs_in("retrieval")]
    assert "FETCH" in names
    assert "ENUMERATE" in names
    assert len(names) == 34


def test_an_unknown_category_is_empty() -> None:
    assert load_bundled().verbs_in("poetry") == []


@pytest.mark.requirement("API-4.4-2")
@pytest.mark.parametrize(
    ("verb", "warning"),
    [
        (Verb(name="OLD", categories=(), description=""), None),
        (Verb(name="OLD", categories=(), description="", deprecated_in="1.1.0"), "deprecated"),
        (
            Verb(name="OLD", categories=(), description="", deprecated_in="1.1.0", removed_in="2.0.0"),
            "deprecated; removed_in=2.0.0",
        ),
        (
            Verb(name="OLD", categories=(), description="", deprecated_in="1.1.0", removed_in="2.0.0", successor="NEW"),
            "deprecated; successor=NEW; removed_in=2.0.0",
        ),
    ],
)
def test_the_warning_names_only_what_the_catalog_declares(verb: Verb, warning: str | None) -> None:
    assert verb.warning == warning


def test_current_verb_has_no_deprecation_in_its_json() -> None:
    assert load_bundled().verbs["DELEGATE"].to_json() == {
        "name": "DELEGATE",
        "categories": ["mechanics"],
        "description": "Hand a task to another agent with bounded authority",
    }


def test_deprecated_verb_has_a_deprecation_in_its_json() -> None:
    entry = load_bundled("1.1.0").verbs["AUDITLOG"].to_json()
    assert (entry["deprecated_in"], entry["removed_in"], entry["successor"]) == ("1.1.0", "2.0.0", "LOG")

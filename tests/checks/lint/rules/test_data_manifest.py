from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.checks.lint.agis_text import advice, document, rules

from bespeak.checks.lint.rules.vocabulary import Disclosed, disclosed_contents, disclosed_details

LOCATION = {"class": "location", "description": "Coordinates of places", "formats": ["json"], "sensitivity": "low"}


def manifest(*entries: Any, negotiable: bool = True, **fields: Any) -> dict[str, Any]:
    vocabulary = {"declared_verbs": ["BOOK"], "domain": "hospitality"}
    if negotiable:
        vocabulary["negotiable"] = True
    return document(vocabulary=vocabulary, data_manifest={"available_data": list(entries), **fields})


def data(**fields: Any) -> dict[str, Any]:
    return manifest({**LOCATION, **fields}, pre_auth_discovery=True)


GUARDED = {"requires_authorization": True}


@pytest.mark.requirement("AGIS-8.3-3", "AGIS-8.3-4")
@rows(
    "whole, expected",
    (data(), []),
    (manifest(), ["V521"]),
    *((data(**{"class": name}), ["V522"]) for name in (None, "", " ")),
    (manifest(LOCATION, {**LOCATION, "class": "LOCATION"}), ["V523", "V524"]),
    (data(description=""), ["V525"]),
    *((data(sensitivity=level), []) for level in ("low", "medium", "informational", "reversible")),
    (data(sensitivity="secret"), ["V526"]),
    *((data(sensitivity=level), ["V527"]) for level in ("high", "irreversible")),
    *((data(sensitivity=level, requires_authorization=False), ["V527"]) for level in ("high", "irreversible")),
    *((data(sensitivity=level, **GUARDED), []) for level in ("high", "irreversible")),
    (manifest(LOCATION, negotiable=False), ["V530"]),
)
def test_manifest_lists_named_described_and_guarded_classes(whole: dict[str, Any], expected: list[str]) -> None:
    assert rules(whole) == expected


@pytest.mark.requirement("AGIS-8.2-5")
def test_a_negotiable_service_has_one() -> None:
    vocabulary = {"declared_verbs": ["BOOK"], "domain": "hospitality", "negotiable": True}
    found = advice("V520", document(vocabulary=vocabulary))
    assert (found.severity, found.pointer) == ("error", "/vocabulary/negotiable")


def test_class_is_written_in_small_letters_and_sensitivity_in_wrong_case_has_a_fix() -> None:
    found = advice("V524", data(**{"class": "Customer Profile"}))
    assert found.fix is not None
    assert (found.fix.safe, found.fix.changes[0].value) == (False, "customer-profile")
    found = advice("V526", data(sensitivity="Low"))
    assert found.fix is not None
    assert found.fix.changes[0].value == "low"


@pytest.mark.requirement("AGIS-13-10")
def test_a_public_manifest_holds_no_data() -> None:
    whole = data(description="Guests such as jane.doe@acme.example")
    found = advice("V528", whole)
    assert found.severity == "error"
    assert "jane.doe@acme.example" in found.message
    whole["data_manifest"]["pre_auth_discovery"] = False
    assert rules(whole) == []


@pytest.mark.requirement("AGIS-13-11")
@pytest.mark.parametrize("text", ["4.2 million customer records", "Guests with tax_id and birth date"])
def test_a_public_manifest_tells_no_counts_and_no_fields(text: str) -> None:
    found = advice("V529", data(description=text))
    assert found.severity == "warning"


@pytest.mark.parametrize("entry", ["location", 5, None, ["location"]])
def test_invalid_entry_is_left_to_the_reader(entry: Any) -> None:
    assert not [rule for rule in rules(manifest(LOCATION, entry)) if rule.startswith("V")]


HONEST = [
    "Geographic coordinates and address data for entities",
    "Booking records and availability windows",
    "Full transaction ledger for authorized accounts",
    "Real-time and historical currency exchange rates",
    "Weather of three cities since 1990, in GeoJSON",
    "Tables for parties of up to 20 people, and/or rooms",
    "Prices of 2026-01-01 in plan v1.2",
    "Menus of restaurants: dishes and prices",
]


@rows(
    "disclosed, text, kind",
    *((disclosed, text, None) for text in HONEST for disclosed in (disclosed_contents, disclosed_details)),
    (disclosed_contents, "Ask jane.doe@acme.example", "an e-mail address"),
    (disclosed_contents, "postgres://app:secret@db/rooms", "a connection string"),
    (disclosed_contents, "jdbc:oracle:thin", "a connection string"),
    (disclosed_contents, "password: hunter2!", "a key or secret"),
    (disclosed_contents, "AKIAABCDEFGHIJKLMNOP", "a key or secret"),
    (disclosed_contents, "Kept on db1.prod.internal", "an internal host or address"),
    (disclosed_contents, "Kept on 10.1.2.3", "an internal host or address"),
    (disclosed_contents, "Call +49 30 1234567", "a telephone number"),
    (disclosed_contents, "Like 123-45-6789", "an account or card number"),
    (disclosed_contents, "Like DE89 3704 0044 0532 0130 00", "an account or card number"),
    (disclosed_details, "4.2 million customer records", "a record count"),
    (disclosed_details, "50,000 patients", "a record count"),
    (disclosed_details, "Millions of transactions", "a record count"),
    (disclosed_details, "Holds tax_id and iban", "a field name"),
    (disclosed_details, "Holds the customerId", "a field name"),
    (disclosed_details, "SELECT name FROM guests", "a storage detail"),
    (disclosed_details, "Has a primary key", "a storage detail"),
)
def test_data_and_how_it_is_kept_are_found(
    disclosed: Callable[[str], Disclosed | None], text: str, kind: str | None
) -> None:
    found = disclosed(text)
    assert (found and found.kind) == kind


@given(st.text(alphabet="a1@._-+ ,:=kM/\\"))
def test_any_text_has_an_answer(text: str) -> None:
    disclosed_contents(text)
    disclosed_details(text)


@pytest.mark.parametrize("text", ["x@" * 300_000, "1," * 300_000, "a_" * 300_000, "1" * 1_000_000, "a." * 300_000])
def test_a_hostile_text_costs_no_more_than_its_start(text: str) -> None:
    disclosed_contents(text)
    disclosed_details(text)

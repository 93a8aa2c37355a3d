""""""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.checks.lint.agis_text import advice, document, rules

from bespeak.checks.lint.rules.data_manifest import disclosed_contents, disclosed_details

LOCATION = {"class": "location", "description": "Coordinates of places", "formats": ["json"], "sensitivity": "low"}


def manifest(*entries: Any, negotiable: bool = True, **fields: Any) -> dict[str, Any]:
    vocabulary = {"declared_verbs": ["BOOK"], "domain": "hospitality"}
    if negotiable:
        vocabulary["negotiable"] = True
    return document(vocabulary=vocabulary, data_manifest={"available_data": list(entries), **fields})


def data(**fields: Any) -> dict[str, Any]:
    return manifest({**LOCATION, **fields}, pre_auth_discovery=True)


def test_a_manifest_of_kinds_of_data_is_right() -> None:
    assert rules(manifest(LOCATION, pre_auth_discovery=True)) == []


@pytest.mark.requirement("AGIS-8.2-5")
def test_a_negotiable_service_has_one() -> None:
    vocabulary = {"declared_verbs": ["BOOK"], "domain": "hospitality", "negotiable": True}
    found = advice("V520", document(vocabulary=vocabulary))
    assert (found.severity, found.pointer) == ("error", "/vocabulary/negotiable")


def test_a_manifest_lists_classes() -> None:
    assert rules(manifest()) == ["V521"]


@pytest.mark.parametrize("name", [None, "", " "])
def test_a_class_has_a_name(name: Any) -> None:
    assert rules(data(**{"class": name})) == ["V522"]


def test_a_class_is_listed_once() -> None:
    assert rules(manifest(LOCATION, {**LOCATION, "class": "LOCATION"})) == ["V523", "V524"]


def test_a_class_is_written_in_small_letters() -> None:
    found = advice("V524", data(**{"class": "Customer Profile"}))
    assert found.fix is not None
    assert (found.fix.safe, found.fix.changes[0].value) == (False, "customer-profile")


def test_a_class_is_described() -> None:
    assert rules(data(description="")) == ["V525"]


@pytest.mark.requirement("AGIS-8.3-3")
@pytest.mark.parametrize("level", ["low", "medium", "informational", "reversible"])
def test_both_scales_of_sensitivity_are_read(level: str) -> None:
    assert rules(data(sensitivity=level)) == []


@pytest.mark.requirement("AGIS-8.3-3")
def test_unknown_sensitivity_is_refused() -> None:
    assert rules(data(sensitivity="secret")) == ["V526"]
    found = advice("V526", data(sensitivity="Low"))
    assert found.fix is not None
    assert found.fix.changes[0].value == "low"


@pytest.mark.requirement("AGIS-8.3-4")
@pytest.mark.parametrize("level", ["high", "irreversible"])
@pytest.mark.parametrize("authorization", [{}, {"requires_authorization": False}])
def test_sensitive_class_requires_authorization(level: str, authorization: dict[str, bool]) -> None:
    assert rules(data(sensitivity=level, **authorization)) == ["V527"]
    assert rules(data(sensitivity=level, requires_authorization=True)) == []


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


def test_manifest_without_negotiation_is_reported() -> None:
    assert rules(manifest(LOCATION, negotiable=False)) == ["V530"]


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


@pytest.mark.parametrize("text", HONEST)
def test_kinds_of_data_give_nothing_away(text: str) -> None:
    assert disclosed_contents(text) is None
    assert disclosed_details(text) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Ask jane.doe@acme.example", "e-mail"),
        ("postgres://app:secret@db/rooms", "connection"),
        ("jdbc:oracle:thin", "connection"),
        ("password: hunter2!", "secret"),
        ("AKIAABCDEFGHIJKLMNOP", "secret"),
        ("Kept on db1.prod.internal", "host"),
        ("Kept on 10.1.2.3", "host"),
        ("Call +49 30 1234567", "telephone"),
        ("Like 123-45-6789", "account"),
        ("Like DE89 3704 0044 0532 0130 00", "account"),
    ],
)
def test_data_itself_is_found(text: str, kind: str) -> None:
    found = disclosed_contents(text)
    assert found is not None
    assert kind in found.kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("4.2 million customer records", "record count"),
        ("50,000 patients", "record count"),
        ("Millions of transactions", "record count"),
        ("Holds tax_id and iban", "field"),
        ("Holds the customerId", "field"),
        ("SELECT name FROM guests", "storage"),
        ("Has a primary key", "storage"),
    ],
)
def test_how_it_is_kept_is_found(text: str, kind: str) -> None:
    found = disclosed_details(text)
    assert found is not None
    assert kind in found.kind


@given(st.text(alphabet="a1@._-+ ,:=kM/\\"))
def test_any_text_has_an_answer(text: str) -> None:
    disclosed_contents(text)
    disclosed_details(text)


@pytest.mark.parametrize("text", ["x@" * 300_000, "1," * 300_000, "a_" * 300_000, "1" * 1_000_000, "a." * 300_000])
def test_a_hostile_text_costs_no_more_than_its_start(text: str) -> None:
    disclosed_contents(text)
    disclosed_details(text)

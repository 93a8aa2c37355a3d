from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.checks.lint.rules.data_manifest import disclosed_contents, disclosed_details

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

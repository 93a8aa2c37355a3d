"""EXTRACT (Tier 2 4.1): fields by labels and forms, by functions of the service, and by a language model."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.extensions.acquire.test_methods import call, code, good
from tests.language_model import data_of, model_server
from tests.stateful import keeping
from tests.things import joining

from bespeak import App
from bespeak.contract.schema.validation import Validator
from bespeak.extensions.compute import extract as module

pytestmark = pytest.mark.anyio
SERVICE: dict[str, Any] = {"methods": ("EXTRACT",)}
INVOICE = """ACME Ltd.    Invoice no: INV-2041
Date: 4 March 2026, Due: 2026-04-03
Customer:  Bob & Sons

| Item | Amount |
| Boat | 1,000.00 |
Subtotal: EUR 1,000.00
The total is EUR 1,190.00. Paid: yes
Write to billing@acme.example or see https://acme.example/pay.
"""
FIELDS: dict[str, Any] = {
    "invoice_number": {"type": "string", "pattern": "^INV-[0-9]+$"},
    "date": {"type": "string", "format": "date"},
    "due": {"type": "string", "format": "date"},
    "customer": {"type": "string"},
    "total": {"type": "number"},
    "currency": {"enum": ["EUR", "USD"]},
    "paid": {"type": "boolean"},
    "contact": {"type": "string", "format": "email"},
    "links": {"type": "array", "items": {"type": "string", "format": "uri"}},
    "vat_id": {"type": "string"},
}
SCHEMA = {"type": "object", "properties": FIELDS, "required": ["total", "vat_id"]}


class Invoice(msgspec.Struct):
    number: str
    total: float
    issued: date
    note: str | None = None


def extractors(app: App) -> None:
    @app.extractor("invoice", errors={"not_an_invoice": "It is another text."})
    def invoice(text: str) -> Invoice:
        """Read an invoice."""
        number = text.partition("no: ")[2].split()[0]
        return Invoice(number, 1190.0, date(2026, 3, 4))

    @app.extractor("secret", scopes=["secrets:read"])
    def secret(text: str) -> Invoice:
        """Read a secret."""
        raise ValueError


@pytest.mark.requirement("METHODS-4.1-2")
async def test_fields_are_found_by_labels_and_forms_with_their_places_and_nothing_is_invented() -> None:
    async with keeping(**SERVICE) as bench:
        found = await good(bench, "EXTRACT", source=INVOICE, schema=SCHEMA)
        assert found["data"] == {
            "invoice_number": "INV-2041",
            "date": "2026-03-04",
            "due": "2026-04-03",
            "customer": "Bob & Sons",
            "total": 1190.0,
            "currency": "EUR",
            "paid": True,
            "contact": "billing@acme.example",
            "links": ["https://acme.example/pay"],
        }
        assert (found["missing"], found["conforms"], found["engine"]) == (["vat_id"], False, "pattern")
        fields = {one["name"]: one for one in found["fields"]}
        [[start, end]] = fields["total"]["spans"]
        assert INVOICE[start:end] == "1,190.00"
        assert fields["due"]["confidence"] == 0.95  # the form of a date behind its label
        assert 0.5 < fields["total"]["confidence"] < 0.8  # a number, with a word between
        assert fields["contact"]["method"] == "form"
        assert await good(bench, "EXTRACT", source=INVOICE, schema=SCHEMA) == found


@pytest.mark.requirement("METHODS-4.1-3")
async def test_a_threshold_leaves_out_what_is_less_sure_and_lists_it() -> None:
    async with keeping(**SERVICE) as bench:
        found = await good(bench, "EXTRACT", source=INVOICE, schema=SCHEMA, confidence_threshold=0.8)
        assert {one["name"] for one in found["below_threshold"]} == {"contact", "links", "currency", "total"}
        assert (found["missing"], "due" in found["data"]) == (["total", "vat_id"], True)
        schema = {"properties": {"total": {"type": "number"}}}
        two = await good(bench, "EXTRACT", source="Total: 1. Total: 2.", schema=schema)
        assert (two["data"], two["fields"][0]["confidence"]) == ({"total": 1}, 0.4)  # the other is as good
        doubtful = await good(bench, "EXTRACT", source="Total: 1,200", schema=schema)
        assert (doubtful["data"], doubtful["fields"][0]["confidence"]) == ({"total": 1200}, 0.4)
        assert (await good(bench, "EXTRACT", source="We sold 12 of 40", schema=schema))["data"] == {}


async def test_data_is_read_like_a_text_and_dates_with_two_meanings_need_a_locale() -> None:
    async with keeping(**SERVICE) as bench:
        data = {"order": {"Due date": "03/04/2026", "lines": [{"total": 7.5}]}}
        schema = {"properties": {"due_date": FIELDS["due"], "total": {"type": "number"}}}
        found = await good(bench, "EXTRACT", source=data, schema=schema)
        assert (found["data"], "spans" in found["fields"][0]) == ({"total": 7.5}, False)
        found = await good(bench, "EXTRACT", source=data, schema=schema, locale="en-US")
        assert found["data"] == {"due_date": "2026-03-04", "total": 7.5}


async def test_an_extractor_of_the_service_has_its_values_looked_up() -> None:
    async with keeping(**SERVICE, participants=joining(extractors)) as bench:
        found = await good(bench, "EXTRACT", source=INVOICE, schema="invoice")
        assert found["data"] == {"number": "INV-2041", "total": 1190.0, "issued": "2026-03-04"}
        assert (found["engine"], found["conforms"]) == ("function", True)
        assert {INVOICE[one["spans"][0][0] : one["spans"][0][1]] for one in found["fields"]} == {
            "INV-2041",
            "1,190.00",
            "4 March 2026",
        }
        assert {one["confidence"] for one in found["fields"]} == {0.9}
        absent = await good(bench, "EXTRACT", source="no: 7", schema="invoice")
        assert [one["confidence"] for one in absent["fields"]] == [0.9, 0.3, 0.3]
        for name in ("secret", "nothing"):
            refused = await call(bench, "EXTRACT", source=INVOICE, schema=name)
            assert (refused.status, refused.error["code"]) == (422, "unknown-extractor")
            assert "secret" not in refused.error["message"].removeprefix(f"There is no extractor {name!r}")


@pytest.mark.requirement("METHODS-4.1-5")
async def test_wrong_schemas_and_sources_are_refused() -> None:
    async with keeping(**SERVICE) as bench:
        for schema in ({"type": 7}, {"type": "array"}, {}, {"properties": {}}, {"$ref": "#/no"}):
            assert await code(bench, "EXTRACT", source="x", schema=schema) == (400, "invalid-schema"), schema
        assert await code(bench, "EXTRACT", source="x" * 100_001, schema=SCHEMA) == (422, "invalid-source")
        assert await code(bench, "EXTRACT", source="x", schema=SCHEMA, engine="model") == (
            503,
            "provider-not-configured",
        )


async def test_a_model_is_asked_for_what_is_missing_and_its_quotations_are_looked_up() -> None:
    answer = {
        "party": {"value": "Bob & Sons", "quote": "Customer:  Bob & Sons"},
        "kind": {"value": "boat", "quote": "| Boat |"},
        "vat_id": {"value": "DE123", "quote": "VAT DE123"},
        "other": None,
    }
    schema = {"properties": {**{key: {"type": "string"} for key in answer}, "due": FIELDS["due"]}}
    with model_server() as model:
        model.reply = lambda _: answer
        async with keeping(**SERVICE, document=model.document()) as bench:
            found = await good(bench, "EXTRACT", source=INVOICE, schema=schema)
            assert set(data_of(model.asked[0])["answer_schema"]["properties"]) == set(answer)
            told = {one["name"]: (one["method"], one["confidence"], len(one["spans"])) for one in found["fields"]}
            assert told == {
                "party": ("model", 0.9, 1),
                "kind": ("model", 0.7, 1),
                "vat_id": ("model", 0.3, 0),
                "due": ("label", 0.95, 1),
            }
            [[start, end]] = next(one["spans"] for one in found["fields"] if one["name"] == "party")
            assert INVOICE[start:end] == "Bob & Sons"
            assert (found["engine"], found["deterministic"]) == ("model", False)
            model.asked.clear()
            await good(bench, "EXTRACT", source=INVOICE, schema=schema, engine="pattern")
            assert model.asked == []


PARTS = st.sampled_from([*"0123456789.,-/:|@ \n\t", "Total", "Due", "EUR", "yes", "a@b.c", "4 May 2026", "https://"])


@given(st.text(max_size=30) | st.lists(PARTS, max_size=20).map("".join))
def test_whatever_is_found_in_any_text_meets_its_schema_and_is_where_it_is_said(text: str) -> None:
    validators = {name: Validator(msgspec.json.encode(one)) for name, one in FIELDS.items()}
    for name, field in module._find_fields(text, SCHEMA, validators, None).items():
        assert validators[name].is_valid(field["value"])
        assert 0 < field["confidence"] <= 1
        for start, end in field["spans"]:
            assert 0 <= start < end <= len(text)


def test_long_runs_of_one_sign_take_linear_time() -> None:
    for sign in (" ", "1", "a: ", "1,", "a@", "http://", "| ", "\n", "A 1 ", "1-", "no"):
        validators = {name: Validator(msgspec.json.encode(one)) for name, one in FIELDS.items()}
        module._find_fields(sign * (20_000 // len(sign)) + "a1", SCHEMA, validators, "en-US")

"""The canonical form: one order of keys, methods in capitals, the same content."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.documents.agis_documents import booking, documents, values

from bespeak.documents.agis.canonical import canonical


def shuffled(value: Any, dice: random.Random) -> Any:
    if isinstance(value, list):
        return [shuffled(item, dice) for item in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    dice.shuffle(keys)
    return {key: shuffled(value[key], dice) for key in keys}


def test_keys_come_in_the_order_of_the_schema_and_others_after_them() -> None:
    data = shuffled(booking() | {"x-own": 1, "schemas": {}, "data_manifest": {}, "other": 2}, random.Random(7))
    keys = list(canonical(data))
    assert keys[:-2] == [
        *("agis", "service", "agtp", "description", "version", "vocabulary", "data_manifest", "endpoints", "schemas"),
    ]
    assert keys[-2:] == [key for key in data if key in ("x-own", "other")]
    assert list(canonical(data)["endpoints"][0]) == ["method", "path", "semantic", "input", "output", "errors"]
    assert list(canonical(data)["endpoints"][0]["semantic"])[:3] == ["intent", "actor", "outcome"]


def test_contents_of_json_schemas_keep_their_order() -> None:
    data = booking()
    data["endpoints"][0]["input"] = {"required": ["b"], "properties": {"b": {}, "a": {}}, "type": "object"}
    made = canonical(data)["endpoints"][0]["input"]
    assert (list(made), list(made["properties"])) == (["required", "properties", "type"], ["b", "a"])


@pytest.mark.requirement("AGIS-10-4")
@pytest.mark.parametrize(("method", "written"), [("book", "BOOK"), ("Find", "FIND"), ("book_room", "book_room")])
def test_methods_of_letters_are_written_in_capitals(method: str, written: str) -> None:
    data = booking()
    data["endpoints"][0]["method"] = method
    data["vocabulary"]["declared_verbs"] = [method]
    made = canonical(data)
    assert made["endpoints"][0]["method"] == written
    assert made["vocabulary"]["declared_verbs"] == [written]


def test_endpoints_under_keys_become_a_list() -> None:
    data = booking() | {"endpoints": {"BOOK /room": {"errors": []}, "FIND /room": {"errors": []}}}
    assert canonical(data)["endpoints"] == [
        {"method": "BOOK", "path": "/room", "errors": []},
        {"method": "FIND", "path": "/room", "errors": []},
    ]
    odd = booking() | {"endpoints": {"BOOK /room": {}, "FIND /room": 5}}
    assert canonical(odd) == odd


@given(documents(), st.randoms(use_true_random=False))
@settings(max_examples=60)
def test_canonical_order_keeps_the_content(data: dict[str, Any], dice: random.Random) -> None:
    made = canonical(shuffled(data, dice))
    assert made == data
    assert list(made) == list(canonical(data))
    assert canonical(made) == made


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(booking(), values)))
def test_values_of_an_unexpected_type_stay_unchanged(data: dict[str, Any]) -> None:
    made = canonical(data)
    assert made.keys() == data.keys()
    assert canonical(made) == made

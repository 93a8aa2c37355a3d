"""A discovery document as an agent takes it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.ai.test_document import FLIGHTS

from bespeak.agent.discovery.capability import Capability, CredentialPlace
from bespeak.agent.discovery.readers import ai_capabilities, read_ai_document
from bespeak.protocol.address_guard import Origin, WebAddress

BASE = WebAddress(Origin("https", "flights.test", 443), "/.well-known/ai")


def read(**changes: Any) -> list[Capability]:
    document, _ = read_ai_document(json.dumps({**FLIGHTS, **changes}).encode(), "ai")
    assert document is not None
    return ai_capabilities(document, BASE)[0]


def test_parameters_become_a_schema_that_is_closed() -> None:
    [capability] = read(token_hints={})
    assert capability.input_schema == {
        "type": "object",
        "properties": {"from": {"type": "string", "description": "airport code"}},
        "required": ["from"],
        "additionalProperties": False,
    }


def test_a_document_without_parameters_forbids_none() -> None:
    entry = {key: value for key, value in FLIGHTS["capabilities"][0].items() if key != "params"}
    [capability] = read(capabilities=[entry], token_hints={})
    assert capability.input_schema == {"type": "object", "properties": {}}


def test_token_hints_are_parameters_of_the_query() -> None:
    entry = {**FLIGHTS["capabilities"][0], "method": "POST"}
    hints = {"compact_mode": True, "field_filtering": True, "delta_support": True}
    [capability] = read(capabilities=[entry], token_hints=hints)
    assert {"compact", "fields", "since"} < capability.input_schema["properties"].keys()
    assert capability.place_of("compact").place == "query"
    assert capability.place_of("from").place == "body"


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        ({"type": "none"}, (CredentialPlace("none"),)),
        ({"type": "apikey", "header": "X-Key"}, (CredentialPlace("header", "X-Key"),)),
        ({"type": "apikey"}, (CredentialPlace("header", "X-API-Key"),)),
        ({"type": "apikey", "header": "Authorization"}, (CredentialPlace("bearer"),)),
        ({"type": "apikey", "header": "Host"}, (CredentialPlace("unknown"),)),
        ({"type": "apikey", "header": "X-Key: sk_live"}, (CredentialPlace("unknown"),)),
        ({"type": "bearer"}, (CredentialPlace("bearer"),)),
        ({"type": "oauth2"}, (CredentialPlace("bearer"),)),
        ({"type": "api_key"}, ()),
        (None, ()),
    ],
)
def test_the_place_of_the_credential_is_read(auth: Any, expected: tuple[CredentialPlace, ...]) -> None:
    [capability] = read(auth=auth)
    assert capability.credentials == expected


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    document, found = read_ai_document(data, "ai")
    assert document is None
    assert found


_names = st.sampled_from(sorted(FLIGHTS)) | st.text(max_size=6)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(sorted(FLIGHTS)) | st.text(max_size=6), inner)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(sorted(FLIGHTS)), _json, max_size=4))
def test_no_document_raises_and_results_are_bounded(changes: dict[str, Any]) -> None:
    document, _ = read_ai_document(json.dumps({**FLIGHTS, **changes}).encode(), "ai")
    if document is not None:
        usable, _ = ai_capabilities(document, BASE)
        assert all(len(each.description) <= 200 and len(each.id) <= 64 for each in usable)
        assert 0 < len(document.name) <= 100

"""The parts of a document in the model: cautious defaults, and closed inputs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.agis_documents import booking, values

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.schema.validation import DIALECT, Validator, compile_schema
from bespeak.contract.service import DataManifest, ServerIdentity, Service, Vocabulary
from bespeak.documents.agis.shape import (
    SharedSchemas,
    declared_endpoints,
    read_data_manifest,
    read_endpoint,
    read_vocabulary,
)
from bespeak.documents.projections.agis_document import project_agis

SHARED = {"Stay": {"type": "object", "properties": {"nights": {"type": "integer"}}}}


def read(**changed: Any) -> Endpoint:
    return read_endpoint(booking()["endpoints"][0] | changed, SharedSchemas(SHARED), None)


def accepts(endpoint: Endpoint, value: object) -> bool:
    validator = compile_schema(endpoint.input_schema)
    assert isinstance(validator, Validator), validator
    return validator.is_valid(value)


@pytest.mark.requirement("AGIS-6.2-12")
def test_missing_fields_get_the_cautious_default() -> None:
    endpoint = read()
    semantic = endpoint.semantic
    assert (semantic.impact, semantic.is_idempotent, semantic.confidence) == ("irreversible", False, 0.0)
    assert semantic.confidence_guidance == 0.85
    assert endpoint.description == semantic.intent
    assert isinstance(endpoint.handler, OpaqueHandler)


@pytest.mark.requirement("AGIS-8.2-6")
def test_negotiation_is_off_by_default_methods_are_capitals_and_wrong_values_are_kept() -> None:
    assert not read_vocabulary({"declared_verbs": ["BOOK"]}).negotiable
    assert read_vocabulary({"declared_verbs": ["BOOK"], "negotiable": True}).negotiable
    semantic = read(semantic={"impact_tier": "reversable", "capability": "poetry", "confidence_guidance": 7}).semantic
    assert (semantic.impact, semantic.capability, semantic.confidence_guidance) == ("reversable", "poetry", 7)
    assert read(method="Book").method == "BOOK"


def test_concepts_are_read_and_written_back() -> None:
    endpoint = read(semantic={"concepts": ["https://ex.org/onto/hotel#Stay"]})
    assert endpoint.semantic.concepts == ("https://ex.org/onto/hotel#Stay",)
    service = Service(identity=ServerIdentity(server_id="x.example", operator="X", contact=""), endpoints=(endpoint,))
    (written,) = project_agis(service)["endpoints"]
    assert written["semantic"]["concepts"] == ["https://ex.org/onto/hotel#Stay"]


def test_input_is_closed_unless_declared_open_also_when_composed_or_shared() -> None:
    assert read().input_schema["additionalProperties"] is False
    schema = read(input={"additionalProperties": True}).input_schema
    assert (schema["additionalProperties"], schema["type"], schema["$schema"]) == (True, "object", DIALECT)
    endpoint = read(input={"allOf": [{"properties": {"a": {"type": "string"}}}]})
    assert accepts(endpoint, {"a": "x"})
    assert not accepts(endpoint, {"b": "x"})
    endpoint = read(input={"$ref": "#/schemas/Stay", "description": "A stay."})
    assert endpoint.input_schema["description"] == "A stay."
    assert accepts(endpoint, {"nights": 2})
    assert not accepts(endpoint, {"nights": 2, "more": 1})


@pytest.mark.parametrize(("kept", "read_as"), [("creation", "creation"), ("odd", "transaction"), (5, "transaction")])
def test_agtp_category_that_agis_lacks_is_read_back(kept: Any, read_as: str) -> None:
    semantic = {"capability": "transaction", "x-agtp-capability": kept}
    assert read(semantic=semantic).semantic.capability == read_as


def test_errors_are_names_or_names_with_descriptions_and_declarations_have_their_pointers() -> None:
    endpoint = read(errors=["a", {"name": "b", "description": "B."}, {"nam": "c"}, 5])
    assert [(error.name, error.description) for error in endpoint.errors] == [("a", ""), ("b", "B.")]
    assert read(errors={"a": "A."}).errors[0].description == "A."
    assert list(declared_endpoints([{"a": 1}, 5, {}])) == [("/endpoints/0", {"a": 1}), ("/endpoints/2", {})]
    assert list(declared_endpoints({"BOOK  /a/b": {"method": "FIND"}})) == [
        ("/endpoints/BOOK  ~1a~1b", {"method": "FIND", "path": "/a/b"})
    ]


@given(values)
def test_parts_of_any_shape_are_read(value: Any) -> None:
    assert isinstance(read_vocabulary(value), Vocabulary)
    assert isinstance(read_data_manifest(value), DataManifest | None)
    assert isinstance(read_endpoint(dict.fromkeys(booking()["endpoints"][0], value), SharedSchemas({}), None), Endpoint)


@given(st.dictionaries(st.sampled_from(list(booking()["endpoints"][0]["semantic"])), values))
def test_semantic_blocks_of_any_content_are_read(block: dict[str, Any]) -> None:
    assert isinstance(read(semantic=block).semantic.intent, str)

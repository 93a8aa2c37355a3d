"""Contexts are compiled into tables; what a table cannot hold is left to pyld."""

from __future__ import annotations

from typing import Any

import pytest
from pyld.jsonld import JsonLdError

from bespeak.contract.ontology.core import DEFAULT
from bespeak.documents.envelope.expansion import Compiled, compile_context, refuse_loading
from bespeak.documents.ontology.contexts import shipped_contexts

IOA = DEFAULT.terms


def compiled(*more: Any) -> Compiled:
    return compile_context([DEFAULT.context, *more], DEFAULT, shipped_contexts())


def test_base_context_has_a_slot_for_each_member_of_a_class() -> None:
    table = compiled().table
    assert table is not None
    profile = table.slots["SemanticProfile"]
    assert profile["ontologyId"][:2] == ("ontologyId", "iri")
    assert profile["ontologyVersion"][:2] == ("ontologyVersion", "literal")
    assert profile["id"][:2] == ("@id", "@id")
    assert profile["profileContext"][2] is table.slots["Context"]
    assert "term" not in profile
    assert table.prefixes == {"ioa": IOA}


def test_other_names_of_members_get_slots_if_they_are_plain() -> None:
    plain = {"caps": {"@id": f"{IOA}capabilityRefs", "@type": "@id"}}
    table = compiled(plain).table
    assert table is not None
    assert table.slots["SemanticProfile"]["caps"][0] == "capabilityRefs"
    for definition in (
        f"{IOA}capabilityRefs",
        {"@id": f"{IOA}capabilityRefs", "@type": "@vocab"},
        {"@id": f"{IOA}capabilityRefs", "@type": "@id", "@container": "@list"},
        {"@reverse": f"{IOA}capabilityRefs", "@type": "@id"},
    ):
        table = compiled({"caps": definition}).table
        assert table is not None
        assert "caps" not in table.slots["SemanticProfile"]


def test_only_namespaces_that_end_in_a_delimiter_are_prefixes() -> None:
    table = compiled({"cs": "https://ex.org/onto/cs#", "x": "https://ex.org/x"}).table
    assert table is not None
    assert set(table.prefixes) == {"ioa", "cs"}


def test_context_that_changes_every_value_has_a_meaning_and_no_table() -> None:
    for entry in ({"@vocab": "https://ex.org/v#"}, {"@base": "https://ex.org/"}, {"@language": "en"}):
        assert compiled(entry) == Compiled()


def test_nothing_is_ever_loaded() -> None:
    with pytest.raises(JsonLdError, match="is not fetched"):
        refuse_loading("https://ex.org/ctx", {})

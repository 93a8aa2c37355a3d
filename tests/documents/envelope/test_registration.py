"""Capability registrations: identifiers and constraints are needed (IoA 6.3)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.documents.ontology.figures import FIGURE_6
from tests.documents.ontology.oracle import violated

from bespeak.documents.envelope.reader import EnvelopeReader, Registration

CS = "https://ex.org/onto/cs#"
MEMBERS = {name: value for name, value in FIGURE_6.items() if name != "@context"}


def read(**members: Any) -> Registration:
    return EnvelopeReader().parse_registration({"@context": FIGURE_6["@context"], **members})


def found(registration: Registration) -> set[tuple[str, str]]:
    return {(one.rule, one.path) for one in registration.violations}


def test_figure_6_is_read() -> None:
    registration = read(**MEMBERS)
    assert registration.violations == ()
    (term,) = registration.capabilities
    assert (term.iri, term.labels) == (f"{CS}TechTranslation", ("Technical Document Translation",))
    assert (term.inputs, term.outputs) == (("text/plain",), ("text/plain",))


@pytest.mark.requirement("IOA-6.3-1", "IOA-6.3-2")
def test_missing_members_are_found_as_by_the_shapes() -> None:
    for member, wanted in (("id", ("I212", "/id")), ("inputs", ("I213", "/inputs")), ("outputs", ("I213", "/outputs"))):
        document = {name: value for name, value in MEMBERS.items() if name != member}
        assert found(read(**document)) == {wanted}
        shaped = violated({"@context": FIGURE_6["@context"], **document}, registration=True)
        assert shaped == {wanted[0]}


def test_values_of_another_kind_are_found() -> None:
    assert found(read(**MEMBERS | {"id": "relative"})) == {("I212", "/id")}
    assert found(read(**MEMBERS | {"inputs": [True]})) == {("I213", "/inputs/0")}
    assert found(read(**MEMBERS | {"label": {"@id": "cs:X"}})) == {("I208", "/label/0")}
    assert found(read(**MEMBERS | {"type": "ioa:Intent"})) == {("I211", "/type")}
    assert found(read(**MEMBERS | {"type": []})) == {("I211", "/type")}


def test_schemas_are_json_literals() -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    (term,) = read(**MEMBERS | {"inputs": ["application/json", {"@type": "@json", "@value": schema}]}).capabilities
    assert term.inputs[0] == "application/json"
    assert msgspec.json.decode(term.inputs[1]) == schema


def test_several_capabilities_and_their_agents_are_read() -> None:
    second = MEMBERS | {"id": "cs:Other", "providedBy": "cs:robot"}
    agent = {"id": "cs:robot", "type": "ioa:Agent", "hasCapability": ["cs:TechTranslation", "cs:Elsewhere"]}
    registration = read(**{"@graph": [MEMBERS, second, agent]})
    assert registration.violations == ()
    assert [one.iri for one in registration.capabilities] == [f"{CS}TechTranslation", f"{CS}Other"]
    assert registration.agents == {f"{CS}robot": (f"{CS}Other", f"{CS}TechTranslation", f"{CS}Elsewhere")}
    nested = read(id="cs:robot", type="ioa:Agent", hasCapability=[MEMBERS])
    assert nested.capabilities == registration.capabilities[:1]


def test_agent_can_only_have_capabilities() -> None:
    agent = {"id": "cs:robot", "type": "ioa:Agent", "hasCapability": [{"id": "cs:Goal", "type": "ioa:Intent"}]}
    assert found(read(**{"@graph": [MEMBERS, agent]})) == {("I221", "/@graph/1/hasCapability/0")}

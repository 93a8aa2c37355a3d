"""Services of every kind, for tests that something holds for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import DeclaredError, Deprecation, Endpoint
from bespeak.contract.limits import Rate, RateLimits, read_cost
from bespeak.contract.policy import Policies
from bespeak.contract.service import ServerIdentity, Service

METHODS = ("BOOK", "CANCEL", "FETCH", "FIND", "QUERY", "NOTIFY", "ESTIMATE")
NOUNS = ("room", "guest-list", "floor_plan", "invoice", "by", "w%C3%A4sche", "v1.2")
TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=20)
NAMES = st.sampled_from(["name", "beds", "größe", "a/b", "x~y", "$ref", "parameters", "fields", "%41"])

SCALARS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "format": "date", "description": "A day."},
        {"type": "string", "maxLength": 5, "default": "a"},
        {"type": "integer", "minimum": 1},
        {"type": "number"},
        {"type": "boolean"},
        {"type": ["string", "null"], "default": None},
        {"enum": ["a", "b", None]},
        {"enum": [1, 2]},
        {"const": "only"},
        {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        {"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 2}]},
        {"type": "null"},
    ]
)
REFERENCES = st.sampled_from(
    [{"$ref": "#/$defs/Guest"}, {"$ref": "#/$defs/Tree"}, {"$ref": "#/$defs/W%C3%A4sche%20~1"}, {"$ref": "#"}]
)
GUESTS = st.sampled_from(
    [
        {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        {"type": "object", "properties": {"name": {"type": "string"}, "of": {"$ref": "#/$defs/Tree"}}},
    ]
)
TREE = {"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
SCHEMAS = st.recursive(
    SCALARS | REFERENCES,
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda fields: {"type": "object", "properties": fields}, st.dictionaries(NAMES, inner, max_size=3))
        | st.builds(lambda options: {"oneOf": options}, st.lists(inner, min_size=1, max_size=2))
        | st.just({"default": {"$ref": "#/no/reference"}, "examples": [{"$ref": "x"}]})
    ),
    max_leaves=4,
)


@st.composite
def objects(draw: st.DrawFn, always: tuple[str, ...] = (), *, flat: bool | None = None) -> dict[str, Any]:
    """Draw the schema of an object: scalars only, or any schemas."""
    is_flat = draw(st.booleans()) if flat is None else flat
    properties = draw(st.dictionaries(NAMES, SCALARS if is_flat else SCHEMAS, max_size=4))
    properties |= {name: draw(st.sampled_from([{"type": "string"}, {"type": "integer"}])) for name in always}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = draw(st.lists(st.sampled_from(sorted(properties)), unique=True)) if properties else []
    if required or always:
        schema["required"] = sorted({*required, *always})
    if draw(st.booleans()):
        schema["additionalProperties"] = False
    if not is_flat:
        schema["$defs"] = {"Guest": draw(GUESTS), "Tree": TREE, "Wäsche /": {"type": "string"}}
    return schema


@st.composite
def endpoints(draw: st.DrawFn) -> Endpoint:
    segments = draw(st.lists(st.sampled_from(NOUNS), min_size=1, max_size=2))
    parameters = draw(st.sampled_from([(), (), ("room_id",), ("room_id", "day")]))
    path = "/" + "/".join([*segments, *(f"{{{name}}}" for name in parameters)])
    made = make_endpoint(draw(st.sampled_from(METHODS)), path, echo)
    semantic = replace(
        made.semantic,
        impact=draw(st.sampled_from(["informational", "reversible", "irreversible"])),
        is_idempotent=draw(st.booleans()),
        concepts=draw(st.sampled_from([(), ("https://ex.org/onto/hotel#Stay", "urn:x:y")])),
    )
    return replace(
        made,
        description=draw(TEXT) or "Does it.",
        semantic=semantic,
        input_schema=draw(objects(parameters)),
        output_schema=draw(objects()),
        errors=draw(st.sampled_from([(), (DeclaredError("taken", "It is tåken."), DeclaredError("late"))])),
        required_scopes=draw(st.sampled_from([(), ("booking:room",), ("booking:room", "guest:*")])),
        deprecated=draw(
            st.sampled_from(
                [
                    None,
                    Deprecation(deprecated_in="1.2"),
                    Deprecation(deprecated_in="1", removed_in="2", successor_method="FIND", successor_path="/room"),
                ]
            )
        ),
        cost=draw(st.sampled_from([None, read_cost({"tokens": 500, "USD": "0.02"})[0]])),
        confirm=draw(st.sampled_from([None, True, False])),
        namespace=draw(st.sampled_from([None, "front.desk"])),
        internal=draw(st.sampled_from([False, False, True])),
    )


@st.composite
def services(draw: st.DrawFn) -> Service:
    """Draw a service of a few endpoints, some of which may not be valid."""
    found = draw(st.lists(endpoints(), min_size=1, max_size=4, unique_by=lambda endpoint: endpoint.key))
    return Service(
        identity=ServerIdentity(
            server_id="test.example",
            operator=draw(st.sampled_from(["unspecified", "Tést"])),
            contact=draw(st.sampled_from(["ops@test.example", "https://test.example/contact", "ask at the desk", ""])),
            name=draw(st.sampled_from(["", "Tést Rooms"])),
        ),
        description=draw(TEXT),
        endpoints=tuple(found),
        policies=Policies(scope_required_for_invocation=draw(st.booleans()), confirm_irreversible=draw(st.booleans())),
        rate_limits=draw(st.sampled_from([RateLimits(), RateLimits(agent=Rate(100, "s", 100))])),
    )

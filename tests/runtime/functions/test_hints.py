from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
from msgspec import Meta
from tests.cases import rows

from bespeak.contract.schema.validation import DIALECT, Validator, compile_schema
from bespeak.errors import ContractError
from bespeak.runtime.functions.reading import input_schema, output_schema
from bespeak.runtime.functions.signature import read_signature


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Address:
    """Where a guest lives."""

    street: str
    since: date | None = None
    seen: list[datetime] = field(default_factory=list)


class Guest(msgspec.Struct):
    name: Annotated[str, Meta(min_length=1)]
    address: Address | None = None


class Filter(TypedDict):
    term: str
    limit: NotRequired[int]


class Point(NamedTuple):
    x: int
    y: int


class Card(pydantic.BaseModel):
    number: str = pydantic.Field(pattern="^[0-9]+$")
    holder: Holder


class Holder(pydantic.BaseModel):
    name: str
    born: datetime


@dataclass
class Node:
    value: int
    next: Node | None = None


class Tree(pydantic.BaseModel):
    branches: list[Tree] = []


class Found(msgspec.Struct, tag=True):
    where: str


class Lost(msgspec.Struct, tag=True):
    since: date


class Opaque:
    pass


def schema_of(function: Callable[..., Any], descriptions: Mapping[str, str] | None = None) -> dict[str, Any]:
    return input_schema(read_signature(function), descriptions or {})


def property_of(annotation: Any) -> dict[str, Any]:
    def handler(value) -> None: ...  # type: ignore[no-untyped-def]

    handler.__annotations__["value"] = annotation
    found: dict[str, Any] = schema_of(handler)["properties"]["value"]
    return found


def validator(schema: dict[str, Any]) -> Validator:
    compiled = compile_schema(schema)
    assert isinstance(compiled, Validator)
    return compiled


def test_the_parameters_of_a_function_are_the_properties_of_its_input() -> None:
    def book_room(guest_id: UUID, room_id: str, arrival: date, nights: int = 1) -> None: ...

    assert schema_of(book_room) == {
        "$schema": DIALECT,
        "type": "object",
        "properties": {
            "guest_id": {"type": "string", "format": "uuid"},
            "room_id": {"type": "string"},
            "arrival": {"type": "string", "format": "date"},
            "nights": {"type": "integer", "default": 1},
        },
        "required": ["guest_id", "room_id", "arrival"],
        "additionalProperties": False,
    }


def test_a_function_without_parameters_has_an_empty_closed_input() -> None:
    def handler() -> None: ...

    schema = schema_of(handler)
    assert validator(schema).is_valid({})
    assert not validator(schema).is_valid({"x": 1})


@rows(
    "annotation, expected",
    (str, {"type": "string"}),
    (bool, {"type": "boolean"}),
    (float, {"type": "number"}),
    (UUID, {"type": "string", "format": "uuid"}),
    (date, {"type": "string", "format": "date"}),
    (datetime, {"type": "string", "format": "date-time"}),
    (time, {"type": "string"}),
    (timedelta, {"type": "string", "format": "duration"}),
    (Decimal, {"type": "string", "format": "decimal"}),
    (Any, {}),
    (Literal["a", "b"], {"enum": ["a", "b"]}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (Sequence[datetime], {"type": "array", "items": {"type": "string", "format": "date-time"}}),
    (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (dict[str, datetime], {"type": "object", "additionalProperties": {"type": "string", "format": "date-time"}}),
    (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (datetime | int, {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "integer"}]}),
    (Annotated[int, Meta(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
    (
        Annotated[str, Meta(pattern="^a", description="An a.")],
        {"type": "string", "pattern": "^a", "description": "An a."},
    ),
    (Annotated[str, Meta(min_length=2, max_length=3)], {"type": "string", "minLength": 2, "maxLength": 3}),
    (Annotated[list[int], Meta(max_length=3)], {"type": "array", "items": {"type": "integer"}, "maxItems": 3}),
    ids=str,
)
def test_a_type_has_its_schema(annotation: Any, expected: dict[str, Any]) -> None:
    found = property_of(annotation)
    if "anyOf" in expected:
        assert sorted(map(str, found.pop("anyOf"))) == sorted(map(str, expected.pop("anyOf")))
    assert found == expected


def test_tuples_have_items_one_by_one_and_closed_types_stay_closed() -> None:
    schema = property_of(tuple[int, datetime])
    assert schema["prefixItems"] == [{"type": "integer"}, {"type": "string", "format": "date-time"}]

    class Closed(msgspec.Struct, forbid_unknown_fields=True):
        a: int

    assert output_schema(Closed)["additionalProperties"] is False


def test_objects_inside_an_input_are_closed_too() -> None:
    def handler(guest: Guest, query: Filter, colour: Colour, point: Point, free: dict[str, int]) -> None: ...

    schema = schema_of(handler)
    good = {
        "guest": {"name": "Ann", "address": {"street": "High St", "seen": ["2026-01-01T00:00:00Z"]}},
        "query": {"term": "x"},
        "colour": "red",
        "point": [1, 2],
        "free": {"any": 1},
    }
    assert validator(schema).violations(good) == []
    bad = {
        "guest": {"name": "", "x": 1, "address": {"street": "High St", "seen": ["yesterday"], "y": 1}},
        "query": {"limit": 1, "z": 1},
        "colour": "green",
        "point": [1],
        "free": {"any": "x"},
    }
    keywords = {violation.keyword for violation in validator(schema).violations(bad)}
    assert {"minLength", "additionalProperties", "required", "enum", "minItems", "type"} <= keywords
    assert schema["$defs"]["Address"]["properties"]["seen"]["items"]["format"] == "date-time"
    assert schema["$defs"]["Address"]["description"] == "Where a guest lives."


def test_a_field_called_properties_stays_a_field() -> None:
    class Odd(TypedDict):
        properties: dict[str, int]

    def handler(odd) -> None: ...  # type: ignore[no-untyped-def]

    handler.__annotations__["odd"] = Odd
    assert list(schema_of(handler)["$defs"]["Odd"]["properties"]) == ["properties"]


def test_a_pydantic_model_brings_its_own_schema_along() -> None:
    def handler(card: Card, spare: Card | None = None) -> None: ...

    schema = schema_of(handler)
    good = {"card": {"number": "42", "holder": {"name": "Ann", "born": "2000-01-01T00:00:00Z"}}}
    assert validator(schema).violations(good) == []
    bad = {"card": {"number": "x", "holder": {"name": "Ann", "extra": 1}}}
    assert {violation.keyword for violation in validator(schema).violations(bad)} >= {"pattern", "required"}


def test_a_pydantic_model_may_be_the_output() -> None:
    schema = output_schema(Card)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is True
    assert set(schema["$defs"]) == {"Holder"}


def test_two_types_of_one_name_are_refused() -> None:
    other = pydantic.create_model("Holder", age=(int, ...))
    wrapper = pydantic.create_model("Wrapper", holder=(other, ...))

    def handler(card, wrapped) -> None: ...  # type: ignore[no-untyped-def]

    handler.__annotations__.update(card=Card, wrapped=wrapper)
    with pytest.raises(ContractError, match="two different types are called Holder"):
        schema_of(handler)


def test_docstrings_fill_in_descriptions_and_the_context_is_no_property() -> None:
    def handler(a: int, b: Annotated[int, Meta(description="from the type")]) -> None: ...

    properties = schema_of(handler, {"a": "from the docstring", "b": "from the docstring"})["properties"]
    assert (properties["a"]["description"], properties["b"]["description"]) == ("from the docstring", "from the type")

    def handler(a: int, context) -> None: ...  # type: ignore[no-untyped-def]

    assert list(schema_of(handler)["properties"]) == ["a"]


def refused(function: Callable[..., Any]) -> str:
    with pytest.raises(ContractError) as caught:
        schema_of(function)
    return str(caught.value)


def test_an_annotation_without_a_schema_is_explained() -> None:
    def no_annotation(a) -> None: ...  # type: ignore[no-untyped-def]

    def anything(**rest: int) -> None: ...

    def unsupported(a: Opaque) -> None: ...

    def unsupported_inside(a: int, b: list[Opaque]) -> None: ...

    def mutable_default(a: list[int] = [1]) -> None: ...  # noqa: B006

    def opaque_default(a: Any = Opaque()) -> None: ...  # noqa: B008

    def bad_pattern(a: Annotated[str, Meta(pattern="(?=x)y")]) -> None: ...

    assert "'a' has no annotation" in refused(no_annotation)
    assert "**rest" in refused(anything)
    assert refused(unsupported) == (
        "the parameter 'a' is annotated with Opaque, which has no JSON Schema; "
        "use a dataclass, Struct, TypedDict or pydantic model"
    )
    assert "'b' is annotated with list[Opaque], which contains Opaque, which has no" in refused(unsupported_inside)
    assert "mutable" in refused(mutable_default)
    assert "Opaque" in refused(opaque_default)
    assert "not valid" in refused(bad_pattern)


def test_an_output_is_an_open_object() -> None:
    schema = output_schema(Guest)
    assert (schema["$schema"], schema["type"]) == (DIALECT, "object")
    assert schema["additionalProperties"] is True
    assert validator(schema).is_valid({"name": "Ann", "more": 1})
    assert not validator(schema).is_valid({"more": 1})


def test_missing_empty_and_undescribed_results_are_explained() -> None:
    assert output_schema(None) == output_schema(type(None))
    assert validator(output_schema(None)).is_valid({})
    assert not validator(output_schema(None)).is_valid([])
    with pytest.raises(ContractError, match="the return annotation Opaque has no JSON Schema; use a dataclass"):
        output_schema(Opaque)

    def handler(): ...  # type: ignore[no-untyped-def]

    with pytest.raises(ContractError, match="return annotation is missing"):
        output_schema(read_signature(handler).returns)


@pytest.mark.parametrize(
    "annotation", [dict[str, Any], dict, Mapping[str, int], list[Guest], Found | Lost, list[int], Card]
)
def test_objects_and_lists_can_be_returned(annotation: Any) -> None:
    validator(output_schema(annotation))


@pytest.mark.parametrize("annotation", [int, str, Any, Guest | None, bool | Guest, datetime])
def test_anything_else_cannot_be_returned(annotation: Any) -> None:
    with pytest.raises(ContractError, match="return an object"):
        output_schema(annotation)


def test_a_recursive_type_refers_to_itself() -> None:
    schema = output_schema(Node)
    assert validator(schema).is_valid({"value": 1, "next": {"value": 2, "next": None}})
    assert not validator(schema).is_valid({"value": 1, "next": {"next": None}})
    schema = output_schema(Tree)
    assert validator(schema).is_valid({"branches": [{"branches": []}]})
    assert not validator(schema).is_valid({"branches": [{"branches": 1}]})


def test_an_unset_default_leaves_the_field_out_of_required_and_without_a_default() -> None:
    def handler(night: date | msgspec.UnsetType = msgspec.UNSET) -> None: ...

    schema = schema_of(handler)
    assert (schema["required"], schema["properties"]["night"]) == ([], {"type": "string", "format": "date"})

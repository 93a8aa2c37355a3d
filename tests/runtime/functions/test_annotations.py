"""Every kind of annotation against the schema that it publishes: input, output, and what neither may accept."""

from __future__ import annotations

import dataclasses
import enum
import re
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypeVar
from uuid import UUID

import annotated_types
import attrs
import msgspec
import pydantic
import pytest
from msgspec import Meta
from msgspec import inspect as kinds
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from tests.cases import check_each
from typing_extensions import TypedDict

import bespeak
from bespeak import App, Context, Policies
from bespeak.errors import ContractError
from bespeak.runtime.functions.annotations import (
    adapt_foreign as adapt,
)
from bespeak.runtime.functions.annotations import (
    describes_itself,
    is_plain,
    read_types,
    show_type,
    validate_foreign,
    walk,
)


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Floor(enum.IntEnum):
    GROUND = 0
    TOP = 9


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    room_id: str
    free_from: datetime


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(9, ge=1)


class Dog(BaseModel):
    kind: Literal["dog"]
    barks: bool = True


class Clock(BaseModel):
    shows: pydantic.NaiveDatetime


class Names(pydantic.RootModel[list[str]]):
    pass


@dataclasses.dataclass
class Bed:
    width: Annotated[int, Field(ge=60)]
    size: Size = Size.SMALL


@pydantic.dataclasses.dataclass
class Lamp:
    watts: int = Field(ge=1, alias="W")


@attrs.define
class Chair:
    legs: int
    bought: datetime | None = None


class Door(msgspec.Struct, rename="camel"):
    is_open: bool
    opened_at: Annotated[datetime, Meta(tz=True)] | None = None


class Circle(msgspec.Struct, tag=True):
    radius: float


class Square(msgspec.Struct, tag=True):
    side: float


class Stay(TypedDict):
    nights: Annotated[int, annotated_types.Ge(1)]
    guests: NotRequired[list[str]]


class Place(NamedTuple):
    floor: int
    door: int


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
RoomNumber = NewType("RoomNumber", Annotated[str, pydantic.StringConstraints(pattern="^[0-9]{3}$")])
NOON = "2027-05-01T12:00:00Z"
CAMEL = {"roomId": "12", "freeFrom": NOON}

MATRIX: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "pydantic with aliases": (Camel, [CAMEL], [{"room_id": "12", "free_from": NOON}, {"roomId": "12"}]),
    "list of pydantic": (list[Camel], [[CAMEL], []], [CAMEL, [{}]]),
    "dict of pydantic": (dict[str, Camel], [{"a": CAMEL}], [{"a": {}}]),
    "optional pydantic": (Camel | None, [CAMEL, None], [{}]),
    "root model": (Names, [["ann"]], [[1], {}]),
    "union of pydantic": (Cat | Dog, [{"kind": "cat", "lives": 3}], [{"kind": "cow"}, {"kind": "cat", "lives": 0}]),
    "discriminated union": (Pet, [{"kind": "dog", "barks": False}], [{"kind": "cow"}, {"barks": True}]),
    "list of discriminated": (list[Pet], [[{"kind": "dog", "barks": True}]], [[{"kind": "cow"}]]),
    "field bounds": (Annotated[int, Field(ge=1, le=50)], [1, 50], [0, 51, "1"]),
    "annotated_types bounds": (Annotated[int, annotated_types.Interval(ge=1, lt=3)], [1, 2], [0, 3]),
    "bounds inside a list": (list[Annotated[int, annotated_types.Gt(0)]], [[1]], [[0]]),
    "bounds inside an optional": (Annotated[int, Field(gt=0)] | None, [1, None], [0]),
    "bounds of msgspec": (Annotated[int, Meta(ge=1, le=50)], [1, 50], [0, 51]),
    "length of a list": (Annotated[list[int], Field(min_length=1)], [[1]], [[]]),
    "pattern": (Annotated[str, Field(pattern="^a")], ["ab"], ["b"]),
    "pydantic's own type": (pydantic.PositiveInt, [1], [0]),
    "new type": (RoomNumber, ["102"], ["x"]),
    "dataclass with bounds": (Bed, [{"width": 90, "size": "large"}], [{"width": 10}, {"width": 90, "size": "huge"}]),
    "pydantic dataclass": (Lamp, [{"W": 5}], [{"W": 0}, {"watts": 5}]),
    "attrs": (Chair, [{"legs": 4, "bought": NOON}, {"legs": 3, "bought": None}], [{"legs": "4"}, {}]),
    "struct with names": (Door, [{"isOpen": True, "openedAt": NOON}], [{"is_open": True}]),
    "tagged structs": (Circle | Square, [{"type": "Square", "side": 2.0}], [{"type": "Line"}]),
    "typed dict": (Stay, [{"nights": 2}, {"nights": 1, "guests": ["ann"]}], [{"nights": 0}, {}]),
    "named tuple": (Place, [[1, 2]], [[1], [1, 2, 3]]),
    "enum": (Size, ["small"], ["huge", None]),
    "optional enum": (Size | None, ["small", None], ["huge"]),
    "enum of integers": (Floor, [9], [1, "9"]),
    "literal": (Literal["sea", 3], ["sea", 3], ["garden", "3"]),
    "scalar union": (int | str | None, [1, "a", None], [[]]),
    "aware datetime": (datetime, [NOON], ["2027-05-01T12:00:00", "noon"]),
    "aware datetime of pydantic": (pydantic.AwareDatetime, [NOON], ["2027-05-01T12:00:00"]),
    "naive datetime of pydantic": (Clock, [{"shows": "2027-05-01T12:00:00"}], [{"shows": NOON}, {"shows": "noon"}]),
    "naive datetime of msgspec": (Annotated[datetime, Meta(tz=False)], ["2027-05-01T12:00:00"], [NOON]),
    "uuid": (UUID, ["5f3c2a52-6f0e-4c1b-9a44-0d4b1f0c8f11"], ["5f3c"]),
    "decimal": (Decimal, ["99.50"], ["much"]),
}


def echo(kind: Any, *, wrapped: bool) -> App:
    """An endpoint that returns its argument: alone, or as a member if its type is not an object or array."""
    policies = Policies()
    app = App("Echo", server_id="echo.example", operator="Tests", contact="ops@echo.example", policies=policies)

    def handler(value: Any) -> Any:
        return {"value": value} if wrapped else value

    handler.__annotations__ = {"value": kind, "return": dict[str, kind] if wrapped else kind}
    handler.__doc__ = "Fetch a value.\n\nOutcome: The same value is returned."
    app.endpoint("FETCH", "/value", impact="informational")(handler)
    return app


@pytest.mark.filterwarnings("error")
def test_every_kind_of_type_keeps_its_published_schema() -> None:
    def check(name: str) -> None:
        kind, accepted, refused = MATRIX[name]
        with bespeak.connect_sync(echo(kind, wrapped=True)) as service:
            for value in accepted:
                assert service.call("FETCH", "/value", value=value) == {"value": value}
            for value in refused:
                assert service.request("FETCH", "/value", {"value": value}).status == 422, value

    check_each(MATRIX, check)


def test_an_object_is_returned_as_its_type_describes_it() -> None:
    def check(name: str) -> None:
        kind, (value, *_), _ = MATRIX[name]
        with bespeak.connect_sync(echo(kind, wrapped=False)) as service:
            assert service.call("FETCH", "/value", value=value) == value

    objects = [name for name, (_, values, _) in MATRIX.items() if all(isinstance(one, (dict, list)) for one in values)]
    assert len(objects) > 10
    check_each(objects, check)


def test_an_async_handler_returns_an_adapted_type() -> None:
    policies = Policies()
    app = App("Pets", server_id="pets.example", operator="Tests", contact="ops@pets.example", policies=policies)

    async def fetch(kind: Literal["cat", "dog"], context: Context) -> Pet:
        """Fetch a pet.

        Outcome: A pet of that kind is returned.
        """
        return Cat(kind="cat") if kind == "cat" else Dog(kind="dog")

    fetch.__annotations__ = {"kind": Literal["cat", "dog"], "context": Context, "return": Pet}
    app.endpoint("FETCH", "/pet", impact="informational")(fetch)
    with bespeak.connect_sync(app) as service:
        assert service.call("FETCH", "/pet", kind="cat") == {"kind": "cat", "lives": 9}


def test_what_is_not_supported_is_refused_with_the_name_of_the_parameter() -> None:
    @dataclasses.dataclass
    class Table:
        legs: int

    mixed = Annotated[Chair, Field(description="not for pydantic"), annotated_types.Predicate(bool)]
    for kind, shown in ((Table | complex, "Table | complex"), (list[complex], "list[complex]"), (mixed, "Chair")):
        with pytest.raises(ContractError, match=r"the parameter 'value' ") as caught:
            echo(kind, wrapped=True)
        assert shown in str(caught.value)
        assert "__main__" not in str(caught.value)


def test_without_pydantic_its_constraints_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(
        ContractError, match=r"int has constraints, .* that need pydantic; install it, or use msgspec\.Meta"
    ):
        adapt(Annotated[int, annotated_types.Ge(123456)])


def test_descriptions_are_no_constraints_and_types_shown_as_written() -> None:
    described = Annotated[int, "the number of beds"]
    assert adapt(described) is described
    assert show_type(dict[str, list[Size | None]]) == "dict[str, list[Size | None]]"
    assert show_type(Annotated[tuple[int, ...], Meta(min_length=1)]) == "tuple[int, ...]"
    assert show_type(Literal["a", 1]) == "Literal['a', 1]"
    assert read_types([str, list[int]]) == ()
    assert len(read_types([str, Node])) == 1


def test_a_naive_datetime_in_a_result_is_explained(caplog: pytest.LogCaptureFixture) -> None:
    policies = Policies()
    app = App("Clock", server_id="clock.example", operator="Tests", contact="ops@clock.example", policies=policies)

    def fetch() -> dict[str, datetime]:
        """Fetch the time.

        Outcome: The time is returned.
        """
        return {"now": datetime.now(UTC).replace(tzinfo=None)}

    fetch.__annotations__ = {"return": dict[str, datetime]}
    app.endpoint("FETCH", "/time", impact="informational")(fetch)
    with bespeak.connect_sync(app) as service:
        assert service.request("FETCH", "/time").status == 500
    assert "breaks its schema at /additionalProperties/format; a datetime needs a time zone" in caplog.text
    assert re.search(r'\(/now: "20..-..-..T[^"]+" is not a "date-time"\)', caplog.text)


T = TypeVar("T")


@dataclass
class Node:
    at: datetime
    next: Node | None = None


@dataclass
class Pair(Generic[T]):
    one: T
    other: T


@pytest.mark.parametrize("annotation", [str, date, list[int], str | None, Annotated[str, Meta(examples=["x"])]])
def test_simple_types_and_their_containers_are_plain(annotation: Any) -> None:
    assert is_plain(annotation)


@pytest.mark.parametrize("annotation", [Node, list[Node], Pair[int], datetime | None, complex, Any, Literal["x"]])
def test_types_that_need_inspection_are_not_plain(annotation: Any) -> None:
    assert not is_plain(annotation)


def test_every_type_inside_is_found_and_one_that_holds_itself_only_once() -> None:
    found = list(walk(read_types([dict[str, list[Node]], tuple[Node, int]])))
    assert sum(isinstance(kind, kinds.DataclassType) for kind in found) == 1
    assert sum(isinstance(kind, kinds.DateTimeType) for kind in found) == 1
    assert any(isinstance(kind, kinds.StrType) for kind in found)
    assert any(isinstance(kind, kinds.IntType) for kind in found)


@pytest.mark.parametrize("annotation", [str | date, Annotated[int, Meta(max_length=3)]])
def test_a_type_that_json_cannot_represent_is_refused(annotation: Any) -> None:
    with pytest.raises(ContractError, match="cannot be read from JSON"):
        read_types([annotation])


class Model(pydantic.BaseModel):
    a: int


def test_only_a_pydantic_model_describes_and_validates_itself() -> None:
    assert describes_itself(Model)
    assert not describes_itself(Model(a=1))
    assert not describes_itself(dict)
    assert validate_foreign(Model, {"a": 1}) == Model(a=1)
    with pytest.raises(NotImplementedError):
        validate_foreign(complex, 1)

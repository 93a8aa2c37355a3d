"""The output filter: what of a result is sent, for every kind of type and of value."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, Optional, Required, TypedDict, TypeVar
from uuid import UUID

import attrs
import msgspec
import pytest
import typing_extensions
from msgspec import Meta, Struct
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    RootModel,
    SerializeAsAny,
    Tag,
    computed_field,
    field_serializer,
)
from pydantic.dataclasses import dataclass as model_dataclass

from bespeak.runtime.functions.annotations import adapt
from bespeak.runtime.functions.output_filter import OutputFilter, UnfitResult
from bespeak.runtime.functions.reading import output_schema

T = TypeVar("T")
SECRET = "hunter2"
FAULT = "fault"


class Model(BaseModel):
    name: str


class ModelInDb(Model):
    password: str = SECRET


class ModelOther(BaseModel):
    name: str
    password: str = SECRET


class Admin(BaseModel):
    name: str
    rights: list[str]


class ModelAsAdmin(Model):
    rights: list[str]
    password: str = SECRET


class OpenModel(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


class OpenModelInDb(OpenModel):
    password: str = SECRET


class ClosedModel(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str


class Aliased(BaseModel):
    user_name: str = Field(alias="userName")


class AliasedInDb(Aliased):
    password: str = SECRET


class TwoNames(BaseModel):
    user_name: str = Field(validation_alias=AliasChoices("u", "user"), serialization_alias="userName")


class Computed(BaseModel):
    first: str

    @computed_field
    @property
    def full(self) -> str:
        return f"{self.first} L."


class ComputedInDb(Computed):
    @computed_field
    @property
    def password(self) -> str:
        return SECRET


class PageOf(BaseModel, Generic[T]):
    items: list[T]


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    name: str


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str
    bark: int = 1


class CatInDb(Cat):
    password: str = SECRET


class Team(BaseModel):
    lead: Model
    others: dict[str, Model] = {}
    maybe: Model | None = None


class OpenTeam(BaseModel):
    lead: OpenModel


class Users(RootModel[list[Model]]):
    pass


class Anything(BaseModel):
    lead: SerializeAsAny[Model]


class Masked(BaseModel):
    name: str

    @field_serializer("name")
    def mask(self, value: str) -> str:
        return value[0] + "…"


class MaskedInDb(Masked):
    password: str = SECRET


class Tree(BaseModel):
    name: str
    parts: list[Tree] = []


class TreeInDb(Tree):
    password: str = SECRET


class Left(BaseModel):
    name: str
    left: Left | Right | None = None


class Right(BaseModel):
    name: str
    left: Right | Left | None = None


@model_dataclass
class ModelData:
    name: str


@model_dataclass
class ModelDataInDb(ModelData):
    password: str = SECRET


@dataclass
class Data:
    name: str


@dataclass
class DataInDb(Data):
    password: str = SECRET


@dataclass
class DataTeam:
    lead: Data
    others: dict[str, Data] = field(default_factory=dict)
    maybe: Optional[Data] = None  # noqa: UP045


@dataclass
class DataOfModel:
    lead: Model


@dataclass
class DataOfOpen:
    lead: OpenModel


@dataclass
class DataTree:
    name: str
    parts: list[DataTree] = field(default_factory=list)


@dataclass
class DataTreeInDb(DataTree):
    password: str = SECRET


@dataclass
class Summed:
    name: str
    total: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.total = 7


@dataclass
class Hollow:
    name: str | None = None


@attrs.define
class Attrs:
    name: str
    _hidden: str = SECRET


@attrs.define
class AttrsInDb(Attrs):
    password: str = SECRET


class Record(Struct):
    name: str


class RecordInDb(Record):
    password: str = SECRET


class Renamed(Struct, rename="camel"):
    user_name: str


class RenamedInDb(Renamed):
    pass_word: str = SECRET


class Sparse(Struct, omit_defaults=True):
    name: str
    age: int = 0


class Row(Struct, array_like=True):
    name: str


class RowInDb(Row):
    password: str = SECRET


class PageOfRecords(Struct, Generic[T]):
    items: list[T]


class Created(Struct, tag=True):
    name: str


class Deleted(Struct, tag=True):
    at: int


class CreatedInDb(Created):
    password: str = SECRET


class Dict(TypedDict):
    name: str


class PartDict(TypedDict, total=False):
    name: Required[str]
    age: int


class MixedDict(TypedDict):
    name: str
    age: NotRequired[int]


class DictOfDicts(TypedDict):
    lead: Dict
    others: list[Dict]


class OpenDict(typing_extensions.TypedDict, extra_items=int):
    name: str


class OpenDictOfDicts(typing_extensions.TypedDict, extra_items=Dict):
    name: str


class LaterOpenDict(OpenDict):
    age: int


class FreeDict(typing_extensions.TypedDict, closed=False):
    name: str


class ClosedDict(typing_extensions.TypedDict, closed=True):
    name: str


class Pair(NamedTuple):
    name: str
    lead: Data


class Color(StrEnum):
    RED = "red"


class Foreign:
    """A class like those of an object-relational mapper."""

    def __init__(self, **values: Any) -> None:
        vars(self).update({"password": SECRET, **values})


DataWithMore = Data("Ada")
DataWithMore.password = SECRET  # type: ignore[attr-defined]

Animal = Annotated[Cat | Dog, Field(discriminator="kind")]
Told = Annotated[
    Annotated[Model, Tag("model")] | Annotated[Admin, Tag("admin")],
    Discriminator(lambda value: "admin" if isinstance(value, Admin) else "model"),
]
ROW = {"name": "Ada", "password": SECRET}
ADA = {"name": "Ada"}

CASES: list[tuple[Any, Any, Any]] = [
    # pydantic
    (Model, Model(name="Ada"), ADA),
    (Model, ModelInDb(name="Ada"), ADA),
    (Model, ModelOther(name="Ada"), ADA),
    (Model, ROW, ADA),
    (Model, Foreign(name="Ada"), ADA),
    (Model, DataInDb("Ada"), ADA),
    (Model, RecordInDb("Ada"), ADA),
    (Model, {"password": SECRET}, FAULT),
    (Model, None, FAULT),
    (Model, 5, FAULT),
    (Model | None, None, None),
    (Model | None, ModelInDb(name="Ada"), ADA),
    (list[Model], [ModelInDb(name="Ada"), ROW, Foreign(name="Ada")], [ADA, ADA, ADA]),
    (tuple[Model, int], (ModelInDb(name="Ada"), 1), [ADA, 1]),
    (dict[str, Model], {"a": ModelInDb(name="Ada"), "b": ROW}, {"a": ADA, "b": ADA}),
    (dict[Annotated[str, Field(pattern="^[a-z]+$")], Model], {"a": ROW}, {"a": ADA}),
    (OpenModel, OpenModel(name="Ada", age=3), {"name": "Ada", "age": 3}),
    (OpenModel, OpenModelInDb(name="Ada"), ADA),
    (OpenModel, OpenModelInDb(name="Ada", age=3), {"name": "Ada", "age": 3}),
    (OpenModel, {"name": "Ada", "age": 3}, {"name": "Ada", "age": 3}),
    (OpenModel, DataInDb("Ada"), ADA),
    (OpenModel, Foreign(name="Ada"), ADA),
    (OpenTeam, {"lead": OpenModelInDb(name="Ada")}, {"lead": ADA}),
    (OpenTeam, OpenTeam.model_construct(lead=OpenModelInDb(name="Ada")), {"lead": ADA}),
    (OpenTeam, {"lead": OpenModelInDb(name="Ada"), "password": SECRET}, {"lead": ADA}),
    (OpenTeam, OpenTeam.model_construct(lead=DataInDb("Ada")), FAULT),
    (ClosedModel, {**ROW}, ADA),
    (ClosedModel, Foreign(name="Ada"), ADA),
    (Aliased, Aliased(userName="Ada"), {"userName": "Ada"}),
    (Aliased, AliasedInDb(userName="Ada"), {"userName": "Ada"}),
    (Aliased, {"userName": "Ada", "password": SECRET}, {"userName": "Ada"}),
    (Aliased, Foreign(user_name="Ada"), {"userName": "Ada"}),
    (TwoNames, TwoNames(u="Ada"), {"userName": "Ada"}),
    (TwoNames, {"userName": "Ada", "password": SECRET}, {"userName": "Ada"}),
    (Computed, Computed(first="Ada"), {"first": "Ada", "full": "Ada L."}),
    (Computed, ComputedInDb(first="Ada"), {"first": "Ada", "full": "Ada L."}),
    (Computed, {"first": "Ada", "password": SECRET}, {"first": "Ada", "full": "Ada L."}),
    (PageOf[Model], PageOf[ModelInDb](items=[ModelInDb(name="Ada")]), {"items": [ADA]}),
    (PageOf[Model], {"items": [ROW], "password": SECRET}, {"items": [ADA]}),
    (Users, Users([ModelInDb(name="Ada")]), [ADA]),
    (Users, [ROW], [ADA]),
    (
        Team,
        Team(lead=ModelInDb(name="Ada"), others={"x": ModelInDb(name="Ada")}),
        {"lead": ADA, "others": {"x": ADA}, "maybe": None},
    ),
    (
        Team,
        {"lead": ROW, "others": {"x": ROW}, "maybe": ROW, "password": SECRET},
        {"lead": ADA, "others": {"x": ADA}, "maybe": ADA},
    ),
    (Team, Team.model_construct(lead=ROW, others={}, maybe=None), {"lead": ADA, "others": {}, "maybe": None}),
    (Masked, MaskedInDb(name="Ada"), {"name": "A…"}),
    (Tree, TreeInDb(name="a", parts=[TreeInDb(name="b")]), {"name": "a", "parts": [{"name": "b", "parts": []}]}),
    (Anything, Anything(lead=ModelInDb(name="Ada")), {"lead": ADA}),  # the published schema is that of Model
    (ModelData, ModelDataInDb("Ada"), ADA),
    (ModelData, ROW, ADA),
    # unions
    (Model | Admin, ModelAsAdmin(name="Ada", rights=["all"]), ADA),
    (Model | Admin, Admin(name="Ada", rights=["all"]), {"name": "Ada", "rights": ["all"]}),
    (Model | Admin, {"name": "Ada", "rights": ["all"], "password": SECRET}, {"name": "Ada", "rights": ["all"]}),
    (Model | Admin, {"name": "Ada", "rights": "all", "password": SECRET}, ADA),
    (Model | Admin, {"password": SECRET}, FAULT),
    (list[Model | Admin], [ModelAsAdmin(name="Ada", rights=[])], [ADA]),
    (Animal, CatInDb(name="Tom"), {"kind": "cat", "name": "Tom"}),
    (Animal, {"kind": "cat", "name": "Tom", "bark": 5}, {"kind": "cat", "name": "Tom"}),
    (Animal, {"kind": "dog", "name": "Rex", "bark": 5, "password": SECRET}, {"kind": "dog", "name": "Rex", "bark": 5}),
    (Told, ModelAsAdmin(name="Ada", rights=["all"]), ADA),
    (Created | Deleted, Created("Ada"), {"type": "Created", "name": "Ada"}),
    (Created | Deleted, CreatedInDb("Ada"), {"type": "Created", "name": "Ada"}),
    (Created | Deleted, {"type": "Deleted", "at": 1, "name": "Ada"}, {"type": "Deleted", "at": 1}),
    (
        list[Created | Deleted | None],
        [CreatedInDb("Ada"), None, Deleted(1)],
        [{"type": "Created", "name": "Ada"}, None, {"type": "Deleted", "at": 1}],
    ),
    (Created | Deleted, {"type": "Stolen", "password": SECRET}, FAULT),
    (Data | None, None, None),
    (Data | list[Dict], [ROW], [ADA]),
    (Data | list[Dict], DataInDb("Ada"), ADA),
    # dataclasses and attrs
    (Data, Data("Ada"), ADA),
    (Data, DataInDb("Ada"), ADA),
    (Data, DataWithMore, ADA),
    (Data, ROW, ADA),
    (Data, Foreign(name="Ada"), ADA),
    (Data, ModelInDb(name="Ada"), ADA),
    (Data, None, FAULT),
    (Data, {"password": SECRET}, FAULT),
    (list[Data], [DataInDb("Ada"), ROW, Foreign(name="Ada")], [ADA, ADA, ADA]),
    (set[Color], {Color.RED}, ["red"]),
    (DataTeam, DataTeam(DataInDb("Ada"), {"x": DataInDb("Ada")}), {"lead": ADA, "others": {"x": ADA}, "maybe": None}),
    (DataTeam, {"lead": ROW, "password": SECRET}, {"lead": ADA}),
    (DataTree, DataTreeInDb("a", [DataTreeInDb("b")]), {"name": "a", "parts": [{"name": "b", "parts": []}]}),
    (DataOfModel, DataOfModel(ModelInDb(name="Ada")), {"lead": ADA}),
    (DataOfModel, {"lead": ROW, "password": SECRET}, {"lead": ADA}),
    (DataOfModel, {"lead": ModelInDb(name="Ada"), "password": SECRET}, {"lead": ADA}),
    (DataOfOpen, DataOfOpen(OpenModelInDb(name="Ada")), {"lead": ADA}),
    (DataOfOpen, {"lead": OpenModelInDb(name="Ada", age=1), "password": SECRET}, {"lead": {"name": "Ada", "age": 1}}),
    (DataOfOpen, {"lead": DataInDb("Ada")}, FAULT),
    (Summed, Summed("Ada"), {"name": "Ada", "total": 7}),
    (Hollow, Hollow(), {"name": None}),
    (Hollow, {}, {}),
    (Hollow, ROW, ADA),
    (Hollow, object(), FAULT),
    (Hollow, None, FAULT),
    (Attrs, AttrsInDb("Ada"), ADA),
    (Attrs, Foreign(name="Ada"), ADA),
    # msgspec
    (Record, RecordInDb("Ada"), ADA),
    (Record, ROW, ADA),
    (Renamed, RenamedInDb("Ada"), {"userName": "Ada"}),
    (Renamed, {"userName": "Ada", "passWord": SECRET}, {"userName": "Ada"}),
    (Sparse, Sparse("Ada"), ADA),
    (Row, RowInDb("Ada"), ["Ada"]),
    (Row, ["Ada", SECRET], ["Ada"]),
    (Created, CreatedInDb("Ada"), {"type": "Created", "name": "Ada"}),
    (PageOfRecords[Record], PageOfRecords([RecordInDb("Ada")]), {"items": [ADA]}),
    (dict[str, PageOfRecords[Record] | None], {"a": PageOfRecords([RecordInDb("Ada")])}, {"a": {"items": [ADA]}}),
    # TypedDict, NamedTuple, plain containers
    (Dict, ROW, ADA),
    (Dict, DataInDb("Ada"), ADA),
    (PartDict, {**ROW, "age": 3}, {"name": "Ada", "age": 3}),
    (PartDict, ROW, ADA),
    (MixedDict, ROW, ADA),
    (DictOfDicts, {"lead": ROW, "others": [ROW], "password": SECRET}, {"lead": ADA, "others": [ADA]}),
    (OpenDict, {"name": "Ada", "age": 3}, {"name": "Ada", "age": 3}),
    (OpenDict, ROW, FAULT),
    (OpenDictOfDicts, {"name": "Ada", "more": ROW}, {"name": "Ada", "more": ADA}),
    (LaterOpenDict, {"name": "Ada", "age": 1, "more": 2}, {"name": "Ada", "age": 1, "more": 2}),
    (FreeDict, ROW, ROW),
    (ClosedDict, ROW, ADA),
    (list[OpenDict], [{"name": "Ada", "age": 3}], [{"name": "Ada", "age": 3}]),
    (Pair, Pair("a", DataInDb("Ada")), ["a", ADA]),
    (Pair, ("a", ROW), ["a", ADA]),
    (Pair, namedtuple("Wide", "name lead password")("a", ROW, SECRET), ["a", ADA]),
    (dict[str, Any], ROW, ROW),
    (dict, ROW, ROW),
    (Annotated[Dict, "described"], ROW, ADA),
    (Annotated[list[Dict], Meta(max_length=1)], [ROW], [ADA]),
    (Annotated[list[Dict], Meta(max_length=1)], [ROW, ROW], FAULT),
    (dict[str, UUID], {"a": str(UUID(int=1))}, {"a": str(UUID(int=1))}),
    (dict[str, int], {"a": 1.0}, {"a": 1}),
    (dict[str, datetime], {"a": datetime(2026, 1, 1)}, FAULT),
    (dict[str, datetime], {"a": datetime(2026, 1, 1, tzinfo=UTC)}, {"a": "2026-01-01T00:00:00Z"}),
    (None, ROW, {}),
]


def plan(returns: Any) -> OutputFilter:
    adapted = adapt(returns)
    try:
        published: Any = output_schema(adapted)
    except Exception:  # noqa: BLE001 - not an object, which a contract may declare by hand
        published = None
    return OutputFilter("FETCH /user", adapted, published)


def send(returns: Any, value: Any) -> Any:
    """Return what is sent of a value."""
    kept = plan(returns)
    body = kept.encode(value)
    try:
        selected = kept.select(value)
    except UnfitResult:
        assert body is None
        return FAULT
    written = msgspec.json.decode(msgspec.json.encode(selected))
    assert body is None or msgspec.json.decode(body) == written
    return written


@pytest.mark.parametrize(("returns", "value", "sent"), CASES)
def test_only_declared_fields_are_sent(returns: Any, value: Any, sent: Any) -> None:
    assert send(returns, value) == sent


NAMED: list[tuple[Any, Any, list[str]]] = [
    (Model, ModelInDb(name="Ada"), ["password"]),
    (Model, ROW, ["password"]),
    (Data, DataInDb("Ada"), ["password"]),
    (Dict, ROW, ["password"]),
    (list[Model], [Model(name="Ada"), ModelInDb(name="Ada")], ["password"]),
    (DictOfDicts, {"lead": ROW, "others": [{**ROW, "salt": 1}], "key": 2}, ["key", "password", "salt"]),
    (Team, Team(lead=ModelInDb(name="Ada")), ["password"]),
    (Data, Data("Ada"), []),
    (dict[str, Any], ROW, []),
]


@pytest.mark.parametrize("way", ["encode", "select"])
def test_dropped_fields_are_named_once_as_warning_and_without_value(way: str, caplog: pytest.LogCaptureFixture) -> None:
    for returns, value, names in NAMED:
        caplog.clear()
        kept = plan(returns)
        for _ in range(3):
            if way == "select" or kept.encode(value) is None:
                kept.select(value)
        said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        assert len(said) == bool(names)
        assert all(f"which were not sent: {', '.join(map(repr, names))}" in text for text in said)
        assert all("FETCH /user" in text and SECRET not in text for text in said)


def test_new_dropped_fields_are_named_up_to_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    kept = plan(Dict)
    for more in ({"a": 1}, {"a": 1, "b": 2}):
        kept.encode({"name": "Ada", **more})
    assert [record.getMessage()[-4:] for record in caplog.records] == [" 'a'", " 'b'"]
    kept = plan(Model)
    for number in range(200):
        kept.select({"name": "Ada", **{f"field_{number}_{each}": 1 for each in range(20)}})
    assert sum(record.getMessage().count("field_") for record in caplog.records) == 50


def test_rows_of_one_type_are_looked_through_rarely_after_the_first_ones() -> None:
    looked = 0

    kept = plan(Dict)
    original = kept._look_through

    def look(result: Any, sent: Any) -> None:
        nonlocal looked
        looked += 1
        original(result, sent)

    kept._look_through = look  # type: ignore[method-assign]
    for _ in range(1000):
        kept.encode(ADA)
    assert 100 <= looked < 130


def test_alternatives_inside_of_alternatives_take_linear_time() -> None:
    def nested(depth: int) -> Any:
        value: Any = {"name": "leaf", "password": SECRET}
        for _ in range(depth):
            value = {"name": "node", "left": value, "password": SECRET}
        return value

    assert SECRET not in str(plan(Left | Right).select(nested(40)))

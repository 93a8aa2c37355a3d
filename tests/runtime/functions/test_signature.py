"""What a handler function declares: its parameters, types, docstring and errors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Annotated, Any, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest
import typing_extensions
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.cases import rows

from bespeak.contract import handler
from bespeak.contract.handler import Refusal
from bespeak.contract.handler import Refusal as No
from bespeak.errors import ContractError
from bespeak.protocol.exchange.messages import Connection, Context, Request
from bespeak.protocol.exchange.principal import ANONYMOUS
from bespeak.runtime.functions.output_filter import Shadow, Unshadowed
from bespeak.runtime.functions.reading import Prose, locate, parse_docstring, read_handler, refused_names
from bespeak.runtime.functions.signature import (
    MISSING,
    ConversionError,
    HandlerParameter,
    function_name,
    list_parameters,
    plan_call,
    read_signature,
)

if TYPE_CHECKING:
    from decimal import Decimal


def plain(a: int, b: str = "x", *, c: float) -> None: ...


def with_context(a: int, call: Context, b: int) -> None: ...


def by_name(a: int, ctx) -> None: ...  # type: ignore[no-untyped-def]


def optional_context(a: int, call: Context | None = None) -> None: ...


def text_called_context(context: str) -> None: ...


def unresolved(price: Decimal) -> None: ...


def no_type(a: "1 +") -> None: ...  # type: ignore[valid-type]  # noqa: F722


def two_contexts(context: Context, other: Context) -> None: ...


def positions(*values: int) -> None: ...


class Handler:
    def __call__(self, a: int) -> None: ...

    def method(self, a: int) -> None: ...


def test_a_parameter_has_its_annotation_default_and_kind() -> None:
    assert read_signature(plain).parameters == (
        HandlerParameter("a", int, MISSING, False),
        HandlerParameter("b", str, "x", False),
        HandlerParameter("c", float, MISSING, True),
    )


def test_the_context_is_known_by_annotation_place_or_name() -> None:
    signature = read_signature(with_context)
    assert (signature.context.name, signature.context_at) == ("call", 1)
    assert [parameter.name for parameter in signature.parameters] == ["a", "b"]
    assert read_signature(optional_context).context is not None
    assert read_signature(by_name).context is not None
    assert read_signature(text_called_context).context is None
    assert read_signature(by_name, {"ctx"}).context is None


@rows(
    "function, said",
    (two_contexts, "one is enough"),
    (positions, r"\*values"),
    (unresolved, "'Decimal' is not defined"),
    (no_type, "not a type"),
)
def test_a_function_that_cannot_be_read_is_explained(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(ContractError, match=said):
        read_signature(function)


@pytest.mark.parametrize("function", [Handler(), Handler().method, functools.partial(plain, b="y", c=1.0)])
def test_every_callable_can_be_read(function: Any) -> None:
    assert read_signature(function).parameters[0].annotation is int


def test_callables_have_the_name_of_their_class_and_schema_defaults_fill_in() -> None:
    assert function_name(Handler()) == "Handler"
    assert function_name(plain) == "plain"

    def handler(day: date) -> Any:
        return day

    assert plan_call(handler, schema(day={"default": "2026-01-01"}))({}, CONTEXT) == date(2026, 1, 1)


def test_a_function_is_read_once_and_may_take_nothing_or_one_property() -> None:
    assert read_signature(plain) is read_signature(plain, {"a"})
    assert read_signature(by_name) is not read_signature(by_name, {"ctx"})
    assert plan_call(lambda: {"a": 1}, schema())({}, CONTEXT) == {"a": 1}
    assert plan_call(whole_unannotated, schema("body"))({"body": 5}, CONTEXT) == 5


def test_a_callable_object_need_not_be_hashable() -> None:
    @dataclass
    class Handler:
        tries: list[int]

        def __call__(self, room: int) -> None: ...

    assert [parameter.name for parameter in read_signature(Handler([])).parameters] == ["room"]


def everything(a, /, b: int, c=1, *rest, d, e=2, **more) -> None: ...  # type: ignore[no-untyped-def]


def wrapped(a: int, b: int = 1, *, c: str = "x") -> None: ...


@functools.wraps(wrapped)
def wrapper(*arguments: Any, **named: Any) -> None: ...


@pytest.mark.parametrize("function", [everything, plain, wrapper, lambda: None, lambda *a: a, lambda *, a: a])
def test_a_function_is_read_as_inspect_reads_it(function: Callable[..., Any]) -> None:
    raw = inspect.signature(function).parameters.values()
    listed = list(list_parameters(function))
    assert sorted((name, repr(default)) for name, _, default in listed) == sorted(
        (p.name, repr(p.default)) for p in raw
    )
    for kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        assert [name for name, its, _ in listed if its is kind] == [p.name for p in raw if p.kind is kind]


GUEST = "e50f7480-8398-4b33-9507-63017246837d"
CONTEXT = Context(Request("BOOK", "/room", "", {}, b"", Connection()), ANONYMOUS, "BOOK", "/room", {"a": 1})


def schema(*required: str, **optional: Any) -> dict[str, Any]:
    properties: dict[str, Any] = {name: {} for name in required}
    return {"type": "object", "properties": {**properties, **optional}, "required": list(required)}


def refusal(function: Callable[..., Any], input_schema: Mapping[str, Any]) -> str:
    with pytest.raises(ContractError) as caught:
        plan_call(function, input_schema)
    return str(caught.value)


class Stay(pydantic.BaseModel):
    nights: int = pydantic.Field(gt=0)
    room: str


class Options(TypedDict):
    view: str


@dataclass
class Place:
    street: str


def test_values_arrive_as_the_annotated_types() -> None:
    def book(guest_id: UUID, arrival: date, place: Place, nights: int = 1) -> Any:
        return guest_id, arrival, place, nights

    call = plan_call(book, schema("guest_id", "arrival", "place", nights={}))
    assert call({"guest_id": GUEST, "arrival": "2026-12-01", "place": {"street": "x"}}, CONTEXT) == (
        UUID(GUEST),
        date(2026, 12, 1),
        Place("x"),
        1,
    )


@pytest.mark.anyio
async def test_a_coroutine_function_gives_its_coroutine() -> None:
    async def book(nights: int) -> int:
        return nights

    assert await plan_call(book, schema("nights"))({"nights": 2}, CONTEXT) == 2


def context_first(call: Context, a: int, b: int) -> Any:
    return call, a, b


def context_between(a: int, call: Context, b: int) -> Any:
    return call, a, b


def context_last(a: int, b: int, ctx) -> Any:  # type: ignore[no-untyped-def]
    return ctx, a, b


def context_by_keyword(a: int, b: int, *, call: Context) -> Any:
    return call, a, b


def parameter_by_keyword(call: Context, *, a: int, b: int) -> Any:
    return call, a, b


@pytest.mark.parametrize(
    "function", [context_first, context_between, context_last, context_by_keyword, parameter_by_keyword]
)
def test_the_context_may_be_any_parameter(function: Callable[..., Any]) -> None:
    assert plan_call(function, schema("a", "b"))({"a": 1, "b": 2}, CONTEXT) == (CONTEXT, 1, 2)


def only_context(context) -> Any:  # type: ignore[no-untyped-def]
    return context


def only_context_by_keyword(*, call: Context) -> Any:
    return call


@pytest.mark.parametrize("function", [only_context, only_context_by_keyword])
def test_a_function_of_the_context_alone_gets_the_input_there(function: Callable[..., Any]) -> None:
    assert plan_call(function, schema("a", "b"))({"a": 1, "b": 2}, CONTEXT) is CONTEXT


def whole_unannotated(body) -> Any:  # type: ignore[no-untyped-def]
    return body


def whole_dict(payload: dict[str, Any]) -> Any:
    return payload


def whole_mapping(payload: Mapping[str, Any], context) -> Any:  # type: ignore[no-untyped-def]
    assert context is CONTEXT
    return payload


def whole_by_keyword(*, payload: dict) -> Any:  # type: ignore[type-arg]
    return payload


@pytest.mark.parametrize("function", [whole_unannotated, whole_dict, whole_mapping, whole_by_keyword])
def test_a_single_parameter_that_is_not_a_property_gets_the_whole_input(function: Callable[..., Any]) -> None:
    values = {"a": 1, "b": 2}
    assert plan_call(function, schema("a", "b"))(values, CONTEXT) is values


def test_rest_receives_the_undeclared_properties() -> None:
    def handler(a: date, **rest: Any) -> Any:
        return a, rest

    call = plan_call(handler, schema("a", "b", "c-d"))
    assert call({"a": "2026-01-01", "b": 2, "c-d": 3}, CONTEXT) == (date(2026, 1, 1), {"b": 2, "c-d": 3})


def test_a_mismatch_is_refused_with_the_names() -> None:
    def handler(a: int, b: int) -> None: ...

    def opaque(a: complex) -> None: ...

    def wide(a: Options) -> None: ...

    assert refusal(handler, schema("a", "b", "c")) == "handler(): the input has 'c', which the function does not take"
    assert refusal(handler, schema("a")) == "handler(): the function needs 'b', which the input does not have"
    assert "may lack 'b', but the parameter has no default" in refusal(handler, schema("a", b={}))
    assert "default of 'b' does not fit" in refusal(handler, schema("a", b={"default": "x"}))
    assert "the parameter 'a' is annotated with complex, which has no JSON" in refusal(opaque, schema("a"))
    assert "has 'view', which the function does not take" in refusal(wide, schema("view"))
    assert "cannot be filled" in refusal(lambda *values: None, schema())


def test_a_value_that_no_type_can_hold_is_a_violation_with_its_place() -> None:
    def handler(at: time, places: list[dict[str, UUID]]) -> None: ...

    call = plan_call(handler, schema("at", "places"))
    with pytest.raises(ConversionError) as caught:
        call({"at": "24:00:00", "places": []}, CONTEXT)
    assert [violation.pointer for violation in caught.value.violations] == ["/at"]
    with pytest.raises(ConversionError) as caught:
        call({"at": "10:00:00", "places": [{}, {"x": "no"}]}, CONTEXT)
    assert [violation.pointer for violation in caught.value.violations] == ["/places/1"]
    assert caught.value.violations[0].message == "Invalid UUID"


def test_a_whole_float_is_an_integer_as_json_schema_has_it() -> None:
    def handler(a: int, b: list[int], c: float) -> Any:
        return a, b, c

    result = plan_call(handler, schema("a", "b", "c"))({"a": 2.0, "b": [3.0], "c": 4.0}, CONTEXT)
    assert result == (2, [3], 4.0)
    assert [type(value) for value in result] == [int, list, float]


def test_a_pydantic_model_validates_itself_and_all_its_errors_are_reported() -> None:
    def handler(stay: Stay) -> Any:
        return stay

    call = plan_call(handler, schema("stay"))
    assert call({"stay": {"nights": 2, "room": "12"}}, CONTEXT) == Stay(nights=2, room="12")
    with pytest.raises(ConversionError) as caught:
        call({"stay": {"nights": 0}}, CONTEXT)
    assert [violation.pointer for violation in caught.value.violations] == ["/stay/nights", "/stay/room"]


def test_an_error_of_the_function_itself_passes_through() -> None:
    def handler(a: int) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        plan_call(handler, schema("a"))({"a": 1}, CONTEXT)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(JSON, JSON)
def test_any_json_is_converted_or_refused(first: Any, second: Any) -> None:
    def handler(a: UUID | int | None, b: dict[str, list[date]]) -> str:
        return "called"

    try:
        outcome = plan_call(handler, schema("a", "b"))({"a": first, "b": second}, CONTEXT)
    except ConversionError as error:
        outcome = error.violations
    assert outcome


async def cancel(reservation_id: str, context) -> None:  # type: ignore[no-untyped-def]
    """Cancel a reservation.

    Args:
        reservation_id: Which one.
        context: Who calls.

    Outcome: It is cancelled.
    """
    raise Refusal("not_found")


def mistaken(a: int) -> None:
    """Do it.

    Args:
        b: No such parameter.
    """


def test_a_function_is_read_as_a_whole() -> None:
    reading = read_handler(cancel)
    assert reading.prose.intent == "Cancel a reservation."
    assert reading.input_schema["properties"] == {"reservation_id": {"type": "string", "description": "Which one."}}
    assert reading.output_schema["type"] == "object"
    assert [name for name, _ in reading.refused] == ["not_found"]
    assert reading.is_async


def test_a_described_parameter_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ContractError, match="describes 'b'"):
        read_handler(mistaken)


def test_names_and_functions_have_a_place() -> None:
    place = locate(cancel)
    assert (place.file, place.line) == (__file__, cancel.__code__.co_firstlineno)
    assert locate(len) is None
    assert list(refused_names(direct)) == [("taken", direct.__code__.co_firstlineno + 1)]
    assert names(several) == {"renamed", "qualified"}
    assert names(inner) == {"inside"}
    assert names(logged(direct)) == {"taken"}


def direct() -> None:
    raise Refusal("taken", "It is taken.")


def several(name: str) -> None:
    if name:
        raise No("renamed")
    raise handler.Refusal("qualified")


def inner() -> None:
    def later() -> None:
        raise Refusal("inside")

    later()


def made_at_run_time(name: str) -> None:
    raise Refusal(name)


def harmless() -> str:
    return "Refusal('nothing')"


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


def names(function: Callable[..., Any]) -> set[str]:
    return {name for name, _ in refused_names(function)}


def test_computed_names_are_left_to_the_dispatcher() -> None:
    assert names(made_at_run_time) == set()
    assert names(harmless) == set()
    assert names(len) == set()
    space: dict[str, Any] = {"Refusal": Refusal}
    exec("def handler():\n    raise Refusal('no source')", space)
    assert names(space["handler"]) == set()


FULL = """Reserve a room for the named guest
    at the named property.

    More prose, for people only.
    Note: not an outcome.

    Args:
        guest_id: Who stays.
        room_id (str): Which room, as the
            catalog of rooms names it.

    Outcome: A confirmed reservation exists
    and its id is returned.

    Errors:
        room_unavailable: The room is taken.
        invalid_dates: Departure is not after arrival: at
            least one night.

    Returns:
        other: nothing of this is read.
    """


def test_a_docstring_is_taken_apart() -> None:
    assert parse_docstring(FULL) == Prose(
        intent="Reserve a room for the named guest at the named property.",
        outcome="A confirmed reservation exists and its id is returned.",
        parameters={"guest_id": "Who stays.", "room_id": "Which room, as the catalog of rooms names it."},
        errors={
            "room_unavailable": "The room is taken.",
            "invalid_dates": "Departure is not after arrival: at least one night.",
        },
    )


@rows(
    "text, prose",
    (None, Prose()),
    ("   ", Prose()),
    # The outcome may directly follow the intent, or begin on the next line.
    ("Do it.\nOutcome: It is done.", Prose(intent="Do it.", outcome="It is done.")),
    ("Do it.\n\nOutcome:\n    It is done.\n\nMore.", Prose(intent="Do it.", outcome="It is done.")),
    # A word with a colon is only a heading if it is known.
    ("Beware: this is hot.", Prose(intent="Beware: this is hot.")),
)
def test_a_short_docstring_is_read(text: str | None, prose: Prose) -> None:
    assert parse_docstring(text) == prose


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    prose = parse_docstring(text)
    assert prose.intent == " ".join(prose.intent.split())


@dataclass
class Chain:
    """A type that refers to itself."""

    name: str
    rest: Chain | None = None


class Model(BaseModel):
    """A type of pydantic."""

    name: str


class Open(typing_extensions.TypedDict, extra_items=int):
    """A type with room for more."""

    name: str


class Priced(TypedDict):
    """A type with a number that may be infinite."""

    price: Annotated[float, msgspec.Meta(ge=0)]


def test_a_shadow_holds_the_declared_fields_at_every_depth() -> None:
    value = {"name": "a", "key": 1, "rest": {"name": "b", "key": 2}}
    assert msgspec.to_builtins(Shadow(Chain).convert(value)) == {"name": "a", "rest": {"name": "b"}}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(Chain, {"rest": None}), (Chain, 5), (Priced, {"price": -1}), (list[datetime], [datetime(2026, 1, 1)])],
)
def test_a_value_of_another_type_is_refused(annotation: Any, value: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        Shadow(annotation).convert(value)


@rows(
    "annotation, dumps, is_exact, has_numbers",
    (Chain, False, True, False),
    (Priced, False, True, True),
    (list[Model], True, True, True),
    (dict[str, Annotated[str, msgspec.Meta(pattern="^a")]], False, False, False),
    (list[Annotated[int, msgspec.Meta(extra_json_schema={"format": "odd"})]], False, False, False),
    (list[Annotated[int, msgspec.Meta(description="an odd number")]], False, True, False),
)
def test_a_shadow_knows_what_it_does_not_check(annotation: Any, dumps: bool, is_exact: bool, has_numbers: bool) -> None:
    shadow = Shadow(annotation)
    assert (shadow.dumps, shadow.is_exact, shadow.has_numbers) == (dumps, is_exact, has_numbers)


@pytest.mark.parametrize("annotation", [Open, msgspec.Raw, list[Iterator[int]]])
def test_some_types_have_no_shadow(annotation: Any) -> None:
    with pytest.raises((Unshadowed, TypeError)):
        Shadow(annotation)


def test_every_parameter_that_cannot_be_converted_is_listed() -> None:
    def handler(opens: time, closes: time, pause: time) -> None: ...

    handler.__annotations__ = {"opens": time, "closes": time, "pause": time, "return": None}
    names = ("opens", "closes", "pause")
    call = plan_call(handler, {"properties": dict.fromkeys(names, True), "required": names})
    with pytest.raises(ConversionError) as caught:
        call({"opens": "early", "closes": "late", "pause": "12:00:00"}, CONTEXT)
    assert [one.pointer for one in caught.value.violations] == ["/opens", "/closes"]

"""Unions that msgspec does not read, and parameters that are the whole input."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import date, time
from typing import Annotated, Any, Literal, TypedDict

import attrs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from tests.cases import check_each, rows

import bespeak
from bespeak import App, Body, Context, ContractError, Policies
from bespeak.contract.schema.subschemas import rewrite, transplant
from bespeak.runtime.functions.annotations import adapt
from bespeak.runtime.functions.output_filter import OutputFilter, UnfitResult
from bespeak.runtime.functions.reading import input_schema
from bespeak.runtime.functions.signature import plan_call, read_signature


@dataclasses.dataclass
class Card:
    kind: Literal["card"]
    number: str


@dataclasses.dataclass
class Transfer:
    kind: Literal["transfer"]
    iban: str


@dataclasses.dataclass
class Cash:
    coins: int


@attrs.define
class Cheque:
    bank: str


class Voucher(TypedDict):
    code: str


class Points(msgspec.Struct):
    points: int


class Gift(BaseModel):
    sender: str


class TaggedCard(msgspec.Struct, tag="card"):
    number: str


class TaggedTransfer(msgspec.Struct, tag="transfer"):
    iban: str


class ModelCard(BaseModel):
    kind: Literal["card"]
    number: str


class ModelTransfer(BaseModel):
    kind: Literal["transfer"]
    iban: str


@dataclasses.dataclass
class Order:
    payment: Card | Transfer
    note: str = ""


CARD, TRANSFER = {"kind": "card", "number": "1"}, {"kind": "transfer", "iban": "DE1"}
UNIONS: dict[str, tuple[Any, list[Any]]] = {
    "dataclasses": (Card | Transfer, [CARD, TRANSFER]),
    "without a discriminator": (Cash | Cheque | Voucher | Points | Gift, []),
    "pydantic models": (ModelCard | ModelTransfer, [CARD, TRANSFER]),
    "a discriminator of pydantic": (Annotated[ModelCard | ModelTransfer, Field(discriminator="kind")], [CARD]),
    "tagged Structs": (TaggedCard | TaggedTransfer, [{"type": "card", "number": "1"}]),
    "inside of a class": (Order, [{"payment": CARD, "note": ""}, {"payment": TRANSFER, "note": "x"}]),
}
UNIONS["without a discriminator"][1].extend(
    [{"coins": 1}, {"bank": "b"}, {"code": "c"}, {"points": 2}, {"sender": "Ann"}]
)


def app_of(handler: Callable[..., Any], path: str = "/payment") -> App:
    policies = Policies(scope_required_for_invocation=False)
    app = App("Pay", server_id="pay.example", operator="Tests", contact="ops@pay.example", policies=policies)
    handler.__doc__ = "Fetch a payment.\n\nOutcome: The payment is returned."
    app.endpoint("FETCH", path, impact="informational")(handler)
    return app


def echo(kind: Any) -> App:
    def handler(one: Any, many: Any = None) -> Any:
        return [one, *(many or [])]

    handler.__annotations__ = {"one": kind, "many": list[kind] | None, "return": list[kind]}
    return app_of(handler)


def received(kind: Any, value: Any) -> Any:
    def handler(value: Any) -> Any:
        return value

    handler.__annotations__ = {"value": kind}
    schema = input_schema(read_signature(handler), {})
    return plan_call(handler, schema)({"value": value}, msgspec.UNSET)  # type: ignore[arg-type] # the context is unused


def sent(kind: Any, result: Any) -> Any:
    adapted = adapt(kind)
    return OutputFilter("FETCH /payment", adapted, None).select(result)


@pytest.mark.filterwarnings("error")
def test_each_member_of_a_union_is_read_and_sent_alone_and_in_lists() -> None:
    def check(name: str) -> None:
        kind, values = UNIONS[name]
        with bespeak.connect_sync(echo(kind)) as service:
            for value in values:
                assert service.call("FETCH", "/payment", one=value, many=[value]) == [value, value]
            assert service.request("FETCH", "/payment", {"one": {"nothing": 1}}).status == 422

    check_each(UNIONS, check)


@rows(
    "kind, value, expected",
    (Card | Transfer, TRANSFER, Transfer("transfer", "DE1")),
    (Card | Transfer | None, None, None),
    (list[Cash | Cheque], [{"bank": "b"}, {"coins": 1}], [Cheque("b"), Cash(1)]),
    (dict[str, Gift | Points], {"a": {"points": 1}}, {"a": Points(1)}),
    (Order, {"payment": CARD}, Order(Card("card", "1"))),
    (date | str, "2027-05-01", date(2027, 5, 1)),
    (date | str, "soon", "soon"),
    (str | date, "2027-05-01", "2027-05-01"),
    (list[int] | list[str], ["a"], ["a"]),
)
def test_a_value_becomes_the_first_member_that_admits_it(kind: Any, value: Any, expected: Any) -> None:
    assert received(kind, value) == expected
    assert type(received(kind, value)) is type(expected)


payments = st.one_of(
    st.builds(Cash, st.integers(-(2**53), 2**53)),
    st.builds(Cheque, st.text()),
    st.builds(lambda code: Voucher(code=code), st.text()),
    st.builds(Points, st.integers(-(2**53), 2**53)),
    st.builds(lambda sender: Gift(sender=sender), st.text()),
)


@given(st.lists(payments, max_size=5))
def test_values_of_a_union_keep_their_type_on_the_way_through_json(values: list[Any]) -> None:
    kind = list[Cash | Cheque | Voucher | Points | Gift]
    written = msgspec.json.encode(sent(kind, values))
    back = received(kind, msgspec.json.decode(written))
    assert back == values
    assert [type(one) for one in back] == [type(one) for one in values]


def test_a_discriminator_is_published_where_every_member_requires_one() -> None:
    def schema(kind: Any) -> Any:
        def handler(value: Any) -> None: ...

        handler.__annotations__ = {"value": kind}
        return input_schema(read_signature(handler), {})["properties"]["value"]

    for kind, card in ((Card | Transfer, "Card"), (ModelCard | ModelTransfer, "ModelCard")):
        found = schema(kind)
        assert found["discriminator"]["propertyName"] == "kind"
        assert found["discriminator"]["mapping"]["card"] == f"#/$defs/{card}" == found["oneOf"][0]["$ref"]
    assert schema(Cash | Cheque) == {"anyOf": [{"$ref": "#/$defs/Cash"}, {"$ref": "#/$defs/Cheque"}]}


@dataclasses.dataclass
class SecretCash(Cash):
    bank: str = "hidden"


class Foreign:
    coins = 3
    password = "hidden"


@rows(
    "result, expected",
    (SecretCash(1), {"coins": 1}),
    (Foreign(), {"coins": 3}),
    ({"coins": 1, "password": "hidden"}, {"coins": 1}),
    ({"bank": "b", "password": "hidden"}, {"bank": "b"}),
)
def test_a_result_is_sent_as_the_member_that_it_is_without_other_fields(result: Any, expected: Any) -> None:
    assert sent(Cash | Cheque, result) == expected
    assert sent(list[Cash | Cheque], [result, Cheque("b")]) == [expected, {"bank": "b"}]


def test_a_broken_value_of_one_member_is_not_sent_as_another() -> None:
    broken = SecretCash("many", "b")  # type: ignore[arg-type] # as a handler without types may
    with pytest.raises(UnfitResult):
        sent(Cash | Cheque, broken)


@rows(
    "value, pointer, said",
    ({"kind": "card", "number": 1}, "/one/number", '1 is not of type "string"'),
    ({"kind": "card", "iban": "DE1"}, "/one", '"number" is a required property'),
)
def test_a_refusal_names_the_violations_of_the_member_that_was_meant(value: Any, pointer: str, said: str) -> None:
    with bespeak.connect_sync(echo(Card | Transfer)) as service:
        reply = service.request("FETCH", "/payment", {"one": value})
    listed = reply.json()["error"]["violations"]
    assert (pointer, said) in [(one["pointer"], one["message"]) for one in listed]
    assert "oneOf" not in {one["keyword"] for one in listed}


def test_a_union_that_nothing_can_read_is_refused_with_its_member() -> None:
    with pytest.raises(ContractError, match=r"annotated with Cash \| complex, which contains complex"):
        received(Cash | complex, {})

    class Box(msgspec.Struct):
        inner: Cash | Cheque

    with pytest.raises(ContractError, match=r"give these a tag"):
        received(Box, {})


def test_a_discriminator_follows_the_definitions_that_it_names() -> None:
    [endpoint] = echo(Card | Transfer).service().endpoints
    moved = transplant(endpoint.input_schema, lambda parts: f"#/components/schemas/{parts[-1]}")
    assert moved["properties"]["one"]["discriminator"]["mapping"]["card"] == "#/components/schemas/Card"
    renamed = rewrite(endpoint.input_schema, lambda reference: reference.replace("$defs", "schemas"))
    assert renamed["properties"]["one"]["discriminator"]["mapping"]["card"] == "#/schemas/Card"


@dataclasses.dataclass
class Booking:
    room: str
    at: time
    nights: int = 1


def book(booking: Annotated[Booking, Body()]) -> Booking:
    return booking


def book_for(guest_id: int, context: Context, booking: Annotated[Booking, Body()]) -> dict[str, Any]:
    return {"guest_id": guest_id, "room": booking.room}


def pay(stay_id: int, payment: Annotated[Card | Transfer, Body]) -> Card | Transfer:
    assert type(payment) is Card
    return payment


def test_one_parameter_may_be_the_whole_input() -> None:
    with bespeak.connect_sync(app_of(book)) as service:
        whole = {"room": "12", "at": "14:00:00", "nights": 2}
        assert service.call("FETCH", "/payment", **whole) == whole
        reply = service.request("FETCH", "/payment", {"room": "12", "at": "noon"})
        assert [one["pointer"] for one in reply.json()["error"]["violations"]] == ["/at"]
        assert service.request("FETCH", "/payment", {"booking": whole}).status == 422
    [endpoint] = app_of(book).service().endpoints
    assert list(endpoint.input_schema["properties"]) == ["room", "at", "nights"]


def test_parameters_of_the_path_stand_beside_the_whole_input() -> None:
    with bespeak.connect_sync(app_of(book_for, "/guests/{guest_id}/stay")) as service:
        called = service.call("FETCH", "/guests/7/stay", room="12", at="14:00:00")
    assert called == {"guest_id": 7, "room": "12"}


def test_a_union_may_be_the_whole_input() -> None:
    app = app_of(pay, "/stays/{stay_id}/payment")
    with bespeak.connect_sync(app) as service:
        assert service.call("FETCH", "/stays/7/payment", **CARD) == CARD
        for wrong in ({**CARD, "iban": "DE1"}, {"kind": "card"}, {}, {**CARD, "stay_id": 8}):
            assert service.request("FETCH", "/stays/7/payment", wrong).status == 422, wrong
    [endpoint] = app.service().endpoints
    assert endpoint.input_schema["type"] == "object"


def _two(first: Annotated[Cash, Body()], second: Annotated[Cheque, Body()]) -> None: ...
def _default(cash: Annotated[Cash, Body()] = Cash(1)) -> None: ...  # noqa: B008 - what is refused
def _collides(coins: int, cash: Annotated[Cash, Body()]) -> None: ...
def _scalar(amount: Annotated[int, Body()]) -> None: ...
def _half(cash: Annotated[Cash | int, Body()]) -> None: ...


@rows(
    "function, said",
    (_two, "'first', 'second' are marked as the whole input: mark one"),
    (_default, "'cash' is the whole input: remove its default"),
    (_collides, "Cash has 'coins', which is also a parameter"),
    (_scalar, "the whole input 'amount' must be an object with fields, or a union of such; got int"),
    (_half, "must be an object with fields, or a union of such; got Cash | int"),
)
def test_a_whole_input_that_is_not_one_object_is_refused(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(ContractError) as caught:
        input_schema(read_signature(function), {})
    assert said in str(caught.value)

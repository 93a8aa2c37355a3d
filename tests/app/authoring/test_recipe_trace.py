"""Recipes from Python functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any, TypedDict

import msgspec
import pytest
from tests.cases import rows
from tests.compositions import captured, given, item, recipe, step
from tests.service import Bench

from bespeak import App, ContractError
from bespeak.app.authoring.recipe_trace import Traced, as_conditions, as_members, as_source
from bespeak.app.server.assembly import assemble
from bespeak.contract.recipe import Compensation, Condition, Paging, Retry, Source, constant
from bespeak.errors import ContractError as ErrorsContractError


class Room(TypedDict):
    room_id: str
    price: float


class Rooms(TypedDict):
    rooms: list[Room]


class Stay(TypedDict):
    reservation_id: str
    price: float


def make_app() -> App:
    app = App(
        "Rooms",
        server_id="rooms.example",
        operator="Acme",
        contact="ops@rooms.example",
    )

    @app.endpoint("FIND", "/rooms", impact="informational", inline=True)
    def find_rooms(city: str) -> Rooms:
        """Find rooms in a city.

        Outcome: The free rooms are returned.
        """
        return {"rooms": [{"room_id": "a", "price": 90.0}, {"room_id": "b", "price": 40.0}]}

    @app.endpoint("BOOK", "/room", impact="reversible", inline=True)
    def book_room(room_id: str, guest: str) -> dict[str, str]:
        """Book a room for a guest.

        Outcome: A reservation exists.
        """
        return {"reservation_id": f"{room_id}-{guest}"}

    return app


def test_a_function_becomes_a_composition() -> None:
    app = make_app()

    @app.recipe("RESERVE", "/stay", impact="reversible")
    @app.recipe("BOOK", "/stay", impact="reversible")
    def book_cheapest(city: str, guest: str, max_price: float = 100.0) -> Stay:
        """Book the cheapest room of a city.

        Outcome: A reservation of the cheapest room exists.
        """
        found = app.step("FIND", "/rooms", {"city": city}, name="found")
        room = found.rooms.where(lambda room: room.price <= max_price).sort("price").first()
        booking = app.step("BOOK", "/room", {"room_id": room.room_id, "guest": guest})
        return Stay(reservation_id=booking.reservation_id, price=room.price)

    bench = Bench(assemble(app.service()))
    assert bench.findings == []
    body = {"city": "Riga", "guest": "Ann"}
    assert bench.send("BOOK", "/stay", body).json == {"reservation_id": "b-Ann", "price": 40.0}
    assert bench.send("RESERVE", "/stay", body).status == 200
    failed = bench.send("BOOK", "/stay", {**body, "max_price": 1}).error
    assert (failed["code"], failed["details"]["code"]) == ("composition_failed", "no-element")
    assert list(failed["details"]["outputs"]) == ["found"]
    assert len(app.service().recipes) == 1


def test_every_option_of_a_step_is_written() -> None:
    app = make_app()

    @app.recipe("BOOK", "/stays", impact="reversible", timeout_seconds=5)
    def book_all(city: str, guest: str) -> dict[str, Any]:
        """Book every room of a city.

        Outcome: Reservations exist.
        """
        with app.together():
            found = app.step(
                "FIND", "/rooms", {"city": city}, pages={"parameter": "cursor", "cursor": "n", "items": "rooms"}
            )
            app.step("FIND", "/rooms", {"city": city}, when=guest == "Ann", on_failure="skip")
        undo = ("CANCEL", "/room", lambda made: {"id": made.reservation_id})
        return app.step(
            "BOOK",
            "/room",
            lambda room: {"room_id": room.room_id, "guest": guest},
            for_each=found.rooms,
            max_items=5,
            undo=undo,
            retry={"attempts": 3},
            timeout=2.0,
        )

    [made] = app.service().recipes
    assert made == recipe(
        step(
            "FIND /rooms",
            "step_1",
            {"city": given("city")},
            group="group_1",
            pages=Paging(parameter="cursor", cursor="n", items="rooms"),
        ),
        step(
            "FIND /rooms",
            "step_2",
            {"city": given("city")},
            group="group_1",
            when=(Condition(left=given("guest"), right=constant("Ann")),),
            on_failure="skip",
        ),
        step(
            "BOOK /room",
            "step_3",
            {"room_id": item("room_id"), "guest": given("guest")},
            for_each=captured("step_1.rooms"),
            max_items=5,
            compensate=Compensation(method="CANCEL", path="/room", input={"id": captured("step_3.reservation_id")}),
            retry=Retry(attempts=3),
            timeout=2.0,
        ),
        name="book-all",
        timeout_seconds=5,
    )


@rows(
    "body, text",
    (lambda app, city: None, "calls no step"),
    (lambda app, city: app.step("FIND", "/rooms", {"city": f"{city}"}), "put it into a text"),
    (lambda app, city: app.step("FIND", "/rooms", {"city": city}, wen=1), "wen"),
    (lambda app, city: app.step("FIND", "/rooms", {"city": city}).rooms, "needs an object"),
)
def test_a_function_that_does_not_describe_a_recipe_is_refused(body: Any, text: str) -> None:
    app = make_app()

    def describe(city: str) -> dict[str, Any]:
        """Find something.

        Outcome: It is found.
        """
        return body(app, city)

    with pytest.raises(ContractError) as raised:
        app.recipe("FIND", "/thing", impact="informational")(describe)
    assert [finding.rule for finding in raised.value.findings] == ["H749"]
    assert text in raised.value.findings[0].message
    assert app.service().recipes == ()


def test_a_step_outside_of_a_recipe_is_refused() -> None:
    with pytest.raises(ContractError, match="belongs into a function"):
        make_app().step("FIND", "/rooms")
    with pytest.raises(ContractError, match="only in a function"):
        make_app().together()


def test_two_functions_of_one_name_are_refused() -> None:
    app = make_app()

    def declare() -> None:
        @app.recipe("FIND", "/a", impact="informational")
        def find(city: str) -> Rooms:
            """Find rooms.

            Outcome: They are found.
            """
            return app.step("FIND", "/rooms", {"city": city})  # type: ignore[no-any-return] # as users write it

    declare()
    with pytest.raises(ContractError, match="another function describes the recipe 'find'"):
        declare()


ROOMS = Traced(captured("found.rooms"))
LIMIT = Traced(given("limit"))


@rows(
    "value, source",
    (ROOMS, captured("found.rooms")),
    (ROOMS.id, captured("found.rooms.id")),
    (ROOMS["first"]["sort"], captured("found.rooms.first.sort")),
    (ROOMS.first().id, captured("found.rooms", pick="first", get="id")),
    (ROOMS.only().bed.size, captured("found.rooms", pick="only", get="bed.size")),
    (ROOMS.sort("-price").limit(LIMIT), captured("found.rooms", sort=constant("-price"), limit=given("limit"))),
    (ROOMS.sort("a", "b"), captured("found.rooms", sort=constant(["a", "b"]))),
    (LIMIT.default(date(2026, 1, 2)), given("limit", default="2026-01-02")),
    (date(2026, 1, 2), constant("2026-01-02")),
    ({"a": [1]}, constant({"a": [1]})),
    ({"a": LIMIT}, Source(kind="constant", value={}, select={"a": given("limit")})),
)
def test_a_value_becomes_a_source(value: Any, source: Source) -> None:
    assert as_source(value) == source


def test_comparisons_become_conditions() -> None:
    kept = ROOMS.where(
        lambda room: room.price <= LIMIT,
        lambda room: room.name.contains("sea"),
        lambda room: room.kind.is_in(["a"]),
        lambda room: room.closed.absent(),
    )
    assert as_source(kept).where == (
        Condition(left=item("price"), op="lte", right=given("limit")),
        Condition(left=item("name"), op="contains", right=constant("sea")),
        Condition(left=item("kind"), op="in", right=constant(["a"])),
        Condition(left=item("closed"), op="absent"),
    )
    ops = [(LIMIT == 1).op, (LIMIT != 1).op, (LIMIT < 1).op, (LIMIT > 1).op, (LIMIT >= 1).op]
    assert ops == ["eq", "ne", "lt", "gt", "gte"]
    assert as_conditions([LIMIT.present(), LIMIT > 1])[0].op == "present"


def test_elements_get_a_new_shape() -> None:
    shaped = ROOMS.select(lambda room: {"n": room.id, "at": {"city": LIMIT, "bed": room.bed}})
    nested = Source(kind="constant", value={}, select={"city": given("limit"), "bed": item("bed")})
    assert as_source(shaped) == captured("found.rooms", select={"n": item("id"), "at": nested})


def test_dataclasses_and_structs_are_objects() -> None:
    @dataclass
    class Stay:
        room: Any

    class Bill(msgspec.Struct):
        total: Any

    assert as_members(Stay(LIMIT)) == as_members({"room": LIMIT}) == {"room": given("limit")}
    assert as_members(Bill(3)) == {"total": constant(3)}


@rows(
    "use, text",
    (lambda: bool(LIMIT), "decide by it"),
    (lambda: list(LIMIT), "loop over it"),
    (lambda: f"{LIMIT}", "put it into a text"),
    (lambda: LIMIT + 1, "compute with it"),
    (lambda: 1 - LIMIT, "compute with it"),
    (lambda: ROOMS[0], "first()"),
    (lambda: as_source(LIMIT == 1), "belongs into `when`"),
    (lambda: as_source([LIMIT]), "list of values"),
    (lambda: as_source(object()), "cannot be a constant"),
    (lambda: as_members(3), "got int"),
    (lambda: ROOMS.where(lambda room: True), "a test must compare"),
    (lambda: ROOMS.first().beds.where(lambda bed: bed.size == 1), "comes too late"),
    (lambda: ROOMS.limit(1).sort("a"), "comes too late"),
    (lambda: ROOMS.select(lambda room: {"a": room.a}).b, "before `select`"),
)
def test_what_a_recipe_cannot_express_is_refused(use: Callable[[], Any], text: str) -> None:
    with pytest.raises(ErrorsContractError) as raised:
        use()
    assert text in str(raised.value)

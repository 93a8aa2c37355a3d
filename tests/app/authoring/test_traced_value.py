"""Values that are not there yet, and what a recipe says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import msgspec
import pytest
from tests.compositions import captured, given, item

from bespeak.app.authoring.recipe_trace import Traced, as_conditions, as_members, as_source
from bespeak.contract.recipe import Condition, Source, constant
from bespeak.errors import ContractError

ROOMS = Traced(captured("found.rooms"))
LIMIT = Traced(given("limit"))


@pytest.mark.parametrize(
    ("value", "source"),
    [
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
    ],
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


@pytest.mark.parametrize(
    ("use", "text"),
    [
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
    ],
)
def test_what_a_recipe_cannot_express_is_refused(use: Callable[[], Any], text: str) -> None:
    with pytest.raises(ContractError) as raised:
        use()
    assert text in str(raised.value)

"""Sources of a recipe become values, references or expressions, or say why that is not possible."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.recipe import Condition, RecipeStep, Source, constant
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.workflows.goals import write_call, write_value

GUESTS = Source(
    kind="previous_step",
    value="step_1.guests",
    get="id",
    where=(Condition(left=Source(kind="item", value="email"), right=Source(kind="proposal", value="email")),),
    pick="only",
)
FOUND = "steps.step_1.guests.filter(row, row.email == input.email)"


@pytest.mark.parametrize(
    ("source", "written"),
    [
        (constant(3), 3),
        (Source(kind="proposal", value="email"), "a@b.example"),
        (Source(kind="proposal", value="id"), {"$from": "input.id"}),
        (Source(kind="previous_step", value="step_1.guest_id"), {"$from": "step_1.guest_id"}),
        (Source(kind="previous_step", value="step_1.rooms", pick="first", get="id"), {"$from": "step_1.rooms[0].id"}),
        (GUESTS, {"$expr": f"{FOUND}[{FOUND}.size() == 1 ? 0 : -1].id"}),
        (
            Source(
                kind="previous_step",
                value="s.rooms",
                where=(Condition(left=Source(kind="item", value="n"), op="lt", right=constant('a"b')),),
            ),
            {"$expr": 'steps.s.rooms.filter(row, row.n < "a\\"b")'},
        ),
    ],
)
def test_sources_are_written(source: Source, written: Any) -> None:
    assert write_value(source, {"email": "a@b.example"}) == written


@pytest.mark.parametrize(
    "source",
    [
        Source(kind="previous_step", value="s.rooms", sort=constant("price")),
        Source(kind="previous_step", value="s.rooms", select={}),
        Source(kind="previous_step", value="s.ro-oms"),
        Source(kind="item", value="x"),
        Source(
            kind="previous_step",
            value="s.rooms",
            where=(Condition(left=Source(kind="item", value="n"), op="contains", right=constant(1)),),
        ),
        Source(
            kind="previous_step", value="s.rooms", where=(Condition(left=Source(kind="item", value="n"), right=GUESTS),)
        ),
    ],
)
def test_what_references_cannot_say_is_a_fault(source: Source) -> None:
    assert isinstance(write_value(source, {}), Fault)
    assert isinstance(write_call(RecipeStep(method="FIND", path="/x", input={"a": source}), {}), Fault)


def test_a_call_for_each_element_is_a_fault() -> None:
    assert isinstance(write_call(RecipeStep(method="FIND", path="/x", for_each=constant([])), {}), Fault)

"""Endpoints as skills: their ids, their arguments, and which of them fit a text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint_names import capability_ids
from bespeak.faces.a2a.skills import Skill, Skills
from bespeak.protocol.exchange.refusal import Outcome

FIND = make_endpoint(
    "FIND",
    "/rooms",
    echo,
    properties={"beds": {"type": "integer"}, "floor": {"type": "integer"}},
    scopes=("rooms:read",),
)
BOOK = make_endpoint("BOOK", "/rooms", echo)


def find() -> Skill:
    return Skills([FIND, BOOK])["find_rooms"]


def test_skills_have_the_ids_of_the_published_documents() -> None:
    internal = replace(make_endpoint("FIND", "/ledger", echo), internal=True)
    assert list(Skills([FIND, internal, BOOK])) == list(capability_ids([FIND, BOOK]).values())


def test_arguments_are_exact_and_in_the_order_of_the_contract() -> None:
    found = find().check({"floor": 2.0, "beds": str(2**60)})
    assert isinstance(found, dict)
    assert list(found.items()) == [("beds", 2**60), ("floor", 2)]


@pytest.mark.parametrize("arguments", [{"beds": 2.5}, {"rooms": 1}, {"beds": "two"}])
def test_arguments_that_break_the_contract_are_refused(arguments: dict[str, object]) -> None:
    found = find().check(arguments)
    assert isinstance(found, Outcome)
    assert found.error["code"] == "input-validation-failed"


def test_an_entry_has_what_a_caller_needs() -> None:
    assert find().entry["inputSchema"]["properties"]["beds"] == {"type": "integer"}
    assert find().entry["scopes"] == ["rooms:read"]


def test_an_entry_does_not_repeat_a_long_schema() -> None:
    long = make_endpoint("FIND", "/rooms", echo, properties={f"field_{number}": {} for number in range(2000)})
    assert "inputSchema" not in Skills([long])["find_rooms"].entry


def test_skills_that_fit_come_first_and_some_come_in_any_case() -> None:
    skills = Skills([FIND, BOOK])
    assert skills.suggest("find rooms with two beds")[0].name == "find_rooms"
    assert [skill.name for skill in skills.suggest("xyzzy")] == ["find_rooms", "book_rooms"]

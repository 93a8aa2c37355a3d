"""Promises of a proposed output that the endpoints of a plan make, and those that nobody makes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.runtime.negotiation.definitions import fields
from tests.service import echo, make_endpoint

from bespeak.runtime.negotiation.plan import Promises

NAME = {"type": "string", "enum": ["Ann", "Bob"], "maxLength": 20, "minLength": 1, "pattern": "^[A-Z]"}
ROW = fields(name=NAME, age={"type": "integer", "minimum": 0, "maximum": 150})


def rows(row: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"people": {"type": "array", "items": row, **more}}, "required": ["people"]}


STEP = make_endpoint("QUERY", "/people", echo, output=rows(ROW))


def promises(output: Any, **given: Any) -> Promises:
    return Promises(replace(STEP, input_schema=fields(**given), output_schema=output), [STEP])


@pytest.mark.parametrize(
    "name",
    [
        {"type": "string"},
        NAME,
        {"enum": ["Ann", "Bob", "Cleo"]},
        {"maxLength": 30},
        {"minLength": 0},
        {"oneOf": [{"type": "string"}, {"type": "null"}]},
        {"description": "not", "default": {"minItems": 1}},
    ],
)
def test_promises_that_a_step_makes_are_kept(name: Any) -> None:
    found = promises(rows(fields(name=name)))
    assert (found.unkept, found.output) == ([], rows(fields(name=name)))


@pytest.mark.parametrize(
    ("name", "keyword"),
    [
        ({"enum": ["Ann"]}, "enum"),
        ({"const": "Ann"}, "const"),
        ({"maxLength": 10}, "maxLength"),
        ({"minLength": 2}, "minLength"),
        ({"pattern": "^A"}, "pattern"),
        ({"not": {"const": "Bob"}}, "not"),
        ({"oneOf": [{"type": "string"}, {"type": "string"}]}, "oneOf"),
        ({"if": {}, "then": {"minLength": 9}}, "if"),
    ],
)
def test_promises_that_no_step_makes_are_named_and_left_out(name: Any, keyword: str) -> None:
    found = promises(rows(fields(name={"type": "string", **name})))
    assert f"`{keyword}` of `people[].name`" in found.unkept
    assert found.output == rows(fields(name={"type": "string"}))


def test_number_of_rows_is_never_promised() -> None:
    assert promises(rows(ROW, minItems=1)).unkept == ["`minItems` of `people`"]


def test_promise_of_another_field_does_not_count() -> None:
    assert promises(rows(fields(age={"type": "string", "enum": ["Ann", "Bob"]}))).unkept == ["`enum` of `people[].age`"]


def test_value_that_is_given_keeps_its_promises() -> None:
    city = {"type": "string", "maxLength": 5}
    assert promises(fields(city=city), city=city).unkept == []


def test_promises_of_definitions_are_those_of_any_field() -> None:
    output = {**rows(fields(name={"$ref": "#/$defs/name"})), "$defs": {"name": NAME}}
    assert promises(output).unkept == []
    assert promises({**output, "$defs": {"name": {"enum": ["Cleo"]}}}).unkept == ["`enum` of `name`"]


def test_promises_about_the_whole_output_are_not_kept() -> None:
    assert promises({**rows(ROW), "minProperties": 2}).unkept == ["`minProperties` of the output"]


def test_required_field_that_is_not_described_is_not_promised() -> None:
    output = rows({**ROW, "required": ["name", "shoe_size"]})
    found = promises(output)
    assert (found.unkept, found.output) == (["`shoe_size` of `people[]`"], rows({**ROW, "required": ["name"]}))
    anywhere = {"allOf": [rows(ROW)], "required": ["people"]}
    assert promises(anywhere).unkept == []
    assert promises({"properties": {"people": True}, "required": ["people"]}).unkept == []

"""Numbers of data parts: integers stay integers, and large ones keep their digits as texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint_names import capability_ids
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.faces.a2a.skills import (
    Misread,
    Skill,
    SkillCall,
    Skills,
    read_call,
    restore_integers,
    restore_large,
    write_large,
)
from bespeak.protocol.exchange.refusal import Outcome

LARGE = 2**60 + 1
SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "maybe": {"type": ["integer", "null"]},
        "a/b": {"type": "object", "properties": {"list": {"type": "array", "items": {"$ref": "#/$defs/id"}}}},
        "text": {"type": "string"},
    },
    "$defs": {"id": {"type": "integer", "minimum": 0}},
}


VALUES = st.recursive(
    st.integers() | st.text() | st.booleans() | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def restored(**arguments: Any) -> dict[str, Any]:
    validator = compile_schema(SCHEMA)
    assert isinstance(validator, Validator)
    restore_large(arguments, validator)
    return arguments


@rows(
    "sent, meant",
    (3.0, 3),
    (-0.0, 0),
    (2.5, 2.5),
    (1e300, 1e300),
    (
        {"a": [1.0, {"b": 2.0}], "c": "3.0", "d": True, "e": None},
        {"a": [1, {"b": 2}], "c": "3.0", "d": True, "e": None},
    ),
)
def test_whole_numbers_are_integers_again(sent: Any, meant: Any) -> None:
    found = restore_integers(sent)
    assert found == meant
    assert repr(found) == repr(meant)


def test_large_integers_are_sent_as_texts_where_the_schema_asks_for_integers() -> None:
    found = restored(n=str(LARGE), maybe=f"-{LARGE}", **{"a/b": {"list": [1, str(LARGE)]}}, text=str(LARGE))
    assert found == {"n": LARGE, "maybe": -LARGE, "a/b": {"list": [1, LARGE]}, "text": str(LARGE)}


@pytest.mark.parametrize("value", ["12", "1e20", f"{LARGE}.0", "9" * 41, "٣" * 20, f" {LARGE}", ""])
def test_other_texts_are_not_integers(value: str) -> None:
    assert restored(n=value) == {"n": value}


@given(VALUES)
def test_what_is_written_survives_a_double(value: Any) -> None:
    def through_doubles(here: Any) -> Any:
        if isinstance(here, bool):
            return here
        if isinstance(here, int):
            return float(here)
        if isinstance(here, list):
            return [through_doubles(item) for item in here]
        return {name: through_doubles(item) for name, item in here.items()} if isinstance(here, dict) else here

    written = write_large(value)
    assert restore_integers(through_doubles(written)) == written


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


def test_skills_have_published_ids_exact_arguments_and_short_entries() -> None:
    internal = replace(make_endpoint("FIND", "/ledger", echo), internal=True)
    assert list(Skills([FIND, internal, BOOK])) == list(capability_ids([FIND, BOOK]).values())
    found = find().check({"floor": 2.0, "beds": str(2**60)})
    assert isinstance(found, dict)
    assert list(found.items()) == [("beds", 2**60), ("floor", 2)]
    assert find().entry["inputSchema"]["properties"]["beds"] == {"type": "integer"}
    assert find().entry["scopes"] == ["rooms:read"]
    long = make_endpoint("FIND", "/rooms", echo, properties={f"field_{number}": {} for number in range(2000)})
    assert "inputSchema" not in Skills([long])["find_rooms"].entry
    skills = Skills([FIND, BOOK])
    assert skills.suggest("find rooms with two beds")[0].name == "find_rooms"
    assert [skill.name for skill in skills.suggest("xyzzy")] == ["find_rooms", "book_rooms"]


@pytest.mark.parametrize("arguments", [{"beds": 2.5}, {"rooms": 1}, {"beds": "two"}])
def test_arguments_that_break_the_contract_are_refused(arguments: dict[str, object]) -> None:
    found = find().check(arguments)
    assert isinstance(found, Outcome)
    assert found.error["code"] == "input-validation-failed"


@rows(
    "parts, call",
    ([{"data": {"skill": "a", "input": {"x": 2**60 + 1}}}], SkillCall("a", {"x": 2**60 + 1})),
    ([{"kind": "data", "data": {"skill": "a"}}], SkillCall("a", {})),
    ([{"kind": "text", "text": "note"}, {"data": {"input": {"x": 1}}}], SkillCall(None, {"x": 1})),
    ([{"text": ' {"skillId": "a", "params": {"x": 1}}'}], SkillCall("a", {"x": 1})),
    ([{"text": "book"}, {"text": "a room"}], "book\na room"),
    ([{"text": '{"room": 12}'}], '{"room": 12}'),
    ([{"text": '{"skill": '}], '{"skill": '),
    ([{"text": '{"skill": "a"}'}, {"text": "x"}], '{"skill": "a"}\nx'),
    ([], ""),
)
def test_one_data_part_is_a_call_and_texts_are_not(parts: list[Any], call: SkillCall | str) -> None:
    assert read_call(parts) == call


@rows(
    "parts",
    *([{"data": 7}], [{"data": None}], [{"data": {}}], [{"data": {"skill": ["a"]}}]),
    *([{"data": {"skill": "a", "input": "x"}}], [{"data": {"skill": "a"}}, {"data": {"skill": "a"}}]),
    [{"text": '{"skill": "a", "skill_id": "b"}'}],
)
def test_what_could_mean_two_things_means_none(parts: list[Any]) -> None:
    found = read_call(parts)
    assert isinstance(found, Misread)
    assert not found.is_file


@rows("part", {"kind": "file", "file": {"uri": "http://x"}}, {"raw": "eA=="}, {"url": "http://x"}, 7)
def test_a_part_that_is_neither_data_nor_text_is_a_file(part: Any) -> None:
    found = read_call([{"data": {"skill": "a"}}, part])
    assert isinstance(found, Misread)
    assert found.is_file

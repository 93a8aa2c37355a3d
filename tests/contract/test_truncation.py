"""How long outputs are cut."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.schema.view import members_of
from bespeak.contract.truncation import Cut, Gap, cut, cut_to_fit

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=400),
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=20), inner, max_size=30),
    max_leaves=60,
)


def shorten(value: Any, most: int, schema: dict[str, Any] | None = None) -> Cut:
    return cut(value, most, members_of(schema or {}))


def size(value: Any) -> int:
    return len(msgspec.json.encode(value).decode())


def test_value_that_fits_is_unchanged_and_a_list_is_cut_between_or_inside_elements() -> None:
    assert shorten({"rooms": [1, 2]}, 100) == Cut({"rooms": [1, 2]}, ())
    found = shorten({"rooms": [{"id": number} for number in range(100)], "total": 100, "next": "abc"}, 200)
    assert (found.output["total"], found.output["next"]) == (100, "abc")
    kept = found.output["rooms"]
    assert kept == [{"id": number} for number in range(len(kept))]
    assert found.gaps == (Gap("/rooms", "elements", 100 - len(kept), len(kept)),)
    assert found.left_out == [{"at": "/rooms", "left_out": 100 - len(kept), "of": 100, "what": "elements"}]
    found = shorten([{"id": 7, "text": "a" * 1000}], 400)
    assert found.output[0]["id"] == 7
    assert found.output[0]["text"].endswith(" more characters)")
    assert found.gaps[0].at == "/0/text"


def test_text_is_cut_between_characters_as_they_are_written_unless_it_is_short() -> None:
    found = shorten("e\u0301" * 500, 300)
    kept = found.output.partition("…")[0]
    assert kept == "e\u0301" * (len(kept) // 2)
    assert found.gaps == (Gap("", "characters", 1000 - len(kept), len(kept)),)
    link = "https://rooms.example/" + "a" * 150
    assert shorten({"link": link, "text": "b" * 2000}, 500).output["link"] == link
    assert size(shorten('"\n\x00' * 1000, 600).output) <= 600


def test_required_members_are_left_out_last_and_small_ones_leave_their_room() -> None:
    value = {f"optional{number}": "a" * 150 for number in range(20)} | {"id": "7" * 150}
    found = shorten(value, 600, {"type": "object", "required": ["id"]})
    assert (found.output["id"], found.gaps[-1].what) == ("7" * 150, "members")
    found = shorten({"a": list(range(1000)), "b": 1, "c": [1]}, 1000)
    assert (found.output["b"], found.output["c"]) == (1, [1])
    assert size(found.output) > 900


def test_values_that_are_nested_too_deeply_are_left_out() -> None:
    deep: Any = "a" * 500
    for _ in range(80):
        deep = [deep]
    assert size(shorten(deep, 300).output) <= 300


@given(JSON, st.integers(300, 2000))
def test_a_cut_output_fits_and_says_what_is_missing(value: Any, most: int) -> None:
    found = shorten(value, most)
    assert (found.output == value) == (not found.gaps)
    # Texts that are never cut may be a little too long; the caller allows for it.
    assert size(found.output) <= max(most, 1300)
    msgspec.json.encode(found.left_out)


@pytest.mark.parametrize("most", [0, 1, 10, 59])
def test_a_room_that_is_too_small_yields_little(most: int) -> None:
    assert size(shorten({"a": [1] * 100, "b": "c" * 1000}, most).output) <= 300


def test_an_output_fits_together_with_the_list_of_what_it_lacks() -> None:
    many = {f"list{number}": list(range(200)) for number in range(15)}
    found = cut_to_fit(many, 2_000, members_of({}))
    assert found.gaps
    assert size([found.output, found.left_out]) <= 2_000

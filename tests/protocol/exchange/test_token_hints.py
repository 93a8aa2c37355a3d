"""Token hints: how they are parsed, and what they keep of an answer."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.token_hints import (
    LIST,
    UNCHANGED,
    TokenHints,
    keep_changed,
    read_fields,
    read_hints,
    read_place,
    read_since,
    select,
)

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=20,
)


def test_every_hint_is_read() -> None:
    hints = read_hints({"compact": "true", "fields": "id,owner.name", "since": "2026-12-01T12:00:00Z"})
    assert hints == TokenHints(True, {"id": None, "owner": {"name": None}}, NOON)
    assert read_hints({"compact": "false"}) == TokenHints()


@rows(
    "name, text, part",
    *(("compact", text, "write true or false") for text in ("", "1", "True", "yes", "x" * 5000)),
    *(("fields", text, "is not a field name") for text in ("", ",", "a,", "a..b", ".a", " ", "a, ,b")),
    ("fields", "a" * 2001, "at most 2000 characters; got 2001"),
    ("fields", ",".join(["a"] * 101), "at most 100 fields are allowed; got 101"),
    ("fields", ".".join(["a"] * 11), "more than 10 levels"),
    *(("since", text, "is not a valid time") for text in ("", "yesterday", "1796119200", "2026-13-01", "x" * 5000)),
)
def test_an_invalid_hint_is_refused_with_the_reason(name: str, text: str, part: str) -> None:
    refused = read_hints({name: text})
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code, refused.details) == (400, "invalid-token-hint", {"parameter": name})
    assert refused.message.startswith(f"{name}: ")
    assert part in refused.message
    assert len(refused.message) < 300


@rows(
    "text, wanted",
    ("a", {"a": None}),
    ("a,b", {"a": None, "b": None}),
    (" a , b ", {"a": None, "b": None}),
    ("a.b,a.c", {"a": {"b": None, "c": None}}),
    ("a,a.b", {"a": None}),
    ("a.b,a", {"a": None}),
    (",".join(["a"] * 100), {"a": None}),
)
def test_fields_are_read_into_a_tree(text: str, wanted: dict[str, Any]) -> None:
    assert read_fields(text) == wanted


@rows(
    "text",
    *("2026-12-01T12:00:00Z", "2026-12-01T12:00:00", "2026-12-01 12:00", "2026-12-01T14:00:00+02:00"),
    "2026-12-01T14:00:00 02:00",  # as a query of the web arrives
)
def test_a_moment_is_read_in_utc(text: str) -> None:
    assert read_since(text) == NOON


def test_a_date_begins_at_midnight() -> None:
    assert read_since("2026-12-01") == datetime(2026, 12, 1, tzinfo=UTC)
    assert read_since("1960-01-01") == datetime(1960, 1, 1, tzinfo=UTC)


@rows(
    "text, place",
    ("updated_at", ("updated_at",)),
    ("meta.updated_at", ("meta", "updated_at")),
    ("[].updated_at", (LIST, "updated_at")),
    ("rooms[].updated_at", ("rooms", LIST, "updated_at")),
    ("a[][].b.c", ("a", LIST, LIST, "b", "c")),
)
def test_a_place_is_read(text: str, place: tuple[str, ...]) -> None:
    assert read_place(text) == place


@pytest.mark.parametrize("text", ["", "[]", "rooms[]", ".a", "a.", "a..b", "a.[].b", "x" * 2001])
def test_a_place_must_end_in_a_member(text: str) -> None:
    assert read_place(text) is None


def test_a_selection_applies_to_list_items_and_omits_missing_members() -> None:
    value = {
        "rooms": [{"id": 1, "owner": {"name": "Ann", "age": 5}}, {"id": 2, "owner": None}, {"id": 3, "owner": "me"}],
        "count": 3,
    }
    assert select(value, read_fields("rooms.id")) == {"rooms": [{"id": 1}, {"id": 2}, {"id": 3}]}  # type: ignore[arg-type]
    assert select(value, read_fields("rooms.owner.name,gone")) == {  # type: ignore[arg-type]
        "rooms": [{"owner": {"name": "Ann"}}, {"owner": None}, {}]
    }
    assert select([[{"a": 1, "b": 2}], None, 5], {"a": None}) == [[{"a": 1}], None]


@given(JSON)
def test_a_selection_of_all_members_is_the_value(value: Any) -> None:
    assert select(value, dict.fromkeys("abc")) == (_unscalar(value) if isinstance(value, list) else value)


def _unscalar(value: list[Any]) -> list[Any]:
    """Build a list without scalars, nested to a depth."""
    return [
        _unscalar(item) if isinstance(item, list) else item
        for item in value
        if item is None or isinstance(item, (list, dict))
    ]


@given(st.text(alphabet="ab.,[] ", max_size=30), JSON)
def test_no_list_of_fields_breaks_a_value(text: str, value: Any) -> None:
    wanted = read_fields(text)
    if not isinstance(wanted, str):
        chosen = select(value, wanted)
        assert select(chosen, wanted) == chosen


def rooms(*moments: Any) -> list[dict[str, Any]]:
    return [{"id": index, "at": moment} for index, moment in enumerate(moments)]


@rows(
    "moment, stays",
    ("2026-12-01T12:00:00Z", False),
    ("2026-12-01T12:00:00.000001Z", True),
    ("2026-12-01T13:00:00+02:00", False),
    ("2026-12-01T11:00:00-02:00", True),
    ("1950-01-01T00:00:00Z", False),
    ("2026-11-30", False),
    ("2026-12-01", True),  # it may have changed in the afternoon
    ("9999-12-31", True),
    *((unusable, True) for unusable in ("", "soon", None, 5, 1796119200, True, [], {})),
)
def test_unchanged_items_are_removed_and_undated_ones_stay(moment: Any, stays: bool) -> None:
    kept = keep_changed({"rooms": rooms(moment)}, ("rooms", LIST, "at"), NOON)
    assert kept == {"rooms": rooms(moment) if stays else []}
    assert keep_changed({"at": moment}, ("at",), NOON) == ({"at": moment} if stays else UNCHANGED)


def test_lists_are_found_wherever_they_are() -> None:
    old, new = "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"
    assert keep_changed(rooms(old, new), (LIST, "at"), NOON) == [{"id": 1, "at": new}]
    floors = {"floors": [{"rooms": rooms(old)}, {"rooms": rooms(new)}, {"rooms": None}, {}, 5]}
    assert keep_changed(floors, ("floors", LIST, "rooms", LIST, "at"), NOON) == {
        "floors": [{"rooms": []}, {"rooms": rooms(new)}, {"rooms": None}, {}, 5]
    }
    assert keep_changed([{"meta": {"at": old}}, {"meta": None}, {}], (LIST, "meta", "at"), NOON) == [{"meta": None}, {}]


@given(JSON, st.lists(st.sampled_from(["a", "b", LIST]), max_size=4))
def test_no_value_breaks_the_search_for_moments(value: Any, path: list[str]) -> None:
    keep_changed(value, (*path, "a"), NOON)


@given(st.text(max_size=20))
def test_any_parameters_give_hints_or_a_refusal(text: str) -> None:
    for name in ("compact", "fields", "since"):
        assert isinstance(read_hints({name: text}), TokenHints | Refused)
    read_place(text)

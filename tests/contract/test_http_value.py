from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.contract.http_route import (
    DEEPEST,
    MAX_HEADER,
    as_text,
    encode_pairs,
    in_cookie,
    in_header,
    in_path,
    in_url_query,
    joined,
    leaves_segment,
    pairs,
)
from bespeak.contract.schema.validation import Violation

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = TEXT | st.integers(-(2**53), 2**53) | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)


def written(name: str, value: Any, style: str) -> list[tuple[str, str]]:
    """Return the pairs as a server reads them."""
    faults: list[Violation] = []
    found = list(pairs(name, value, style, "/f", faults))
    encoded = "&".join(f"n={text}" for _, text in found)
    assert faults == []
    read = parse_qsl(encoded, keep_blank_values=True, errors="strict")
    assert len(read) == len(found)
    return [(name, text) for (name, _), (_, text) in zip(found, read, strict=True)]


def refused(value: Any, style: str) -> list[str]:
    faults: list[Violation] = []
    list(pairs("f", value, style, "/f", faults))
    return [fault.pointer for fault in faults]


@pytest.mark.parametrize(
    ("value", "text"),
    [("a b", "a b"), (True, "true"), (2, "2"), (1.5, "1.5"), (None, "null"), ({"a": [1]}, '{"a":[1]}')],
)
def test_a_value_is_its_text_or_json(value: Any, text: str) -> None:
    assert as_text(value) == text


@rows(
    "style, encoded",
    ("repeat", [("f", "a%20b"), ("f", "2"), ("f", "true")]),
    ("comma", [("f", "a%20b,2,true")]),
    ("pipe", [("f", "a%20b%7C2%7Ctrue")]),
    ("deep", [("f[]", "a%20b"), ("f[]", "2"), ("f[]", "true")]),
    ("json", [("f", "%5B%22a%20b%22%2C2%2Ctrue%2Cnull%5D")]),
)
def test_a_list_is_written_in_its_style_without_nulls(style: str, encoded: list[tuple[str, str]]) -> None:
    assert list(pairs("f", ["a b", 2, True, None], style, "/f", [])) == encoded
    assert list(pairs("f", ["a", "b"], "space", "/f", [])) == [("f", "a%20b")]


@rows(
    "style, read",
    ("repeat", [("f", '{"a":"x","n":null,"b":[1,2]}')]),
    ("json", [("f", '{"a":"x","n":null,"b":[1,2]}')]),
    ("deep", [("f[a]", "x"), ("f[b][]", "1"), ("f[b][]", "2")]),
)
def test_an_object_is_written_in_its_style(style: str, read: list[tuple[str, str]]) -> None:
    assert written("f", {"a": "x", "n": None, "b": [1, 2]}, style) == read


def test_joined_objects_are_names_and_values_and_a_deeply_nested_value_is_json() -> None:
    assert written("f", {"role": "admin", "first": "Ann"}, "comma") == [("f", "role,admin,first,Ann")]
    assert written("f", [{"a": 1}, {"a": 2}], "deep") == [("f[0][a]", "1"), ("f[1][a]", "2")]
    value: Any = 1
    for _ in range(DEEPEST + 3):
        value = {"a": value}
    assert written("f", value, "deep") == [("f" + "[a]" * DEEPEST, '{"a":{"a":{"a":1}}}')]


@pytest.mark.parametrize("style", ["repeat", "comma", "space", "pipe", "deep", "json"])
@pytest.mark.parametrize("value", [None, "x", "a,b c|d", 3, False])
def test_one_value_is_written_the_same_in_every_style(style: str, value: Any) -> None:
    assert written("f", value, style) == ([] if value is None else [("f", as_text(value))])


@pytest.mark.parametrize("style", ["repeat", "comma", "space", "pipe", "deep"])
@pytest.mark.parametrize("value", [[], [None]])
def test_a_list_without_items_is_left_out_or_empty(style: str, value: list[Any]) -> None:
    assert [text for _, text in written("f", value, style) if text] == []


@pytest.mark.parametrize(("style", "item"), [("comma", "a,b"), ("space", "a b"), ("pipe", "a|b")])
def test_item_that_contains_the_separator_is_refused_with_its_location(style: str, item: str) -> None:
    assert refused(["x", item], style) == ["/f/1"]
    assert refused({"k": item}, style) == ["/f/k"]
    assert refused({item: "x"}, style)[0].startswith("/f/a")


def test_reserved_characters_can_stay_except_separators() -> None:
    text = ":/?@!$'()*,;&=+#[]% "
    ((_, encoded),) = pairs("f", text, "repeat", "/f", [], reserved=True)
    assert encoded == ":/?@!$'()*,;%26%3D%2B%23%5B%5D%25%20"
    assert unquote(encoded) == text


@pytest.mark.parametrize("key", ["a]", "[a", "a][b", ""])
def test_name_that_would_change_the_structure_is_refused(key: str) -> None:
    assert refused({key: 1}, "deep") == [f"/f/{key}"]


@given(st.lists(SCALARS, max_size=8), st.sampled_from([("comma", ","), ("space", " "), ("pipe", "|")]))
def test_joined_items_are_split_again_or_refused(items: list[Any], style: tuple[str, str]) -> None:
    texts = [as_text(item) for item in items]
    if any(style[1] in text for text in texts):
        assert refused(items, style[0])
    elif items:
        ((_, text),) = written("f", items, style[0])
        assert text.split(style[1]) == texts


@given(st.dictionaries(TEXT, SCALARS | st.lists(SCALARS, min_size=1, max_size=4), max_size=6))
def test_a_deep_object_can_be_put_together_again(value: dict[str, Any]) -> None:
    if refused(value, "deep"):
        assert any(not key or "[" in key or "]" in key for key in value)
        return
    again: dict[str, Any] = {}
    for name, text in written("f", value, "deep"):
        key, _, rest = name.removeprefix("f[").partition("]")
        if rest:
            assert rest == "[]"
            again.setdefault(key, []).append(text)
        else:
            again[key] = text
    assert again == {
        key: [as_text(one) for one in item] if isinstance(item, list) else as_text(item) for key, item in value.items()
    }


@given(st.lists(SCALARS, max_size=8))
def test_repeated_and_json_lists_come_back(items: list[Any]) -> None:
    assert joined("a,b", ",", "/f", []) == "a,b"
    assert written("f", items, "repeat") == [("f", as_text(item)) for item in items]
    ((_, text),) = written("f", items, "json")
    assert msgspec.json.decode(text) == items


@pytest.mark.parametrize(
    ("value", "text"),
    [("a?b c%", "a%3Fb%20c%25"), (7, "7"), (["a", "b"], "a%2Cb"), ({"k": 1}, "k%2C1"), ("...", "...")],
)
def test_a_value_in_a_path_is_one_segment(value: Any, text: str) -> None:
    faults: list[Violation] = []
    assert (in_path(value, "/f", faults), faults) == (text, [])


HOSTILE = [
    *("../../admin", "..\\..\\admin", "a/b", "%2e%2e", "..%2F..%2Fadmin", "%252e%252e%252fadmin", "%25252525252e"),
    *("..;x", ". ", "\uff0e\uff0e\uff0fadmin", "a\0b", "a\r\nX: y", "a\x7f"),
    ["a", "../b"],
]


@pytest.mark.parametrize("value", [None, "", ".", "..", [], *HOSTILE])
def test_a_value_that_would_choose_another_path_is_refused(value: Any) -> None:
    faults: list[Violation] = []
    in_path(value, "/f", faults)
    assert [fault.pointer for fault in faults] == ["/f"]


def test_ordinary_value_does_not_leave_its_segment_and_in_a_query_slashes_may_stay() -> None:
    assert not any(map(leaves_segment, ("a;b", "...", "100%25", "50%", "é", "..b", "v1.2", "日本")))
    faults: list[Violation] = []
    assert (in_url_query("../a&b", "/f", faults), faults) == ("..%2Fa%26b", [])
    in_url_query(None, "/f", faults)
    assert [fault.pointer for fault in faults] == ["/f"]


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\0b", " a", "a\t", "日", "x" * (MAX_HEADER + 1)])
def test_a_value_that_no_header_can_hold_is_refused_and_not_written(value: str) -> None:
    faults: list[Violation] = []
    assert in_header(value, "/f", faults) == ""
    assert [fault.pointer for fault in faults] == ["/f"]


@pytest.mark.parametrize(("value", "text"), [("ä b", "ä b"), (["a", 1], "a,1"), (True, "true")])
def test_a_value_in_a_header_is_its_text(value: Any, text: str) -> None:
    faults: list[Violation] = []
    assert (in_header(value, "/f", faults), faults) == (text, [])


@given(TEXT)
def test_a_value_in_a_cookie_adds_nothing_and_comes_back(value: str) -> None:
    text = in_cookie(value, "/f", [])
    assert text.isascii()
    assert set(text).isdisjoint(' ";,\\\r\n')
    assert unquote(text) == value


def test_names_of_pairs_are_encoded_and_values_stay_as_they_are() -> None:
    assert encode_pairs([("a b", "x%20y"), ("f[0]", "1,2")]) == "a%20b=x%20y&f%5B0%5D=1,2"

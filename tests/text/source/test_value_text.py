"""Values on one line of YAML, read back as they were; what YAML and JSON cannot both say is not written."""

from __future__ import annotations

import math
from datetime import date
from typing import Any

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.text.source.value_text import (
    LONGEST_KEY,
    number_scalar,
    quoted,
    string_text,
    text_scalar,
    toml_key,
    toml_value,
    yaml_key,
    yaml_value,
)
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml

TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text(alphabet="a:# -'\"\\{}[],&*!|>%@`?~\t\n\u2028\x85")
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


def read(text: str) -> Any:
    tree = parse_yaml(text, "x")
    assert isinstance(tree, YamlTree), (tree, text)
    return tree.data


@given(VALUES, st.sampled_from(["", "'", '"']), st.booleans())
def test_a_value_is_read_back_in_a_block_and_in_brackets(value: Any, style: str, flow: bool) -> None:
    written = yaml_value(value, style=style, flow=flow)
    assert written is not None
    assert read(f"[{written}]\n" if flow else f"k: {written}\n") == ([value] if flow else {"k": value})


@given(TEXTS, st.booleans())
def test_a_key_is_read_back(key: str, flow: bool) -> None:
    written = yaml_key(key, flow=flow)
    assert written is not None
    assert read(f"{{{written}: 1}}\n" if flow else f"{written}: 1\n") == {key: 1}


@rows(
    "text, style, written",
    ("Book a room", "", "Book a room"),
    ("no", "", '"no"'),
    ("12", "", '"12"'),
    ("a: b", "", '"a: b"'),
    ("it's", "'", "'it''s'"),
    ("a\nb", "'", '"a\\nb"'),
    ("a\u2028b", "", '"a\\u2028b"'),
)
def test_text_keeps_its_style_if_possible(text: str, style: str, written: str) -> None:
    assert string_text(text, style=style) == written


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800", {1: 2}, b"a", {"k" * (LONGEST_KEY + 1): 1}])
def test_inexpressible_value_is_refused(value: Any) -> None:
    assert yaml_value(value) is None
    assert yaml_value([value]) is None


def test_key_too_long_for_yaml_is_refused() -> None:
    assert yaml_key("k" * LONGEST_KEY) == "k" * LONGEST_KEY
    assert yaml_key("k" * (LONGEST_KEY + 1)) is None


TOML_VALUE_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
TOML_VALUE_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TOML_VALUE_TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TOML_VALUE_TEXTS, inner, max_size=3),
    max_leaves=10,
)


@given(TOML_VALUE_TEXTS, TOML_VALUE_VALUES, st.booleans())
def test_value_on_one_line_is_read_back(key: str, value: Any, literal: bool) -> None:
    name, written = toml_key(key), toml_value(value, literal=literal)
    assert name is not None
    assert written is not None
    assert "\n" not in name + written
    assert tomli.loads(f"{name} = {written}") == {key: value}


@rows(
    "value, text",
    (True, "true"),
    (1e16, "10000000000000000.0"),
    (10**400, str(10**400)),
    (["a", {"b c": 1}], '["a", { "b c" = 1 }]'),
    ({}, "{}"),
    ("\x7f", '"\\u007f"'),
)
def test_values_are_written_in_the_usual_style(value: Any, text: str) -> None:
    assert toml_value(value) == text


@pytest.mark.parametrize(("text", "written"), [("a\\b", "'a\\b'"), ("it's", '"it\'s"'), ("a\nb", '"a\\nb"')])
def test_literal_string_keeps_its_single_quotes_if_possible(text: str, written: str) -> None:
    assert toml_value(text, literal=True) == written


@pytest.mark.parametrize(
    "value", [None, [None], math.nan, math.inf, "\ud800", {"a": None}, {1: 2}, date(2026, 1, 1), b"a"]
)
def test_value_not_expressible_in_toml_and_json_is_refused(value: Any) -> None:
    assert toml_value(value) is None


def test_key_is_bare_if_possible() -> None:
    assert [toml_key(key) for key in ("a-b_1", "a.b", "", "\ud800")] == ["a-b_1", '"a.b"', '""', None]


@rows(
    "text, in_block, in_list",
    ("agent", "agent", "agent"),
    ("/room/{id}", "/room/{id}", '"/room/{id}"'),
    ("NONE -> CONFIRMED", "NONE -> CONFIRMED", "NONE -> CONFIRMED"),
    ("a, b", "a, b", '"a, b"'),
    ("booking:room", "booking:room", '"booking:room"'),
    ("agtp://a.example:4480", "agtp://a.example:4480", '"agtp://a.example:4480"'),
    ("yes", '"yes"', '"yes"'),
    ("1.0", '"1.0"', '"1.0"'),
    ("a: b", '"a: b"', '"a: b"'),
    ("C # sharp", '"C # sharp"', '"C # sharp"'),
    ("Grüße", '"Grüße"', '"Grüße"'),
    ("", '""', '""'),
)
def test_quotes_are_used_if_necessary(text: str, in_block: str, in_list: str) -> None:
    assert (text_scalar(text), text_scalar(text, in_list=True)) == (in_block, in_list)


@rows(
    "text, written",
    ('say "hi"', r'"say \"hi\""'),
    ("a\\b", r'"a\\b"'),
    ("a\nb\tc", r'"a\nb\tc"'),
    ("\x1b[31m", r'"\x1B[31m"'),
    ("\u202egod", r'"\u202Egod"'),
    ("\U000e0001", r'"\U000E0001"'),
    ("می\u200cخواهم", '"می\u200cخواهم"'),
)
def test_invisible_characters_are_escaped(text: str, written: str) -> None:
    assert quoted(text) == written


@pytest.mark.requirement("AGIS-10-4")
@pytest.mark.parametrize(
    ("number", "written"),
    [(0, "0"), (-7, "-7"), (0.6, "0.6"), (-0.0, "-0.0"), (1e20, "100000000000000000000.0"), (5e-324, "5.0e-324")],
)
def test_numbers_are_decimal(number: float, written: str) -> None:
    assert number_scalar(number) == written

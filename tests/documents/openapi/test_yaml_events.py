"""YAML is read as authors of descriptions mean it, in bounded time and memory."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bespeak.documents.openapi import document_text
from bespeak.documents.openapi.document_text import YamlReader
from bespeak.text.source.tree import NotationError


def read(text: str) -> YamlReader:
    reader = YamlReader()
    reader.read(text)
    return reader


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("200: ok\n'404': no\n", {"200": "ok", "404": "no"}),
        ("on: off\nyes: no\ny: n\n", {"on": "off", "yes": "no", "y": "n"}),
        ("2026-11-16: 2026-11-16\n1.0: 1.0\nnull: null\n", {"2026-11-16": "2026-11-16", "1.0": 1.0, "null": None}),
        ("a: True\nb: FALSE\nc: Null\nd: ~\ne:\n", {"a": True, "b": False, "c": None, "d": None, "e": None}),
        (
            "a: 'true'\nb: \"1\"\nc: !!str 1\nd: 0x1F\ne: 1_000\n",
            {"a": "true", "b": "1", "c": "1", "d": 31, "e": "1_000"},
        ),
        ("a: |\n  1\n  2\n", {"a": "1\n2\n"}),
        ("base: &b {x: 1, y: 2}\nmade:\n  <<: *b\n  y: 3\n", {"base": {"x": 1, "y": 2}, "made": {"y": 3, "x": 1}}),
        ("a: &a 1\nb: &b 2\nm: {<<: [{c: *a}, {c: *b, d: 4}]}\n", {"a": 1, "b": 2, "m": {"c": 1, "d": 4}}),
        ("k: &k name\n*k : 1\n", {"k": "name", "name": 1}),
        ("- [1, {a: b}]\n- []\n", [[1, {"a": "b"}], []]),
        ("# nothing\n", None),
    ],
)
def test_values_are_read_as_intended(text: str, data: Any) -> None:
    assert read(text).data == data


# PyYAML writes by YAML 1.1 and leaves these texts unquoted, which are numbers in YAML 1.2.
NUMBERS_IN_1_2 = re.compile(r"[-+]?[.0-9]+[eE][-+]?[0-9]+|0o[0-7]+")

json_data = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=8).filter(
        lambda text: NUMBERS_IN_1_2.fullmatch(text) is None
    ),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abcd012/{}$", min_size=1, max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(json_data)
def test_written_data_is_read_back(data: Any) -> None:
    assert read(yaml.safe_dump(data, allow_unicode=True)).data == data


def test_lists_and_mappings_have_locations() -> None:
    reader = read("a:\n  b:\n    - c\n")
    assert reader.places[id(reader.data["a"])] == (2, 3)
    assert reader.places[id(reader.data["a"]["b"])] == (3, 5)


def test_duplicate_keys_are_reported_and_the_last_counts() -> None:
    reader = read("a: 1\nb: 2\na: 3\n")
    assert reader.data == {"a": 3, "b": 2}
    assert reader.repeated == [("a", 3, 1)]


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BOMB, "aliases expand this document to more than"),
        ("a: &a [*a]\n", "inside its own anchor"),
        ("a: *b\n", "not there"),
        ("[" * 300 + "]" * 300, "nested more than"),
        ("? [a]\n: b\n", "used as a key"),
        ("a: &a [1]\n*a : 1\n", "as a key"),
        ("a: 1\n---\nb: 2\n", "several documents"),
        (f"a: {'9' * 5000}\n", "digits"),
    ],
)
def test_yaml_that_is_not_data_is_refused(text: str, reason: str) -> None:
    with pytest.raises(NotationError) as refused:
        read(text)
    assert reason in refused.value.message


def test_aliases_share_what_they_name() -> None:
    data = read("a: &a {b: 1}\nc: [*a, *a]\n").data
    assert data["c"][0] is data["c"][1] is data["a"]
    assert document_text.MAX_EXPANDED < 10**6

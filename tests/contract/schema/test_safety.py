"""Slow patterns and other hazards of JSON Schemas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.contract.schema.safety import find_hazards, needs_backtracking, slowness


@rows(
    "pattern",
    *(r"(a+)+", r"([a-z]*)*$", r"^(\w+\s?)*$", r"^\w+([.-]?\w+)*@", r"(a|aa)+", r"(a|a)*b", r"(\d|\w)+", r"(.*a)*"),
    *(r"((a+)b?)+", r"(x+x+)+y", r"(a{0,50}){1,}", r"(?:[^,]*,?)*", r"([^/]+/?)+", r"(?<name>\S+)+", r"(\p{L}+)+"),
    r"a" * 1001,
)
def test_ambiguous_repetition_is_slow(pattern: str) -> None:
    assert slowness(pattern)


@rows(
    "pattern",
    *(r"^[a-z0-9]+(-[a-z0-9]+)*$", r"^[\w.+-]+@[\w-]+(\.[\w-]+)+$", r"^(foo|fob)+$", r"^\d{4}-\d{2}-\d{2}(T\d+)?$"),
    *(r"^([a-z]+\.)+[a-z]{2,}$", r"^(\S+\s)+$", r"^(\d{3}-?){2}$", r"^#([a-f0-9]{3}|[a-f0-9]{6})$"),
    *(r"^/(?:[^/{}]+|\{[^{}]+\})(?:/(?:[^/{}]+|\{[^{}]+\}))*$", r'^"(?:[^"\\]|\\.)*"$', r"^[]a-]+(x[^]x]+)*$"),
    *(r"^([\x41\u0042]+ )*$", "(", "[", "(a", "\\", "a{2}{3}", ""),
)
def test_unambiguous_pattern_is_not_slow(pattern: str) -> None:
    assert slowness(pattern) is None


@pytest.mark.parametrize("pattern", [r"(?=a)", r"(?!a)", r"(?<=a)", r"(?<!a)", r"(a)\1", r"\k<a>"])
def test_look_around_and_back_references_need_backtracking(pattern: str) -> None:
    assert needs_backtracking(pattern)


@pytest.mark.parametrize("pattern", [r"(?:a)", r"(?<name>a)", r"\d", "a|b"])
def test_other_groups_do_not_need_backtracking(pattern: str) -> None:
    assert not needs_backtracking(pattern)


@given(st.text(alphabet="ab()[]{}*+?|\\^$.-,0123456789:=!<>dwsuxpP"))
def test_any_text_has_an_answer(pattern: str) -> None:
    slowness(pattern)


def test_deep_nesting_does_not_overflow() -> None:
    assert slowness("(" * 500 + "a" + ")" * 499) is None


CHOICE = {"anyOf": [{"const": letter} for letter in "abcdef"]}


@rows(
    "schema, kind, at",
    ({"properties": {"code": {"pattern": "(a+)+$"}}}, "slow-pattern", "/properties/code/pattern"),
    ({"patternProperties": {"^(?=x)": {}}}, "backtracking", "/patternProperties/^(?=x)"),
    ({"allOf": [CHOICE] * 4}, "alternatives", ""),
    ({"enum": list(range(1001))}, "oversized", "/enum"),
    ({"items": {"$dynamicRef": "#node"}}, "dynamic", "/items/$dynamicRef"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}, "circle", ""),
)
def test_a_trap_is_reported_with_its_kind_and_place(schema: dict[str, Any], kind: str, at: str) -> None:
    assert [(trap.kind, trap.at) for trap in find_hazards(schema)] == [(kind, at)]


def test_a_plain_schema_has_no_hazards() -> None:
    schema = {"type": "object", "properties": {"code": {"type": "string", "pattern": "^[A-Z]+$"}}}
    assert list(find_hazards(schema)) == []

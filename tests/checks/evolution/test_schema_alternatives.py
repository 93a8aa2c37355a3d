"""The parts of anyOf, oneOf and allOf."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.checks.evolution.schema_view import are_disjoint, bare, match, only_alternatives


def test_equal_parts_are_paired_first_then_those_of_one_name_then_the_last() -> None:
    old = [{"title": "a", "minimum": 1}, {"const": 1}, {"maxLength": 1}]
    new = [{"maxLength": 2}, {"const": 1}, {"title": "a", "minimum": 2}]
    pairs, lost, gained = match(old, new)
    assert [(old.index(one), index) for one, _, index in pairs] == [(1, 1), (0, 2), (2, 0)]
    assert (lost, gained) == ([], [])


def test_parts_without_a_partner_remain() -> None:
    assert match([{"const": 1}, {"const": 2}], [{"const": 1}]) == (
        [({"const": 1}, {"const": 1}, 0)],
        [{"const": 2}],
        [],
    )
    pairs, lost, gained = match([{"const": 1}, {"const": 2}], [{"const": 3}, {"const": 4}])
    assert (pairs, len(lost), len(gained)) == ([], 2, 2)


def test_ambiguous_names_do_not_pair() -> None:
    old = [{"type": "string", "minLength": 1}, {"type": "string", "minLength": 5}]
    assert match(old, [{"type": "string", "minLength": 2}, {"type": "string", "minLength": 6}])[0] == []


@pytest.mark.parametrize(
    ("parts", "disjoint"),
    [
        ([{"type": "string"}, {"type": "null"}], True),
        ([{"type": "integer"}, {"type": "number"}], False),
        ([{"const": "a"}, {"enum": ["b", "c"]}], True),
        ([{"minimum": 1}, {"maximum": 2}], False),
        ([{}] * 65, False),
        ([], True),
    ],
)
def test_types_and_values_decide_overlap(parts: list[Any], disjoint: bool) -> None:
    assert are_disjoint(parts, lambda part: part) is disjoint


def test_objects_with_a_discriminator_exclude_each_other() -> None:
    def part(kind: str, *required: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"kind": {"const": kind}}, "required": list(required)}

    assert are_disjoint([part("a", "kind"), part("b", "kind")], lambda node: node)
    assert not are_disjoint([part("a", "kind"), part("b")], lambda node: node)


def test_single_schema_is_one_alternative_per_type() -> None:
    assert bare({"type": "string", "title": "x", "minLength": 1}) == [{"type": "string", "minLength": 1}]
    assert bare({"type": ["string", "null"]}) == [{"type": "string"}, {"type": "null"}]
    assert only_alternatives({"anyOf": [], "description": "x"}, "anyOf")
    assert not only_alternatives({"anyOf": [], "type": "string"}, "anyOf")

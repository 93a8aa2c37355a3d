from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.contract.grammar.syntax import Template, TemplateSet, parse_template

SEGMENTS = st.lists(st.sampled_from(["a", "b", None]), min_size=1, max_size=4)


def template(path: str) -> Template:
    parsed = parse_template(path)
    assert isinstance(parsed, Template)
    return parsed


def from_segments(segments: list[str | None]) -> Template:
    return template("".join(f"/{{p{place}}}" if item is None else f"/{item}" for place, item in enumerate(segments)))


def rival_of(path: str, *known: str) -> str | None:
    templates = TemplateSet()
    for one in known:
        assert templates.add(template(one)) is None
    rival = templates.add(template(path))
    return rival.path if rival else None


@pytest.mark.requirement("API-5.4-5")
@pytest.mark.parametrize(
    ("known", "path"),
    [
        ("/rooms/{id}", "/rooms/{other}"),
        ("/a/{x}", "/{y}/b"),
        ("/{a}/b/{c}", "/{a}/{b}/c"),
        ("/rooms", "/rooms"),
    ],
)
def test_two_templates_that_match_a_path_equally_well_are_rivals(known: str, path: str) -> None:
    assert rival_of(path, known) == known


@pytest.mark.parametrize(
    ("known", "path"),
    [
        ("/rooms/{id}", "/guests/{id}"),
        ("/rooms/{id}", "/rooms/first"),
        ("/rooms/{id}", "/{any}/{id}"),
        ("/rooms/{id}", "/rooms/{id}/notes"),
        ("/a/{x}/c", "/{y}/b/d"),
    ],
)
def test_templates_that_differ_in_literals_or_length_are_not_rivals(known: str, path: str) -> None:
    assert rival_of(path, known) is None


def test_a_refused_template_leaves_no_trace() -> None:
    templates = TemplateSet()
    first = template("/a/{x}")
    assert templates.add(first) is None
    assert templates.add(template("/{y}/b")) is first
    assert templates.add(template("/{y}/c")) is first
    assert templates.add(template("/b/{y}")) is None


@settings(max_examples=200)
@given(st.lists(SEGMENTS, max_size=30))
def test_rivals_are_found_exactly_where_comparing_all_pairs_finds_them(many: list[list[str | None]]) -> None:
    templates = TemplateSet()
    taken: list[Template] = []
    for one in map(from_segments, many):
        rivals = [
            other
            for other in taken
            if len(other.segments) == len(one.segments)
            and len(other.parameters) == len(one.parameters)
            and all(a is None or b is None or a == b for a, b in zip(one.segments, other.segments, strict=True))
        ]
        rival = templates.add(one)
        if rivals:
            assert rival in rivals
        else:
            assert rival is None
            taken.append(one)

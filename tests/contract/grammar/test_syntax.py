"""Grammar of paths, templates, segments and method names."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.contract.grammar.syntax import (
    Template,
    TemplateSet,
    check_path,
    check_structure,
    fill_path,
    foreign_parameter,
    hyphenated,
    is_method_name,
    is_name,
    is_parameter,
    leaking_segment,
    meant_parameter,
    odd_character,
    parameter_name,
    parse_template,
)
from bespeak.protocol.exchange.refusal import Fault

VERBS = frozenset({"BOOK", "LIST", "AUDIT"})


def _fuzz_target() -> ModuleType:
    file = Path(__file__).parents[3] / "tools" / "fuzz" / "path.py"
    sys.path.append(str(file.parent))  # last, so that a target's name hides no package
    spec = importlib.util.spec_from_file_location("fuzz_path", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FUZZ = _fuzz_target()


def fault_of(path: str) -> Fault:
    fault = check_structure(path)
    assert fault is not None
    return fault


@pytest.mark.requirement("API-5.3-1")
@rows(
    "path",
    *("/", "/rooms", "/Rooms/line-items/Line_Items", "/a/b/c/d/e/f/g/h"),
    *("/orders/{order_id}/line-items/{line_item_id}", "/caf%C3%A9", "/a:b@c;d=e,f", "/.well-known/x"),
)
def test_a_path_of_the_grammar_is_accepted(path: str) -> None:
    assert check_path(path, VERBS) is None


@pytest.mark.requirement("API-5.1-1")
@pytest.mark.parametrize("path", ["", "rooms", "http://host/rooms", "*"])
def test_a_path_that_does_not_begin_with_a_slash_is_refused(path: str) -> None:
    assert "begins with '/'" in fault_of(path).message


@pytest.mark.requirement("API-5.1-2")
@pytest.mark.parametrize("path", ["/rooms/", "//", "/a/b/"])
def test_a_trailing_slash_is_refused(path: str) -> None:
    assert "does not end with '/'" in fault_of(path).message


@pytest.mark.requirement("API-5.2-1")
@pytest.mark.parametrize("segment", ["a b", "a\x00", "a%", "a%2", "a%zz", "é", "a|b", "a?b", "a#b", "a\n", 'a"', "[a]"])
def test_a_character_outside_the_grammar_is_refused_and_its_segment_named(segment: str) -> None:
    assert fault_of(f"/rooms/{segment}/x").at == segment


@pytest.mark.requirement("API-5.2-2", "API-5.3-2")
@pytest.mark.parametrize(
    "segment",
    ["prefix-{id}", "{id}x", "{a}{b}", "{}", "{a b}", "{a-b}", "{+path}", "{?q}", "{#f}", "{id", "id}", "{é}"],
)
def test_a_parameter_in_any_other_form_is_refused(segment: str) -> None:
    assert fault_of(f"/rooms/{segment}").at == segment


@pytest.mark.requirement("API-5.1-3")
@pytest.mark.parametrize(
    "segment", ["book", "BOOK", "Book", "b-o-o-k", "b_ook", "-book-", "%62ook", "b%2Dook", "%42OOK"]
)
def test_segment_that_is_a_verb_is_refused_in_any_spelling(segment: str) -> None:
    fault = check_path(f"/rooms/{segment}", VERBS)
    assert fault is not None
    assert fault.at == segment


@pytest.mark.requirement("API-5.1-3")
@pytest.mark.parametrize("segment", ["books", "book-room", "lists", "auditors", "%6Cis", "bo%C5%BFk"])
def test_segment_that_only_contains_a_verb_is_accepted(segment: str) -> None:
    assert check_path(f"/{segment}", VERBS) is None


@pytest.mark.requirement("API-5.1-4", "API-5.2-3")
def test_parameter_may_be_called_like_a_verb_and_its_name_occurs_only_once() -> None:
    assert leaking_segment("/rooms/{book}", VERBS) is None
    fault = parse_template("/a/{id}/b/{id}")
    assert isinstance(fault, Fault)
    assert fault.at == "{id}"


def test_template_has_literals_and_parameters_and_a_huge_one_makes_a_short_message() -> None:
    assert template("/a/{x}/b/{y}") == Template("/a/{x}/b/{y}", ("a", None, "b", None), ("x", "y"))
    assert not template("/a/{x}/b/{y}").is_literal
    assert template("/").is_literal
    assert len(fault_of("/" + "é" * 100_000).message) < 300


@settings(max_examples=300)
@given(st.text(max_size=60) | st.lists(st.sampled_from(["a", "{id}", "%41", "", "b{c}", "book"])).map("/".join))
def test_the_grammar_accepts_what_its_productions_derive(text: str) -> None:
    FUZZ.try_path("/" + text, VERBS)
    FUZZ.try_path(text, VERBS)


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
@rows(
    "known, path",
    ("/rooms/{id}", "/rooms/{other}"),
    ("/a/{x}", "/{y}/b"),
    ("/{a}/b/{c}", "/{a}/{b}/c"),
    ("/rooms", "/rooms"),
)
def test_two_templates_that_match_a_path_equally_well_are_rivals(known: str, path: str) -> None:
    assert rival_of(path, known) == known


@rows(
    "known, path",
    ("/rooms/{id}", "/guests/{id}"),
    ("/rooms/{id}", "/rooms/first"),
    ("/rooms/{id}", "/{any}/{id}"),
    ("/rooms/{id}", "/rooms/{id}/notes"),
    ("/a/{x}/c", "/{y}/b/d"),
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


def test_name_is_lower_case_words_with_single_hyphens_and_the_first_odd_character_is_named() -> None:
    assert [is_name(segment) for segment in ("room", "order-history", "v2")] == [True] * 3
    assert [is_name(segment) for segment in ("", "Room", "a--b", "-a", "a_b", "caf\u00e9")] == [False] * 6
    assert odd_character("a b.c") == "a space"
    assert odd_character("caf\u00e9") == "'\u00e9'"
    assert "not between words" in odd_character("-a")


@pytest.mark.parametrize("segment", ["patientRecord", "patient_record", "PatientRecord", "Patient-Record"])
def test_words_are_joined_by_hyphens(segment: str) -> None:
    assert hyphenated(segment) in ("patient-record", "patient--record")


@rows(
    "segment, exact, foreign, meant",
    ("{room_id}", "room_id", "", ""),
    (":room_id", "", "room_id", "room_id"),
    ("<int:room_id>", "", "room_id", "room_id"),
    ("{{room_id}}", "", "", "room_id"),
    ("{room-id}", "", "", "room_id"),
    ("[room_id]", "", "", "room_id"),
    ("room-{id}", "", "", ""),
)
def test_the_notation_of_a_parameter_is_recognised(segment: str, exact: str, foreign: str, meant: str) -> None:
    assert is_parameter(segment)
    assert (parameter_name(segment), foreign_parameter(segment)) == (exact, foreign)
    assert exact or meant_parameter(segment) == meant
    assert not is_parameter("room")


@rows(
    "path, given, filled",
    ("/rooms", {"beds": 2}, ("/rooms", {"beds": 2})),
    ("/rooms", {}, ("/rooms", None)),
    ("/rooms/{id}", {"id": "a/b ü"}, ("/rooms/a%2Fb%20%C3%BC", None)),
    ("/rooms/{id}/beds/{n}", {"id": "12", "n": 3, "x": 1}, ("/rooms/12/beds/3", {"x": 1})),
    ("/rooms/{id}", {"id": "{id}"}, ("/rooms/%7Bid%7D", None)),
    ("/rooms/{id}", {"id": True}, ("/rooms/true", None)),
)
def test_parameters_are_replaced_and_leave_the_input(path: str, given: dict[str, Any], filled: Any) -> None:
    assert fill_path(path, given) == filled


@pytest.mark.parametrize("given", [{}, {"id": ""}, {"id": "."}, {"id": ".."}, {"id": object()}, {"id": "\ud800"}])
def test_a_value_that_no_segment_can_carry_is_a_fault(given: dict[str, Any]) -> None:
    assert isinstance(fill_path("/rooms/{id}", given), Fault)


@pytest.mark.requirement("API-3.2-1")
@pytest.mark.parametrize(
    "method",
    ["", "AB", "A" * 33, "book", "Book", "BOOK2", "BOOK_IT", "X-BOOK", "BOOK\n", " BOOK", "BÜCHEN", "ＢＯＯＫ"],
)
def test_only_three_to_thirty_two_capital_letters_are_a_method_name(method: str) -> None:
    assert not is_method_name(method)
    assert all(map(is_method_name, ("ABC", "BOOK", "A" * 32)))


@given(st.text(alphabet="ABCabc09_-é\n", max_size=40))
def test_the_pattern_of_the_draft_decides(method: str) -> None:
    assert is_method_name(method) == (re.search(r"\A[A-Z]+\Z", method) is not None and 3 <= len(method) <= 32)

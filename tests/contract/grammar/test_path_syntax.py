from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bespeak.contract.grammar.syntax import Template, check_path, check_structure, leaking_segment, parse_template
from bespeak.protocol.exchange.refusal import Fault

VERBS = frozenset({"BOOK", "LIST", "AUDIT"})


def _fuzz_target() -> ModuleType:
    file = Path(__file__).parents[3] / "fuzz" / "path.py"
    sys.path.append(str(file.parent))  # last, so that a target's name hides no package
    spec = importlib.util.spec_from_file_location("fuzz_path", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FUZZ = _fuzz_target()


@pytest.mark.requirement("API-5.3-1")
@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/rooms",
        "/Rooms/line-items/Line_Items",
        "/a/b/c/d/e/f/g/h",
        "/orders/{order_id}/line-items/{line_item_id}",
        "/caf%C3%A9",
        "/a:b@c;d=e,f",
        "/.well-known/x",
    ],
)
def test_a_path_of_the_grammar_is_accepted(path: str) -> None:
    assert check_path(path, VERBS) is None


@pytest.mark.requirement("API-5.1-1")
@pytest.mark.parametrize("path", ["", "rooms", "http://host/rooms", "*"])
def test_a_path_that_does_not_begin_with_a_slash_is_refused(path: str) -> None:
    fault = check_structure(path)
    assert fault is not None
    assert "begins with '/'" in fault.message


@pytest.mark.requirement("API-5.1-2")
@pytest.mark.parametrize("path", ["/rooms/", "//", "/a/b/"])
def test_a_trailing_slash_is_refused(path: str) -> None:
    fault = check_structure(path)
    assert fault is not None
    assert "does not end with '/'" in fault.message


@pytest.mark.requirement("API-5.2-1")
@pytest.mark.parametrize("segment", ["a b", "a\x00", "a%", "a%2", "a%zz", "é", "a|b", "a?b", "a#b", "a\n", 'a"', "[a]"])
def test_a_character_outside_the_grammar_is_refused_and_its_segment_named(segment: str) -> None:
    fault = check_structure(f"/rooms/{segment}/x")
    assert fault is not None
    assert fault.at == segment


@pytest.mark.requirement("API-5.2-2", "API-5.3-2")
@pytest.mark.parametrize(
    "segment",
    ["prefix-{id}", "{id}x", "{a}{b}", "{}", "{a b}", "{a-b}", "{+path}", "{?q}", "{#f}", "{id", "id}", "{é}"],
)
def test_a_parameter_in_any_other_form_is_refused(segment: str) -> None:
    fault = check_structure(f"/rooms/{segment}")
    assert fault is not None
    assert fault.at == segment


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


@pytest.mark.requirement("API-5.1-4")
def test_a_parameter_may_be_called_like_a_verb() -> None:
    assert leaking_segment("/rooms/{book}", VERBS) is None


@pytest.mark.requirement("API-5.2-3")
def test_parameter_name_occurs_only_once_in_a_path() -> None:
    fault = parse_template("/a/{id}/b/{id}")
    assert isinstance(fault, Fault)
    assert fault.at == "{id}"


def test_template_has_literals_and_parameters() -> None:
    template = parse_template("/a/{x}/b/{y}")
    assert template == Template("/a/{x}/b/{y}", ("a", None, "b", None), ("x", "y"))
    assert not template.is_literal


def test_the_root_is_a_literal_path() -> None:
    template = parse_template("/")
    assert isinstance(template, Template)
    assert template.is_literal


def test_a_huge_path_makes_a_short_message() -> None:
    fault = check_structure("/" + "é" * 100_000)
    assert fault is not None
    assert len(fault.message) < 300


@settings(max_examples=300)
@given(st.text(max_size=60) | st.lists(st.sampled_from(["a", "{id}", "%41", "", "b{c}", "book"])).map("/".join))
def test_the_grammar_accepts_what_its_productions_derive(text: str) -> None:
    FUZZ.try_path("/" + text, VERBS)
    FUZZ.try_path(text, VERBS)

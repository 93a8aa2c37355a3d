"""YAML with places: the types of YAML 1.2, nothing that JSON cannot say, and no text that hurts."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.documents.openapi.document_text import parse_document
from bespeak.text.source.pointer import child
from bespeak.text.source.tree import MAX_BYTES, MAX_DEPTH, Location, SyntaxFault
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml, without_tab_lines

TEXT = """\
# a comment
agis: "1.0"   # the version
endpoints:
  - method: BOOK
    errors: [gone, 'too late',]
    semantic:
      intent: >-
        Books
        a room

      hints:
  -
  - {a: 1, b, "c/d": []}
# tail
list:
- x
- - y
"""


def tree(text: str) -> YamlTree:
    parsed = parse_yaml(text, "x.agis")
    assert isinstance(parsed, YamlTree), parsed
    return parsed


def fault(text: str) -> SyntaxFault:
    parsed = parse_yaml(text, "x.agis")
    assert isinstance(parsed, SyntaxFault), parsed.data
    return parsed


@rows(
    "at, key, value",
    ("/agis", "agis", '"1.0"'),
    ("/endpoints/0/method", "method", "BOOK"),
    ("/endpoints/0/errors", "errors", "[gone, 'too late',]"),
    ("/endpoints/0/errors/1", "'too late'", "'too late'"),
    ("/endpoints/0/semantic/intent", "intent", ">-\n        Books\n        a room"),
    ("/endpoints/0/semantic/hints", "hints", ""),
    ("/endpoints/1", "", ""),
    ("/endpoints/2", '{a: 1, b, "c/d": []}', '{a: 1, b, "c/d": []}'),
    ("/endpoints/2/c~1d", '"c/d"', "[]"),
    ("/list", "list", "- x\n- - y"),
    ("/list/1/0", "y", "y"),
)
def test_key_and_value_have_their_places(at: str, key: str, value: str) -> None:
    parsed = tree(TEXT)
    for span, expected in ((parsed.key_span(at), key), (parsed.value_span(at), value)):
        assert span is not None
        assert TEXT[span.start : span.end] == expected


def test_block_ends_with_its_last_value_and_a_location_has_a_start_and_an_end() -> None:
    span = tree(TEXT).value_span("/endpoints/0")
    assert span is not None
    assert TEXT[span.start : span.end].endswith("hints:")
    assert tree(TEXT).locate("/agis") == Location("x.agis", 2, 7, 2, 12)
    assert tree(TEXT).locate("/agis", key=True) == Location("x.agis", 2, 1, 2, 5)
    assert tree(TEXT).locate("/endpoints/0/semantic/intent") == Location("x.agis", 7, 15, 9, 15)


@rows(
    "at, line, column",
    ("/endpoints/0/semantic/actor", 6, 5),
    ("/endpoints/0/nothing/at/all", 4, 5),
    ("/endpoints/9", 3, 1),
    ("/no", 2, 1),
)
def test_missing_value_has_the_place_of_its_parent(at: str, line: int, column: int) -> None:
    assert tree(TEXT).locate(at) == Location("x.agis", line, column)


def test_places_in_an_empty_document_and_behind_a_byte_order_mark_are_right() -> None:
    assert tree("# nothing\n").data is None
    assert tree("").locate("/a") == Location("x.agis", 1, 1)
    assert tree("\ufeffa: 1\r\nbc: 2\r\n").locate("/bc") == Location("x.agis", 2, 5, 2, 6)


@rows(
    "written, value",
    *(("true", True), ("false", False), ("null", None), ("~", None), ("", None)),
    *((word, word) for word in ("yes", "no", "on", "off", "True", "FALSE", "Null", "NULL", "y", "n")),
    *(("1", 1), ("-7", -7), ("+3", 3), ("010", 10), ("0o17", 15), ("0xFF", 255), ("9" * 40, int("9" * 40))),
    *(("0.85", 0.85), ("1.", 1.0), (".5", 0.5), ("1e3", 1000.0), ("-1.5E-2", -0.015)),
    *((word, word) for word in ("1_000", "12:30", "1:30:00", "2026-01-01", "2026-01-01T00:00:00Z", "1.0.0", "0x")),
    *((word, word) for word in (".inf", ".nan", "0b1", "1e", "--", "=", "0o8")),
    *(('"1"', "1"), ("'true'", "true"), ('"a\\u00e9"', "aé"), ("a b", "a b"), ("!!str 1", "1"), ("!!int 1", 1)),
    *(("!!float 1", 1.0), ("!!map {}", {}), ("!!seq []", []), ("!!null ~", None)),
)
def test_a_scalar_has_the_type_of_yaml_1_2(written: str, value: Any) -> None:
    read = tree(f"a: {written}\n").data["a"]
    assert read == value
    assert type(read) is type(value)


@rows(
    "text, line, column, message, advice",
    ("a: b: c", 1, 5, "': '", "in quotes"),
    ("a:\n\t- x", 2, 1, "a tab", "with spaces"),
    ("a: [1,\n 2", 1, 4, "not closed", "Close"),
    ("a: {b: 1", 1, 4, "not closed", "Close"),
    ('b: 1\na: "x\n\n', 2, 4, "a quoted text is not closed", "closing quote"),
    ("- a\nb: 1", 2, 1, "list item", "Indent"),
    ("a: 1\n b: 2", 2, 3, "not indented like its neighbours", "alike"),
    ("a:\n  b: 1\n c: 2", 3, 2, "a key is expected", "Indent"),
    ("a: @x", 1, 4, "cannot start with '@'", "in quotes"),
    ("a: `x`", 1, 4, "cannot start with '`'", "in quotes"),
    ("--- 1\n--- 2", 2, 1, "several documents", "its own file"),
    ("a: *x", 1, 4, "an anchor that does not exist", "&"),
    ("a: 1\nb\nc: 2", 3, 1, "has no ':'", "key: value"),
    ("a: - b", 1, 4, "a list item cannot start here", "own line"),
    ('a: "\\q"', 1, 5, "an escape that YAML does not know", "backslash"),
    ('a: "\\ud800"', 1, 7, "half a character", "the character"),
    ("%YAML 3.0\n--- a", 1, 1, "version of YAML", "%YAML"),
    ("a: }", 1, 4, "a value is expected", "Write the value"),
    ("a: 1\nb: 2\na: 3", 3, 1, "the key 'a' is repeated; line 1", "Remove one"),
    ("1: x", 1, 1, "the key 1 is not a text", '"1"'),
    ("true: x", 1, 1, "the key true is not a text", '"true"'),
    ("? [a]\n: 1", 1, 3, "a list or mapping is used as a key", "a text"),
    ("b: {}\na:\n  <<: {}", 3, 3, "merge keys (<<) are not supported", "Write the entries out"),
    ("a: !foo 1", 1, 4, "the tag !foo is not supported", "Remove the tag"),
    ("a: !!python/object/apply:os.system [ls]", 1, 4, "!!python/object/apply:os.system", "Remove the tag"),
    ("a: !!set {b}", 1, 4, "!!set", "Remove the tag"),
    ("a: !!binary eA==", 1, 4, "!!binary", "Remove the tag"),
    ("a: !!int x", 1, 4, "the value is no int", "!!int"),
    ("!!str a: 1\n!t b: 1", 2, 1, "the tag !t", "Remove the tag"),
    ("a: 1e999", 1, 4, "too large", "in quotes"),
    ("a: " + "9" * 5000, 1, 4, "digits", "in quotes"),
    ("a: x\0y", 1, 5, "control character U+0000", "Remove it"),
    ("a: \x1b[0m", 1, 4, "control character U+001B", "Remove it"),
    ("a: \ud800", 1, 4, "half a surrogate pair", "Remove it"),
    ("a: &x [*x]", 1, 8, "inside its own anchor", "$ref"),
)
def test_fault_has_message_place_and_help(text: str, line: int, column: int, message: str, advice: str) -> None:
    found = fault(text)
    assert (found.location.line, found.location.column) == (line, column)
    assert message in found.message
    assert advice in found.help
    assert "while" not in found.message


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + step)}: &{chr(98 + step)} [{','.join([f'*{chr(97 + step)}'] * 9)}]\n" for step in range(9)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{step}: &a{step} [*a{step - 1}]\n" for step in range(1, 2000))


@rows(
    "text, reason",
    (LAUGHS, "aliases expand this document to more than 200,000"),
    (CHAIN, "aliases nest"),
    (f"a: &a {'x' * 1_000_000}\nb: [{','.join(['*a'] * 1000)}]\n", "aliases make more than 16 MiB"),
    (f"a: &a\n  ? {'x' * 1_000_000}\n  : 1\nb: [{','.join(['*a'] * 1000)}]\n", "aliases make more than 16 MiB"),
    ("[" * 1_000_000, "nested more than"),
    ("{a: " * 100_000, "nested more than"),
    ("- " * 100_000, "nested more than"),
    ("? " * 100_000, "nested more than"),
    ("\n".join(" " * depth + "a:" for depth in range(4000)), "nested more than"),
    ("[1" + ",1" * 1_000_000, "more than 1,000,000"),
    ("x" * (MAX_BYTES + 1), "longer than 16 MiB"),
    ids=[
        *("laughs", "chain", "long texts", "long keys", "brackets", "braces", "dashes", "questions", "indents"),
        *("items", "long"),
    ],
)
def test_hostile_text_is_refused(text: str, reason: str) -> None:
    assert reason in fault(text).message


def test_deepest_allowed_document_is_read_and_an_invalid_index_has_no_place() -> None:
    assert json.dumps(tree("[" * MAX_DEPTH + "]" * MAX_DEPTH).data) == "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert tree("[" * MAX_DEPTH + "a" + "]" * MAX_DEPTH).data
    fault("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
    fault("!!seq [" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2))
    assert tree("a: [1]").value_span(f"/a/{'9' * 5000}") is None
    assert tree("a: [1]").value_span("/a/-1") is None


def test_aliases_are_resolved_and_reported() -> None:
    parsed = tree("a: &x {b: 1}\nc: *x\nd: [*x, 2]\n")
    assert parsed.data == {"a": {"b": 1}, "c": {"b": 1}, "d": [{"b": 1}, 2]}
    assert parsed.has_aliases
    assert parsed.data["c"] is not parsed.data["a"]
    span = parsed.value_span("/d")
    assert span is not None
    assert parsed.text[span.start : span.end] == "[*x, 2]"


WITHOUT_LIBYAML = """
import yaml
yaml.__with_libyaml__ = False
from bespeak.text.source.yaml_tree import parse_yaml
print(parse_yaml("a: 1\\nb: [x, 'y']\\n", "f").data)
print(parse_yaml("b: @x", "f").message)
print(parse_yaml("[" * 100_000, "f").message)
"""


@pytest.mark.process
def test_without_libyaml_the_reader_in_python_reads_the_same() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT_LIBYAML], capture_output=True, text=True, check=True)
    data, start, deep = run.stdout.splitlines()
    assert data == "{'a': 1, 'b': ['x', 'y']}"
    assert start == "a value cannot start with '@'"
    assert "nested more than" in deep


def test_garbage_collector_is_restored() -> None:
    assert gc.isenabled()
    tree("a: 1")
    fault("a: [")
    assert gc.isenabled()
    gc.disable()
    try:
        tree("a: 1")
        assert not gc.isenabled()
    finally:
        gc.enable()


JSON_DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("aé:#-' \"\n"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("aé:#-' \"1", max_size=4), inner, max_size=4),
    max_leaves=20,
)


def check_places(parsed: Any, data: Any, at: str = "") -> None:
    span = parsed.value_span(at)
    assert span is not None
    assert json.loads(parsed.text[span.start : span.end]) == data
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        if isinstance(key, str):
            place = parsed.key_span(child(at, key))
            assert json.loads(parsed.text[place.start : place.end]) == key
        check_places(parsed, value, child(at, key))


@settings(max_examples=200, deadline=None)
@given(JSON_DATA, st.sampled_from([None, 2]))
def test_json_is_read_as_yaml_with_every_place(data: Any, indent: int | None) -> None:
    parsed = tree(json.dumps(data, indent=indent, ensure_ascii=False))
    assert parsed.data == data
    check_places(parsed, data)


@settings(max_examples=400, deadline=None)
@given(st.text(alphabet="ab:- \n[]{},\"'#&*!|>?%@\t1", max_size=40))
def test_any_text_is_a_tree_or_a_fault_inside_the_text(text: str) -> None:
    parsed = parse_yaml(text, "x.agis")
    if isinstance(parsed, SyntaxFault):
        assert 0 < parsed.location.line <= text.count("\n") + 1
    else:
        parsed.locate("/a/b/0")


@pytest.mark.parametrize("blanks", ["\t", " \t", "\t\t", "\t \t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_tab_line_inside_a_block_text_is_read_as_an_empty_line(blanks: str, end: str) -> None:
    text = end.join(["info: |", "   one", blanks, "   two", "next: {a: 1}", ""])
    document, found = parse_document(text, "api.yaml")
    assert document is not None, found
    assert document.data == {"info": "one\n\ntwo\n", "next": {"a": 1}}
    assert (document.locate("/next").line, document.locate("/next").column) == (5, 7)
    tree = parse_yaml(text, "menu.agis")
    assert isinstance(tree, YamlTree)
    assert tree.data == document.data
    assert tree.locate("/next/a").line == 5


def test_lines_of_tabs_are_read_and_a_tab_as_indentation_is_an_error_at_its_line() -> None:
    document, found = parse_document("info: |\n\t\t\t\t\t\n  one\n", "api.yaml")
    assert document is not None, found
    assert document.data == {"info": "\none\n"}
    document, found = parse_document("a: 1\n\t\nb: 2\n", "api.yaml")
    assert document is not None, found
    assert document.data == {"a": 1, "b": 2}
    document, (found,) = parse_document("a: |\n  x\n\t\n  y\nb:\n\tc: 1\n", "api.yaml")
    assert document is None
    assert found.location is not None
    assert "tab" in found.message or "\\t" in found.message


def test_only_lines_of_blanks_are_changed_in_linear_time() -> None:
    text = "a:\tb\n\tc\n \t \n\n   \n"
    assert without_tab_lines(text) == "a:\tb\n\tc\n\n\n   \n"
    assert without_tab_lines(text, filler=" ") == "a:\tb\n\tc\n   \n\n   \n"
    text = "\t" * 1_000_000 + "x"
    assert without_tab_lines(text) == text

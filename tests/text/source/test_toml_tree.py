"""TOML with places: the data is what tomli reads, and every key is where it says."""

from __future__ import annotations

import pytest
import tomli
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.text.source.pointer import child
from bespeak.text.source.toml_tree import MAX_BYTES, TomlTree, parse_toml, toml_comments
from bespeak.text.source.tree import Location, SyntaxFault
from bespeak.text.source.value_text import toml_value

TEXT = '''\
# a comment with [brackets]
title = "x"   # [not.a.table]

[endpoint]
method = "BOOK"
"quo/ted" . 'in ner' = """
[not.a.header]
key = 1
"""
literal = \'\'\'it's ''fine'' \'\'\'
list = [
  "a", # ]
  "]", { k = 1 },
]
after = 1

[[endpoint.input.required]]
name = "first"

  [[endpoint.input.required]]
  name = "second"
  schema = { type = "string" }

  [endpoint.input.required.extra]
  deep = true

[endpoint.semantic]
"esc\\u0061pe" = 1
'''


def tree(text: str) -> TomlTree:
    parsed = parse_toml(text, "x.toml")
    assert isinstance(parsed, TomlTree), parsed
    return parsed


def fault(text: str) -> SyntaxFault:
    parsed = parse_toml(text, "x.toml")
    assert isinstance(parsed, SyntaxFault)
    return parsed


@rows(
    "at, line, column",
    ("/title", 2, 1),
    ("/endpoint", 4, 2),
    ("/endpoint/method", 5, 1),
    ("/endpoint/quo~1ted", 6, 1),
    ("/endpoint/quo~1ted/in ner", 6, 13),
    ("/endpoint/literal", 10, 1),
    ("/endpoint/list", 11, 1),
    ("/endpoint/after", 15, 1),
    ("/endpoint/input/required/0", 17, 18),
    ("/endpoint/input/required/0/name", 18, 1),
    ("/endpoint/input/required/1/name", 21, 3),
    ("/endpoint/input/required/1/schema", 22, 3),
    ("/endpoint/input/required/1/extra/deep", 25, 3),
    ("/endpoint/semantic/escape", 28, 1),
)
def test_key_has_its_place(at: str, line: int, column: int) -> None:
    assert tree(TEXT).locate(at) == Location("x.toml", line, column)


def test_place_is_that_of_the_key_its_table_or_the_document_with_any_line_ends() -> None:
    assert tree(TEXT).locate("/endpoint/list/2/k") == Location("x.toml", 11, 1)
    assert tree(TEXT).locate("/endpoint/input/required/1/schema/type").line == 22
    assert tree(TEXT).locate("/endpoint/semantic/intent").line == 27
    assert tree(TEXT).locate("/nowhere/at/all") == Location("x.toml")
    assert tree(TEXT.replace("\n", "\r\n")).locate("/endpoint/after") == Location("x.toml", 15, 1)


@rows(
    "at, key, value",
    ("/title", "title", '"x"'),
    ("/endpoint/quo~1ted/in ner", "'in ner'", '"""\n[not.a.header]\nkey = 1\n"""'),
    ("/endpoint/literal", "literal", "'''it's ''fine'' '''"),
    ("/endpoint/list/1", '"]"', '"]"'),
    ("/endpoint/list/2/k", "k", "1"),
    ("/endpoint/input/required/1/schema", "schema", '{ type = "string" }'),
    ("/endpoint/input/required/1/schema/type", "type", '"string"'),
)
def test_value_has_its_place(at: str, key: str, value: str) -> None:
    parsed = tree(TEXT)
    for span, expected in ((parsed.key_span(at), key), (parsed.value_span(at), value)):
        assert span is not None
        assert TEXT[span.start : span.end] == expected


def test_a_table_with_a_header_has_a_key_and_no_value() -> None:
    parsed = tree(TEXT)
    assert parsed.value_span("/endpoint") is None
    assert parsed.locate("/endpoint", key=True) == Location("x.toml", 4, 2, 4, 10)
    assert parsed.locate("/endpoint/list/1", key=True) == Location("x.toml", 13, 3, 13, 6)


@rows(
    "text, place",
    ("a = 1\nb = = 2\n", Location("x.toml", 2, 5)),
    ("a = 1\na = 2\n", Location("x.toml", 2, 6)),
    ("a = [1,\n", Location("x.toml", 2, 1)),
    ("[t]\n[t]\n", Location("x.toml", 2, 3)),
)
def test_fault_has_the_place_given_by_tomli(text: str, place: Location) -> None:
    found = fault(text)
    assert found.location == place
    assert "(at" not in found.message


@rows(
    "text, reason",
    ("a" * (MAX_BYTES + 1), "longer"),
    ("a = " + "[" * 100_000, "nested"),
    ("a = " + "{a=" * 100_000, "nested"),
    ("a." * 400_000 + "a = 1", "more than 64 parts"),
    ('"".' * 200_000 + "a = 1", "more than 64 parts"),
    ("t = {" + "a." * 400_000 + "a = 1}", "more than 64 parts"),
    ("a = " + "9" * 500_000, "too many digits"),
)
def test_hostile_text_is_refused_quickly(text: str, reason: str) -> None:
    assert reason in fault(text).message


@pytest.mark.parametrize("quote", ["'''", '"""', "'", '"'])
def test_long_dotted_text_in_a_string_is_not_a_key(quote: str) -> None:
    assert tree(f"a = {quote}{'x.' * 200}{quote}\n# {'y.' * 200}\n").data == {"a": "x." * 200}


KEYS = st.sampled_from(["a", "b", "c-d", "e_1", '"x y"', "'p/q'", '"\\u00e9"', "1"])
VALUES = st.sampled_from(
    [
        *("1", '"text"', "'lit#eral'", "true", '"""\n[no]\nx = 1\n"""', "'''\n'q'\n'''", "[1, 2]"),
        *("[\n  1, # ]\n  2,\n]", "{ k = 1, l.m = '}' }", "2026-01-01", "1.5", "[[1], ['=']]", '"""two ""\\"""""'),
        *("[]", "{}"),
    ]
)
PAIRS = st.tuples(st.lists(KEYS, min_size=1, max_size=3).map(" . ".join), VALUES).map(" = ".join)
HEADERS = (
    st.lists(KEYS, min_size=1, max_size=3)
    .map(".".join)
    .flatmap(lambda path: st.sampled_from([f"[{path}]", f"[[{path}]]", f"  [ {path} ] # note"]))
)
DOCUMENTS = st.lists(PAIRS | HEADERS | st.sampled_from(["", "# comment = [", "\t"]), max_size=12).map("\n".join)


@settings(max_examples=400, deadline=None)
@given(DOCUMENTS)
def test_what_tomli_accepts_is_read_alike_and_every_key_has_its_place(text: str) -> None:
    try:
        data = tomli.loads(text)
    except tomli.TOMLDecodeError:
        assert isinstance(parse_toml(text, "x.toml"), SyntaxFault)
        return
    parsed = tree(text)
    assert parsed.data == data
    lines = text.split("\n")
    check_values(parsed, data)
    for key in data:
        place = parsed.locate(child("", key))
        rest = lines[place.line - 1][place.column - 1 :]
        assert tomli.loads(f"{rest[: _key_length(rest)]} = 0") == {key: 0}


def check_values(parsed: TomlTree, data: object, at: str = "") -> None:
    span = parsed.value_span(at)
    if span is not None:
        assert tomli.loads(f"x = {parsed.text[span.start : span.end]}") == {"x": data}
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        assert parsed.key_span(child(at, key)) is not None
        check_values(parsed, value, child(at, key))


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab.=[]{}\"'#\n\\ ,1", max_size=60))
def test_any_text_is_read_as_tomli_reads_it(text: str) -> None:
    parsed = parse_toml(text, "x.toml")
    try:
        data = tomli.loads(text)
    except tomli.TOMLDecodeError:
        assert isinstance(parsed, SyntaxFault)
    else:
        assert isinstance(parsed, TomlTree)
        assert parsed.data == data
        parsed.locate("/a/b/0")


def _key_length(text: str) -> int:
    if text[0] in "\"'":
        return text.index(text[0], 1) + 1
    return next((index for index, char in enumerate(text) if not (char.isalnum() or char in "_-")), len(text))


def found(text: str) -> list[str]:
    return [text[span.start : span.end] for span in toml_comments(text)]


@rows(
    "text, comments",
    ("# a\nb = 1 # c\n", ["# a", "# c"]),
    ('a = "# no" # yes', ["# yes"]),
    ("a = '# no' # yes", ["# yes"]),
    ('a = "\\"# no" # yes', ["# yes"]),
    ('a = """\n# no\n"# no"\n""" # yes', ["# yes"]),
    ("a = '''\n# no\n''' # yes", ["# yes"]),
    ("a = [ # one\n 1, # two\n]", ["# one", "# two"]),
    ("", []),
)
def test_only_comments_are_found(text: str, comments: list[str]) -> None:
    tomli.loads(text)
    assert found(text) == comments


@given(st.lists(st.tuples(st.text(), st.text(st.characters(codec="utf-8", exclude_categories=["C"])))))
def test_every_comment_behind_a_value_is_found(lines: list[tuple[str, str]]) -> None:
    written = [(toml_value(value), comment) for value, comment in lines]
    text = "".join(f"k{index} = {value} #{comment}\n" for index, (value, comment) in enumerate(written))
    assert found(text) == [f"#{comment}" for _, comment in written]

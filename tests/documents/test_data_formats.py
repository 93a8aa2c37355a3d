"""Formats of plain data: what is written can be read, and any text gives data or the declared error."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.documents.data_formats import MEDIA_TYPES, FormatError, read_data, write_data

CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.text(CHARACTERS, max_size=8) | st.sampled_from(
    ["yes", "0o14", "1e3", "<<", "- a", "#", "~", "2026-01-01", "=1"]
)
NUMBERS = st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = TEXTS | NUMBERS | st.booleans()


def nested(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaf, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=12
    )


@given(nested(SCALARS | st.none()), st.sampled_from(["json", "yaml"]))
def test_json_and_yaml_give_back_any_data(data: Any, form: str) -> None:
    assert read_data(write_data(data, form), form) == data


@given(st.lists(nested(SCALARS | st.none()), max_size=4))
def test_json_lines_give_back_any_list(data: list[Any]) -> None:
    assert read_data(write_data(data, "jsonl"), "jsonl") == data


@given(st.dictionaries(TEXTS, nested(SCALARS), max_size=4) | st.lists(st.dictionaries(TEXTS, nested(SCALARS))))
def test_toml_gives_back_tables_and_rows(data: Any) -> None:
    found = read_data(write_data(data, "toml"), "toml")
    assert found == (data if isinstance(data, dict) else {"rows": data})


SAFE = st.text(st.characters(exclude_categories=["Cs"]), max_size=8).filter(
    lambda text: not text.startswith(tuple("=+-@\t\r"))
)


@given(st.lists(SAFE.filter(bool), min_size=1, max_size=4, unique=True), st.data())
def test_csv_gives_back_texts(names: list[str], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.fixed_dictionaries(dict.fromkeys(names, SAFE)), min_size=1, max_size=4))
    assert read_data(write_data(rows, "csv"), "csv") == rows


XML_TEXTS = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff") | st.sampled_from("\t\n\r"),
    max_size=6,
)
NAMES = st.sampled_from(["a", "b", "ns:c", "größe", "_x-1.2"])
ATTRIBUTES = st.dictionaries(st.sampled_from(["@id", "@lang"]), XML_TEXTS, min_size=1)
LEAVES = (
    XML_TEXTS
    | ATTRIBUTES
    | st.tuples(ATTRIBUTES, XML_TEXTS.filter(bool)).map(lambda pair: {**pair[0], "#text": pair[1]})
)
ELEMENTS = st.recursive(
    LEAVES,
    lambda inner: st.dictionaries(NAMES, inner | st.lists(inner, min_size=2, max_size=3), min_size=1, max_size=3),
    max_leaves=8,
)


@given(NAMES, ELEMENTS)
def test_xml_gives_back_elements(name: str, value: Any) -> None:
    assert read_data(write_data({name: value}, "xml"), "xml") == {name: value}


PARTS = ['"', '""', ",", "\n", "\r\n", "a", "b", "<a>", "</a>", "<!--", "<!DOCTYPE a [", "&amp;", "&x;", "=", "["]
PARTS += ["]", "{", "}", ":", "- ", "&a ", "*a", "1", ".nan", "'", "<a b='1'/>", "[[a]]", "\x00", "inf"]
PIECES = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


@given(PIECES | st.text(max_size=20) | st.binary(max_size=20), st.sampled_from(list(MEDIA_TYPES)))
def test_any_text_gives_data_that_json_has_or_the_declared_error(source: Any, form: str) -> None:
    try:
        data = read_data(source, form)
    except FormatError:
        return
    assert read_data(write_data(data, "json"), "json") == data


@given(nested(SCALARS | st.none()), st.sampled_from(list(MEDIA_TYPES)))
def test_any_data_is_written_readably_or_refused(data: Any, form: str) -> None:
    try:
        text = write_data(data, form)
    except FormatError:
        return
    read_data(text, form)


@pytest.mark.parametrize(
    ("form", "text", "line"),
    [
        ("csv", 'a,b\r\n1,2\r\n"3\n",4,5\r\n', 3),
        ("csv", 'a,b\n1,"x"y\n', 2),
        ("csv", 'a,b\n1,x"y"\n', 2),
        ("csv", 'a,b\n1,"x\n', 2),
        ("csv", "a,b\n1\n", 2),
        ("csv", "\na,a\n", 2),
        ("csv", "a,,b\n", 1),
        ("json", '{"a": 1,\n"a": 2}', 2),
        ("json", "[NaN]", 1),
        ("json", "[" * 200 + "]" * 200, 1),
        ("jsonl", "{}\n\n{]\n", 3),
        ("yaml", "a: &x 1\nb: *x\n", 0),
        ("yaml", "a: !!python/object:os.system 1\n", 1),
        ("toml", "a = 1\na = 2\n", 2),
        ("toml", "a = " + "[" * 150 + "]" * 150, 0),
        ("xml", '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', 2),
        ("xml", '<!DOCTYPE a SYSTEM "http://127.0.0.1:1/x"><a/>', 1),
        ("xml", "<a>\n&b;</a>", 2),
        ("xml", "<a>text<b/></a>", 1),
        ("xml", "<a>" * 200 + "</a>" * 200, 1),
    ],
)
def test_what_is_not_in_the_format_is_an_error_with_its_line(form: str, text: str, line: int) -> None:
    with pytest.raises(FormatError) as caught:
        read_data(text, form)
    assert caught.value.line == line, caught.value


def test_cells_and_elements_stay_texts_and_times_become_texts() -> None:
    assert read_data("a,b\n007,\n\n1e3,x", "csv") == [{"a": "007", "b": ""}, {"a": "1e3", "b": "x"}]
    assert read_data('a,b\n1,"x,""y""\nz"', "csv") == [{"a": "1", "b": 'x,"y"\nz'}]
    assert read_data("a,b\n1,", "csv") == [{"a": "1", "b": ""}]
    assert read_data('<o n="1"><l>2</l><l/><m> x </m></o>', "xml") == {"o": {"@n": "1", "l": ["2", ""], "m": " x "}}
    assert read_data("a = 2026-03-04\nb = 10:00:00", "toml") == {"a": "2026-03-04", "b": "10:00:00"}
    assert read_data(b"\xef\xbb\xbf[1]", "json") == [1]


def test_a_cell_that_a_spreadsheet_would_run_gets_a_quote_mark() -> None:
    rows = [{"=x": "=1+1", "b": "-5"}, {"=x": "@a", "b": "-5+cmd"}, {"=x": "\tb", "b": -7}, {"b": "+49 30"}]
    text = write_data(rows, "csv")
    assert text == "'=x,b\r\n'=1+1,-5\r\n'@a,'-5+cmd\r\n'\tb,-7\r\n,'+49 30\r\n"


@pytest.mark.parametrize(
    ("form", "data"),
    [
        ("csv", [1]),
        ("csv", [{"": 1}]),
        ("csv", [{"=a": 1, "'=a": 2}]),
        ("toml", [{"a": None}]),
        ("xml", {"a b": 1}),
        ("xml", {"a": [[1]]}),
        ("xml", {"a": "\x00"}),
        ("xml", {"a": {"@b": [1]}}),
    ],
)
def test_what_a_format_cannot_express_is_refused(form: str, data: Any) -> None:
    with pytest.raises(FormatError):
        write_data(data, form)


def test_no_reader_lets_a_number_through_that_json_lacks() -> None:
    for form, text in (
        ("toml", "a = nan"),
        ("toml", f"a = {1 << 64}"),
        ("yaml", f"a: {1 << 64}"),
        ("json", f"[{1 << 65}]"),
    ):
        with pytest.raises(FormatError):
            read_data(text, form)
    assert math.isclose(read_data("1.5", "yaml"), 1.5)

"""Lines of blanks with tabs do not make a YAML text invalid."""

from __future__ import annotations

import pytest

from bespeak.documents.openapi.document_text import parse_document
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml, without_tab_lines


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


def test_tab_line_at_the_start_of_a_block_text_is_read_at_any_length() -> None:
    document, found = parse_document("info: |\n\t\t\t\t\t\n  one\n", "api.yaml")
    assert document is not None, found
    assert document.data == {"info": "\none\n"}


def test_tab_line_between_keys_is_read() -> None:
    document, found = parse_document("a: 1\n\t\nb: 2\n", "api.yaml")
    assert document is not None, found
    assert document.data == {"a": 1, "b": 2}


def test_tab_as_indentation_stays_an_error_at_its_own_line() -> None:
    document, (found,) = parse_document("a: |\n  x\n\t\n  y\nb:\n\tc: 1\n", "api.yaml")
    assert document is None
    assert found.location is not None
    assert "tab" in found.message or "\\t" in found.message


def test_only_lines_of_blanks_are_changed() -> None:
    text = "a:\tb\n\tc\n \t \n\n   \n"
    assert without_tab_lines(text) == "a:\tb\n\tc\n\n\n   \n"
    assert without_tab_lines(text, filler=" ") == "a:\tb\n\tc\n   \n\n   \n"


def test_many_tabs_are_read_in_linear_time() -> None:
    text = "\t" * 1_000_000 + "x"
    assert without_tab_lines(text) == text

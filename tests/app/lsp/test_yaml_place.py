"""Place of an offset in YAML."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.app.lsp.places import leaves, marked
from tests.process import ROOT

from bespeak.app.lsp.cursor import ITEM, Place, yaml_place
from bespeak.text.source.yaml_tree import YamlTree, parse_yaml

DOCUMENTS = [ROOT / "docs_src/lint/rooms.agis", ROOT / "docs_src/agis/menu.agis"]


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.stem)
def test_every_value_of_a_document_is_found(file: Path) -> None:
    text = file.read_text()
    tree = parse_yaml(text, file.name)
    assert isinstance(tree, YamlTree)
    found = list(leaves(tree))
    assert len(found) > 20
    for path, start in found:
        assert yaml_place(text, start).path == path


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("|", Place((), is_key=True)),
        ("a: |", Place(("a",), is_key=False)),
        ("a:\n  |", Place(("a",), is_key=True)),
        ("a:\n  b: 1\n  |", Place(("a",), is_key=True)),
        ("a:\n  b: 1\n|", Place((), is_key=True)),
        ("a:\n  - b: 1\n    |", Place(("a", ITEM), is_key=True)),
        ("a:\n  - b: 1\n  - |", Place(("a", ITEM), is_key=True)),
        ("a:\n- b: 1\n- c: |", Place(("a", ITEM, "c"), is_key=False)),
        ("x: 1\na:\n- b: 1\n  |", Place(("a", ITEM), is_key=True)),
        ("a:\n  - - |", Place(("a", ITEM, ITEM), is_key=True)),
        ("a: [b, |", Place(("a", ITEM), is_key=True)),
        ("a: [b,\n    |c]", Place(("a", ITEM), is_key=True)),
        ("a:\n  b: { c: |", Place(("a", "b", "c"), is_key=False)),
        ("a: [b]\nc: |", Place(("c",), is_key=False)),
        ("a:\n  b: [c\n  d: |", Place(("a", "d"), is_key=False)),
        ("a:\n  b: { c: 1,\n    d: |", Place(("a", "b", "d"), is_key=False)),
        ('"a b":\n  |', Place(("a b",), is_key=True)),
        ("a: {unclosed\nb:\n  c: |", Place(("b", "c"), is_key=False)),
        ("a:\n  # c:\n\n  |", Place(("a",), is_key=True)),
        ("a:\r\n  b: 1\r\n  |", Place(("a",), is_key=True)),
    ],
)
def test_a_place_is_found_by_indentation(text: str, place: Place) -> None:
    assert yaml_place(*marked(text)) == place


@given(st.text(alphabet="ab:- []{},\"'#\n", max_size=80), st.integers(0, 80))
def test_any_text_has_a_place(text: str, offset: int) -> None:
    assert isinstance(yaml_place(text, min(offset, len(text))).path, tuple)

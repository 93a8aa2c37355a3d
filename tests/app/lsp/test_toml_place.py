"""Place of an offset in TOML."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.app.lsp.places import leaves, marked
from tests.process import ROOT

from bespeak.app.lsp.cursor import ITEM, Place, toml_place
from bespeak.text.source.toml_tree import TomlTree, parse_toml

DOCUMENTS = sorted((ROOT / "docs_src/endpoint-files").rglob("*.toml"))


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.stem)
def test_every_value_of_a_document_is_found(file: Path) -> None:
    text = file.read_text()
    tree = parse_toml(text, file.name)
    assert isinstance(tree, TomlTree)
    for path, start in leaves(tree):
        place = toml_place(text, start)
        assert place is not None
        # [recipe.pattern] does not say that it is about an item of a list.
        assert [part for part in place.path if part != ITEM] == [part for part in path if part != ITEM]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("|", Place((), is_key=True)),
        ("[endpoint]\n|", Place(("endpoint",), is_key=True)),
        ("[endpoint]\nmethod = |", Place(("endpoint", "method"), is_key=False)),
        ("[endpoint]\nsemantic.|", Place(("endpoint", "semantic"), is_key=True)),
        ("[[endpoint.output]]\n|", Place(("endpoint", "output", ITEM), is_key=True)),
        ("[a]\nb = [1, |", Place(("a", "b", ITEM), is_key=True)),
        ('[a]\nb = [\n  "x",\n  |\n]', Place(("a", "b", ITEM), is_key=True)),
        ("[a]\nb = { c = |", Place(("a", "b", "c"), is_key=False)),
        ("[a]\nb = [1]\n|", Place(("a",), is_key=True)),
        ('[handlers."BOOK /room"]\n|', Place(("handlers", "BOOK /room"), is_key=True)),
        ("[a|", None),
    ],
)
def test_a_place_is_found_by_its_header_and_key(text: str, place: Place | None) -> None:
    assert toml_place(*marked(text)) == place


@given(st.text(alphabet="ab.=[]{},\"'#\n ", max_size=80), st.integers(0, 80))
def test_any_text_has_a_place_or_none(text: str, offset: int) -> None:
    place = toml_place(text, min(offset, len(text)))
    assert place is None or isinstance(place.path, tuple)

"""Place of an offset in brackets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.app.lsp.places import leaves, marked
from tests.process import ROOT

from bespeak.app.lsp.cursor import ITEM, Place, flow_place
from bespeak.documents.agis.canonical import format_agis
from bespeak.text.source.json_tree import JsonTree, parse_json


def test_every_value_of_a_document_is_found() -> None:
    text = format_agis((ROOT / "docs_src/lint/rooms.agis").read_text(), "rooms.agis", "json")
    assert isinstance(text, str)
    tree = parse_json(text, "rooms.json")
    assert isinstance(tree, JsonTree)
    found = list(leaves(tree))
    assert len(found) > 20
    for path, start in found:
        place = flow_place(text, 0, start)
        assert place is not None
        assert place.path == path


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{|", Place((), is_key=True)),
        ('{"a": |', Place(("a",), is_key=False)),
        ('{"a": 1, |', Place((), is_key=True)),
        ('{"a": [1, |', Place(("a", ITEM), is_key=True)),
        ('{"a": [{"b": "}"}, {|', Place(("a", ITEM), is_key=True)),
        ("{a: {b: |", Place(("a", "b"), is_key=False)),
        ("{ a = |", Place(("a",), is_key=False)),
        ('{"a": {"b": 1}, "c": |', Place(("c",), is_key=False)),
        ("{} |", None),
        ("[1, [2]] |", None),
        ("|", None),
    ],
)
def test_a_place_is_found_while_brackets_are_open(text: str, place: Place | None) -> None:
    assert flow_place(*_arguments(text)) == place


def _arguments(text: str) -> tuple[str, int, int]:
    text, offset = marked(text)
    return text, 0, offset


@given(st.text(alphabet="{}[],:=\"'#\\ \nab", max_size=60), st.integers(0, 60))
def test_any_text_has_a_place_or_none(text: str, offset: int) -> None:
    place = flow_place(text, 0, min(offset, len(text)))
    assert place is None or isinstance(place.path, tuple)

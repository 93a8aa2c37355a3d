"""Place of an offset in brace notation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.app.lsp.places import marked

from bespeak.app.lsp.cursor import ITEM, Place, brace_place

ENDPOINT = ("endpoints", ITEM)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("|", Place((), is_key=True)),
        ("agis: |", Place(("agis",), is_key=False)),
        ("BOOK /room {\n  |", Place(ENDPOINT, is_key=True)),
        ("BOOK /room/{id} {\n  |", Place(ENDPOINT, is_key=True)),
        ("BOOK /room {\n  semantic {\n    actor: |", Place((*ENDPOINT, "semantic", "actor"), is_key=False)),
        ("BOOK /room {\n  semantic {\n    actor: agent\n  }\n  |", Place(ENDPOINT, is_key=True)),
        ("BOOK /room {\n}\n|", Place((), is_key=True)),
        ("BOOK /room { semantic { actor: |", Place((*ENDPOINT, "semantic", "actor"), is_key=False)),
        ('vocabulary {\n  declared_verbs: ["BOOK", |', Place(("vocabulary", "declared_verbs", ITEM), is_key=True)),
        (
            "vocabulary {\n  declared_verbs:\n    - BOOK\n    - |",
            Place(("vocabulary", "declared_verbs", ITEM), is_key=True),
        ),
        ('BOOK /room {\n  intent: "a } b"\n  |', Place(ENDPOINT, is_key=True)),
        ("# BOOK /room {\n|", Place((), is_key=True)),
    ],
)
def test_a_place_is_found_by_the_blocks_that_are_open(text: str, place: Place) -> None:
    assert brace_place(*marked(text)) == place


@given(st.text(alphabet='AB /{}[]:-"#\n ', max_size=80), st.integers(0, 80))
def test_any_text_has_a_place(text: str, offset: int) -> None:
    assert isinstance(brace_place(text, min(offset, len(text))).path, tuple)

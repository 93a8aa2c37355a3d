"""Verbs that mean something only with a word behind them."""

from __future__ import annotations

import pytest

from bespeak.text.language.operation_class import operation_classes
from bespeak.text.language.phrases import _READINGS, readings


@pytest.mark.parametrize(
    ("verb", "text", "expected"),
    [
        ("bring", "brings back a stored document", ("retrieve", "restore")),
        ("bring", "brings a record up to date", ("update",)),
        ("put", "puts the parts together", ("combine", "assemble")),
        ("give", "gives a file another name", ("change",)),
        ("hold", "holds the job until the data arrive", ("wait",)),
        ("make", "makes the report visible to everybody", ("publish", "announce", "disclose", "expose", "enable")),
        ("make", "makes a picture smaller", ("change",)),
        ("make", "makes a unique token", ("create",)),
        ("make", "makes it", ()),
        ("bring", "brings luck", ()),
        ("give", "gives a hint that belongs to a question", ()),
        ("create", "creates an order", ()),
        ("make", "makes", ()),
    ],
)
def test_word_after_a_vague_verb_gives_its_meaning(verb: str, text: str, expected: tuple[str, ...]) -> None:
    assert readings(verb, text.split(), 0) == expected


def test_every_reading_is_a_verb_whose_operation_is_known() -> None:
    meant = {verb for cues in _READINGS.values() for verbs in cues.values() for verb in verbs.split()}
    assert [verb for verb in sorted(meant) if operation_classes(verb) is None] == []

"""Operation classes: by hand, by prefix, by neighbours."""

from __future__ import annotations

import pytest

from bespeak.contract.catalog.document import load_bundled
from bespeak.text.language.lexicon import meanings
from bespeak.text.language.operation_class import CLASSES, COMPATIBLE, PHRASES, OperationClass, operation_classes


@pytest.mark.parametrize(
    ("verb", "main"),
    [
        ("fetch", "READ"),
        ("estimate", "ANALYZE"),
        ("book", "CREATE"),
        ("modify", "UPDATE"),
        ("erase", "DELETE"),
        ("notify", "SEND"),
        ("start", "BEGIN"),
        ("pause", "END"),
        ("deny", "DECIDE"),
        ("assign", "ASSIGN"),
        ("throttle", "CONTROL"),
        ("unallocate", "DELETE"),
        ("annihilate", "DELETE"),
        ("undeprecate", "BEGIN"),
        ("finish", "END"),
        ("forbid", "DECIDE"),
        ("designate", "UPDATE"),
    ],
)
def test_verb_has_its_operation_class(verb: str, main: OperationClass) -> None:
    classes = operation_classes(verb)
    assert classes is not None
    assert classes.main == main


def test_hand_written_class_has_more_weight_than_a_derived_one() -> None:
    decided, prefixed, guessed = (operation_classes(verb) for verb in ("create", "reupload", "annihilate"))
    assert decided is not None
    assert prefixed is not None
    assert guessed is not None
    assert decided.confidence > prefixed.confidence > guessed.confidence


def test_doing_again_is_also_a_change() -> None:
    again = operation_classes("recompose")
    assert again is not None
    assert again.main == "CREATE"
    assert again.of("UPDATE") >= 0.5


def test_word_that_is_not_a_verb_has_no_class() -> None:
    assert operation_classes("restaurant") is None


def test_every_class_fits_itself_best_and_has_a_description() -> None:
    for place, name in enumerate(CLASSES):
        assert COMPATIBLE[place][place] == max(COMPATIBLE[place]) == 1
        assert PHRASES[name]


def test_every_verb_of_the_catalog_has_a_hand_written_class() -> None:
    assert [verb for verb in load_bundled().verbs if verb.lower() not in meanings().hand] == []

"""Operation classes: by hand, by prefix, by neighbours."""

from __future__ import annotations

import pytest
from tests.cases import rows

from bespeak.contract.catalog.document import load_bundled
from bespeak.text.language.lexicon import meanings
from bespeak.text.language.operation_class import (
    CLASSES,
    COMPATIBLE,
    PHRASES,
    OperationClass,
    class_fit,
    fit,
    operation_classes,
)


@rows(
    "verb, main",
    *(("fetch", "READ"), ("estimate", "ANALYZE"), ("book", "CREATE"), ("modify", "UPDATE"), ("erase", "DELETE")),
    *(("notify", "SEND"), ("start", "BEGIN"), ("pause", "END"), ("deny", "DECIDE"), ("assign", "ASSIGN")),
    *(("throttle", "CONTROL"), ("unallocate", "DELETE"), ("annihilate", "DELETE"), ("undeprecate", "BEGIN")),
    *(("finish", "END"), ("forbid", "DECIDE"), ("designate", "UPDATE")),
)
def test_verb_has_its_operation_class(verb: str, main: OperationClass) -> None:
    classes = operation_classes(verb)
    assert classes is not None
    assert classes.main == main


def test_hand_written_class_has_more_weight_and_doing_again_is_also_a_change() -> None:
    decided, prefixed, guessed = (operation_classes(verb) for verb in ("create", "reupload", "annihilate"))
    assert decided is not None
    assert prefixed is not None
    assert guessed is not None
    assert decided.confidence > prefixed.confidence > guessed.confidence
    again = operation_classes("recompose")
    assert again is not None
    assert again.main == "CREATE"
    assert again.of("UPDATE") >= 0.5
    assert operation_classes("restaurant") is None


def test_every_class_fits_itself_best_and_every_verb_of_the_catalog_has_one() -> None:
    for place, name in enumerate(CLASSES):
        assert COMPATIBLE[place][place] == max(COMPATIBLE[place]) == 1
        assert PHRASES[name]
    assert [verb for verb in load_bundled().verbs if verb.lower() not in meanings().hand] == []


def test_fit_is_between_zero_and_one_and_highest_for_the_verb_itself() -> None:
    assert fit("book", "book") == 1
    assert fit("book", "cancel") == 0
    verbs = [operation_classes(verb) for verb in ("find", "book", "delete", "send", "pause", "merge", "assess")]
    assert all(0 <= class_fit(one, other) <= 1 for one in verbs for other in verbs if one and other)


@rows(
    "pairs, least, most",
    (["find return", "book reserve", "remove delete", "run create", "summarize produce"], 0.55, 1.0),
    (["book return", "find create", "cancel retrieve"], 0.0, 0.29),
)
def test_verbs_fit_as_their_classes_do(pairs: list[str], least: float, most: float) -> None:
    for method, verb in map(str.split, pairs):
        score = fit(method, verb)
        assert score is not None
        assert least <= score <= most, (method, verb)


@pytest.mark.parametrize(("method", "verb"), [("book", "take"), ("find", "provide"), ("find", "qwrtzx")])
def test_vague_verb_gives_no_score(method: str, verb: str) -> None:
    assert fit(method, verb) is None

"""Methods that ask for something to be done, and those that only say how things are."""

from __future__ import annotations

import pytest

from bespeak.contract.catalog.document import load_bundled
from bespeak.text.language.verb_form import action_intent


def test_every_verb_of_the_catalog_but_three_is_an_action() -> None:
    kinds = {verb: action_intent(verb).kind for verb in load_bundled().verbs}
    assert {verb for verb, kind in kinds.items() if kind != "action"} == {"OPEN", "PROCESS", "RUN"}


@pytest.mark.parametrize(
    "verb",
    [
        "BOOK",
        "FIND",
        "CANCEL",
        "AUTHORIZE",
        "TRIAGE",
        "DISPATCH",
        "RESERVE",
        "LOCATE",
        "ROLLBACK",
        "complete",
        "FINISH",
        "WATERMARK",
    ],
)
def test_verb_of_a_task_is_an_action(verb: str) -> None:
    assert action_intent(verb).kind == "action"


@pytest.mark.parametrize(
    "verb",
    [
        *("AVAILABLE", "ACTIVE", "VALID", "OPEN", "EXISTS", "IS", "HAS", "STATUS", "DATA", "INFO"),
        *("belong", "BELONGS", "OWNED", "KNOW", "CONTAIN", "PREFER", "OCCUR", "SNOW", "RESTAURANT", "HAPPY"),
    ],
)
def test_state_thing_or_feeling_is_not_an_action(verb: str) -> None:
    verdict = action_intent(verb)
    assert verdict.kind == "state"
    assert verdict.reason


@pytest.mark.parametrize("verb", ["PROCESS", "HANDLE", "MANAGE", "DO", "RUN", "PERFORM"])
def test_vague_verb_is_borderline_with_suggestions(verb: str) -> None:
    verdict = action_intent(verb)
    assert verdict.kind == "borderline"
    assert verdict.instead
    assert all(action_intent(better).kind == "action" for better in verdict.instead)


@pytest.mark.parametrize(
    "verb", ["READY", "FULL", "BUSY", "TABLE", "ROOM", "RESULT", "COST", "WINDOW", "RESOURCE", "VIDEO", "OPTION"]
)
def test_a_verb_that_is_mostly_something_else_is_borderline(verb: str) -> None:
    assert action_intent(verb).kind == "borderline"


def test_state_has_suggested_verbs() -> None:
    assert action_intent("AVAILABLE").instead == ("CHECK", "FIND")


def test_unknown_word_is_accepted() -> None:
    assert action_intent("FROBNICATE").kind == "action"

"""Methods that ask for something to be done, and those that only say how things are."""

from __future__ import annotations

import pytest

from bespeak.contract.catalog.bundled import load_bundled
from bespeak.text.language.action_intent import action_intent


def test_every_verb_of_the_catalog_but_three_is_an_action() -> None:
    kinds = {verb: action_intent(verb).kind for verb in load_bundled().verbs}
    assert {verb for verb, kind in kinds.items() if kind != "action"} == {"OPEN", "PROCESS", "RUN"}


@pytest.mark.parametrize(
    "verb", ["BOOK", "FIND", "CANCEL", "AUTHORIZE", "TRIAGE", "DISPATCH", "RESERVE", "LOCATE", "ROLLBACK", "complete"]
)
def test_what_one_asks_an_agent_to_do_is_an_action(verb: str) -> None:
    assert action_intent(verb).kind == "action"


@pytest.mark.parametrize(
    "verb",
    [
        *("AVAILABLE", "ACTIVE", "VALID", "OPEN", "EXISTS", "IS", "HAS", "STATUS", "DATA", "INFO"),
        *("belong", "BELONGS", "OWNED", "KNOW", "CONTAIN", "PREFER", "OCCUR", "SNOW", "RESTAURANT", "HAPPY"),
    ],
)
def test_a_state_a_thing_or_a_feeling_is_no_action(verb: str) -> None:
    verdict = action_intent(verb)
    assert verdict.kind == "state"
    assert verdict.reason


@pytest.mark.parametrize("verb", ["PROCESS", "HANDLE", "MANAGE", "DO", "RUN", "PERFORM"])
def test_a_verb_that_says_too_little_is_borderline_and_has_better_ones(verb: str) -> None:
    verdict = action_intent(verb)
    assert verdict.kind == "borderline"
    assert verdict.instead
    assert all(action_intent(better).kind == "action" for better in verdict.instead)


@pytest.mark.parametrize("verb", ["READY", "FULL", "BUSY", "TABLE", "ROOM"])
def test_a_verb_that_is_mostly_something_else_is_borderline(verb: str) -> None:
    assert action_intent(verb).kind == "borderline"


def test_a_state_names_the_verbs_that_may_be_meant() -> None:
    assert action_intent("AVAILABLE").instead == ("CHECK", "FIND")


def test_a_word_nobody_knows_gets_the_benefit_of_the_doubt() -> None:
    assert action_intent("FROBNICATE").kind == "action"

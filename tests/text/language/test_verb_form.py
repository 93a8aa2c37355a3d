"""Forms of verbs: the base form is distinguished from other forms, compounds and other words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import rows

from bespeak.contract.catalog.document import load_bundled
from bespeak.text.language.verb_form import Form, Lemma, action_intent, classify, lemmas, two_word_verb


def test_every_verb_of_the_catalog_is_accepted() -> None:
    kinds = {verb: classify(verb).kind for verb in load_bundled().verbs}
    assert {verb: kind for verb, kind in kinds.items() if kind not in ("base", "phrasal")} == {}


@rows(
    "token",
    *("BOOK", "FIND", "SCHEDULE", "RECONCILE", "TRIAGE", "ONBOARD", "TOKENIZE", "UNSUBSCRIBE", "PREFETCH"),
    *("BENCHMARK", "BRING", "EMBED", "PROCESS", "PASS", "FEED", "NEED", "ACCESS", "ASSESS", "SET", "READ"),
    *("BROADCAST", "SEED", "PROCEED", "FOCUS", "DISCUSS", "PING", "REINDEX", "ANONYMISE", "book"),
)
def test_base_form_that_looks_inflected_is_recognized(token: str) -> None:
    assert classify(token) == Form("base", token.lower())


@pytest.mark.parametrize("token", ["CHECKOUT", "ROLLBACK", "LOGIN", "OPTIN", "SHUTDOWN", "PHASEOUT"])
def test_a_verb_and_its_particle_in_one_word_are_a_phrase(token: str) -> None:
    assert classify(token).kind == "phrasal"


@rows(
    "token, base, inflection",
    ("BOOKING", "book", "present participle"),
    ("PLANNING", "plan", "present participle"),
    ("HOPING", "hope", "present participle"),
    ("DYING", "die", "present participle"),
    ("ROUTING", "route", "present participle"),
    ("CANCELLED", "cancel", "past"),
    ("CANCELED", "cancel", "past"),
    ("NOTIFIED", "notify", "past"),
    ("FOUND", "find", "past"),
    ("SENT", "send", "past"),
    ("WRITTEN", "write", "past participle"),
    ("QUERIES", "query", "third person"),
    ("DISPATCHES", "dispatch", "third person"),
    ("EXISTS", "exist", "third person"),
    ("IS", "be", "third person"),
    ("HAS", "have", "third person"),
    ("TOKENIZED", "tokenize", "past"),
    ("REINDEXING", "reindex", "present participle"),
)
def test_an_inflected_form_names_its_verb(token: str, base: str, inflection: str) -> None:
    assert classify(token) == Form("inflected", base, None, inflection)


@rows(
    "token, base, rest",
    ("FINDRESTAURANT", "find", "restaurant"),
    ("FindRestaurant", "find", "restaurant"),
    ("BOOKTABLE", "book", "table"),
    ("GETUSERS", "get", "users"),
    ("CANCELBOOKING", "cancel", "booking"),
    ("createPaymentLink", "create", "payment-link"),
    ("CREATEPAYMENTMETHOD", "create", "payment-method"),
)
def test_compound_is_split(token: str, base: str, rest: str) -> None:
    assert classify(token) == Form("compound", base, rest)


@rows(
    "token",
    *("STATUS", "DATA", "AVAILABLE", "INFO", "RESTAURANT", "RESTAURANTS", "CANCELLATIONS", "PRECISE", "LIKEWISE"),
    *("TRANSACTIONSTATUS", "FEEDBACK", "QWERTZ", "BOOK_TABLE", "SEARCH2", "", "É", "A" * 41),
)
def test_word_that_is_not_a_verb_is_unknown(token: str) -> None:
    assert classify(token) == Form("unknown")


def test_word_has_all_possible_verbs_most_likely_first() -> None:
    assert lemmas("found") == (Lemma("find", "past"), Lemma("found", "base"))
    assert lemmas("restaurant") == ()


@given(st.text(max_size=60) | st.from_regex(r"[A-Z]{1,60}", fullmatch=True))
def test_any_text_gets_a_form_and_a_verb_unless_unknown(text: str) -> None:
    form = classify(text)
    assert (form.base is None) == (form.kind == "unknown")
    assert (form.rest is not None) == (form.kind == "compound")
    assert bool(form.inflection) == (form.kind == "inflected")


def test_every_verb_of_the_catalog_but_three_is_an_action() -> None:
    kinds = {verb: action_intent(verb).kind for verb in load_bundled().verbs}
    assert {verb for verb, kind in kinds.items() if kind != "action"} == {"OPEN", "PROCESS", "RUN"}


@rows(
    "verb",
    *("BOOK", "FIND", "CANCEL", "AUTHORIZE", "TRIAGE", "DISPATCH", "RESERVE", "LOCATE", "ROLLBACK", "complete"),
    *("FINISH", "WATERMARK"),
)
def test_verb_of_a_task_is_an_action(verb: str) -> None:
    assert action_intent(verb).kind == "action"


@rows(
    "verb",
    *("AVAILABLE", "ACTIVE", "VALID", "OPEN", "EXISTS", "IS", "HAS", "STATUS", "DATA", "INFO"),
    *("belong", "BELONGS", "OWNED", "KNOW", "CONTAIN", "PREFER", "OCCUR", "SNOW", "RESTAURANT", "HAPPY"),
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


def test_state_has_suggested_verbs_and_an_unknown_word_is_accepted() -> None:
    assert action_intent("AVAILABLE").instead == ("CHECK", "FIND")
    assert action_intent("FROBNICATE").kind == "action"


@rows(
    "verb, text, expected",
    ("look", "looks up a flight", "find"),
    ("settle", "settles which depot ships it", "determine"),
    ("take", "takes a page out of a file", None),
    ("call", "calls off the meeting", "cancel"),
    ("turn", "turns the device off", "disable"),
    ("turn", "turns text into speech", "convert"),
    ("turn", "turns the page", None),
    ("log", "logs the customer out of all devices", "logout"),
    ("sign", "signs a customer up for the newsletter", "register"),
    ("log", "logs a visit", None),
    ("return", "returns settings to their default values", "restore"),
    ("return", "returns results to the caller", None),
    ("book", "books up", None),
    ("look", "looks", None),
)
def test_a_verb_and_its_particle_mean_one_verb(verb: str, text: str, expected: str | None) -> None:
    assert two_word_verb(verb, text.split(), 0) == expected

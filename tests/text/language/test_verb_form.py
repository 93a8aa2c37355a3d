"""Forms of verbs: the base form is distinguished from other forms, compounds and other words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract.catalog.document import load_bundled
from bespeak.text.language.verb_form import Form, Lemma, classify, lemmas


def test_every_verb_of_the_catalog_is_accepted() -> None:
    kinds = {verb: classify(verb).kind for verb in load_bundled().verbs}
    assert {verb: kind for verb, kind in kinds.items() if kind not in ("base", "phrasal")} == {}


@pytest.mark.parametrize(
    "token",
    [
        *("BOOK", "FIND", "SCHEDULE", "RECONCILE", "TRIAGE", "ONBOARD", "TOKENIZE", "UNSUBSCRIBE", "PREFETCH"),
        *("BENCHMARK", "BRING", "EMBED", "PROCESS", "PASS", "FEED", "NEED", "ACCESS", "ASSESS", "SET", "READ"),
        *("BROADCAST", "SEED", "PROCEED", "FOCUS", "DISCUSS", "PING", "REINDEX", "ANONYMISE", "book"),
    ],
)
def test_base_form_that_looks_inflected_is_recognized(token: str) -> None:
    assert classify(token) == Form("base", token.lower())


@pytest.mark.parametrize("token", ["CHECKOUT", "ROLLBACK", "LOGIN", "OPTIN", "SHUTDOWN", "PHASEOUT"])
def test_a_verb_and_its_particle_in_one_word_are_a_phrase(token: str) -> None:
    assert classify(token).kind == "phrasal"


@pytest.mark.parametrize(
    ("token", "base", "inflection"),
    [
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
    ],
)
def test_an_inflected_form_names_its_verb(token: str, base: str, inflection: str) -> None:
    assert classify(token) == Form("inflected", base, None, inflection)


@pytest.mark.parametrize(
    ("token", "base", "rest"),
    [
        ("FINDRESTAURANT", "find", "restaurant"),
        ("FindRestaurant", "find", "restaurant"),
        ("BOOKTABLE", "book", "table"),
        ("GETUSERS", "get", "users"),
        ("CANCELBOOKING", "cancel", "booking"),
        ("createPaymentLink", "create", "payment-link"),
        ("CREATEPAYMENTMETHOD", "create", "payment-method"),
    ],
)
def test_compound_is_split(token: str, base: str, rest: str) -> None:
    assert classify(token) == Form("compound", base, rest)


@pytest.mark.parametrize(
    "token",
    [
        *("STATUS", "DATA", "AVAILABLE", "INFO", "RESTAURANT", "RESTAURANTS", "CANCELLATIONS", "PRECISE", "LIKEWISE"),
        *("TRANSACTIONSTATUS", "FEEDBACK", "QWERTZ", "BOOK_TABLE", "SEARCH2", "", "É", "A" * 41),
    ],
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

"""Judgement of the words used as method names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import check_each, rows

from bespeak.contract.catalog.document import load_bundled
from bespeak.text.language.verb_form import HTTP_METHODS, judge_method, may_be_foreign


@pytest.mark.parametrize("method", ["BOOK", "FIND", "RESERVE", "DIFF", "FAVORITE", "TEXT", "SMS", "", "  "])
def test_a_verb_in_base_form_and_a_missing_method_have_no_faults(method: str) -> None:
    assert judge_method(method) == ()


@rows(
    "method, kind, instead",
    ("BOOKING", "inflected", "BOOK"),
    ("CANCEL_BOOKING", "compound", "CANCEL"),
    ("BOOK TABLE", "whitespace", "BOOK"),
    ("SEARCH2", "characters", "SEARCH"),
    ("book", "case", "BOOK"),
    ("GET", "http", "FETCH"),
    ("AVAILABLE", "state", ""),
    ("FLOOBLE", "unknown", ""),
    ("BULK", "noun", ""),
    ("CARD", "noun", ""),
    ("PHONE", "vague", ""),
    ("BATCHINSERT", "compound", "INSERT"),
    ("batchInsert", "compound", "INSERT"),
    ("BULK_UPDATE", "compound", "UPDATE"),
    ("ORDERCANCEL", "compound", "CANCEL"),
    ("userCreate", "compound", "CREATE"),
)
def test_a_fault_has_a_kind_and_a_replacement(method: str, kind: str, instead: str) -> None:
    (fault,) = judge_method(method)
    assert (fault.kind, fault.instead) == (kind, instead)


@rows(
    "method, advice",
    ("BATCHINSERT", "Write INSERT."),
    ("BATCHGETITEM", "Write FETCH /item."),
    ("bulkCreateUsers", "Write CREATE /users."),
    ("ORDERCANCEL", "Write CANCEL /order."),
    ("FINDRESTAURANT", "Write FIND /restaurant."),
)
def test_advice_for_joined_words_moves_the_noun_into_the_path(method: str, advice: str) -> None:
    assert judge_method(method)[0].advice == advice


@pytest.mark.parametrize("verbs", HTTP_METHODS.values())
def test_suggested_verbs_have_no_faults(verbs: tuple[str, ...]) -> None:
    assert [judge_method(verb) for verb in verbs] == [() for _ in verbs]


@given(st.text(max_size=60))
def test_any_text_is_judged(method: str) -> None:
    for fault in judge_method(method):
        assert fault.message


CATALOG = load_bundled()

VERBS = (
    "RESERVAR BUCHEN YOYAKU CREAR LESEN SUCHEN SENDEN KAUFEN BESTELLEN PRUEFEN ENVIAR LISTAR CANCELAR CONFIRMAR "
    "ACHETER VENDRE COMPRAR BORRAR CONSULTAR VALIDAR PAGAR RESERVER ANNULER CHERCHER STORNIEREN PLANEN CERCARE "
    "BOEKEN BOKA SKICKA KENSAKU SOUSHIN CHAXUN QUXIAO HAJZ"
)
OTHERS = (
    "CANCLE RECONCILLE SERACH RETREIVE SHEDULE UPDTAE BOOKINGS RESERVATIONS USERS CUSTOMERDATA BOOKABLE QUICKLY MTCH "
    "MSG FINDRESTURANT BO"
)


@pytest.mark.requirement("AGIS-13-15")
def test_verbs_of_other_languages_may_be_methods() -> None:
    def check(word: str) -> None:
        assert may_be_foreign(word, CATALOG.near(word))

    check_each(VERBS.split(), check)


def test_slips_nouns_and_abbreviations_may_not() -> None:
    def check(word: str) -> None:
        assert not may_be_foreign(word, CATALOG.near(word))

    check_each(OTHERS.split(), check)


@given(st.text(max_size=60), st.lists(st.text(max_size=8), max_size=3))
def test_any_word_is_judged(word: str, near: list[str]) -> None:
    assert may_be_foreign(word, near) in (True, False)

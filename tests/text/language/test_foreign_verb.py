"""Words that English does not know: possible verbs of other languages, slips, and other words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import check_each

from bespeak.contract.catalog.document import load_bundled
from bespeak.text.language.method_word import may_be_foreign

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

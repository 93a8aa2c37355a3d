from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.text.language.method_word import HTTP_METHODS, judge_method


@pytest.mark.parametrize("method", ["BOOK", "FIND", "RESERVE", "DIFF", "FAVORITE", "TEXT", "SMS", "", "  "])
def test_a_verb_in_base_form_and_a_missing_method_have_no_faults(method: str) -> None:
    assert judge_method(method) == ()


@pytest.mark.parametrize(
    ("method", "kind", "instead"),
    [
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
    ],
)
def test_a_fault_has_a_kind_and_a_replacement(method: str, kind: str, instead: str) -> None:
    (fault,) = judge_method(method)
    assert (fault.kind, fault.instead) == (kind, instead)


@pytest.mark.parametrize(
    ("method", "advice"),
    [
        ("BATCHINSERT", "Write INSERT."),
        ("BATCHGETITEM", "Write FETCH /item."),
        ("bulkCreateUsers", "Write CREATE /users."),
        ("ORDERCANCEL", "Write CANCEL /order."),
        ("FINDRESTAURANT", "Write FIND /restaurant."),
    ],
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

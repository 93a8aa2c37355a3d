"""Terms: words of names."""

from __future__ import annotations

import pytest

from bespeak.runtime.negotiation.planner.vocabulary import Comparison, comparison, noun_of, other_names, stems


@pytest.mark.parametrize("name", ["orderIds", "order_id", "Order-ID", "order_uuid"])
def test_spellings_of_one_name_have_the_same_words(name: str) -> None:
    assert stems(name) == ("order", "id")


def test_an_email_is_one_word_however_it_is_written() -> None:
    assert stems("e_mail") == stems("email") == stems("mail") == ("email",)


def test_units_stay_part_of_a_name() -> None:
    assert stems("dose_mg") == ("dose", "mg")


def test_how_a_noun_is_kept_does_not_change_it() -> None:
    assert noun_of(stems("transaction-history")) == "transaction"
    assert noun_of(("history",)) == "history"


@pytest.mark.parametrize(
    ("name", "op", "attribute"),
    [
        ("max_price", "lte", "price"),
        ("price_min", "gte", "price"),
        ("booked_before", "lt", "booked"),
        ("text_contains", "contains", "text"),
    ],
)
def test_inputs_that_compare_are_recognised(name: str, op: str, attribute: str) -> None:
    assert comparison(stems(name)) == Comparison(op, attribute)


def test_a_role_before_a_noun_does_not_compare() -> None:
    assert comparison(stems("from_account")) is None


def test_synonyms_go_both_ways_and_exclude_the_word_itself() -> None:
    assert other_names("booking") == ["reservation"]
    assert other_names("reservation") == ["booking"]
    assert other_names("price") == []

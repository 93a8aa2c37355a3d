"""Optional fields that exclude each other are noticed in their descriptions."""

from __future__ import annotations

import pytest

from bespeak.documents.openapi.input_shape import exclusions


def pairs(**texts: str) -> list[tuple[str, str]]:
    return [(one, other) for one, other, _ in exclusions(texts)]


@pytest.mark.parametrize(
    "text",
    [
        "The start. Cannot be used together with end_before.",
        "Can't be combined with `end_before`.",
        "Mutually exclusive with end_before.",
        "Must not be specified with end_before!",
        "A cursor; conflicts with end_before",
        "This is not compatible with end_before.",
        "Use either start_after or end_before.",
        "Give only one of start_after and end_before.",
        "You may send start_after or end_before, but not both.",
        "Do not set both this and end_before.",
    ],
)
def test_sentence_that_excludes_another_field_is_found(text: str) -> None:
    assert pairs(start_after=text, end_before="", limit="") == [("start_after", "end_before")]


@pytest.mark.parametrize(
    "text",
    [
        "Can be used together with end_before.",
        "Either asc or desc.",
        "Cannot be negative. See end_before.",
        "Must not be empty.",
        "Cannot be used together with the limit.",
        "",
    ],
)
def test_other_sentences_are_not_exclusions(text: str) -> None:
    assert pairs(start_after=text, end_before="", limit="") == []


def test_a_pair_is_reported_once_with_its_sentence() -> None:
    said = "Cannot be used\ttogether with"
    found = list(exclusions({"user_id": f"A. {said} `email`.", "email": f"B. {said} user_id."}))
    assert found == [("user_id", "email", "Cannot be used together with `email`.")]


def test_a_choice_between_others_does_not_concern_the_field_itself() -> None:
    assert pairs(mode="Either `user_id` or `e_mail` must be set.", user_id="", e_mail="") == [("user_id", "e_mail")]
    assert pairs(a="Only one of `a`, `b` and `c`.", b="", c="") == [("a", "b"), ("a", "c"), ("b", "c")]


def test_a_long_description_is_searched_in_limited_time() -> None:
    text = "either " * 100_000 + "cannot " * 100_000
    assert pairs(a=text, b="") == []

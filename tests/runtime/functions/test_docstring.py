from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bespeak.runtime.functions.reading import Prose, parse_docstring

FULL = """Reserve a room for the named guest
    at the named property.

    More prose, for people only.
    Note: not an outcome.

    Args:
        guest_id: Who stays.
        room_id (str): Which room, as the
            catalog of rooms names it.

    Outcome: A confirmed reservation exists
    and its id is returned.

    Errors:
        room_unavailable: The room is taken.
        invalid_dates: Departure is not after arrival: at
            least one night.

    Returns:
        other: nothing of this is read.
    """


def test_a_docstring_is_taken_apart() -> None:
    assert parse_docstring(FULL) == Prose(
        intent="Reserve a room for the named guest at the named property.",
        outcome="A confirmed reservation exists and its id is returned.",
        parameters={"guest_id": "Who stays.", "room_id": "Which room, as the catalog of rooms names it."},
        errors={
            "room_unavailable": "The room is taken.",
            "invalid_dates": "Departure is not after arrival: at least one night.",
        },
    )


def test_a_missing_docstring_gives_empty_prose() -> None:
    assert parse_docstring(None) == Prose()
    assert parse_docstring("   ") == Prose()


def test_the_outcome_may_directly_follow_the_intent() -> None:
    assert parse_docstring("Do it.\nOutcome: It is done.") == Prose(intent="Do it.", outcome="It is done.")


def test_the_outcome_may_begin_on_the_next_line() -> None:
    assert parse_docstring("Do it.\n\nOutcome:\n    It is done.\n\nMore.").outcome == "It is done."


def test_a_word_with_a_colon_is_only_a_heading_if_it_is_known() -> None:
    assert parse_docstring("Beware: this is hot.").intent == "Beware: this is hot."


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    prose = parse_docstring(text)
    assert prose.intent == " ".join(prose.intent.split())

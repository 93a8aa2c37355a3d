""""""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.contract import handler
from bespeak.contract.handler import Refusal
from bespeak.contract.handler import Refusal as No
from bespeak.errors import ContractError
from bespeak.runtime.functions.reading import Prose, locate, parse_docstring, read_handler, refused_names


async def cancel(reservation_id: str, context) -> None:  # type: ignore[no-untyped-def]
    """Cancel a reservation.

    Args:
        reservation_id: Which one.
        context: Who calls.

    Outcome: It is cancelled.
    """
    raise Refusal("not_found")


def mistaken(a: int) -> None:
    """Do it.

    Args:
        b: No such parameter.
    """


def test_a_function_is_read_as_a_whole() -> None:
    reading = read_handler(cancel)
    assert reading.prose.intent == "Cancel a reservation."
    assert reading.input_schema["properties"] == {"reservation_id": {"type": "string", "description": "Which one."}}
    assert reading.output_schema["type"] == "object"
    assert [name for name, _ in reading.refused] == ["not_found"]
    assert reading.is_async


def test_a_described_parameter_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ContractError, match="describes 'b'"):
        read_handler(mistaken)


def test_a_function_has_a_place_and_a_builtin_has_none() -> None:
    place = locate(cancel)
    assert place is not None
    assert place.file == __file__
    assert place.line == cancel.__code__.co_firstlineno
    assert locate(len) is None


def direct() -> None:
    raise Refusal("taken", "It is taken.")


def several(name: str) -> None:
    if name:
        raise No("renamed")
    raise handler.Refusal("qualified")


def inner() -> None:
    def later() -> None:
        raise Refusal("inside")

    later()


def made_at_run_time(name: str) -> None:
    raise Refusal(name)


def harmless() -> str:
    return "Refusal('nothing')"


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> Any:
        return function(*arguments)

    return wrapper


def names(function: Callable[..., Any]) -> set[str]:
    return {name for name, _ in refused_names(function)}


def test_a_name_is_found_with_its_line() -> None:
    assert list(refused_names(direct)) == [("taken", direct.__code__.co_firstlineno + 1)]


def test_a_name_is_found_however_the_class_is_called() -> None:
    assert names(several) == {"renamed", "qualified"}
    assert names(inner) == {"inside"}
    assert names(logged(direct)) == {"taken"}


def test_computed_names_are_left_to_the_dispatcher() -> None:
    assert names(made_at_run_time) == set()
    assert names(harmless) == set()
    assert names(len) == set()
    space: dict[str, Any] = {"Refusal": Refusal}
    exec("def handler():\n    raise Refusal('no source')", space)
    assert names(space["handler"]) == set()


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

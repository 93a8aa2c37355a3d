from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.service import echo, make_endpoint

from bespeak.app.authoring.declarations import check_behaviour, check_fit
from bespeak.contract.handler import Refusal
from bespeak.protocol.exchange.messages import Context
from bespeak.text.source.tree import Location

ROOM = replace(
    make_endpoint(
        "BOOK",
        "/room",
        echo,
        properties={"room_id": {"type": "string"}, "nights": {"type": "integer"}},
        required=("room_id",),
        errors=("room_taken",),
    ),
    location=Location("handlers.py", 7),
)


def fits(function: Callable[..., Any], *, blocking: bool = False) -> list[str]:
    return [finding.message for finding in check_fit(ROOM, function, blocking=blocking, advice="")]


def book(room_id: str, nights: int = 1) -> None:
    raise Refusal("room_taken")


def with_context(context: Context, room_id: str, nights: int = 1) -> None: ...


def whole(values: dict[str, Any]) -> None: ...


def open_ended(room_id: str, **rest: Any) -> None: ...


async def waiting(room_id: str, nights: int = 1) -> None: ...


@pytest.mark.parametrize("function", [book, with_context, whole, open_ended, waiting])
def test_a_function_that_takes_the_input_fits(function: Callable[..., Any]) -> None:
    assert fits(function) == []


def lacking(room_id: str) -> None: ...


def demanding(room_id: str, nights: int) -> None: ...


def asking(room_id: str, guest: str, nights: int = 1) -> None: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lacking, "BOOK /room: lacking(): the input has 'nights', which the function does not take"),
        (demanding, "BOOK /room: demanding(): the input may lack 'nights', but the parameter has no default"),
        (asking, "BOOK /room: asking(): the function needs 'guest', which the input does not have"),
    ],
)
def test_mismatched_parameter_is_reported(function: Callable[..., Any], message: str) -> None:
    assert fits(function) == [message]


def misspelt(roomid):  # type: ignore[no-untyped-def]
    ...


def test_misspelt_single_parameter_does_not_take_the_whole_input() -> None:
    assert fits(misspelt) == [
        "BOOK /room: misspelt(): the parameter 'roomid' is not a field of the input; did you mean 'room_id'?"
    ]


def refusing(room_id: str, nights: int = 1) -> None:
    raise Refusal("too_late")


def test_undeclared_refusal_is_reported_at_its_line() -> None:
    [finding] = check_fit(ROOM, refusing, blocking=False, advice="")
    assert "refuses with 'too_late'" in finding.message
    assert finding.help == "Add 'too_late' to the errors of the endpoint."
    assert finding.location is not None
    assert finding.location.line == refusing.__code__.co_firstlineno + 1


def test_coroutine_is_not_run_in_a_thread() -> None:
    [message] = fits(waiting, blocking=True)
    assert "blocking=True is not allowed for async functions" in message
    assert list(check_behaviour(ROOM, (), "", waits=False)) == []

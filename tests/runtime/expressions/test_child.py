"""The child process answers every message with a value or a code, and returns results as JSON has them."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from bespeak.runtime.expressions.child import (
    MOST_RESULT,
    Evaluator,
    ExpressionRequest,
    Told,
    plain,
    receive,
    respond,
    send,
)


def answer(text: str, variables: dict[str, Any] | None) -> Told:
    asked = ExpressionRequest(text, tuple(variables or ()), variables)
    body, goes_on = respond(Evaluator(), msgspec.json.encode(asked))
    assert goes_on
    return msgspec.json.decode(body, type=Told)


def test_an_expression_is_only_compiled_without_variables() -> None:
    assert answer("1 / 0", None) == Told()
    assert answer("1 +", None).code == "invalid-expression"


def test_a_result_is_returned_as_json_has_it() -> None:
    assert answer("[1, 2u, 1.5, x, true]", {"x": None}).value == [1, 2, 1.5, None, True]
    assert answer("{2: b'x', true: 'y'}", {}).value == {"2": "eA==", "true": "y"}


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"),
        (timedelta(seconds=90), "90s"),
    ],
)
def test_times_become_text(value: object, written: str) -> None:
    assert plain(value) == written


def test_a_result_that_json_does_not_have_is_a_failure() -> None:
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    for value in (float("inf"), float("nan"), deep):
        with pytest.raises(ValueError):
            plain(value)
    assert answer("1.0 / 0.0", {}).code == "expression-failed"


def test_a_result_that_is_too_large_is_a_failure() -> None:
    told = answer("x + x", {"x": "a" * (MOST_RESULT * 2 // 3)})
    assert (told.code, told.message) == ("expression-failed", "the result is larger than 1024 KiB")


def test_a_message_that_is_not_a_request_is_answered() -> None:
    body, _ = respond(Evaluator(), b"{")
    assert msgspec.json.decode(body, type=Told).code == "expression-failed"


def test_a_compiled_expression_is_used_again() -> None:
    evaluator = Evaluator()
    for number in range(300):  # more than are kept
        assert evaluator.answer(ExpressionRequest(f"x + {number}", ("x",), {"x": 1})).value == number + 1
    assert evaluator.answer(ExpressionRequest("x + 1", ("x",), {"x": 2})).value == 3


def test_messages_have_a_length_before_them() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send(ours, b"one")
        ours.close()
        assert (receive(theirs), receive(theirs)) == (b"one", None)

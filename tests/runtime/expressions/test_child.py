"""The child process answers every message with a value or a code, and returns results as JSON has them."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from bespeak.runtime.expressions.child import (
    MOST_RESULT,
    Evaluated,
    Evaluator,
    ExpressionRequest,
    plain,
    receive,
    respond,
    send,
)


def answer(text: str, variables: dict[str, Any] | None) -> Evaluated:
    asked = ExpressionRequest(text, tuple(variables or ()), variables)
    body, goes_on = respond(Evaluator(), msgspec.json.encode(asked))
    assert goes_on
    return msgspec.json.decode(body, type=Evaluated)


def test_expressions_are_compiled_without_variables_and_used_again() -> None:
    assert answer("1 / 0", None) == Evaluated()
    assert answer("1 +", None).code == "invalid-expression"
    evaluator = Evaluator()
    for number in range(300):  # more than are kept
        assert evaluator.answer(ExpressionRequest(f"x + {number}", ("x",), {"x": 1})).value == number + 1
    assert evaluator.answer(ExpressionRequest("x + 1", ("x",), {"x": 2})).value == 3


def test_every_message_is_answered_and_results_are_bounded_json() -> None:
    assert answer("[1, 2u, 1.5, x, true]", {"x": None}).value == [1, 2, 1.5, None, True]
    assert answer("{2: b'x', true: 'y'}", {}).value == {"2": "eA==", "true": "y"}
    told = answer("x + x", {"x": "a" * (MOST_RESULT * 2 // 3)})
    assert (told.code, told.message) == ("expression-failed", "the result is larger than 1024 KiB")
    body, _ = respond(Evaluator(), b"{")
    assert msgspec.json.decode(body, type=Evaluated).code == "expression-failed"


@pytest.mark.parametrize(
    ("value", "written"), [(datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z"), (timedelta(seconds=90), "90s")]
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


def test_messages_have_a_length_before_them() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        send(ours, b"one")
        ours.close()
        assert (receive(theirs), receive(theirs)) == (b"one", None)

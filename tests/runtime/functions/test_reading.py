from __future__ import annotations

import pytest

from bespeak.contract.handler import Refusal
from bespeak.errors import ContractError
from bespeak.runtime.functions.reading import locate, read_handler


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

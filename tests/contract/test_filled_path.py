"""Values in the place of path parameters."""

from __future__ import annotations

from typing import Any

import pytest

from bespeak.contract.grammar.syntax import fill_path
from bespeak.protocol.exchange.refusal import Fault


@pytest.mark.parametrize(
    ("path", "given", "filled"),
    [
        ("/rooms", {"beds": 2}, ("/rooms", {"beds": 2})),
        ("/rooms", {}, ("/rooms", None)),
        ("/rooms/{id}", {"id": "a/b ü"}, ("/rooms/a%2Fb%20%C3%BC", None)),
        ("/rooms/{id}/beds/{n}", {"id": "12", "n": 3, "x": 1}, ("/rooms/12/beds/3", {"x": 1})),
        ("/rooms/{id}", {"id": "{id}"}, ("/rooms/%7Bid%7D", None)),
        ("/rooms/{id}", {"id": True}, ("/rooms/true", None)),
    ],
)
def test_parameters_are_replaced_and_leave_the_input(path: str, given: dict[str, Any], filled: Any) -> None:
    assert fill_path(path, given) == filled


@pytest.mark.parametrize("given", [{}, {"id": ""}, {"id": "."}, {"id": ".."}, {"id": object()}, {"id": "\ud800"}])
def test_a_value_that_no_segment_can_carry_is_a_fault(given: dict[str, Any]) -> None:
    assert isinstance(fill_path("/rooms/{id}", given), Fault)

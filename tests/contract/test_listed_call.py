"""The calls of a composite, as far as a manifest tells them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.faces.mcp.tools import endpoint

from bespeak.contract.confirmation import MOST_LISTED, ListedCall, bounded, count, is_composite, list_named
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.refusal import Fault

KNOWN = (
    endpoint("FIND", "/rooms"),
    endpoint("BOOK", "/rooms/{room_id}", impact="irreversible"),
    endpoint("BOOK", "/rooms/best", impact="reversible"),
)


def standard(method: str) -> Endpoint:
    """Make a standard method as a manifest has it."""
    schema = {"type": "object", "properties": dict(STANDARD[method].parameters)}
    return endpoint(method, "/", impact="irreversible", input_schema=schema)


def listed(method: str, arguments: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = list_named(standard(method), arguments, KNOWN)
    assert not isinstance(found, Fault)
    return [(one.method, one.path, one.impact) for one in found]


def test_impact_of_a_step_is_that_of_the_most_specific_endpoint() -> None:
    steps = [
        {"method": "FIND", "path": "/rooms"},
        {"method": "BOOK", "path": "/rooms/{room_id}", "parameters": {"room_id": "12"}},
        {"method": "BOOK", "path": "/rooms/12"},
        {"method": "BOOK", "path": "/rooms/best"},
        {"method": "BOOK", "path": "/rooms/12/bed"},
        {"method": "FIND"},
    ]
    found = listed("CHAIN", {"steps": steps})
    assert [impact for _, _, impact in found] == [
        *("informational", "irreversible", "irreversible", "reversible", "unknown impact", "unknown impact"),
    ]
    assert found[5][1] == "/"
    assert listed("BATCH", {"calls": steps}) == found


def test_candidates_of_route_are_endpoints_agents_and_services() -> None:
    candidates = ["FIND /rooms", "a" * 64, {"method": "BUY", "path": "/ship", "service": "agtp://else.example"}]
    found = listed("ROUTE", {"payload": 1, "criteria": {}, "candidates": candidates, "fallback": "BOOK /rooms/best"})
    assert found == [
        ("FIND", "/rooms", "informational"),
        ("NOTIFY", f"agent {'a' * 64}", "irreversible"),
        ("BUY", "agtp://else.example/ship", "unknown impact"),
        ("BOOK", "/rooms/best", "reversible"),
    ]
    assert len(listed("ROUTE", {"payload": 1, "criteria": {}})) == len(KNOWN)


@pytest.mark.parametrize(
    ("method", "arguments"), [("RUN", {"procedure_id": "x"}), ("RETRY", {"original_task_id": "t"})]
)
def test_what_only_the_service_knows_is_a_fault(method: str, arguments: dict[str, Any]) -> None:
    assert isinstance(list_named(standard(method), arguments, KNOWN), Fault)


def test_endpoint_of_the_same_name_that_takes_other_parameters_is_not_a_composite() -> None:
    own = endpoint("CHAIN", "/", input_schema={"type": "object", "properties": {"bicycle": {}}})
    assert not is_composite(own)
    assert list_named(own, {"bicycle": 1}, KNOWN) == ()
    assert not is_composite(endpoint("CHAIN", "/bicycles"))
    assert list_named(KNOWN[1], {}, KNOWN) == ()


def test_calls_are_counted_with_those_inside_them_and_bounded() -> None:
    one = ListedCall("FIND", "/rooms", "informational")
    nested = ListedCall("BOOK", "/trip", "irreversible", calls=(one, one))
    assert count(nested) == 3
    assert bounded([nested] * (MOST_LISTED // 3)) == (nested,) * (MOST_LISTED // 3)
    assert isinstance(bounded(iter([nested] * (MOST_LISTED // 3 + 1))), Fault)

"""PROPOSE on a server that does not negotiate."""

from __future__ import annotations

from typing import Any

import pytest
from tests.service import build, echo, make_endpoint


@pytest.mark.requirement("API-8.7-4", "API-13.1-7")
@pytest.mark.parametrize(
    "body",
    [
        None,
        {"proposed_method": "AUDIT", "signature": {}, "intent": "Audit a stay."},
        {"endpoint": {"method": "AUDIT", "path": "/stays"}},
        {"method": "PROPOSE", "parameters": {"proposal": {"method": "AUDIT", "path": "/stays"}, "session_id": "s"}},
        {"name": "AUDIT", "parameters": {"subject": "string"}},
    ],
)
def test_every_form_of_proposal_is_rejected_with_the_reason(body: Any) -> None:
    reply = build().send("PROPOSE", "/", body)
    assert reply.status == 463
    for place in (reply.json, reply.error):
        assert place["reason"] == "synthesis-disabled"
        assert place["explanation"]


def test_the_rejection_points_at_similar_endpoints() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo), make_endpoint("QUERY", "/menus", echo))
    reply = bench.send("PROPOSE", "/", {"endpoint": {"method": "RESERVE", "path": "/room"}})
    assert reply.error["similar_endpoints"][0]["path"] == "/room"

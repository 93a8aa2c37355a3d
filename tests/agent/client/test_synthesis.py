"""A synthesis as a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bespeak.agent.client.negotiation import Synthesis
from bespeak.agent.client.proposal import define


def test_synthesis_calls_its_endpoint_and_shows_its_contract() -> None:
    called: list[Mapping[str, Any]] = []
    endpoint = define("FIND", "/rooms/cheap", given=["max_price:number"]).endpoint
    synthesis = Synthesis(endpoint=endpoint, synthesis_id="syn-1", notes=("a note",), invoke=called.append)
    synthesis.call(max_price=90)
    assert called == [{"max_price": 90}]
    shown = msgspec.json.decode(msgspec.json.encode(synthesis.to_json()))
    assert (shown["synthesis_id"], shown["notes"], shown["endpoint"]["path"]) == ("syn-1", ["a note"], "/rooms/cheap")
    assert shown["endpoint"]["handler"] == {"type": "composition"}

"""CHECK tells the health of the server, and the state of what belongs to the caller."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.service import AGENT, make_endpoint
from tests.stateful import keeping

from bespeak.contract.agent import Agent
from bespeak.contract.handler import ExternalService

pytestmark = pytest.mark.anyio

METHODS = ("CHECK", "CHAIN", "REGISTER")


@pytest.mark.requirement("METHODS-8.9-2")
async def test_a_shallow_check_says_that_the_server_answers() -> None:
    async with keeping(methods=METHODS) as bench:
        for target in ("server", "test.example"):
            result = (await bench.send("CHECK", "/", {"target": target})).json["result"]
            assert (result["status"], result["components"]) == ("ok", [{"name": "server", "status": "ok"}])


@pytest.mark.requirement("METHODS-8.9-2", "METHODS-8.9-3")
async def test_a_deep_check_asks_the_store_and_the_upstreams() -> None:
    declared = tuple(f"upstream_{name}" for name in ("timeout", "connection_error", "malformed_response", "error"))
    endpoint = make_endpoint("FETCH", "/rates", dict, errors=(*declared, "upstream_authentication_failed"))
    upstream = replace(endpoint, handler=ExternalService(url="https://127.0.0.1:9/rates", method="GET"))
    async with keeping(upstream, methods=METHODS) as bench:
        result = (await bench.send("CHECK", "/", {"target": "server", "depth": "deep"})).json["result"]
        states = {one["name"]: one["status"] for one in result["components"]}
        assert (states["store"], result["status"]) == ("ok", "failing")
        assert states["upstream of FETCH /rates"] == "failing"
        assert states["queue of deliveries"] == states["queue of what is due"] == "ok"
        assert "127.0.0.1" not in str(result)


@pytest.mark.requirement("METHODS-8.9-4")
async def test_an_endpoint_is_checked_with_its_upstream() -> None:
    declared = tuple(f"upstream_{name}" for name in ("timeout", "connection_error", "malformed_response", "error"))
    endpoint = make_endpoint("FETCH", "/rates", dict, errors=(*declared, "upstream_authentication_failed"))
    upstream = replace(endpoint, handler=ExternalService(url="https://127.0.0.1:9/rates", method="GET"))
    async with keeping(upstream, make_endpoint("FIND", "/rooms", lambda _: {}), methods=METHODS) as bench:
        for target in ("FETCH /rates", "upstream of FETCH /rates"):
            result = (await bench.send("CHECK", "/", {"target": target})).json["result"]
            assert (result["status"], len(result["components"])) == ("failing", 2)
        assert (await bench.send("CHECK", "/", {"target": "FIND /rooms"})).json["result"]["status"] == "ok"
        assert (await bench.send("CHECK", "/", {"target": "FIND /nothing"})).status == 404


async def test_the_state_of_an_agent_is_told() -> None:
    agent = Agent(agent_id=AGENT, name="porter")
    async with keeping(methods=METHODS, agents=(agent,)) as bench:
        result = (await bench.send("CHECK", "/", {"target": AGENT})).json["result"]
        assert result["status"] == agent.status
        assert (await bench.send("CHECK", "/", {"target": "b" * 64})).status == 404


async def test_a_workflow_is_told_by_its_steps_to_its_owner_alone() -> None:
    async with keeping(make_endpoint("FIND", "/rooms", lambda _: {}), methods=METHODS) as bench:
        steps = [{"name": "search", "method": "FIND", "path": "/rooms"}]
        chain_id = (await bench.send("CHAIN", "/", {"steps": steps})).json["result"]["chain_id"]
        result = (await bench.send("CHECK", "/", {"target": chain_id})).json["result"]
        assert (result["status"], result["components"]) == ("completed", [{"name": "search", "status": "done"}])
        assert (await bench.send("CHECK", "/", {"target": chain_id}, agent="b" * 64)).status == 404

"""Calls of endpoints through a client."""

from __future__ import annotations

import pytest
from tests.agent.client.faces import FACES, Face, talking
from tests.service import AGENT

from bespeak.agent.client.connect import connect
from bespeak.agent.client.service import CalledService
from bespeak.contract.policy import Policies
from bespeak.protocol.exchange.principal import Scopes

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("face", FACES)
async def test_a_call_has_an_outcome_whatever_the_status(face: Face) -> None:
    async with talking(face, agent_id=AGENT) as (client, _):
        service = CalledService(client)
        endpoints = {str(endpoint): endpoint for endpoint in await service.endpoints()}
        assert await service.endpoints() is await service.endpoints()
        found = await service.call(endpoints["FIND /rooms/{room_id}"], {"room_id": "a/b", "guests": 2}, {})
        assert found.output == {"room_id": "a/b", "guests": 2}
        refused = await service.call(endpoints["BOOK /room"], {"room_id": "taken"}, {})
        assert (refused.status, refused.error["code"]) == (422, "room_unavailable")
        warned = await service.call(endpoints["RESERVE /room"], {}, {})
        assert warned.warning is not None
        assert warned.warning.startswith("deprecated")


async def test_what_is_known_of_authority_and_confirmation() -> None:
    async with talking("agtp", agent_id=AGENT) as (client, _):
        service = CalledService(client, policies=Policies(confirm_irreversible=True), scopes=Scopes(["room:read"]))
        endpoints = {str(endpoint): endpoint for endpoint in await service.endpoints()}
        assert service.lacking(endpoints["CANCEL /room"]) == ["room:cancel"]
        assert service.is_confirmed(endpoints["BOOK /room"])
        open_ended = CalledService(client)
        assert open_ended.lacking(endpoints["CANCEL /room"]) == []
        assert not open_ended.is_confirmed(endpoints["BOOK /room"])


async def test_a_service_that_cannot_be_reached_is_an_outcome_without_credentials(unused_port: int) -> None:
    async with talking("agtp", agent_id=AGENT) as (client, _):
        endpoint = (await CalledService(client).endpoints())[0]
    async with connect(f"agtp://127.0.0.1:{unused_port}") as gone:
        found = await CalledService(gone).call(endpoint, {"room_id": "1"}, {})
        assert found.error["code"] == "service-not-reached"

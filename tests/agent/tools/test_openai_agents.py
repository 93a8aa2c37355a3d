"""The runner of the OpenAI Agents SDK, driven by a scripted model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.agent.client.faces import FACES, Face, talking
from tests.agent.tools.test_tool_list import app
from tests.service import AGENT

import bespeak

pytestmark = pytest.mark.anyio


@pytest.fixture
def sdk() -> Any:
    from tests.agent.tools import agents_script

    return agents_script


@pytest.mark.parametrize("face", FACES)
async def test_a_conversation_with_a_booking_a_refusal_and_a_missing_scope(face: Face, sdk: Any) -> None:
    model = sdk.Scripted(
        [("book_room", {"room_id": "12", "guests": None})],
        [("book_room", {"room_id": "taken", "guests": 2}), ("cancel_room", {"room_id": "1", "guests": None})],
        [("book_room", {"guests": 2})],
    )
    async with talking(face, agent_id=AGENT) as (service, place):
        tools = await service.tools("openai-agents", confirm=lambda _: True)
        assert all(tool.strict_json_schema for tool in tools)
        done = await sdk.converse(sdk.Agent("Porter", model=model, tools=tools), "Book a room.")
        assert done.final_output == "Done."
        booking, taken, scope, invalid = map(json.loads, model.told)
        assert booking == {"reservation": 1, "room_id": "12"}
        assert taken["error"]["code"] == "room_unavailable"
        assert "room:cancel" in scope["error"]["remedy"]
        assert invalid["error"]["code"] == "input-validation-failed"
        assert place.rooms.booked == 1


async def test_without_a_person_nothing_is_booked_and_invalid_arguments_are_told(sdk: Any) -> None:
    model = sdk.Scripted([("book_room", {"room_id": "12", "guests": None})])
    async with talking("agtp", agent_id=AGENT) as (service, place):
        agent = sdk.Agent("Porter", model=model, tools=await service.tools("openai-agents"))
        await sdk.converse(agent, "Book a room.")
        assert json.loads(model.told[0])["error"]["code"] == "confirmation-required"
        assert place.rooms.booked == 0
    model = sdk.Scripted([("find_rooms", "{")])
    async with talking("agtp", agent_id=AGENT) as (service, _):
        agent = sdk.Agent("Porter", model=model, tools=await service.tools("openai-agents"))
        await sdk.converse(agent, "Find a room.")
        assert "invalid-arguments" in model.told[0]


@pytest.mark.parametrize("approved", [True, False])
async def test_the_approval_of_the_framework_decides(approved: bool, sdk: Any) -> None:
    model = sdk.Scripted(
        [("book_room", {"room_id": "12", "guests": None}), ("find_rooms", {"room_id": "1", "guests": None})]
    )
    async with talking("agtp", agent_id=AGENT) as (service, place):
        agent = sdk.Agent("Porter", model=model, tools=await service.tools("openai-agents", confirm="approval"))
        paused = await sdk.converse(agent, "Book a room.")
        assert [item.name for item in paused.interruptions] == ["book_room"]
        assert place.rooms.booked == 0
        state = paused.to_state()
        for item in paused.interruptions:
            state.approve(item) if approved else state.reject(item)
        assert (await sdk.converse(agent, state)).final_output == "Done."
        assert place.rooms.booked == approved


def test_tools_of_a_blocking_client_run_in_the_loop_of_the_framework(sdk: Any) -> None:
    model = sdk.Scripted([("query_invoices", {"guest": None})])
    with bespeak.connect_sync(app) as service:
        agent = sdk.Agent("Porter", model=model, tools=service.tools("openai-agents"))
        asyncio.run(sdk.converse(agent, "Find my invoices."))
    assert json.loads(model.told[0]) == {"invoices": []}

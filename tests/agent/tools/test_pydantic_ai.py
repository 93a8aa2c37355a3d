"""Agents of Pydantic AI, driven by its function model and its test model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.agent.client.faces import FACES, Face, talking
from tests.agent.tools.test_tool_list import app
from tests.service import AGENT

import bespeak

pytestmark = pytest.mark.anyio


@pytest.fixture
def ai() -> Any:
    from tests.agent.tools import pydantic_script

    return pydantic_script


@pytest.mark.parametrize("face", FACES)
async def test_a_conversation_with_a_booking_a_refusal_and_a_missing_scope(face: Face, ai: Any) -> None:
    model = ai.scripted(
        [("book_room", {"room_id": "12"})],
        [("book_room", '{"room_id": "taken"}'), ("cancel_room", {"room_id": "1"})],
        [("book_room", {"guests": 2})],
    )
    async with talking(face, agent_id=AGENT) as (service, place):
        agent = ai.Agent(model, tools=await service.tools("pydantic-ai", confirm=lambda _: True))
        done = await agent.run("Book a room.")
        assert done.output == "Done."
        booking, taken, scope, invalid = ai.returned(done.all_messages())
        assert booking == {"reservation": 1, "room_id": "12"}
        assert taken["error"]["code"] == "room_unavailable"
        assert "room:cancel" in scope["error"]["remedy"]
        assert invalid["error"]["code"] == "input-validation-failed"
        assert place.rooms.booked == 1


async def test_without_a_person_nothing_is_booked_and_with_one_every_tool_can_be_called(ai: Any) -> None:
    async with talking("agtp", agent_id=AGENT) as (service, place):
        agent = ai.Agent(ai.scripted([("book_room", {"room_id": "12"})]), tools=await service.tools("pydantic-ai"))
        (refused,) = ai.returned((await agent.run("Book a room.")).all_messages())
        assert refused["error"]["code"] == "confirmation-required"
        assert place.rooms.booked == 0
    async with talking("agtp", agent_id=AGENT, scopes=["room:cancel"]) as (service, _):
        tools = await service.tools("pydantic-ai", confirm=lambda _: True)
        done = await ai.Agent(ai.TestModel(), tools=tools).run("Try everything.")
        assert len(ai.returned(done.all_messages())) == len(tools)


@pytest.mark.parametrize("approved", [True, False])
async def test_the_approval_of_the_framework_decides(approved: bool, ai: Any) -> None:
    async with talking("agtp", agent_id=AGENT) as (service, place):
        tools = await service.tools("pydantic-ai", confirm="approval")
        agent = ai.Agent(
            ai.scripted([("book_room", {"room_id": "12"})]), tools=tools, output_type=[str, ai.DeferredToolRequests]
        )
        paused = await agent.run("Book a room.")
        assert isinstance(paused.output, ai.DeferredToolRequests)
        (request,) = paused.output.approvals
        assert place.rooms.booked == 0
        answers = ai.DeferredToolResults(approvals={request.tool_call_id: approved})
        done = await agent.run(message_history=paused.all_messages(), deferred_tool_results=answers)
        assert done.output == "Done."
        assert place.rooms.booked == approved


def test_tools_of_a_blocking_client_run_in_the_loop_of_the_framework(ai: Any) -> None:
    with bespeak.connect_sync(app) as service:
        agent = ai.Agent(ai.scripted([("query_invoices", {"guest": None})]), tools=service.tools("pydantic-ai"))
        done = asyncio.run(agent.run("Find my invoices."))
        assert ai.returned(done.all_messages()) == [{"invoices": []}]

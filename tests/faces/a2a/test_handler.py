"""The methods for tasks: what their owner reads, lists and cancels, and what nobody else does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from a2a import types
from a2a.helpers.proto_helpers import get_data_parts
from a2a.utils import errors
from tests.cases import rows
from tests.faces.a2a import agent
from tests.faces.mcp.tools import Rooms, Survey
from tests.service import AGENT

from bespeak.errors import StoreUnavailableError
from bespeak.state.store.commands.a2a_tasks import RequestCancel
from bespeak.state.store.commands.agents import PutAgent

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("version", agent.VERSIONS)
async def test_long_calls_are_polled_and_canceled_and_streams_tell_how_far_they_are(version: str) -> None:
    rooms = Rooms()
    async with agent.on_http(rooms) as (url, _), agent.connected(url, version) as client:
        task = await agent.send(client, agent.calling(agent.WATCH), return_immediately=True)
        later = await client.get_task(types.GetTaskRequest(id=task.id))
        await asyncio.wait_for(rooms.waiting.wait(), 20)
        canceled = await client.cancel_task(types.CancelTaskRequest(id=task.id))
        with pytest.raises(errors.TaskNotCancelableError):
            await client.cancel_task(types.CancelTaskRequest(id=task.id))
    assert [agent.state(each) for each in (task, later, canceled)] == ["working", "working", "canceled"]
    assert later.history == task.history
    assert rooms.cancelled.is_set()
    async with agent.on_http(Survey()) as (url, _), agent.connected(url, version, streaming=True) as client:
        first, *news, _, last = await agent.events(client, agent.calling("analyze_halls"))
    assert news
    assert {agent.state(each) for each in (first, *news)} == {"working"}
    assert agent.state(last) == "completed"
    told = news[-1].status.message
    assert told.parts[0].text == f"{Survey.STEPS} of {Survey.STEPS}: hall {Survey.STEPS}"
    assert get_data_parts(told.parts) == [
        {"progress": {"done": Survey.STEPS, "total": Survey.STEPS, "message": f"hall {Survey.STEPS}"}}
    ]


async def test_a_running_task_is_subscribed_to_until_its_end() -> None:
    rooms = Rooms()
    async with agent.on_http(rooms) as (url, _), agent.connected(url, streaming=True) as client:
        stream = client.send_message(types.SendMessageRequest(message=agent.calling(agent.WATCH)))
        task = (await anext(stream)).task
        heard: list[str] = []

        async def subscribe() -> None:
            async for event in client.subscribe(types.SubscribeToTaskRequest(id=task.id)):
                heard.append(agent.state(event.task if event.HasField("task") else event.status_update))
                begun.set()

        begun = asyncio.Event()
        subscribing = asyncio.create_task(subscribe())
        await asyncio.wait_for(begun.wait(), 20)
        await client.cancel_task(types.CancelTaskRequest(id=task.id))
        await asyncio.wait_for(subscribing, 20)
        rest = [event async for event in stream]
    assert heard == ["working", "canceled"]
    assert [agent.state(event.status_update) for event in rest] == ["canceled"]


async def test_a_subscriber_that_was_suspended_is_told_nothing_more() -> None:
    rooms = Rooms()
    async with agent.on_http(rooms) as (url, keeper), agent.connected(url, streaming=True) as client:
        stream = client.send_message(types.SendMessageRequest(message=agent.calling(agent.WATCH)))
        task = (await anext(stream)).task
        subscribed = client.subscribe(types.SubscribeToTaskRequest(id=task.id))
        assert agent.state((await asyncio.wait_for(anext(subscribed), 20)).task) == "working"
        server = keeper.dispatcher.server
        assert server.store is not None
        document = f'{{"agent_id": "{AGENT}", "name": "porter", "status": "suspended"}}'
        await server.store.do(PutAgent(AGENT, "porter", "suspended", document, "operator"))
        await server.agents.refresh()
        await server.store.do(RequestCancel(task.id))
        assert [event async for event in subscribed] == []
        assert rooms.cancelled.is_set()


async def test_the_history_is_as_long_as_the_caller_wants_and_there_are_no_push_notifications() -> None:
    async with agent.on_http(Rooms()) as (url, _), agent.connected(url) as client:
        task = await agent.send(client, agent.calling(agent.FIND), history_length=0)
        read = await client.get_task(types.GetTaskRequest(id=task.id, history_length=1))
        with pytest.raises(errors.InvalidParamsError):
            await client.get_task(types.GetTaskRequest(id=task.id, history_length=-1))
        config = types.TaskPushNotificationConfig(task_id="t", url="http://169.254.169.254/")
        with pytest.raises(errors.PushNotificationNotSupportedError):
            await client.create_task_push_notification_config(config)
        with pytest.raises(errors.PushNotificationNotSupportedError):
            await client.get_task_push_notification_config(
                types.GetTaskPushNotificationConfigRequest(task_id="t", id="c")
            )
        for method in ("ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig"):
            assert (await agent.post(url, method, taskId="t", id="c")).json()["error"]["code"] == -32003
    assert (len(task.history), len(read.history)) == (0, 1)


async def test_a_finished_task_is_not_subscribed_to() -> None:
    async with agent.on_http(Rooms()) as (url, _), agent.connected(url, streaming=True) as client:
        (task, *_) = await agent.events(client, agent.calling(agent.FIND))
        with pytest.raises(errors.UnsupportedOperationError):
            await anext(client.subscribe(types.SubscribeToTaskRequest(id=task.id)))


async def test_nobody_else_finds_a_task() -> None:
    async with agent.on_http(Rooms()) as (url, _):
        async with agent.connected(url) as client:
            task = await agent.send(client, agent.calling(agent.BOOK, room_id="12"))
        async with agent.connected(url, headers=agent.OTHER, streaming=True) as other:
            for attempt in (
                other.get_task(types.GetTaskRequest(id=task.id)),
                other.cancel_task(types.CancelTaskRequest(id=task.id)),
                anext(other.subscribe(types.SubscribeToTaskRequest(id=task.id))),
                agent.events(other, agent.message("go on", task_id=task.id)),
            ):
                with pytest.raises(errors.TaskNotFoundError):
                    await attempt
            assert (await other.list_tasks(types.ListTasksRequest())).total_size == 0


async def test_tasks_are_listed_in_pages_and_by_names_and_numbers_of_states() -> None:
    async with agent.on_http(Rooms()) as (url, _), agent.connected(url) as client:
        sent = [await agent.send(client, agent.calling(agent.FIND, {"context_id": "talk"})) for _ in range(3)]
        waiting = await agent.send(client, agent.calling(agent.BOOK, room_id="12"))
        first = await client.list_tasks(types.ListTasksRequest(page_size=2, context_id="talk", include_artifacts=True))
        rest = await client.list_tasks(
            types.ListTasksRequest(page_size=2, context_id="talk", page_token=first.next_page_token)
        )
        asked = await client.list_tasks(types.ListTasksRequest(status=types.TaskState.TASK_STATE_AUTH_REQUIRED))
        recent = await client.list_tasks(types.ListTasksRequest(status_timestamp_after=waiting.status.timestamp))
    listed = [*first.tasks, *rest.tasks]
    assert [task.id for task in listed] == [task.id for task in reversed(sent)]
    assert (first.total_size, rest.next_page_token) == (3, "")
    assert [len(task.artifacts) for task in listed] == [1, 1, 0]
    assert [task.id for task in asked.tasks] == [waiting.id] == [task.id for task in recent.tasks]
    async with agent.on_http(Rooms()) as (url, _), agent.connected(url) as client:
        await agent.send(client, agent.calling(agent.FIND))
        found = [
            (await agent.post(url, "ListTasks", agent.WRITER, **given)).json()["result"]["totalSize"]
            for given in ({"status": "TASK_STATE_COMPLETED"}, {"status": 3}, {"status": 2}, {"status": None}, {})
        ]
    assert found == [1, 1, 0, 1, 1]


async def test_a_page_is_bounded_in_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.faces.a2a.http._MOST_LISTED", 1)
    async with agent.on_http(Rooms()) as (url, _), agent.connected(url) as client:
        sent = [await agent.send(client, agent.calling(agent.FIND)) for _ in range(2)]
        first = await client.list_tasks(types.ListTasksRequest())
        rest = await client.list_tasks(types.ListTasksRequest(page_token=first.next_page_token))
    assert [task.id for task in (*first.tasks, *rest.tasks)] == [sent[1].id, sent[0].id]
    assert (len(first.tasks), rest.next_page_token) == (1, "")


@rows(
    "params",
    *({"page_size": 0}, {"page_size": 101}, {"history_length": -1}, {"page_token": "x"}),
    *({"context_id": "x" * 300}, {"context_id": "a\x00"}),
)
async def test_a_list_that_cannot_be_made_is_refused(params: dict[str, Any]) -> None:
    async with agent.on_http(Rooms()) as (url, _), agent.connected(url) as client:
        with pytest.raises(errors.InvalidParamsError):
            await client.list_tasks(types.ListTasksRequest(**params))


async def test_failures_inside_are_not_told_and_an_absent_store_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: Any) -> Any:
        raise StoreUnavailableError("secret place")

    async with agent.on_http(Rooms()) as (url, keeper):
        store = keeper.dispatcher.server.store
        assert store is not None
        with monkeypatch.context() as patched:
            patched.setattr(store, "read", away)
            answer = await agent.post(url, "GetTask", agent.OTHER, id="x")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert "secret" not in answer.text

    async def broken(*_: Any) -> Any:
        raise RuntimeError("secret of the server")

    monkeypatch.setattr("bespeak.faces.a2a.tasks.SkillTasks.read", broken)
    async with agent.on_http(Rooms()) as (url, _):
        answer = await agent.post(url, "GetTask", agent.OTHER, id="x")
    assert answer.json()["error"]["code"] == -32603
    assert "secret" not in answer.text


@pytest.mark.parametrize("status", ["bogus", "working", "task_state_working", 99, -1, 2**40, True, 1.5, ""])
async def test_list_of_tasks_in_an_unknown_state_is_refused(status: Any) -> None:
    async with agent.on_http(Rooms()) as (url, _):
        reply = (await agent.post(url, "ListTasks", agent.WRITER, status=status)).json()
    assert reply["error"]["code"] == -32602
    assert "TASK_STATE_WORKING" in reply["error"]["message"]

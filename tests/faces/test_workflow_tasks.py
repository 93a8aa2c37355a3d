"""Workflows over MCP and A2A: progress for each step, a task that survives a restart, and one that is cancelled."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from a2a import types
from a2a.helpers.proto_helpers import get_data_parts
from a2a.utils.errors import TaskNotFoundError
from tests.faces.a2a import agent
from tests.faces.mcp.tools import LEGACY, MODERN, connected_to, on_http
from tests.service import AGENT
from tests.workflow_functions import send_signal

from bespeak import App, Context, Run
from bespeak.app.server.assembly import Keeper
from bespeak.app.server.target import load_app
from bespeak.extensions.workflows import start
from bespeak.state.store.commands.cases import ACCEPTED, CONFIRMATION, DecideCase
from bespeak.state.store.commands.records import ListRecords
from bespeak.state.store.settings import open_store

pytestmark = pytest.mark.anyio

SENT = {"agent_id": AGENT, "authority_scope": "bakery:use"}
HEADERS = {"Agent-ID": AGENT, "Authority-Scope": "bakery:use"}
BAKE, TIDY = {"method": "BOOK", "path": "/oven"}, {"method": "BOOK", "path": "/broom"}
STEPS = [{**TIDY, "compensate": {"method": "CANCEL", "path": "/broom"}}, BAKE]


class Bakery:
    """A service whose oven is opened by the test."""

    def __init__(self) -> None:
        self.opened, self.baking = asyncio.Event(), asyncio.Event()
        self.baked = 0
        named = {"server_id": "bakery.example", "operator": "Tests", "contact": "ops@bakery.example"}
        self.app = app = App("Bakery", **named, methods=["CHAIN", "BATCH", "CANCEL", "CHECK", "PAUSE", "RESUME"])

        @app.endpoint("BOOK", "/oven", impact="reversible", outcome="A loaf is baked.")
        async def bake(context: Context) -> dict[str, int]:
            """Bake a loaf."""
            context.progress(70, 100, "the crust")
            self.baking.set()
            await self.opened.wait()
            self.baked += 1
            return {"loaf": self.baked}

        @app.endpoint("BOOK", "/broom", impact="reversible", outcome="The floor is swept.")
        def sweep() -> dict[str, bool]:
            """Sweep the floor."""
            return {"swept": True}

        @app.workflow("breakfast")
        async def breakfast(run: Run, guests: int) -> dict[str, Any]:
            """Make breakfast."""
            await run.call("BOOK", "/broom", undo=("CANCEL", "/broom"))
            loaf = await run.call("BOOK", "/oven")
            return {**loaf, "jam": await run.wait_for("jam"), "guests": guests}

        app.endpoint("ORDER", "/breakfast", impact="reversible", outcome="Breakfast is made.")(breakfast)

        @app.endpoint("CANCEL", "/broom", impact="reversible", outcome="The floor is as before.")
        def unsweep() -> dict[str, bool]:
            """Bring the dust back."""
            return {"swept": False}


def agree(_: str) -> dict[str, Any]:
    """Answer as a user who agrees to every call."""
    return {"action": "accept", "content": {"confirm": True}}


async def ask(client: Any, keeper: Keeper, **arguments: Any) -> types.Task:
    """Ask for a chain over A2A, and accept it as a person of the service."""
    task = await agent.send(client, agent.calling("chain", **arguments))
    case_id = get_data_parts(task.status.message.parts)[0]["error"]["confirmation_id"]
    store = keeper.dispatcher.server.store
    assert store is not None
    await store.do(DecideCase(case_id, ACCEPTED, "desk", f"att-{case_id}", kinds=(CONFIRMATION,)))
    return task


def status_in(result: Any) -> str:
    """Return the status in the receipt that a tool has returned."""
    found: str = result.structured_content["result"]["status"]
    return found


class News(list[tuple[float, float | None, str | None]]):
    """What a client of MCP hears of a call."""

    async def __call__(self, done: float, total: float | None, message: str | None) -> None:
        self.append((done, total, message))


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_mcp_client_hears_of_each_step_and_waits_longer_than_others(
    era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "ANSWERED_WITHIN", 0.0)
    bakery, news = Bakery(), News()
    async with on_http(load_app(bakery.app, Path())) as (url, _, _mcp), connected_to(url, era, agree, **SENT) as client:
        await client.list_tools()
        early = await client.call_tool("chain", {"steps": STEPS})
        calling = asyncio.create_task(client.call_tool("chain", {"steps": STEPS}, progress_callback=news))
        async with asyncio.timeout(20):
            while not news:
                await asyncio.sleep(0.01)
        bakery.opened.set()
        result = await asyncio.wait_for(calling, 20)
    assert status_in(early) == "running"
    assert news[0][:2] == (1, 2), "reports of the steps themselves are not those of the chain"
    assert status_in(result) == "completed"


async def test_mcp_client_is_answered_when_a_run_is_paused() -> None:
    bakery, news = Bakery(), News()
    async with (
        on_http(load_app(bakery.app, Path())) as (url, keeper, _),
        connected_to(url, MODERN, agree, **SENT) as client,
    ):
        await client.list_tools()
        asked = {"steps": [BAKE, TIDY]}
        calling = asyncio.create_task(client.call_tool("chain", asked, progress_callback=news))
        await asyncio.wait_for(bakery.baking.wait(), 20)
        store = keeper.dispatcher.server.store
        assert store is not None
        (record,) = await store.read(ListRecords("workflow"))
        paused = await client.call_tool("pause", {"workflow_id": record.record_id})
        result = await asyncio.wait_for(calling, 20)
        bakery.opened.set()
    assert not paused.is_error
    assert status_in(result) == "paused"


async def test_a2a_task_tells_of_each_step_and_ends_with_the_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "ANSWERED_WITHIN", 0.0)
    bakery, heard = Bakery(), list[Any]()
    async with agent.on_http(bakery) as (url, keeper), agent.connected(url, streaming=True, headers=HEADERS) as client:
        task = await ask(client, keeper, steps=STEPS)
        request = types.SendMessageRequest(message=agent.message("go on", task_id=task.id))
        async for event in client.send_message(request):
            heard.append(getattr(event, event.WhichOneof("payload")))
            if len(heard) == 2:
                bakery.opened.set()
    task, first = heard[:2]
    assert (agent.state(task), agent.state(first)) == ("working", "working")
    assert first.status.message.parts[0].text.startswith("1 of 2")
    assert agent.state(heard[-1]) == "completed"
    (artifact,) = [event.artifact for event in heard if isinstance(event, types.TaskArtifactUpdateEvent)]
    assert agent.output(types.Task(artifacts=[artifact]))["result"]["status"] == "completed"


async def test_the_id_of_an_a2a_task_names_its_run_and_canceling_it_undoes_its_steps() -> None:
    bakery = Bakery()
    async with agent.on_http(bakery) as (url, keeper), agent.connected(url, headers=HEADERS) as client:
        task = await ask(client, keeper, steps=[*STEPS, TIDY])
        await agent.send(client, agent.message("go on", task_id=task.id), return_immediately=True)
        await asyncio.wait_for(bakery.baking.wait(), 20)
        checked = await agent.send(client, agent.calling("check", target=task.id))
        canceling = asyncio.create_task(client.cancel_task(types.CancelTaskRequest(id=task.id)))
        async with asyncio.timeout(20):
            while await status_of(client, task.id) == "running":
                await asyncio.sleep(0.01)
        bakery.opened.set()
        canceled = await asyncio.wait_for(canceling, 20)
    assert agent.output(checked)["result"]["status"] == "running"
    assert agent.state(canceled) == "canceled"
    receipt = agent.output(canceled)["result"]
    assert (receipt["status"], receipt["steps"][0]["status"]) == ("cancelled", "undone")


async def status_of(client: Any, target: str) -> str:
    found: str = agent.output(await agent.send(client, agent.calling("check", target=target)))["result"]["status"]
    return found


async def test_an_a2a_task_goes_on_after_a_restart_of_the_server(tmp_path: Path) -> None:
    path, first, second = tmp_path / "store.db", Bakery(), Bakery()
    store = open_store(str(path), role="sole")
    async with agent.on_http(first, store=store) as (url, keeper), agent.connected(url, headers=HEADERS) as client:
        task = await ask(client, keeper, steps=STEPS)
        await agent.send(client, agent.message("go on", task_id=task.id), return_immediately=True)
        await asyncio.wait_for(first.baking.wait(), 20)
    store = open_store(str(path), role="sole")
    async with agent.on_http(second, store=store) as (url, _), agent.connected(url, headers=HEADERS) as client:
        listed = await client.list_tasks(types.ListTasksRequest())
        later = await client.get_task(types.GetTaskRequest(id=task.id))
        second.opened.set()
        async with asyncio.timeout(40):
            while agent.state(ended := await client.get_task(types.GetTaskRequest(id=task.id))) == "working":
                await asyncio.sleep(0.02)
    assert [agent.state(one) for one in (*listed.tasks, later, ended)] == ["working", "working", "completed"]
    receipt = agent.output(ended)["result"]
    assert (receipt["status"], len(receipt["steps"]), first.baked, second.baked) == ("completed", 2, 0, 1)


async def test_a_call_that_began_no_run_is_still_interrupted_by_a_restart(tmp_path: Path) -> None:
    path, first, second = tmp_path / "store.db", Bakery(), Bakery()
    store = open_store(str(path), role="sole")
    async with agent.on_http(first, store=store) as (url, _), agent.connected(url, headers=HEADERS) as client:
        task = await agent.send(client, agent.calling("book_oven"), return_immediately=True)
        await asyncio.wait_for(first.baking.wait(), 20)
    store = open_store(str(path), role="sole")
    async with agent.on_http(second, store=store) as (url, _), agent.connected(url, headers=HEADERS) as client:
        ended = await client.get_task(types.GetTaskRequest(id=task.id))
    assert agent.state(ended) == "failed"


async def bring(keeper: Keeper, jam: str) -> None:
    """Send the jam to the one run that there is."""
    server = keeper.dispatcher.server
    assert server.store is not None
    (record,) = await server.store.read(ListRecords("workflow"))
    assert isinstance(await send_signal(server.part("workflows"), record.record_id, "jam", jam), str)


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_endpoint_that_is_a_workflow_reports_over_mcp_until_it_waits_for_a_signal(
    era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "ANSWERED_WITHIN", 0.0)
    bakery, news = Bakery(), News()
    async with on_http(load_app(bakery.app, Path())) as (url, _, _mcp), connected_to(url, era, **SENT) as client:
        await client.list_tools()
        calling = asyncio.create_task(client.call_tool("order_breakfast", {"guests": 2}, progress_callback=news))
        async with asyncio.timeout(20):
            while not news:
                await asyncio.sleep(0.01)
        bakery.opened.set()
        waiting = await asyncio.wait_for(calling, 20)
    assert [report for report in news if report[0] in (1, 2)] == [(1, None, "BOOK /broom"), (2, None, "BOOK /oven")]
    assert waiting.structured_content is not None
    assert waiting.structured_content["status"] == "sleeping", "it waits for a signal, perhaps of this very client"


async def test_a2a_task_of_a_sleeping_workflow_survives_a_restart_and_ends_with_its_result(tmp_path: Path) -> None:
    path, first, second = tmp_path / "store.db", Bakery(), Bakery()
    first.opened.set()
    store = open_store(str(path), role="sole")
    async with agent.on_http(first, store=store) as (url, keeper), agent.connected(url, headers=HEADERS) as client:
        task = await agent.send(client, agent.calling("order_breakfast", guests=3), return_immediately=True)
        async with asyncio.timeout(20):
            while not (found := await store.read(ListRecords("workflow"))) or found[0].state != "sleeping":
                await asyncio.sleep(0.01)
    store = open_store(str(path), role="sole")
    async with agent.on_http(second, store=store) as (url, keeper), agent.connected(url, headers=HEADERS) as client:
        later = await client.get_task(types.GetTaskRequest(id=task.id))
        await bring(keeper, "quince")
        async with asyncio.timeout(40):
            while agent.state(ended := await client.get_task(types.GetTaskRequest(id=task.id))) == "working":
                await asyncio.sleep(0.02)
    assert [agent.state(one) for one in (later, ended)] == ["working", "completed"]
    assert agent.output(ended) == {"loaf": 1, "jam": "quince", "guests": 3}
    assert (first.baked, second.baked) == (1, 0)


async def test_another_agent_neither_sees_nor_cancels_the_task_of_a_run() -> None:
    bakery = Bakery()
    async with agent.on_http(bakery) as (url, keeper), agent.connected(url, headers=HEADERS) as client:
        task = await agent.send(client, agent.calling("order_breakfast", guests=1), return_immediately=True)
        await asyncio.wait_for(bakery.baking.wait(), 20)
        async with agent.connected(url, headers=agent.OTHER) as stranger:
            with pytest.raises(TaskNotFoundError):
                await stranger.get_task(types.GetTaskRequest(id=task.id))
            with pytest.raises(TaskNotFoundError):
                await stranger.cancel_task(types.CancelTaskRequest(id=task.id))
        bakery.opened.set()
        await bring(keeper, "plum")


async def test_canceling_the_task_of_a_sleeping_workflow_undoes_what_it_did() -> None:
    bakery = Bakery()
    bakery.opened.set()
    async with agent.on_http(bakery) as (url, keeper), agent.connected(url, headers=HEADERS) as client:
        task = await agent.send(client, agent.calling("order_breakfast", guests=3), return_immediately=True)
        server = keeper.dispatcher.server
        assert server.store is not None
        async with asyncio.timeout(20):
            while not (found := await server.store.read(ListRecords("workflow"))) or found[0].state != "sleeping":
                await asyncio.sleep(0.01)
        canceled = await client.cancel_task(types.CancelTaskRequest(id=task.id))
        run = await server.part("workflows").find(found[0].record_id)
    assert agent.state(canceled) == "canceled"
    assert (run.record.state, [row.state for row in run.rows if row.number == 1]) == ("cancelled", ["undone"])

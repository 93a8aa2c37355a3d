"""Jobs over MCP and A2A: their progress, a task that goes on after a restart, and one that is cancelled."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from a2a import types
from a2a.utils.errors import TaskNotFoundError
from tests.extensions.integrate.test_jobs import TALLY, counting, tally
from tests.faces.a2a import agent
from tests.faces.mcp.tools import LEGACY, MODERN, Rooms, connected, connected_to, on_http
from tests.faces.test_workflow_tasks import News, agree
from tests.service import AGENT

from bespeak import App
from bespeak import extension as ext
from bespeak.app.server.assembly import Keeper
from bespeak.app.server.local import connect_local
from bespeak.app.server.target import load_app
from bespeak.extensions.integrate import methods, removal
from bespeak.extensions.integrate.extension import WORKS
from bespeak.extensions.integrate.jobs import Job
from bespeak.faces.progress import Progress
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.handling import refusal
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ListRecords
from bespeak.state.store.settings import open_store

pytestmark = pytest.mark.anyio
SENT = {"agent_id": AGENT, "authority_scope": "tally:use"}
HEADERS = {"Agent-ID": AGENT, "Authority-Scope": "tally:use"}
ROWS = [{"id": f"r{number}", "n": number} for number in range(9)]


class Tally:
    """A service that counts in a job, which stays at 2 until the test opens it."""

    def __init__(self) -> None:
        self.opened, self.reached = asyncio.Event(), asyncio.Event()
        self.failure: Exception | None = None
        named = {"server_id": "tally.example", "operator": "Tests", "contact": "ops@tally.example"}
        extension = ext.Extension(name="tallies", own_methods=[(TALLY, tally)])
        chosen = ["CHECK", "CANCEL", "IMPORT", "SCAN"]
        self.app = App("Tally", **named, methods=chosen, extensions=[extension])

    async def stay(self, _: Job, at: int) -> None:
        if at == 2:
            self.reached.set()
            await self.opened.wait()
            if self.failure is not None:
                raise self.failure


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Tally:
    made = Tally()
    monkeypatch.setitem(WORKS, "TALLY", counting(made.stay))  # type: ignore[arg-type]
    return made


async def job_in(keeper: Keeper) -> str:
    """Return the id of the one job that there is."""
    store = keeper.dispatcher.server.store
    assert store is not None
    (record,) = await store.read(ListRecords("job"))
    return str(record.record_id)


async def until(heard: list[Any], number: int = 1) -> None:
    async with asyncio.timeout(20):
        while len(heard) < number:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_mcp_client_hears_how_far_a_job_is_and_gets_its_receipt(era: str, service: Tally) -> None:
    news = News()
    async with on_http(load_app(service.app, Path())) as (url, _, _mcp), connected_to(url, era, **SENT) as client:
        await client.list_tools()
        unpatient = await client.call_tool("tally", {"to": 1})
        calling = asyncio.create_task(client.call_tool("tally", {"to": 4}, progress_callback=news))
        await until(news)
        service.opened.set()
        result = await asyncio.wait_for(calling, 20)
    assert unpatient.structured_content["result"]["status"] == "queued"
    assert news[0][:2] == (2, 4)
    assert (result.is_error, result.structured_content["result"]) == (False, {"counted": 4})


ENDINGS = {
    "failed": "There is nothing more to count.",
    "revoked": "The API key that made this was revoked.",
    "cancelled": "was cancelled. What it had done stays",
}


@pytest.mark.parametrize("ending", ENDINGS)
async def test_mcp_client_is_told_why_a_job_has_not_reached_its_end(
    ending: str, service: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    news = News()
    async with (
        on_http(load_app(service.app, Path())) as (url, keeper, _),
        connected_to(url, MODERN, agree, **SENT) as client,
    ):
        await client.list_tools()
        calling = asyncio.create_task(client.call_tool("tally", {"to": 3}, progress_callback=news))
        await until(news)
        if ending == "failed":
            service.failure = refusal(422, "no-more", ENDINGS[ending])
        elif ending == "revoked":
            ended = Refused(401, "authority-expired", ENDINGS[ending])
            monkeypatch.setattr(Authority, "judge", lambda *_: ended)
        else:
            assert not (await client.call_tool("cancel", {"target_id": await job_in(keeper)})).is_error
        service.opened.set()
        result = await asyncio.wait_for(calling, 20)
    assert result.is_error
    assert ENDINGS[ending] in result.content[0].text


async def test_receipt_of_a_job_of_import_and_of_its_removal_is_what_their_schemas_promise(
    service: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(methods, "MOST_PUT", 2)
    monkeypatch.setattr(methods, "_BATCH", 2)
    monkeypatch.setattr(removal, "_AT_ONCE", 2)
    news, gone = News(), News()
    async with (
        on_http(load_app(service.app, Path())) as (url, _, _mcp),
        connected_to(url, MODERN, agree, **SENT) as client,
    ):
        await client.list_tools()  # the client checks results against the schemas
        given = {"source": ROWS, "target": "stock", "key": "id"}
        imported = await client.call_tool("import", given, progress_callback=news)
        removed = await client.call_tool("cancel", {"target_id": "resources:stock"}, progress_callback=gone)
    receipt = imported.structured_content["result"]
    assert (receipt["status"], receipt["added"]) == ("done", 9)
    assert removed.structured_content["result"]["details"] == {"removed": 9}


async def test_a2a_task_tells_how_far_a_job_is_and_ends_with_the_receipt(service: Tally) -> None:
    heard = list[Any]()
    async with agent.on_http(service) as (url, _), agent.connected(url, streaming=True, headers=HEADERS) as client:  # type: ignore[arg-type]
        request = types.SendMessageRequest(message=agent.calling("tally", to=4))
        async for event in client.send_message(request):
            heard.append(getattr(event, event.WhichOneof("payload")))
            if len(heard) == 2:
                service.opened.set()
    task, first = heard[:2]
    assert (agent.state(task), agent.state(first)) == ("working", "working")
    assert first.status.message.parts[0].text.startswith("2 of 4")
    assert agent.state(heard[-1]) == "completed"
    (artifact,) = [event.artifact for event in heard if isinstance(event, types.TaskArtifactUpdateEvent)]
    assert agent.output(types.Task(artifacts=[artifact]))["result"] == {"counted": 4}


async def test_canceling_an_a2a_task_ends_its_job_which_no_other_agent_sees(service: Tally) -> None:
    async with agent.on_http(service) as (url, keeper), agent.connected(url, headers=HEADERS) as client:  # type: ignore[arg-type]
        task = await agent.send(client, agent.calling("tally", to=4), return_immediately=True)
        await asyncio.wait_for(service.reached.wait(), 20)
        async with agent.connected(url, headers=agent.OTHER) as stranger:
            with pytest.raises(TaskNotFoundError):
                await stranger.get_task(types.GetTaskRequest(id=task.id))
            with pytest.raises(TaskNotFoundError):
                await stranger.cancel_task(types.CancelTaskRequest(id=task.id))
            hidden = await agent.send(stranger, agent.calling("check", target=await job_in(keeper)))
        canceled = await asyncio.wait_for(client.cancel_task(types.CancelTaskRequest(id=task.id)), 20)
        service.opened.set()
        checked = await agent.send(client, agent.calling("check", target=task.id))
    assert agent.error(hidden)["code"] == "target-not-found"
    assert (agent.state(canceled), agent.error(canceled)["code"]) == ("canceled", "job-cancelled")
    assert agent.output(checked)["result"]["status"] == "cancelled"


async def test_an_a2a_task_of_a_job_goes_on_after_a_restart_of_the_server(tmp_path: Path, service: Tally) -> None:
    path, ids = tmp_path / "store.db", list[str]()
    for is_second in (False, True):
        store = open_store(str(path), role="sole")
        async with (
            agent.on_http(Tally() if is_second else service, store=store) as (url, keeper),  # type: ignore[arg-type]
            agent.connected(url, headers=HEADERS) as client,
        ):
            if not is_second:
                task = await agent.send(client, agent.calling("tally", to=4), return_immediately=True)
                await asyncio.wait_for(service.reached.wait(), 20)
            else:
                later = await client.get_task(types.GetTaskRequest(id=task.id))
                service.opened.set()
                async with asyncio.timeout(40):
                    while agent.state(ended := await client.get_task(types.GetTaskRequest(id=task.id))) == "working":
                        await asyncio.sleep(0.02)
            ids.append(await job_in(keeper))
    assert [agent.state(one) for one in (later, ended)] == ["working", "completed"]
    assert agent.output(ended)["result"] == {"counted": 4}
    assert ids[0] == ids[1]


async def test_a_caller_in_this_process_waits_for_a_job_longer_than_for_other_calls(service: Tally) -> None:
    news = News()
    async with connect_local(service.app, agent_id=AGENT, timeout=0.05) as client:
        service.opened.set()
        async with Progress(news, patience=60.0):
            reply = await client.request("TALLY", "/", {"to": 4})
    assert (reply.status, reply.output) == (200, {"counted": 4})


async def test_standard_method_over_stdio_returns_the_envelope_that_its_schema_promises() -> None:
    rooms = Rooms(methods=["FILTER"])
    async with rooms.serving() as (server, _), connected(server, MODERN) as client:
        await client.list_tools()
        result = await client.call_tool("filter", {"data": [{"n": 1}, {"n": 2}], "criteria": {"n": 2}})
    assert (result.is_error, result.structured_content["result"]["rows"]) == (False, [{"n": 2}])

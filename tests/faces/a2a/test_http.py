"""A2A over HTTP: both versions with the SDK's client on a real port, credentials, guards and bad input."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import httpx
import pytest
import trustme
from a2a.client import A2ACardResolver
from a2a.types import AgentCard, GetTaskRequest, Message, Task
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import ParseDict
from tests.cases import rows
from tests.faces.a2a import agent
from tests.faces.mcp.issuer import Issuer
from tests.faces.mcp.tools import Rooms

from bespeak import Policies
from bespeak.contract.limits import Rate, RateLimits

pytestmark = pytest.mark.anyio
BOOKING = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": agent.BOOK, "input": {}}}]}}


@pytest.fixture(params=agent.VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_messages_call_skills_and_streams_have_task_output_and_end(version: str) -> None:
    rooms = Rooms()
    async with agent.on_http(rooms) as (url, _), agent.connected(url, version) as client:
        (answer,) = await agent.events(client, agent.message("Please reserve room 12 for me"))
    assert isinstance(answer, Message)
    assert agent.BOOK in answer.parts[0].text
    assert rooms.booked == []
    async with agent.on_http(Rooms()) as (url, _), agent.connected(url, version) as client:
        task = await agent.send(client, agent.calling(agent.FIND, beds=2))
    assert (agent.state(task), agent.output(task)) == ("completed", {"rooms": ["12"]})
    async with agent.on_http(Rooms()) as (url, _), agent.connected(url, version, streaming=True) as client:
        first, artifact, last = await agent.events(client, agent.calling(agent.FIND))
    assert agent.state(first) == "working"
    assert artifact.artifact.artifact_id == "output"
    assert agent.state(last) == "completed"
    assert {first.id, artifact.task_id, last.task_id} == {first.id}


async def test_a_service_is_called_over_tls() -> None:
    authority = trustme.CA()
    server, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(server)
    authority.configure_trust(trusting)
    async with (
        agent.on_http(Rooms(), tls=server, host="localhost") as (url, _),
        agent.connected(url, verify=trusting) as client,
    ):
        assert agent.state(await agent.send(client, agent.calling(agent.FIND))) == "completed"


# The card.


async def test_the_card_is_valid_and_cached_and_bad_requests_are_refused() -> None:
    async with agent.on_http(Rooms()) as (url, _), httpx.AsyncClient(trust_env=False) as client:
        found = await client.get(f"{url}/.well-known/agent-card.json")
        again = await client.get(found.url, headers={"If-None-Match": found.headers["etag"]})
        old = await A2ACardResolver(client, url, "/.well-known/agent.json").get_agent_card()
        large = await client.post(f"{url}/a2a", content=b"x" * (1024 * 1024 + 1))
        read = await client.get(f"{url}/a2a")
    card = ParseDict(found.json(), AgentCard())
    validate_proto_required_fields(card)
    assert (again.status_code, "max-age" in found.headers["cache-control"]) == (304, True)
    assert [skill.id for skill in old.skills] == [skill.id for skill in card.skills]
    assert "inspect_ledger" not in found.text
    assert (large.status_code, read.status_code, read.headers["allow"]) == (413, 405, "POST")


async def test_only_identified_agents_get_a_card_if_discovery_is_not_public() -> None:
    rooms = Rooms(policies=Policies(anonymous_discovery=False))
    async with agent.on_http(rooms) as (url, _), httpx.AsyncClient(trust_env=False) as client:
        public_card = await client.get(f"{url}/.well-known/agent-card.json")
        anonymous = await agent.post(url, "GetExtendedAgentCard")
        known = await agent.post(url, "GetExtendedAgentCard", agent.READER)
    assert (public_card.status_code, anonymous.status_code) == (401, 401)
    assert known.json()["result"]["capabilities"]["extendedAgentCard"] is True


# Credentials.


async def test_missing_tokens_and_scopes_are_challenged(tmp_path: Path) -> None:
    issued = Issuer(tmp_path)
    async with agent.on_http(Rooms(), issued.document) as (url, _):
        missing = await agent.post(url, "SendMessage", **BOOKING)
        wrong = await agent.post(url, "ListTasks", {"Authorization": "Bearer x.y.z"})
        lacking = await agent.post(url, "SendMessage", issued.bearer("rooms:read"), **BOOKING)
    place = "https://rooms.example/.well-known/oauth-protected-resource/agents/a2a"
    assert (missing.status_code, wrong.status_code) == (401, 401)
    assert missing.headers["www-authenticate"].startswith(f'Bearer resource_metadata="{place}"')
    assert 'scope="rooms:write"' in missing.headers["www-authenticate"]
    assert missing.json()["id"] == 7
    status = lacking.json()["result"]["task"]["status"]
    assert (lacking.status_code, status["state"]) == (200, "TASK_STATE_AUTH_REQUIRED")
    assert status["message"]["parts"][1]["data"]["error"]["missing_scopes"] == ["rooms:write"]
    assert lacking.headers["www-authenticate"].endswith('scope="rooms:read rooms:write"')


async def test_a_task_continues_when_its_caller_has_the_scope(version: str) -> None:
    rooms = Rooms()
    async with agent.on_http(rooms) as (url, _):
        async with agent.connected(url, version, headers=agent.READER) as client:
            waiting = await agent.send(client, agent.calling("reset_rooms"))
        async with agent.connected(url, version) as client:
            task = await agent.send(client, agent.message("I have it now", task_id=waiting.id))
    assert (agent.state(waiting), agent.error(waiting)["missing_scopes"]) == ("auth_required", ["rooms:write"])
    assert task.id == waiting.id
    assert agent.state(task) == "failed"


async def test_anonymous_callers_are_told_what_to_send_and_a_whole_card_is_not_extended() -> None:
    async with agent.on_http(Rooms()) as (url, _):
        answer = await agent.post(url, "SendMessage", **BOOKING)
        listed = await agent.post(url, "ListTasks")
        assert (await agent.post(url, "GetExtendedAgentCard", agent.READER)).json()["error"]["code"] == -32004
    assert (answer.status_code, listed.status_code) == (401, 401)
    assert "Agent-ID" in answer.json()["error"]["message"]


# Guards and bad input.


@rows("headers, number", ({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403))
async def test_foreign_hosts_and_origins_are_refused(headers: dict[str, str], number: int) -> None:
    async with agent.on_http(Rooms()) as (url, _):
        assert (await agent.post(url, "GetTask", headers, id="x")).status_code == number


@rows(
    "body, code",
    *[(body, -32700) for body in (b"{", b"", b"\xff", b'{"id": "\\ud800"}', b'{"jsonrpc": "2.0", "id": NaN}')],
    (b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "method": "CancelTask"}', -32700),
    (b"[" * 100_000, -32700),
    *[(body, -32600) for body in (b"[]", b"null", b'{"id": 1}')],
    (b'{"jsonrpc": "1.0", "id": 1, "method": "GetTask"}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1, "method": ["SendMessage"]}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}}', -32600),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "Nothing"}', -32601),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": []}', -32602),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": 7}}', -32602),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}}', -32602),
    (b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "\\u0000"}}', -32001),
)
async def test_a_body_that_is_not_a_request_is_refused(body: bytes, code: int) -> None:
    headers = {"Content-Type": "application/json"}
    if b"message/send" not in body:
        headers["A2A-Version"] = "1.0"
    async with agent.on_http(Rooms()) as (url, _), httpx.AsyncClient(trust_env=False, timeout=30) as client:
        answer = await client.post(f"{url}/a2a", content=body, headers=headers)
    assert answer.json()["error"]["code"] == code
    assert "Traceback" not in answer.text


@rows(
    "method, query, headers, code",
    *[("SendMessage", "", headers, -32009) for headers in ({}, {"A2A-Version": "2.0"})],
    ("GetTask", "", {"A2A-Version": "x"}, -32009),
    ("GetTask", "?A2A-Version=1.0", {}, -32001),  # the version is known, and the task is not
)
async def test_another_version_is_refused(method: str, query: str, headers: dict[str, str], code: int) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": "x", **(BOOKING if not query else {})}}
    async with agent.on_http(Rooms()) as (url, _), httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"{url}/a2a{query}", json=body, headers={**agent.WRITER, **headers})
    assert answer.json()["error"]["code"] == code


@pytest.mark.parametrize("version", agent.VERSIONS)
async def test_a_body_that_would_keep_others_waiting_is_refused(version: str) -> None:
    parts = [{"kind": "data", "data": {"skill": agent.FIND, "input": {"x": [1] * 60_000}}}]
    body = {"messageId": "m", "role": "user", "parts": parts}
    request = {"jsonrpc": "2.0", "id": 7, "method": "message/send", "params": {"message": body}}
    async with agent.on_http(Rooms()) as (url, _), httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"{url}/a2a", json=request, headers={**agent.WRITER, "A2A-Version": version})
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (413, "content-too-large")


async def test_requests_are_counted_once_and_limits_seen_before_a_task_is_made() -> None:
    async with agent.on_http(Rooms(), rates=RateLimits(agent=Rate(1, "min", 3))) as (url, _):
        body = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": agent.FIND}}]}
        answers = [await agent.post(url, "SendMessage", agent.READER, message={**body, "messageId": n}) for n in "abcd"]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert int(answers[3].headers["retry-after"]) > 0
    limits = RateLimits(endpoints={("QUERY", "/rooms"): Rate(1, "min", 1)})
    async with agent.on_http(Rooms(), rates=limits) as (url, _):
        body = {"role": "ROLE_USER", "parts": [{"data": {"skill": agent.FIND}}]}
        answers = [
            await agent.post(url, "SendMessage", agent.READER, message={**body, "messageId": f"m{n}"}) for n in range(2)
        ]
        listed = (await agent.post(url, "ListTasks", agent.READER)).json()["result"]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert listed["totalSize"] == 1


async def test_a_client_that_disconnects_leaves_a_task_that_goes_on() -> None:
    rooms = Rooms()
    async with agent.on_http(rooms) as (url, _):
        body = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": agent.WATCH}}]}
        waiting = asyncio.create_task(agent.post(url, "SendStreamingMessage", agent.READER, message=body))
        await asyncio.wait_for(rooms.waiting.wait(), 20)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        (task,) = (await agent.post(url, "ListTasks", agent.READER)).json()["result"]["tasks"]
        assert task["status"]["state"] == "TASK_STATE_WORKING"
        assert not rooms.cancelled.is_set()
        canceled = await agent.post(url, "CancelTask", agent.READER, id=task["id"])
    assert canceled.json()["result"]["status"]["state"] == "TASK_STATE_CANCELED"
    assert rooms.cancelled.is_set()


async def test_running_calls_are_told_to_be_interrupted_when_the_server_stops(tmp_path: Path) -> None:
    from bespeak.state.store.settings import open_store

    place = str(tmp_path / "store.db")
    rooms = Rooms()
    async with agent.on_http(rooms, store=open_store(place)) as (url, _), agent.connected(url) as client:
        task = await agent.send(client, agent.calling(agent.WATCH), return_immediately=True)
        assert agent.state(task) == "working"
    async with agent.on_http(Rooms(), store=open_store(place)) as (url, _), agent.connected(url) as client:
        later = await client.get_task(GetTaskRequest(id=task.id))
    assert isinstance(later, Task)
    assert agent.state(later) == "failed"
    assert "not known" in later.status.message.parts[0].text

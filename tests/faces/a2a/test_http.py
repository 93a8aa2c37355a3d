"""A2A over HTTP: both versions with the SDK's client on a real port, credentials, guards and bad input."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path

import httpx
import pytest
import trustme
from a2a.client import A2ACardResolver
from a2a.types import AgentCard, GetTaskRequest, Message, Task
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import ParseDict
from tests.faces.a2a.agent import (
    BOOK,
    FIND,
    READER,
    VERSIONS,
    WATCH,
    WRITER,
    calling,
    connected,
    error,
    events,
    message,
    on_http,
    output,
    post,
    send,
    state,
)
from tests.faces.mcp.tools import Rooms
from tests.service import AGENT
from tests.state.identity.issuer import claims, new_key, public, sign, write_keys

from bespeak import Policies
from bespeak.contract.limits import Rate, RateLimits
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.state.identity.settings import AuthSettings, TokenSettings

pytestmark = pytest.mark.anyio


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_a_message_calls_a_skill_and_the_task_has_its_output(version: str) -> None:
    async with on_http(Rooms()) as (url, _), connected(url, version) as client:
        task = await send(client, calling(FIND, beds=2))
    assert (state(task), output(task)) == ("completed", {"rooms": ["12"]})


async def test_a_stream_has_the_task_then_its_output_then_its_end(version: str) -> None:
    async with on_http(Rooms()) as (url, _), connected(url, version, streaming=True) as client:
        first, artifact, last = await events(client, calling(FIND))
    assert state(first) == "working"
    assert artifact.artifact.artifact_id == "output"
    assert state(last) == "completed"
    assert {first.id, artifact.task_id, last.task_id} == {first.id}


async def test_a_text_is_answered_with_skills_and_calls_nothing(version: str) -> None:
    rooms = Rooms()
    async with on_http(rooms) as (url, _), connected(url, version) as client:
        (answer,) = await events(client, message("Please reserve room 12 for me"))
    assert isinstance(answer, Message)
    assert BOOK in answer.parts[0].text
    assert rooms.booked == []


async def test_a_service_is_called_over_tls() -> None:
    authority = trustme.CA()
    server, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(server)
    authority.configure_trust(trusting)
    async with (
        on_http(Rooms(), tls=server, host="localhost") as (url, _),
        connected(url, verify=trusting) as client,
    ):
        assert state(await send(client, calling(FIND))) == "completed"


# The card.


async def test_the_card_is_valid_and_cached() -> None:
    async with on_http(Rooms()) as (url, _), httpx.AsyncClient(trust_env=False) as client:
        found = await client.get(f"{url}/.well-known/agent-card.json")
        again = await client.get(found.url, headers={"If-None-Match": found.headers["etag"]})
        old = await A2ACardResolver(client, url, "/.well-known/agent.json").get_agent_card()
    card = ParseDict(found.json(), AgentCard())
    validate_proto_required_fields(card)
    assert (again.status_code, "max-age" in found.headers["cache-control"]) == (304, True)
    assert [skill.id for skill in old.skills] == [skill.id for skill in card.skills]
    assert "inspect_ledger" not in found.text


async def test_only_identified_agents_get_a_card_if_discovery_is_not_public() -> None:
    rooms = Rooms(policies=Policies(anonymous_discovery=False))
    async with on_http(rooms) as (url, _), httpx.AsyncClient(trust_env=False) as client:
        public_card = await client.get(f"{url}/.well-known/agent-card.json")
        anonymous = await post(url, "GetExtendedAgentCard")
        known = await post(url, "GetExtendedAgentCard", READER)
    assert (public_card.status_code, anonymous.status_code) == (401, 401)
    assert known.json()["result"]["capabilities"]["extendedAgentCard"] is True


async def test_a_card_that_has_everything_is_not_extended() -> None:
    async with on_http(Rooms()) as (url, _):
        assert (await post(url, "GetExtendedAgentCard", READER)).json()["error"]["code"] == -32004


# Credentials.


class Issued:
    """A server that takes the tokens of an issuer."""

    def __init__(self, folder: Path) -> None:
        self._key = new_key()
        keys = write_keys(folder / "keys.json", public(self._key))
        token = TokenSettings(keys=keys, issuer="https://login.example")
        self.document = ServerDocument(
            auth=AuthSettings(modes=("token",), token=token), http=HttpSettings(url="https://rooms.example/agents")
        )

    def token(self, scope: str) -> dict[str, str]:
        now = int(time.time())
        given = claims(agent_id=AGENT, iss="https://login.example", exp=now + 600, iat=now, scope=scope)
        return {"Authorization": f"Bearer {sign(self._key, given)}"}


BOOKING = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": BOOK, "input": {}}}]}}


async def test_a_call_without_a_token_is_challenged(tmp_path: Path) -> None:
    issued = Issued(tmp_path)
    async with on_http(Rooms(), issued.document) as (url, _):
        missing = await post(url, "SendMessage", **BOOKING)
        wrong = await post(url, "ListTasks", {"Authorization": "Bearer x.y.z"})
    place = "https://rooms.example/.well-known/oauth-protected-resource/agents/a2a"
    assert (missing.status_code, wrong.status_code) == (401, 401)
    assert missing.headers["www-authenticate"].startswith(f'Bearer resource_metadata="{place}"')
    assert 'scope="rooms:write"' in missing.headers["www-authenticate"]
    assert missing.json()["id"] == 7


async def test_a_missing_scope_is_named_in_the_task_and_in_a_challenge(tmp_path: Path) -> None:
    issued = Issued(tmp_path)
    async with on_http(Rooms(), issued.document) as (url, _):
        lacking = await post(url, "SendMessage", issued.token("rooms:read"), **BOOKING)
    status = lacking.json()["result"]["task"]["status"]
    assert (lacking.status_code, status["state"]) == (200, "TASK_STATE_AUTH_REQUIRED")
    assert status["message"]["parts"][1]["data"]["error"]["missing_scopes"] == ["rooms:write"]
    assert lacking.headers["www-authenticate"].endswith('scope="rooms:read rooms:write"')


async def test_a_task_continues_when_its_caller_has_the_scope(version: str) -> None:
    rooms = Rooms()
    async with on_http(rooms) as (url, _):
        async with connected(url, version, headers=READER) as client:
            waiting = await send(client, calling("reset_rooms"))
        async with connected(url, version) as client:
            task = await send(client, message("I have it now", task_id=waiting.id))
    assert (state(waiting), error(waiting)["missing_scopes"]) == ("auth_required", ["rooms:write"])
    assert task.id == waiting.id
    assert state(task) == "failed"


async def test_an_anonymous_caller_is_told_what_to_send() -> None:
    async with on_http(Rooms()) as (url, _):
        answer = await post(url, "SendMessage", **BOOKING)
        listed = await post(url, "ListTasks")
    assert (answer.status_code, listed.status_code) == (401, 401)
    assert "Agent-ID" in answer.json()["error"]["message"]


# Guards and bad input.


@pytest.mark.parametrize(
    ("headers", "number"), [({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403)]
)
async def test_foreign_hosts_and_origins_are_refused(headers: dict[str, str], number: int) -> None:
    async with on_http(Rooms()) as (url, _):
        assert (await post(url, "GetTask", headers, id="x")).status_code == number


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"", -32700),
        (b"\xff", -32700),
        (b'{"id": "\\ud800"}', -32700),
        (b'{"jsonrpc": "2.0", "id": NaN}', -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "method": "CancelTask"}', -32700),
        (b"[" * 100_000, -32700),
        (b"[]", -32600),
        (b"null", -32600),
        (b'{"id": 1}', -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "GetTask"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": ["SendMessage"]}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "Nothing"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": []}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": 7}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "\\u0000"}}', -32001),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}}', -32600),
    ],
)
async def test_a_body_that_is_not_a_request_is_refused(body: bytes, code: int) -> None:
    headers = {"Content-Type": "application/json"}
    if b"message/send" not in body:
        headers["A2A-Version"] = "1.0"
    async with on_http(Rooms()) as (url, _), httpx.AsyncClient(trust_env=False, timeout=30) as client:
        answer = await client.post(f"{url}/a2a", content=body, headers=headers)
    assert answer.json()["error"]["code"] == code
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("method", "headers", "code"),
    [
        ("SendMessage", {}, -32009),
        ("SendMessage", {"A2A-Version": "2.0"}, -32009),
        ("GetTask", {"A2A-Version": "x"}, -32009),
    ],
)
async def test_another_version_is_refused(method: str, headers: dict[str, str], code: int) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**BOOKING, "id": "x"}}
    async with on_http(Rooms()) as (url, _), httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"{url}/a2a", json=body, headers={**WRITER, **headers})
    assert answer.json()["error"]["code"] == -32009


async def test_the_version_may_be_a_parameter() -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}
    async with on_http(Rooms()) as (url, _), httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"{url}/a2a?A2A-Version=1.0", json=body)
    assert answer.json()["error"]["code"] == -32001


async def test_large_bodies_and_other_methods_are_refused() -> None:
    async with on_http(Rooms()) as (url, _), httpx.AsyncClient(trust_env=False) as client:
        large = await client.post(f"{url}/a2a", content=b"x" * (1024 * 1024 + 1))
        read = await client.get(f"{url}/a2a")
    assert (large.status_code, read.status_code, read.headers["allow"]) == (413, 405, "POST")


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_body_that_would_keep_others_waiting_is_refused(version: str) -> None:
    parts = [{"kind": "data", "data": {"skill": FIND, "input": {"x": [1] * 60_000}}}]
    body = {"messageId": "m", "role": "user", "parts": parts}
    request = {"jsonrpc": "2.0", "id": 7, "method": "message/send", "params": {"message": body}}
    async with on_http(Rooms()) as (url, _), httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"{url}/a2a", json=request, headers={**WRITER, "A2A-Version": version})
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (413, "content-too-large")


async def test_every_request_is_counted_once() -> None:
    async with on_http(Rooms(), rates=RateLimits(agent=Rate(1, "min", 3))) as (url, _):
        body = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": FIND}}]}
        answers = [await post(url, "SendMessage", READER, message={**body, "messageId": f"m{n}"}) for n in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert int(answers[3].headers["retry-after"]) > 0


async def test_the_limit_of_an_endpoint_is_seen_before_a_task_is_made() -> None:
    limits = RateLimits(endpoints={("QUERY", "/rooms"): Rate(1, "min", 1)})
    async with on_http(Rooms(), rates=limits) as (url, _):
        body = {"role": "ROLE_USER", "parts": [{"data": {"skill": FIND}}]}
        answers = [await post(url, "SendMessage", READER, message={**body, "messageId": f"m{n}"}) for n in range(2)]
        listed = (await post(url, "ListTasks", READER)).json()["result"]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert listed["totalSize"] == 1


async def test_a_client_that_disconnects_leaves_a_task_that_goes_on() -> None:
    rooms = Rooms()
    async with on_http(rooms) as (url, _):
        body = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": WATCH}}]}
        waiting = asyncio.create_task(post(url, "SendStreamingMessage", READER, message=body))
        await asyncio.wait_for(rooms.waiting.wait(), 20)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        (task,) = (await post(url, "ListTasks", READER)).json()["result"]["tasks"]
        assert task["status"]["state"] == "TASK_STATE_WORKING"
        assert not rooms.cancelled.is_set()
        canceled = await post(url, "CancelTask", READER, id=task["id"])
    assert canceled.json()["result"]["status"]["state"] == "TASK_STATE_CANCELED"
    assert rooms.cancelled.is_set()


async def test_running_calls_are_told_to_be_interrupted_when_the_server_stops(tmp_path: Path) -> None:
    from bespeak.state.store.opening import open_store

    place = str(tmp_path / "store.db")
    rooms = Rooms()
    async with on_http(rooms, store=open_store(place)) as (url, _), connected(url) as client:
        task = await send(client, calling(WATCH), return_immediately=True)
        assert state(task) == "working"
    async with on_http(Rooms(), store=open_store(place)) as (url, _), connected(url) as client:
        later = await client.get_task(GetTaskRequest(id=task.id))
    assert isinstance(later, Task)
    assert state(later) == "failed"
    assert "not known" in later.status.message.parts[0].text

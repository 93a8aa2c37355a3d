"""Skills of A2A agents that have only a card: endpoints that are called by messages, to an agent of the SDK."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.agent.client.a2a_agent import on_the_web
from tests.agent.discovery import web
from tests.agent.discovery.web import Asked, always, at, authority_file, resolve, send, serving
from tests.cases import rows

import bespeak
from bespeak.agent.client import errors
from bespeak.agent.client.a2a_messages import AgentAnswer, Requests
from bespeak.agent.client.errors import Reply
from bespeak.agent.client.web import MessagingClient
from bespeak.agent.client.web_options import WebOptions
from bespeak.agent.discovery.agent_card import AgentInterface
from bespeak.protocol.exchange.refusal import Refused

pytestmark = pytest.mark.anyio
NOTHING_KEPT = WebOptions(cache="off")
ELSEWHERE = WebOptions(cache="off", resolve=resolve, allow_private=True)
versions = pytest.mark.parametrize("version", ["1.0", "0.3"])
CARD_PLACE = "/.well-known/agent-card.json"
CURRENT = AgentInterface("https://x.example/", "JSONRPC", "1.0")


def card(**members: Any) -> dict[str, Any]:
    skill = {"id": "plan", "name": "Plan", "description": "Plans a route.", "tags": []}
    return {"name": "Routes", "protocolVersion": "0.3.0", "url": "/rpc", "skills": [skill], **members}


@versions
async def test_skill_is_called_by_its_method_or_id_and_answers_with_text_data_files_and_the_task(version: str) -> None:
    async with on_the_web(version) as (url, carrier), bespeak.connect(url, web=NOTHING_KEPT) as service:
        output = await service.call("PLAN", "/routes", message="go from Basel to Bern")
        greeting = await service.call("plan_route", message="hello")
    assert isinstance(service, MessagingClient)
    assert (output["text"], output["data"], output["state"]) == ("via Olten", [{"minutes": 57}], "completed")
    assert "https://x.example/m" in json.dumps(output["files"])
    first, second = carrier.messages
    assert (first.parts[0].text, output["task_id"]) == ("go from Basel to Bern", first.task_id)
    assert dict(first.metadata) == {"skill": "plan_route"}
    assert greeting == {"text": "hello yourself"}
    assert first.message_id != second.message_id


async def test_address_of_the_card_itself_is_that_of_the_agent() -> None:
    async with on_the_web() as (url, _), bespeak.connect(f"{url}{CARD_PLACE}", web=NOTHING_KEPT) as service:
        assert (await service.call("plan_route", message="go"))["text"] == "via Olten"


async def test_skills_are_unreviewed_endpoints_and_what_does_not_plainly_read_counts_as_irreversible() -> None:
    async with on_the_web() as (url, _), bespeak.connect(url, web=NOTHING_KEPT) as service:
        plan, book = (await service.discover()).endpoints
    assert [(each.key, each.semantic.impact, each.reviewed) for each in (plan, book)] == [
        (("PLAN", "/routes"), "informational", False),
        (("BOOK", "/taxi"), "irreversible", False),
    ]
    assert plan.input_schema["required"] == ["message"]
    assert plan.semantic.parameter_hints == {"message": ["How do I get from Basel to Bern?"]}


@versions
@rows(
    "said, error, code, words",
    ("fail", errors.ServerFaultError, "task-failed", "has failed"),
    ("reject", errors.BusinessError, "task-rejected", "is rejected by the agent"),
    ("ask", errors.BusinessError, "input-required", "waits for more input; call again with all of it"),
    ("authorise", errors.UnauthorizedError, "auth-required", "waits for authority that the agent lacks"),
)
async def test_task_that_does_not_complete_is_an_error_with_the_words_of_the_agent_in_quotes(
    version: str, said: str, error: type[errors.ServiceError], code: str, words: str
) -> None:
    async with on_the_web(version) as (url, carrier), bespeak.connect(url, web=NOTHING_KEPT) as service:
        with pytest.raises(error) as caught:
            await service.call("plan_route", message=f"{said} it")
    task_id = carrier.messages[0].task_id
    assert caught.value.code == code
    assert caught.value.message == f'Task {task_id} {words}. The agent says: "I cannot {said} it."'
    assert caught.value.reply.error is not None
    assert caught.value.reply.error.members["task_id"] == task_id


@versions
async def test_task_is_followed_until_it_ends(version: str) -> None:
    async with on_the_web(version) as (url, carrier), bespeak.connect(url, web=NOTHING_KEPT) as service:
        calling = asyncio.create_task(service.call("plan_route", message="slowly go"))
        while len(carrier.headers) < 3:  # the message and two questions
            await asyncio.wait([calling], timeout=0.01)
            assert not calling.done()
        carrier.released.set()
        assert (await calling)["text"] == "via Olten"
    assert len(carrier.messages) == 1


@versions
async def test_task_that_takes_longer_than_the_timeout_is_named(version: str) -> None:
    options: dict[str, Any] = {"web": NOTHING_KEPT, "timeout": 0.5}
    async with on_the_web(version) as (url, carrier), bespeak.connect(url, **options) as service:
        with pytest.raises(errors.CallTimeoutError) as caught:
            await service.call("plan_route", message="slowly go")
    task_id = carrier.messages[0].task_id
    assert str(caught.value) == f"{url} is still working on task {task_id} after 0.5 seconds."


async def test_idempotency_key_is_the_id_of_the_message() -> None:
    async with on_the_web() as (url, carrier), bespeak.connect(url, web=NOTHING_KEPT) as service:
        await service.request("plan_route", input={"message": "go"}, idempotency_key="k-1")
    assert carrier.messages[0].message_id == "k-1"
    assert all("idempotency-key" not in headers for headers in carrier.headers)


async def test_message_that_is_missing_or_too_long_is_refused_without_being_sent() -> None:
    async with on_the_web() as (url, carrier), bespeak.connect(url, web=NOTHING_KEPT) as service:
        for given in ({}, {"message": ""}, {"message": "x" * 20_001}, {"message": "go", "city": "Bern"}):
            assert (await service.request("plan_route", input=given)).status == 422
    assert carrier.headers == []


async def test_credential_is_sent_where_the_card_says_and_its_lack_is_told() -> None:
    bearer = {"securitySchemes": {"a": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}}}
    async with on_the_web(token="t0ken", **bearer) as (url, _):
        async with bespeak.connect(url, web=NOTHING_KEPT, token="t0ken") as service:
            assert (await service.call("plan_route", message="go"))["text"] == "via Olten"
        async with bespeak.connect(url, web=NOTHING_KEPT) as service:
            with pytest.raises(errors.UnauthorizedError):
                await service.call("plan_route", message="go")
    key = {"securitySchemes": {"a": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}}}
    async with on_the_web(**key) as (url, carrier), bespeak.connect(url, web=NOTHING_KEPT, token="t0ken") as service:
        await service.call("plan_route", message="go")
    assert carrier.headers[0]["x-key"] == "t0ken"
    assert "authorization" not in carrier.headers[0]


async def test_agent_at_another_host_receives_no_credential() -> None:
    done = {"result": {"kind": "message", "parts": [{"kind": "text", "text": "done"}]}}
    with authority_file() as ca:
        async with serving(at({"/rpc": done}), tls=web.server_tls("other.test")) as agent:
            pages = {CARD_PLACE: card(url=f"https://other.test:{agent.port}/rpc")}
            options: dict[str, Any] = {"ca_file": ca, "web": ELSEWHERE, "token": "s3cret"}
            async with serving(at(pages)) as home, bespeak.connect(home.url, **options) as service:
                assert await service.call("plan", message="go") == {"text": "done"}
    [asked] = agent.asked
    assert "authorization" not in asked.headers


async def test_agent_in_a_private_network_that_the_user_has_not_named_is_not_asked() -> None:
    options = WebOptions(cache="off", resolve=resolve)
    with authority_file() as ca:
        async with serving(at({})) as agent:
            pages = {CARD_PLACE: card(url=f"https://127.0.0.1:{agent.port}/rpc")}
            async with serving(at(pages)) as home, bespeak.connect(home.url, ca_file=ca, web=options) as service:
                with pytest.raises(errors.UnreachableError, match=r"'127\.0\.0\.1' is this machine"):
                    await service.call("plan", message="go")
    assert agent.asked == []


async def test_redirect_of_a_message_is_not_followed() -> None:
    pages = {CARD_PLACE: card(), "/rpc": always(307, Location="/other"), "/other": {"result": {}}}
    with authority_file() as ca:
        async with serving(at(pages)) as home, bespeak.connect(home.url, ca_file=ca, web=ELSEWHERE) as service:
            assert (await service.request("plan", input={"message": "go"})).status == 307
    assert "/other" not in home.targets


async def test_agent_that_stops_telling_of_a_task_leaves_its_end_unknown() -> None:
    working = {"result": {"kind": "task", "id": "t1", "status": {"state": "working"}}}
    refusal = {"error": {"code": -32001, "message": "No such task"}}
    answers = iter([working, always(503), working, refusal])

    def script(asked: Asked, writer: asyncio.StreamWriter) -> Any:
        answer = next(answers)
        return answer(asked, writer) if callable(answer) else send(writer, 200, answer)

    with authority_file() as ca:
        pages = {CARD_PLACE: card(), "/rpc": script}
        async with serving(at(pages)) as home, bespeak.connect(home.url, ca_file=ca, web=ELSEWHERE) as service:
            with pytest.raises(errors.UnreachableError, match=r"was working on task t1: it refuses to tell of it"):
                await service.call("plan", message="go")


@rows(
    "members",
    {"preferredTransport": "GRPC"},
    {"protocolVersion": "0.1.0"},
    {"url": "javascript:alert(1)"},
)
async def test_agent_without_an_interface_that_bespeak_speaks_is_a_discovery_failure(members: dict[str, Any]) -> None:
    with authority_file() as ca:
        async with serving(at({CARD_PLACE: card(**members)})) as home:
            with pytest.raises(
                errors.NothingDiscoveredError, match=r"JSON-RPC of A2A 1\.0 and 0\.3, and the card has no"
            ):
                async with bespeak.connect(home.url, ca_file=ca, web=ELSEWHERE):
                    pass


def answered(body: Any) -> Reply:
    return Reply(200, "OK", {}, body if isinstance(body, bytes) else json.dumps(body).encode())


@rows(
    "body",
    *(b"<html>", b"", b"[]", b"[" * 9_999, {}, {"result": 7}, {"result": {}}, {"result": {"task": {"status": {}}}}),
    *(
        {"result": {"task": {"id": "x" * 201, "status": {}}}},
        {"result": {"id": "a\nb", "status": {"state": "working"}}},
    ),
)
def test_answer_that_is_no_message_and_no_task_may_have_been_carried_out(body: Any) -> None:
    with pytest.raises(errors.UnreachableError, match="answer of the agent"):
        Requests(CURRENT).read(answered(body))


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, [7], [{"text": 7}], [{"kind": "text"}]])
def test_parts_of_another_form_count_as_missing(value: Any) -> None:
    requests = Requests(CURRENT)
    task = {"id": "t", "status": {"state": "TASK_STATE_COMPLETED", "message": value}, "artifacts": value}
    for result in ({"message": {"parts": value}}, {"task": task}, {"task": {**task, "artifacts": [{"parts": value}]}}):
        found = requests.read(answered({"result": result}))
        assert isinstance(found, AgentAnswer)
        assert found.text == ""


def test_refusal_and_words_of_the_agent_are_cut_and_cannot_move_the_cursor() -> None:
    poison = "\x1b[2J" + "x" * 5_000
    refused = Requests(CURRENT).read(answered({"error": {"code": [], "message": poison}}))
    assert isinstance(refused, Refused)
    status = {"state": "odd\x1b", "message": {"parts": [{"text": poison}]}}
    task = Requests(CURRENT).read(answered({"result": {"task": {"id": "t", "status": status}}}))
    assert isinstance(task, AgentAnswer)
    unknown = task.outcome()
    assert isinstance(unknown, Refused)
    assert (refused.code, unknown.code) == ("agent-refused", "task-unknown")
    for message in (refused.message, unknown.message):
        assert message.isprintable()
        assert len(message) < 1_200

"""EXECUTE /: endpoints by the names of their tools, and tool calls of MCP inside AGTP."""

from __future__ import annotations

import logging
import subprocess
import sys
from base64 import urlsafe_b64decode
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.cases import rows
from tests.process import ROOT
from tests.service import AGENT, Reply, build, echo, make_endpoint
from tests.stateful import keeping

from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.handler import Refusal
from bespeak.contract.limits import Rate, RateLimits
from bespeak.contract.policy import MethodPolicy, Policies
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.workflows.methods_execute import MEDIA_MCP_TOOLS
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.commands.audit import ScanAudit
from bespeak.state.store.commands.cases import DecideCase
from bespeak.state.store.settings import IdempotencySettings

SCOPES = "mcp:tools:execute, rooms:read, rooms:book"
ROOM = {"room_id": {"type": "string"}, "nights": {"type": "integer"}}


class Rooms:
    """A service that remembers what was booked."""

    def __init__(self) -> None:
        self.booked: list[str] = []

    def book(self, input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
        if input["room_id"] in self.booked:
            raise Refusal("taken", "Taken.", next_free="14")
        self.booked.append(input["room_id"])
        return {"reservation": len(self.booked)}

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        book = make_endpoint(
            "BOOK",
            "/rooms/{room_id}",
            self.book,
            properties=ROOM,
            required=("room_id",),
            impact="irreversible",
            scopes=("rooms:book",),
            errors=("taken",),
        )
        listed = {"type": "array", "items": {"type": "integer"}}
        return (
            replace(book, semantic=replace(book.semantic, is_idempotent=False)),
            make_endpoint("FIND", "/rooms", echo, properties=ROOM, scopes=("rooms:read",)),
            make_endpoint("LIST", "/floors", lambda: [1, 2], output=listed),
            replace(make_endpoint("AUDIT", "/ledger", echo), internal=True),
        )


def carried(tool: str, **arguments: Any) -> dict[str, Any]:
    return {
        "action": "mcp.tools.call",
        "payload_type": MEDIA_MCP_TOOLS,
        "payload": {"tool": tool, "arguments": arguments},
    }


def text(reply: Reply) -> Any:
    (block,) = reply.json["result"]["content"]
    return msgspec.json.decode(block["text"])


@pytest.mark.requirement("CORE-9-4", "CORE-9-5", "CORE-4.7-2")
@pytest.mark.parametrize("enveloped", [False, True])
def test_a_tool_call_of_mcp_is_answered_in_the_envelope_and_the_same_type(enveloped: bool) -> None:
    body = carried("find_rooms", nights=2)
    body = {"method": "EXECUTE", "task_id": "t-1", "parameters": body} if enveloped else body
    headers = {} if enveloped else {"task_id": "t-1"}
    bench = build(*Rooms().endpoints)
    reply = bench.send("EXECUTE", "/", body, scopes=SCOPES, content_type=MEDIA_MCP_TOOLS, **headers)
    assert (reply.status, reply.header("Content-Type")) == (200, MEDIA_MCP_TOOLS)
    assert reply.json == {
        "status": 200,
        "task_id": "t-1",
        "result": {
            "content": [{"type": "text", "text": '{"nights":2}'}],
            "isError": False,
            "structuredContent": {"nights": 2},
        },
        "attribution": {
            "server_id": "test.example",
            "agent_id": AGENT,
            "method": "FIND",
            "path": "/rooms",
            "audit_id": None,
        },
    }


@pytest.mark.requirement("CORE-4.7-2", "CORE-4.7-3")
def test_an_action_is_an_endpoint_by_the_name_of_its_tool() -> None:
    rooms = Rooms()
    bench = build(*rooms.endpoints)
    body = {"action": "book_rooms", "parameters": {"room_id": "12"}}
    reply = bench.send("EXECUTE", "/", body, scopes="rooms:book")
    assert (reply.status, reply.json["result"], reply.json["task_id"]) == (200, {"reservation": 1}, None)
    assert reply.json["attribution"]["path"] == "/rooms/12"
    assert reply.header("Content-Type") == "application/vnd.agtp+json"
    refused = bench.send("EXECUTE", "/", body, scopes="rooms:read")
    assert (refused.status, refused.error["missing_scopes"]) == (455, ["rooms:book"])
    taken = bench.send("EXECUTE", "/", body, scopes="rooms:book")
    assert (taken.status, taken.error["code"], taken.error["details"]) == (422, "taken", {"next_free": "14"})
    assert "result" not in taken.json
    assert rooms.booked == ["12"]


def test_the_payload_is_named_by_a_content_type_that_its_header_agrees_with() -> None:
    body = {"action": "mcp.tools.call", "payload": {"name": "list_floors"}}
    bench = build(*Rooms().endpoints)
    reply = bench.send("EXECUTE", "/", body, scopes=SCOPES, content_type=f"{MEDIA_MCP_TOOLS}; charset=utf-8")
    assert reply.json["result"]["structuredContent"] == {"result": [1, 2]}
    body = {**carried("find_rooms"), "payload_type": "application/json"}
    reply = build(*Rooms().endpoints).send("EXECUTE", "/", body, scopes=SCOPES, content_type=MEDIA_MCP_TOOLS)
    assert (reply.status, reply.error["code"]) == (400, "payload-type-conflict")


@pytest.mark.requirement("CORE-4.7-3", "CORE-9-4")
@pytest.mark.parametrize(
    ("scopes", "missing"), [("rooms:book", ["mcp:tools:execute"]), ("mcp:tools:execute", ["rooms:book"])]
)
def test_a_tool_call_needs_the_scope_of_mcp_and_those_of_the_tool(scopes: str, missing: list[str]) -> None:
    rooms = Rooms()
    reply = build(*rooms.endpoints).send("EXECUTE", "/", carried("book_rooms", room_id="12"), scopes=scopes)
    assert (reply.status, reply.error["code"], reply.error["missing_scopes"]) == (455, "scope-violation", missing)
    assert rooms.booked == []


def test_a_refused_tool_call_is_a_refusal_with_a_result_that_says_so() -> None:
    bench = build(*Rooms().endpoints)
    reply = bench.send("EXECUTE", "/", carried("book_rooms", room_id="12"), scopes="mcp:tools:execute")
    assert reply.json["result"]["isError"]
    assert text(reply)["error"]["remedy"].endswith("over AGTP: Authority-Scope with rooms:book.")
    assert reply.response.code == "scope-violation"


@pytest.mark.requirement("CORE-9-4")
def test_strangers_are_asked_for_credentials_first() -> None:
    reply = build(*Rooms().endpoints).send("EXECUTE", "/", carried("find_rooms"))
    assert (reply.status, reply.error["type"]) == (262, "credentials-missing")


@rows(
    "arguments, code",
    ({"room_id": "12", "confirm": True}, "input-validation-failed"),
    ({"room_id": 12}, "input-validation-failed"),
    ({}, "input-validation-failed"),
)
def test_arguments_are_checked_by_the_contract(arguments: dict[str, Any], code: str) -> None:
    rooms = Rooms()
    reply = build(*rooms.endpoints).send("EXECUTE", "/", carried("book_rooms", **arguments), scopes=SCOPES)
    assert (reply.status, reply.error["code"], rooms.booked) == (422, code, [])
    assert text(reply)["error"]["code"] == code


@rows(
    "body, number, code",
    ({"action": "run"}, 404, "unknown-action"),
    ({"action": "audit_ledger"}, 404, "unknown-action"),
    (carried("audit_ledger"), 404, "unknown-tool"),
    (carried("x" * 5000), 404, "unknown-tool"),
    ({**carried("find_rooms"), "action": "mcp.resources.read"}, 422, "invalid-action"),
    ({**carried("find_rooms"), "payload_type": "application/vnd.a2a+json"}, 422, "invalid-payload-type"),
    ({"action": "find_rooms", "payload": {}}, 422, "invalid-payload-type"),
    ({**carried("find_rooms"), "payload": []}, 422, "invalid-payload"),
    ({**carried("find_rooms"), "payload": {"tool": 1}}, 422, "invalid-payload"),
    ({**carried("find_rooms"), "payload": {"tool": "find_rooms", "arguments": []}}, 422, "invalid-payload"),
    ({**carried("find_rooms"), "payload": {"tool": "find_rooms", "sudo": True}}, 422, "invalid-payload"),
)
def test_what_cannot_be_carried_out_is_refused(body: dict[str, Any], number: int, code: str) -> None:
    reply = build(*Rooms().endpoints).send("EXECUTE", "/", body, scopes=SCOPES)
    assert (reply.status, reply.error["code"]) == (number, code)
    assert len(reply.error["message"]) < 400


def test_near_deprecated_and_forbidden_tools_are_told() -> None:
    reply = build(*Rooms().endpoints).send("EXECUTE", "/", carried("find_room"), scopes=SCOPES)
    assert reply.error["suggestions"] == ["find_rooms"]
    assert reply.error["message"].endswith("Did you mean find_rooms?")
    policies = Policies(methods=MethodPolicy(disallow=("FIND",)), scope_required_for_invocation=False)
    bench = build(*Rooms().endpoints, policies=policies)
    assert bench.send("EXECUTE", "/", carried("find_rooms"), scopes=SCOPES).error["code"] == "unknown-tool"
    old = make_endpoint("FIND", "/rooms", echo, deprecated=Deprecation(deprecated_in="2.0"))
    reply = build(old).send("EXECUTE", "/", carried("find_rooms"), scopes=SCOPES)
    assert reply.json["result"]["_meta"] == {"bespeak/warning": "deprecated"}


def test_tools_are_listed_without_internal_endpoints() -> None:
    body = {"action": "mcp.tools.list", "payload_type": MEDIA_MCP_TOOLS}
    bench = build(*Rooms().endpoints)
    reply = bench.send("EXECUTE", "/", body)
    assert [tool["name"] for tool in reply.json["result"]["tools"]] == ["book_rooms", "find_rooms", "list_floors"]
    assert reply.header("Content-Type") == MEDIA_MCP_TOOLS
    hidden = build(*Rooms().endpoints, policies=Policies(anonymous_discovery=False))
    assert (hidden.send("EXECUTE", "/", body).status, hidden.send("EXECUTE", "/", body, scopes="").status) == (262, 200)


@pytest.mark.requirement("CORE-9-1", "CORE-9-2", "CORE-9-3")
def test_claims_of_a_payload_are_logged_and_do_not_count(caplog: pytest.LogCaptureFixture) -> None:
    body = carried("book_rooms", room_id="12")
    body["payload"] |= {"agent_id": "b" * 64, "authority_scope": SCOPES}
    with caplog.at_level(logging.INFO):
        reply = build(*Rooms().endpoints).send("EXECUTE", "/", body, scopes="mcp:tools:execute")
    assert reply.status == 455
    assert "agent_id in a payload differs from the header, which counts: EXECUTE /" in caplog.text
    assert reply.json["attribution"]["agent_id"] == AGENT


def test_the_rate_of_the_endpoint_counts() -> None:
    rates = RateLimits(endpoints={("LIST", "/floors"): Rate(1, "h", 1)})
    bench = build(*Rooms().endpoints, rate_limits=rates)
    replies = [bench.send("EXECUTE", "/", {"action": "list_floors"}, scopes="a:b") for _ in range(2)]
    assert [reply.status for reply in replies] == [200, 429]
    assert replies[1].header("Retry-After") is not None


def test_an_operator_may_bind_execute_to_a_handler_of_its_own() -> None:
    own = make_endpoint("EXECUTE", "/", echo, properties={"action": {"type": "string"}})
    assert build(own).send("EXECUTE", "/", {"action": "x"}, scopes="a:b").json == {"action": "x"}
    assert build(own).send("DISCOVER", "/").json["hosted_protocols"] == []


@pytest.mark.requirement("API-8.6-3")
def test_the_manifest_names_mcp_as_a_protocol_on_top_of_agtp() -> None:
    manifest = build(*Rooms().endpoints).send("DISCOVER", "/").json
    assert manifest["hosted_protocols"] == [{"protocol": "mcp", "method": "EXECUTE", "path": "/"}]


@pytest.mark.process
def test_tool_calls_are_carried_without_the_sdk() -> None:
    code = (
        "import sys; from tests.service import build; from tests.extensions.workflows.test_methods_execute import *; "
        "reply = build(*Rooms().endpoints).send('EXECUTE', '/', carried('find_rooms'), scopes=SCOPES); "
        "print(reply.status, [name for name in sys.modules if name.partition('.')[0] in ('mcp', 'mcp_types')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "200 []\n"


@pytest.mark.anyio
@pytest.mark.parametrize("in_body", [False, True])
async def test_a_repeated_call_with_a_key_is_carried_out_once(in_body: bool) -> None:
    rooms = Rooms()
    async with keeping(*rooms.endpoints) as bench:
        body = carried("book_rooms", room_id="12") | ({"idempotency_key": "k"} if in_body else {})
        headers = {"authority_scope": SCOPES, **({} if in_body else {"idempotency_key": "k"})}
        first, again = [await bench.send("EXECUTE", "/", body, **headers) for _ in range(2)]
    assert (first.json, again.header("Idempotency-Replayed")) == (again.json, "true")
    assert (again.header("Content-Type"), rooms.booked) == (MEDIA_MCP_TOOLS, ["12"])


@pytest.mark.anyio
async def test_a_key_that_the_server_requires_is_required_here_too() -> None:
    rooms = Rooms()
    document = ServerDocument(idempotency=IdempotencySettings(require=True))
    async with keeping(*rooms.endpoints, document=document) as bench:
        body = carried("book_rooms", room_id="12")
        refused = await bench.send("EXECUTE", "/", body, authority_scope=SCOPES)
        done = await bench.send("EXECUTE", "/", body, authority_scope=SCOPES, idempotency_key="k")
        read = await bench.send("EXECUTE", "/", carried("find_rooms"), authority_scope=SCOPES)
    assert (refused.status, refused.error["code"]) == (400, "idempotency-key-required")
    assert (done.status, read.status, rooms.booked) == (200, 200, ["12"])


@pytest.mark.anyio
async def test_a_call_that_must_be_confirmed_waits_for_another_party() -> None:
    rooms = Rooms()
    policies = Policies(scope_required_for_invocation=False, confirm_irreversible=True)
    async with keeping(*rooms.endpoints, policies=policies) as bench:
        body = carried("book_rooms", room_id="12")
        asked = await bench.send("EXECUTE", "/", body, authority_scope=SCOPES)
        case = asked.error["confirmation_id"]
        assert (asked.status, rooms.booked) == (262, [])
        assert text(asked)["error"]["confirmation_id"] == case
        await bench.store.do(DecideCase(case, "accepted", "operator", "att-1"))
        other = carried("book_rooms", room_id="14")
        moved = await bench.send("EXECUTE", "/", other, authority_scope=SCOPES, confirmation_id=case)
        assert (moved.status, rooms.booked) == (262, [])
        done = await bench.send("EXECUTE", "/", body, authority_scope=SCOPES, confirmation_id=case)
        used = await bench.send("EXECUTE", "/", body, authority_scope=SCOPES, confirmation_id=case)
    assert (done.status, used.status, rooms.booked) == (200, 262, ["12"])


@pytest.mark.anyio
async def test_both_calls_are_recorded() -> None:
    document = ServerDocument(audit=AuditSettings(records="all"))
    async with keeping(*Rooms().endpoints, document=document) as bench:
        reply = await bench.send("EXECUTE", "/", carried("book_rooms", room_id="12"), authority_scope=SCOPES)
        refused = await bench.send("EXECUTE", "/", carried("book_rooms", room_id="12"), authority_scope="rooms:book")
        records = [_payload(row[-1]) for row in await bench.store.read(ScanAudit())]
    parent = reply.header("Response-ID")
    assert [(one["method"], one["path"], one["status"], one.get("parent_response_id")) for one in records] == [
        ("BOOK", "/rooms/{room_id}", 200, parent),
        ("EXECUTE", "/", 200, None),
        ("EXECUTE", "/", 455, None),
    ]
    assert reply.json["attribution"]["audit_id"] not in (None, reply.header("Audit-ID"))
    assert refused.status == 455


def _payload(jws: str) -> dict[str, Any]:
    part = jws.split(".")[1]
    return dict(msgspec.json.decode(urlsafe_b64decode(part + "=" * (-len(part) % 4))))

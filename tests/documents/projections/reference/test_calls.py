"""One call in the ways that people copy it: each fits the endpoint, the address and the way of identification."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Sequence
from dataclasses import replace

import msgspec
from tests.cases import rows
from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.documents.projections.reference.calls import Reach, write_calls

TEXT = {"type": "string"}
FIND = make_endpoint("FIND", "/rooms", echo, properties={"beds": {"type": "integer"}}, required=("beds",))
BOOK = make_endpoint("BOOK", "/room", echo, properties={"room_id": TEXT}, required=("room_id",), impact="irreversible")
NAMED = make_endpoint(
    "FETCH", "/rooms/{room_id}", echo, properties={"room_id": {"enum": ["a b"]}}, required=("room_id",)
)
HUGE = make_endpoint("BOOK", "/room", echo, properties={"x": {"type": "string", "minLength": 3000}}, required=("x",))
GUARDED = replace(FIND, required_scopes=("a:b", "c:d"))
WEB = "https://rooms.example/desk"
AGENT = "0a3f" * 16


def calls(endpoint: Endpoint, *modes: str, scoped: bool = False) -> dict[str, str]:
    policies = Policies(scope_required_for_invocation=scoped)
    reach = Reach(url=WEB, agtp="agtp://rooms.example:4480", mcp=True, modes=modes, policies=policies)
    return write_calls(endpoint, reach, "the_tool")


@rows(
    "endpoint, modes, command",
    (FIND, ("open",), ["curl", f"{WEB}/rooms:find?beds=1"]),
    (NAMED, ("open",), ["curl", f"{WEB}/rooms/a%20b:fetch"]),
    (BOOK, ("open",), ["curl", "--json", '{"room_id":"x"}', f"{WEB}/room:book"]),
    (
        GUARDED,
        ("open",),
        ["curl", "-H", f"Agent-ID: {AGENT}", "-H", "Authority-Scope: a:b, c:d", f"{WEB}/rooms:find?beds=1"],
    ),
    (FIND, ("token", "mtls"), ["curl", "-H", "Authorization: Bearer YOUR-TOKEN", f"{WEB}/rooms:find?beds=1"]),
    (FIND, ("mtls",), ["curl", "--cert", "agent.pem", "--key", "agent.key", f"{WEB}/rooms:find?beds=1"]),
)
def test_curl_fits_the_endpoint_and_the_modes(endpoint: Endpoint, modes: Sequence[str], command: list[str]) -> None:
    assert shlex.split(calls(endpoint, *modes)["curl"]) == command


@rows(
    "endpoint, modes, options",
    (BOOK, ("open",), []),
    (GUARDED, (), ["--as=me", "--scope=a:b", "--scope=c:d"]),
    (BOOK, ("key",), ["--key-file=key.txt"]),
    (BOOK, ("signature",), ["--agent-key=agent.pem"]),
)
def test_the_command_and_the_program_identify_the_caller(
    endpoint: Endpoint, modes: Sequence[str], options: list[str]
) -> None:
    written = calls(endpoint, *modes)
    words = shlex.split(written["bespeak call"])
    assert words[:5] == ["bespeak", "call", "agtp://rooms.example:4480", endpoint.method, endpoint.path]
    assert words[7:] == options
    ast.parse(written["Python"])
    assert ("as_=" in written["Python"]) == ("--as=me" in options)


def test_agtp_is_the_text_of_the_wire() -> None:
    assert calls(GUARDED, "open")["AGTP"] == (
        f"AGTP/1.0 FIND /rooms\nAgent-ID: {AGENT}\nAuthority-Scope: a:b, c:d\n"
        'Content-Type: application/vnd.agtp+json\nContent-Length: 10\n\n{"beds":1}'
    )


def test_mcp_is_a_call_of_the_tool() -> None:
    call = msgspec.json.decode(calls(BOOK)["MCP"])
    assert (call["method"], call["params"]) == ("tools/call", {"name": "the_tool", "arguments": {"room_id": "x"}})


def test_a_policy_that_wants_a_scope_gets_one() -> None:
    assert "--scope=service:use" in calls(FIND, "open", scoped=True)["bespeak call"]


def test_curl_is_left_out_where_requests_are_signed_and_all_that_is_too_long() -> None:
    assert calls(FIND, "signature").keys() == {"bespeak call", "Python", "MCP"}
    assert calls(HUGE) == {}


def test_a_field_that_is_not_a_name_is_passed_in_a_mapping() -> None:
    odd = make_endpoint("FIND", "/rooms", echo, properties={"from-date": TEXT, "class": TEXT}, required=("class",))
    program = calls(odd)["Python"]
    assert "**{'class': 'x'}" in program
    ast.parse(program)

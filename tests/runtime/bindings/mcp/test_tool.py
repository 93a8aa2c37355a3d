"""The binding to a tool: outputs, declared errors, drift, and what a caller is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.crooked_mcp import NOTHING, NUMBERS, SUM
from tests.runtime.bindings.mcp.servers import crooked, launched
from tests.service import make_endpoint

from bespeak.contract.endpoint import DeclaredError, Endpoint
from bespeak.contract.handler import TOOL_ERROR, UPSTREAM_ERRORS, McpServer, McpTool, schema_digest
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.documents.mcp.tools import ListedTool, fit_input
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer
from bespeak.runtime.bindings.mcp import connection as module
from bespeak.runtime.bindings.mcp.connection import McpConnection
from bespeak.runtime.bindings.mcp.process import McpFailure
from bespeak.runtime.bindings.mcp.tool import McpBinding, McpPool, McpUpstream, bind_tool, find_drift
from bespeak.runtime.bindings.upstream import UpstreamOutcome

pytestmark = [pytest.mark.anyio, pytest.mark.process]
CONTEXT: Any = None


def endpoint_of(server: McpServer, schema: Mapping[str, Any] = NOTHING, timeout: float = 30.0, **more: Any) -> Endpoint:
    made = make_endpoint("EXECUTE", "/tool", dict)
    known = replace(server, input_digest=schema_digest(schema))
    return replace(
        made,
        input_schema=fit_input(schema)[0],
        handler=McpTool(mcp=known, timeout_seconds=timeout),
        errors=tuple(DeclaredError(name) for name in (TOOL_ERROR, *UPSTREAM_ERRORS)),
        semantic=replace(made.semantic, impact="irreversible", is_idempotent=False),
        **more,
    )


@asynccontextmanager
async def bound(
    server: McpServer, schema: Mapping[str, Any] = NOTHING, *, trusts: bool = False, **more: Any
) -> AsyncIterator[McpBinding]:
    endpoint = endpoint_of(server, schema, **more)
    assert isinstance(endpoint.handler, McpTool)
    output = compile_schema(endpoint.output_schema)
    assert isinstance(output, Validator)
    pool = McpPool()
    found = bind_tool(endpoint, endpoint.handler, {"PATH": "/bin"}, pool=pool, output=output, trusts=trusts)
    assert isinstance(found, McpBinding)
    try:
        yield found
    finally:
        await pool.aclose()


async def refused(binding: McpBinding, **given: Any) -> Refused:
    found = await binding.call(given, CONTEXT)
    assert isinstance(found, Refused)
    assert found.status == 422
    return found


@rows(
    "tool, output",
    ("json", {"found": [1, 2]}),
    ("texts", {"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}),
)
async def test_result_of_a_tool_is_the_output(tool: str, output: dict[str, Any]) -> None:
    async with bound(crooked(tool=tool), output_schema={"type": "object"}) as binding:
        assert await binding.call({}, CONTEXT) == output


async def test_errors_and_refusals_of_a_tool_are_told_in_its_words() -> None:
    async with bound(crooked(tool="failure")) as binding:
        found = await refused(binding)
        assert (found.code, found.message) == (TOOL_ERROR, "The printer is on fire.")
    async with bound(crooked(tool="refusal")) as binding:
        found = await refused(binding)
        assert found.code == TOOL_ERROR
        assert found.message.startswith("The tool refuses the input: b must be odd")


async def test_server_that_dies_in_a_call_may_have_carried_it_out() -> None:
    async with bound(crooked(tool="crash")) as binding:
        found = await refused(binding)
        assert found.code == "upstream_connection_error"
        assert "may have taken effect" in found.message
        assert "Segmentation" not in found.message


async def test_server_that_cannot_be_started_may_be_called_again_later() -> None:
    async with bound(crooked("dies")) as binding:
        found = await refused(binding)
        assert (found.code, dict(found.headers)) == ("upstream_connection_error", {"Retry-After": "5"})
        assert "may have taken effect" not in found.message


async def test_call_without_answer_ends_in_time_and_the_server_is_looked_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PROBE_SECONDS", 0.0)
    async with bound(crooked(tool="add"), NUMBERS, output_schema=SUM) as ready:
        assert await ready.call({"a": 1, "b": 2}, CONTEXT) == {"sum": 3}
        slow_one = endpoint_of(crooked(tool="silence"), timeout=0.05)
        assert isinstance(slow_one.handler, McpTool)
        slow = McpBinding(slow_one.handler, ready._upstream, UpstreamOutcome(slow_one, None, trusts=False))
        assert (await refused(slow)).code == "upstream_timeout"
        assert slow._probe is not None
        await slow._probe
        # The server did not answer the question whether it lives, so another one is started.
        assert await ready.call({"a": 2, "b": 2}, CONTEXT) == {"sum": 4}


async def test_answer_that_is_too_large_is_malformed() -> None:
    async with bound(crooked(tool="flood")) as binding:
        assert (await refused(binding)).code == "upstream_malformed_response"


async def test_output_that_breaks_its_schema_is_refused_or_trusted() -> None:
    async with bound(crooked(tool="lie"), output_schema=SUM) as binding:
        found = await refused(binding)
        assert found.code == "upstream-output-invalid"
        assert "may have taken effect" in found.message
    async with bound(crooked(tool="lie"), output_schema=SUM, trusts=True) as binding:
        assert isinstance(await binding.call({}, CONTEXT), Answer)


async def test_tool_that_is_gone_is_named_with_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    async with bound(crooked(tool="gone")) as binding:
        found = await refused(binding)
        assert found.code == "upstream_error"
        assert "no longer has the tool" in found.message
        assert "may have taken effect" not in found.message
    assert "Run `bespeak import mcp` again" in caplog.text


def test_missing_variable_prevents_the_registration() -> None:
    endpoint = endpoint_of(crooked(env=("HOTEL_KEY",)))
    assert isinstance(endpoint.handler, McpTool)
    findings = bind_tool(endpoint, endpoint.handler, {}, pool=McpPool())
    assert isinstance(findings, list)
    assert [(finding.rule, finding.pointer) for finding in findings] == [("H704", "/endpoint/handler/mcp/env/0")]


@rows(
    "now, fault",
    (NUMBERS, None),
    ({**NUMBERS, "description": "Two numbers"}, None),
    ({**NUMBERS, "properties": {**NUMBERS["properties"], "c": {"type": "string"}}}, None),
    ({**NUMBERS, "required": ["a", "b", "c"], "properties": {**NUMBERS["properties"], "c": {}}}, "changed"),
    ({"type": "object", "properties": {"a": {"type": "integer"}}}, "changed"),
    ({**NUMBERS, "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}, "changed"),
)
def test_only_a_change_that_breaks_calls_of_the_contract_is_refused(now: dict[str, Any], fault: str | None) -> None:
    contract = fit_input(NUMBERS)[0]
    server = crooked(input_digest=schema_digest(NUMBERS))
    found = find_drift(contract, server, ListedTool(name="add", input_schema=now))
    assert (found.kind if found else None) == fault


def test_reviewed_contract_that_allows_less_than_the_tool_is_no_drift() -> None:
    narrower = {**fit_input(NUMBERS)[0], "properties": {"a": {"type": "integer", "maximum": 9}, "b": {"const": 1}}}
    server = crooked(input_digest=schema_digest(NUMBERS))
    assert find_drift(narrower, server, ListedTool(name="add", input_schema=NUMBERS)) is None


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def upstream(pool: McpPool, server: McpServer) -> McpUpstream:
    return pool.upstream(server.key, launched(server))


async def opened(upstream: McpUpstream) -> McpConnection:
    found = await upstream.connection()
    assert isinstance(found, McpConnection)
    return found


async def test_callers_share_one_start_and_one_process() -> None:
    pool = McpPool()
    servers = [crooked(tool="add"), crooked(tool="json")]
    assert upstream(pool, servers[0]) is upstream(pool, servers[1])
    first, second = await asyncio.gather(*(opened(upstream(pool, server)) for server in servers))
    assert first is second
    await pool.aclose()
    assert not first.is_open


async def test_start_goes_on_when_the_caller_who_began_it_has_left() -> None:
    pool = McpPool()
    known = upstream(pool, crooked())
    impatient = asyncio.create_task(known.connection())
    patient = asyncio.create_task(opened(known))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await patient).is_open
    await pool.aclose()


async def test_server_that_ended_is_started_again_at_once_the_first_time() -> None:
    pool = McpPool(Clock())
    known = upstream(pool, crooked())
    before = await opened(known)
    await before.call("crash", {})
    after = await opened(known)
    assert after is not before
    assert after.is_open
    await pool.aclose()


async def test_repeated_failures_wait_longer_each_time_until_a_call_succeeds() -> None:
    clock = Clock()
    pool = McpPool(clock)
    known = upstream(pool, McpServer(tool="", command="surely-not-installed"))

    async def fail() -> McpFailure:
        found = await known.connection()
        assert isinstance(found, McpFailure)
        return found

    assert (await fail()).retry_after is None
    assert (await fail()).retry_after is None
    waits = []
    for _ in range(8):
        waits.append((await fail()).retry_after)
        clock.now += waits[-1] or 0
        assert (await fail()).retry_after is None
    assert waits == [1, 1, 2, 4, 8, 16, 30, 30]
    known.succeed()
    clock.now += 30
    await fail()
    assert (await fail()).retry_after is None


async def test_closing_ends_a_start_that_is_under_way() -> None:
    pool = McpPool()
    known = upstream(pool, crooked("silent"))
    waiting = asyncio.create_task(known.connection())
    await asyncio.sleep(0)
    await pool.aclose()
    assert (await asyncio.wait({waiting}))[0]
    assert waiting.cancelled()

"""A connection to an MCP server: its tools, its answers, and its failures, which are values."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from mcp import MCPError
from mcp_types import INVALID_REQUEST
from tests.runtime.bindings.mcp.servers import crooked, launched, on_the_web

from bespeak.contract.handler import McpServer
from bespeak.runtime.bindings.mcp import connection as module
from bespeak.runtime.bindings.mcp.connection import McpConnection
from bespeak.runtime.bindings.mcp.launch import McpFailure

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@asynccontextmanager
async def connected(server: McpServer) -> AsyncIterator[McpConnection]:
    connection = McpConnection(launched(server))
    assert await connection.open() is None
    try:
        yield connection
    finally:
        await connection.close()


async def test_tools_of_all_pages_are_listed_with_their_hints() -> None:
    async with connected(crooked()) as connection:
        assert (connection.title, connection.version, connection.protocol) == ("crooked", "1.2", "2025-06-18")
        assert len(connection.tools) == 16
        assert connection.tools["delete_note"].hints == {"readOnlyHint": True}
        assert connection.tools["add"].input_schema["required"] == ["a", "b"]


async def test_calls_run_beside_each_other_over_one_connection() -> None:
    async with connected(crooked()) as connection:
        answers = await asyncio.gather(*(connection.call("add", {"a": number, "b": 1}) for number in range(5)))
        assert [isinstance(one, dict) and one["structuredContent"] for one in answers] == [
            {"sum": number + 1} for number in range(5)
        ]


async def test_rubbish_between_messages_is_skipped() -> None:
    async with connected(crooked()) as connection:
        answer = await connection.call("rubbish", {})
        assert isinstance(answer, dict)
        assert answer["content"][0]["text"] == "after the rubbish"


async def test_answer_beyond_the_limit_fails_alone() -> None:
    async with connected(crooked()) as connection:
        failure = await connection.call("flood", {})
        assert isinstance(failure, McpFailure)
        assert failure.kind == "malformed"
        assert isinstance(await connection.call("add", {"a": 1, "b": 1}), dict)


async def test_server_that_dies_in_a_call_is_lost_with_its_last_words() -> None:
    async with connected(crooked()) as connection:
        failure = await connection.call("crash", {})
        assert isinstance(failure, McpFailure)
        assert failure.kind == "lost"
        assert "Segmentation fault, sort of" in failure.text
        assert not connection.is_open
        assert await connection.call("add", {}) == McpFailure("unreachable", failure.text)


async def test_changed_tools_are_listed_again() -> None:
    async with connected(crooked()) as connection:
        await connection.call("change", {})
        while connection.changes < 2:
            await asyncio.sleep(0)
        assert "texts" not in connection.tools
        assert connection.tools["add"].input_schema["required"] == ["a", "b", "c"]


async def test_progress_is_told_to_who_wants_to_hear_of_it() -> None:
    told: list[tuple[float, float | None, str | None]] = []
    async with connected(crooked()) as connection:
        await connection.call("progress", {}, lambda *one: told.append(one))
        await connection.call("progress", {})
    assert sorted(told) == [(1.0, 2.0, "step 1"), (2.0, 2.0, "step 2")]


async def test_question_of_the_present_revision_is_a_failure_that_says_what_is_asked() -> None:
    async with on_the_web() as url, connected(McpServer(tool="", url=url)) as connection:
        failure = await connection.call("ask", {})
        assert isinstance(failure, McpFailure)
        assert (failure.kind, failure.text) == ("asks", "elicitation")


async def test_question_to_a_user_is_refused() -> None:
    async with connected(crooked()) as connection:
        answer = await connection.call("question", {})
        assert isinstance(answer, dict)
        assert answer["content"][0]["text"] == "Elicitation not supported"


async def test_server_that_does_not_answer_any_more_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PROBE_SECONDS", 0.0)
    async with connected(crooked()) as connection:
        await connection.probe()
        assert not connection.is_open


async def test_server_that_dies_at_its_start_says_why() -> None:
    connection = McpConnection(launched(crooked("dies")))
    failure = await connection.open()
    assert failure is not None
    assert failure.kind in ("lost", "unreachable")
    assert "No module named 'missing'" in failure.text
    await connection.close()


async def test_server_that_ends_at_a_message_it_does_not_expect_is_asked_as_earlier_clients_did() -> None:
    async with connected(crooked("strict")) as connection:
        assert connection.protocol == "2025-06-18"


async def test_name_that_is_listed_twice_is_told() -> None:
    async with connected(crooked("twice")) as connection:
        assert connection.repeated == ("add",)


async def test_session_that_the_server_forgot_is_begun_anew() -> None:
    async with connected(crooked()) as connection:
        failure = connection._failure(MCPError(INVALID_REQUEST, "Session terminated"))
        assert failure.kind == "unreachable"
        assert not connection.is_open


async def test_server_that_never_speaks_is_given_up() -> None:
    connection = McpConnection(launched(crooked("silent")), start_seconds=0.2)
    failure = await connection.open()
    assert failure == McpFailure("unreachable", "no list of tools within 0.2 s")
    await connection.close()


async def test_list_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TOOLS", 7)
    connection = McpConnection(launched(crooked()))
    failure = await connection.open()
    assert failure is not None
    assert (failure.kind, "more than 7 tools" in failure.text) == ("malformed", True)
    await connection.close()


async def test_server_on_the_web_is_called_in_the_present_revision() -> None:
    async with on_the_web() as url, connected(McpServer(tool="", url=url)) as connection:
        assert (connection.title, connection.protocol) == ("webbed", "2026-07-28")
        answer = await connection.call("multiply", {"a": 6, "b": 7})
        assert isinstance(answer, dict)
        assert answer["structuredContent"] == {"product": 42}
        failure = await connection.call("flood", {})
        assert isinstance(failure, McpFailure)
        assert failure.kind in ("malformed", "lost")


async def test_server_on_the_web_that_refuses_the_credential_is_told_apart() -> None:
    async with on_the_web("sesame") as url:
        connection = McpConnection(launched(McpServer(tool="", url=url)))
        failure = await connection.open()
        assert failure is not None
        assert failure.kind == "authentication"
        await connection.close()
        headers = {"Authorization": "Bearer ${KEY}"}
        known = McpConnection(launched(McpServer(tool="", url=url, headers=headers), {"KEY": "sesame"}))
        assert await known.open() is None
        await known.close()


async def test_address_that_nobody_listens_at_is_unreachable() -> None:
    connection = McpConnection(launched(McpServer(tool="", url="http://127.0.0.1:9/mcp")))
    failure = await connection.open()
    assert failure is not None
    assert failure.kind in ("unreachable", "lost")
    await connection.close()

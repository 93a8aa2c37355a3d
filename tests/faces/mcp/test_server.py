"""Tools through the official SDK's client, in both protocol eras; no network."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.cases import rows
from tests.faces.mcp.tools import LEGACY as TOOLS_LEGACY
from tests.faces.mcp.tools import MODERN, SCOPES, Agreeing, Rooms, agree, connected, endpoint, error_in

from bespeak.contract.endpoint import Endpoint
from bespeak.documents.deployment.server_settings import McpSettings
from bespeak.state.store.commands.cases import DecideCase, ListCases

pytestmark = pytest.mark.anyio
SEARCHED = McpSettings(tools_listed=2)
CORRECT = {"code": "input-validation-failed", "remedy": "Correct the arguments and call again. They are: beds."}
LEGACY = "2025-11-25"


async def test_tools_are_listed_in_order_and_outputs_are_text_and_structured_content(era: str) -> None:
    from mcp.shared.exceptions import MCPError

    async with Rooms().serving() as (server, _), connected(server, era) as client:
        tools = (await client.list_tools()).tools
        rooms = await client.call_tool("query_rooms", {"beds": 2})
        floors = await client.call_tool("list_floors", {})
        for name in ("nothing", "inspect_ledger"):
            with pytest.raises(MCPError, match=f"Unknown tool: {name}"):
                await client.call_tool(name, {})
    assert [tool.name for tool in tools] == ["book_rooms", "list_floors", "query_rooms", "reset_rooms", "watch_rooms"]
    assert tools[0].title == "Book rooms"
    assert tools[0].annotations.destructive_hint
    assert (rooms.structured_content, rooms.is_error) == ({"rooms": ["12"]}, False)
    assert floors.structured_content == {"result": [1, 2]}


@pytest.mark.parametrize("settings", [None, SEARCHED], ids=["by its name", "through the search"])
@rows(
    "name, arguments, scopes, expected",
    *[("query_rooms", given, SCOPES, CORRECT) for given in ({"bed": 2}, {"beds": "two"}, {"beds": 1, "confirm": True})],
    ("reset_rooms", {}, SCOPES[:1], {"code": "scope-violation", "missing_scopes": ["rooms:write"]}),
    ("reset_rooms", {}, SCOPES, {"code": "server-error"}),  # the handler fails
)
async def test_a_refused_call_says_why(
    era: str, *, settings: McpSettings | None, name: str, arguments: Any, scopes: Any, expected: dict[str, Any]
) -> None:
    called = (name, arguments) if settings is None else ("call_capability", {"name": name, "arguments": arguments})
    async with Rooms().serving(scopes=scopes, settings=settings) as (server, _), connected(server, era) as client:
        error = error_in(await client.call_tool(*called))
    assert {member: error[member] for member in expected} == expected
    assert scopes == SCOPES or "--scope rooms:write" in error["remedy"]
    assert "secret" not in str(error)


async def test_an_exception_of_the_server_itself_is_not_shown(era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret of the server")

    async with Rooms().serving() as (server, _), connected(server, era) as client:
        await client.list_tools()
        monkeypatch.setattr("bespeak.app.server.mcp_stdio.ClientBackend.call", fail)
        error = error_in(await client.call_tool("query_rooms", {}))
        monkeypatch.setattr("bespeak.app.server.mcp_stdio.ClientBackend.endpoints", fail)
        with pytest.raises(Exception, match=r"try again later|its log has the reason") as caught:
            await client.call_tool("query_rooms", {})
    assert "secret" not in f"{error} {caught.value}"


@pytest.mark.parametrize("settings", [None, SEARCHED], ids=["by its name", "through the search"])
async def test_a_repeated_idempotency_key_runs_the_call_once(era: str, settings: McpSettings | None) -> None:
    rooms, given = Rooms(), {"room_id": "12"}
    called = (
        ("book_rooms", given) if settings is None else ("call_capability", {"name": "book_rooms", "arguments": given})
    )
    async with rooms.serving(settings=settings) as (server, _), connected(server, era, agree) as client:
        results = [await client.call_tool(*called, meta={"bespeak/idempotency-key": "k1"}) for _ in range(2)]
    assert [result.structured_content for result in results] == [{"reservation_id": "r1"}] * 2
    assert rooms.booked == ["12"]


async def test_the_user_is_asked_in_words_before_an_irreversible_call(era: str) -> None:
    asked = Agreeing()
    rooms = Rooms()
    async with rooms.serving() as (server, _), connected(server, era, asked) as client:
        result = await client.call_tool("book_rooms", {"room_id": "12"})
        taken = error_in(await client.call_tool("book_rooms", {"room_id": "12"}))
    assert result.structured_content == {"reservation_id": "r1"}
    assert asked[0].split("\n") == [
        *("Reserve a room.", "A reservation exists and its id is returned.", "This cannot be undone."),
        "- room_id: 12",
    ]
    assert len(asked) == 2  # every call is asked about anew
    assert (taken["code"], taken["message"], taken["details"]) == ("room_unavailable", "Taken.", {"next_free": "14"})


@rows(
    "answer",
    *({"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"confirm": False}}),
    *({"action": "accept", "content": {"confirm": "yes"}}, {"action": "accept"}),
)
async def test_nothing_but_a_clear_yes_counts(era: str, answer: dict[str, Any]) -> None:
    rooms = Rooms()
    async with rooms.serving() as (server, _), connected(server, era, lambda _: answer) as client:
        error = error_in(await client.call_tool("book_rooms", {"room_id": "12"}))
    assert error["code"] == "confirmation-declined"
    assert rooms.booked == []


async def test_the_user_is_not_asked_about_a_call_that_would_be_refused(era: str) -> None:
    def user(_: str) -> Mapping[str, Any]:
        pytest.fail("asked in vain")

    async with Rooms().serving() as (server, _), connected(server, era, user) as client:
        assert error_in(await client.call_tool("book_rooms", {}))["code"] == "input-validation-failed"


async def test_a_client_that_cannot_ask_is_told_how_a_person_confirms_the_call_once(era: str) -> None:
    rooms = Rooms()
    async with rooms.serving() as (server, store), connected(server, era) as client:
        error = error_in(await client.call_tool("book_rooms", {"room_id": "12"}))
        (case,) = await store.read(ListCases())
        assert error["code"] == "confirmation-required"
        assert f"`bespeak cases accept {case.case_id} rooms`" in error["remedy"]
        assert rooms.booked == []
        await store.do(DecideCase(case.case_id, "accepted", "operator:ann", "att-1", kinds=("confirmation",)))
        result = await client.call_tool("book_rooms", {"room_id": "12"})
        assert result.structured_content == {"reservation_id": "r1"}
        assert error_in(await client.call_tool("book_rooms", {"room_id": "12"}))["code"] == "confirmation-required"
    assert rooms.booked == ["12"]


async def test_a_confirmation_that_the_service_demands_is_not_given_by_the_user_of_the_client(era: str) -> None:
    from bespeak import Policies

    def user(_: str) -> Mapping[str, Any]:
        pytest.fail("another party has to confirm")

    rooms = Rooms(policies=Policies(confirm_irreversible=True))
    async with rooms.serving() as (server, store), connected(server, era, user) as client:
        error = error_in(await client.call_tool("book_rooms", {"room_id": "12"}))
        assert error["code"] == "confirmation-required"
        assert f"`bespeak cases accept {error['confirmation_id']} rooms`" in error["remedy"]
        decision = DecideCase(error["confirmation_id"], "accepted", "operator:ann", "att-1", kinds=("confirmation",))
        await store.do(decision)
        result = await client.call_tool("book_rooms", {"room_id": "12"})
    assert result.structured_content == {"reservation_id": "r1"}


async def test_an_answer_that_is_sent_again_asks_again() -> None:
    import mcp_types as types

    rooms = Rooms()
    async with rooms.serving() as (server, _), connected(server, MODERN, agree) as client:
        book = partial(client.session.call_tool, "book_rooms", {"room_id": "12"}, allow_input_required=True)
        asked = await book()
        assert isinstance(asked, types.InputRequiredResult)
        answer = {"confirm": types.ElicitResult(action="accept", content={"confirm": True})}
        states = (None, "conf-0", asked.request_state, asked.request_state)
        results = [await book(input_responses=answer, request_state=state) for state in states]
    assert [type(result).__name__ for result in results] == [
        *("InputRequiredResult", "InputRequiredResult", "CallToolResult", "InputRequiredResult")
    ]
    assert rooms.booked == ["12"]


async def test_an_answer_of_a_client_that_cannot_ask_does_not_count() -> None:
    import mcp_types as types

    rooms = Rooms()
    async with rooms.serving() as (server, _), connected(server, MODERN) as client:
        error = error_in(await client.call_tool("book_rooms", {"room_id": "12"}))
        answer = {"confirm": types.ElicitResult(action="accept", content={"confirm": True})}
        again = await client.session.call_tool(
            "book_rooms", {"room_id": "12"}, input_responses=answer, request_state=error["confirmation_id"]
        )
    assert error_in(again)["code"] == "confirmation-required"
    assert rooms.booked == []


# Search in place of the list.


async def test_beyond_the_limit_a_search_is_listed_through_which_capabilities_are_called(era: str) -> None:
    async with Rooms().serving(settings=SEARCHED) as (server, _), connected(server, era) as client:
        tools = (await client.list_tools()).tools
        found = await client.call_tool("find_capability", {"query": "reserve a room", "limit": 1})
        await client.list_tools()
        wrapped = await client.call_tool("call_capability", {"name": "query_rooms", "arguments": {"beds": 2}})
        plain = await client.call_tool("query_rooms", {"beds": 2})
        floors = await client.call_tool("call_capability", {"name": "list_floors"})
        for name in ("inspect_ledger", "call_capability", "nothing"):
            error = error_in(await client.call_tool("call_capability", {"name": name}))
            assert error["code"] == "capability-not-found"
    assert [tool.name for tool in tools] == ["call_capability", "find_capability"]
    assert all(tool.output_schema is None for tool in tools)
    (one,) = (found.structured_content or {})["capabilities"]
    assert (one["name"], one["impact"]) == ("book_rooms", "irreversible")
    assert wrapped.structured_content == plain.structured_content == {"rooms": ["12"]}
    assert floors.structured_content == {"result": [1, 2]}


async def test_the_user_is_asked_before_an_irreversible_capability(era: str) -> None:
    asked = Agreeing()
    rooms = Rooms()
    booking = {"name": "book_rooms", "arguments": {"room_id": "12"}}
    async with rooms.serving(settings=SEARCHED) as (server, _):
        async with connected(server, era) as client:
            refused = error_in(await client.call_tool("call_capability", booking))
        async with connected(server, era, asked) as client:
            booked = await client.call_tool("call_capability", booking)
    assert refused["code"] == "confirmation-required"
    assert booked.structured_content == {"reservation_id": "r1"}
    assert [question.split("\n")[0] for question in asked] == ["Reserve a room."]
    assert rooms.booked == ["12"]


async def test_a_list_that_grows_beyond_the_limit_becomes_a_search() -> None:
    from bespeak.faces.mcp.server import ToolServer

    backend: Any = Changing("/rooms", "/halls")
    server = ToolServer(backend, cast("Any", None), SEARCHED)
    async with connected(server, MODERN) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        async with client.listen(tools_list_changed=True) as events:
            backend.current = [*backend.current, endpoint("FIND", "/beds")]
            await server.refresh()
            await asyncio.wait_for(anext(aiter(events)), 20)
            searched = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]
            found = await client.call_tool("find_capability", {"query": "beds"})
    assert (names, searched) == (["find_halls", "find_rooms"], ["call_capability", "find_capability"])
    assert (found.structured_content or {})["capabilities"][0]["name"] == "find_beds"
    assert "3 capabilities" in (server.server.instructions or "")


async def test_a_changed_endpoint_behind_a_search_changes_prompts_but_no_tools() -> None:
    from mcp.shared.subscriptions import PromptsListChanged

    from bespeak.faces.mcp.server import ToolServer

    backend: Any = Changing("/rooms", "/halls", "/beds")
    server = ToolServer(backend, cast("Any", None), SEARCHED)
    async with connected(server, MODERN) as client:
        await client.list_tools()
        async with client.listen(tools_list_changed=True, prompts_list_changed=True) as events:
            backend.current = [*backend.current[:-1], endpoint("FIND", "/beds", intent="Find beds.")]
            await server.refresh()
            assert isinstance(await asyncio.wait_for(anext(aiter(events)), 20), PromptsListChanged)


async def test_a_new_capability_is_called_before_it_was_found() -> None:
    async with Rooms().serving(settings=SEARCHED) as (server, _):
        await server.refresh()
        assert await server.find_called("call_capability", b'{"name": "query_rooms"}') is not None
        for arguments in (b"", b"[]", b"null", b"{", b'{"name": 1}', b'{"name": "nothing"}', b"[" * 10_000):
            assert await server.find_called("call_capability", arguments) is None


# Changes of the list.


class Changing:
    """A service whose endpoints change."""

    name, server_id, version = "Changing", "changing.example", "1"

    def __init__(self, *paths: str) -> None:
        self.current = [endpoint("FIND", path) for path in paths]

    async def endpoints(self, *, refresh: bool = False) -> Sequence[Endpoint]:
        return self.current

    def own(self, _: Any) -> None:
        return


async def test_a_changed_list_of_tools_is_announced(era: str) -> None:
    from mcp import Client
    from mcp.shared.subscriptions import ToolsListChanged

    from bespeak.faces.mcp.server import ToolServer

    heard = asyncio.Event()

    async def listen(message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            heard.set()

    backend: Any = Changing("/rooms")
    server = ToolServer(backend, cast("Any", None))
    async with Client(server.server, mode=era, message_handler=listen) as client:
        await client.list_tools()
        watching = asyncio.create_task(server.watch(0.001))
        if era == TOOLS_LEGACY:
            backend.current = [*backend.current, endpoint("FIND", "/halls")]
            await asyncio.wait_for(heard.wait(), 20)
        else:
            async with client.listen(tools_list_changed=True) as events:
                backend.current = [*backend.current, endpoint("FIND", "/halls")]
                assert isinstance(await asyncio.wait_for(anext(aiter(events)), 20), ToolsListChanged)
        watching.cancel()
        tools = (await client.list_tools(cache_mode="refresh")).tools
    assert [tool.name for tool in tools] == ["find_halls", "find_rooms"]


class Session:
    """A client's session, which notes what it is told."""

    def __init__(self, *, reads: bool = True, gone: bool = False) -> None:
        self.told: list[str] = []
        self.asked = 0
        self._reads = reads
        self._gone = gone

    async def _send(self, what: str) -> None:
        self.asked += 1
        if self._gone:
            raise RuntimeError("closed")
        if not self._reads:
            await asyncio.Event().wait()
        self.told.append(what)

    async def send_tool_list_changed(self) -> None:
        await self._send("tools")

    async def send_prompt_list_changed(self) -> None:
        await self._send("prompts")

    async def send_resource_list_changed(self) -> None:
        await self._send("resources")


def met(session: Session, key: str | None, version: str = LEGACY) -> Any:
    request = None if key is None else SimpleNamespace(headers={"mcp-session-id": key})
    return SimpleNamespace(protocol_version=version, request=request, session=session)


async def test_streams_and_sessions_are_told_and_nobody_waits_for_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    from bespeak.faces.mcp.server import Audience

    audience, heard = Audience(), []
    audience.bus.subscribe(lambda event: heard.append(type(event).__name__))
    stdio, legacy, modern = Session(), Session(), Session()
    audience.meet(met(stdio, None))
    audience.meet(met(legacy, "a"))
    audience.meet(met(modern, "b", MODERN))
    await audience.announce(["bespeak://manifest"])
    await asyncio.sleep(0)
    assert heard == ["ToolsListChanged", "PromptsListChanged", "ResourcesListChanged", "ResourceUpdated"]
    assert stdio.told == legacy.told == ["tools", "prompts", "resources"]
    assert modern.told == []
    from bespeak.faces.mcp.server import Audience

    monkeypatch.setattr("bespeak.faces.mcp.server._PATIENCE", 0.01)
    audience = Audience()
    stuck, reading = Session(reads=False), Session()
    audience.meet(met(stuck, "a"))
    audience.meet(met(reading, "b"))
    await audience.announce([])
    while len(audience._telling) > 0:
        await asyncio.wait(audience._telling)
    await audience.announce([])
    await asyncio.sleep(0)
    assert (stuck.asked, reading.asked) == (1, 6)


async def test_clients_that_are_gone_are_forgotten_and_the_number_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from bespeak.faces.mcp.server import Audience

    monkeypatch.setattr("bespeak.faces.mcp.server.MOST_TOLD", 3)
    audience = Audience()
    sessions = [Session(gone=number == 4) for number in range(5)]
    for number, session in enumerate(sessions):
        audience.meet(met(session, str(number)))
    audience.forget("3")
    for _ in range(2):
        await audience.announce([])
        await asyncio.sleep(0)
    assert [session.asked for session in sessions] == [0, 0, 6, 0, 1]

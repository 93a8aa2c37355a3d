"""Resources and prompts through the official SDK's client, in both protocol eras, over both transports."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import pytest
from tests.cases import rows
from tests.faces.mcp.test_http import HALLS, READER, post
from tests.faces.mcp.tools import LEGACY, MODERN, Rooms, connected, connected_to, endpoint, opened

from bespeak import Policies
from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.handler import McpServer, McpTool
from bespeak.contract.mcp_tool import make_tools
from bespeak.errors import BespeakError
from bespeak.faces.mcp.catalog import NamespacePrompt, Offers, make_prompts

pytestmark = pytest.mark.anyio
MANIFEST, AGIS, LINT = (f"bespeak://rooms.example/{name}" for name in ("manifest", "agis", "lint"))


async def test_three_documents_are_listed_and_are_those_of_the_other_faces(way: str, era: str) -> None:
    async with opened(Rooms(), way, era) as client:
        found = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        texts = {one.uri: (await client.read_resource(one.uri)).contents[0] for one in found}
        manifest, agis, lint = [
            json.loads((await client.read_resource(uri)).contents[0].text) for uri in (MANIFEST, AGIS, LINT)
        ]
    assert [str(one.uri) for one in found] == [MANIFEST, AGIS, LINT]
    assert templates == []
    expected = ["application/vnd.agtp.manifest+json", "application/agis+json", "application/json"]
    assert [one.mime_type for one in found] == expected
    for one in found[:2]:
        assert one.size == len(texts[one.uri].text.encode())
        assert texts[one.uri].mime_type == one.mime_type
    assert manifest["server"]["server_id"] == "rooms.example"
    for document in (manifest, agis):
        paths = {endpoint["path"] for endpoint in document["endpoints"]}
        assert "/rooms/{room_id}" in paths
        assert "/ledger" not in paths
    assert lint["files"] == [MANIFEST]
    assert "ledger" not in str(lint)


async def test_prompts_explain_namespaces_and_unknown_resources_have_the_code_of_the_era(way: str, era: str) -> None:
    from mcp.shared.exceptions import MCPError

    async with opened(Rooms(), way, era) as client:
        listed = (await client.list_prompts()).prompts
        plain = await client.get_prompt("floors")
        wanted = await client.get_prompt("rooms", {"task": " Book room 12. "})
        for uri in ("bespeak://other.example/manifest", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="Resource not found") as refused:
                await client.read_resource(uri)
            assert refused.value.error.code == (-32602 if era == MODERN else -32002)
            assert refused.value.error.data == {"uri": uri}
    assert [one.name for one in listed] == ["floors", "rooms"]
    assert [argument.name for argument in listed[0].arguments] == ["task"]
    assert "- list_floors: List the floors." in plain.messages[0].content.text
    assert wanted.messages[0].content.text.endswith("\n\nTask: Book room 12.")


@rows(
    "name, arguments, message",
    ("ledger", {}, "Unknown prompt: ledger"),
    ("rooms", {"goal": "x"}, "Unknown argument: goal. There is only task."),
    ("rooms", {"task": "x" * 4001}, "task may have at most 4000 characters."),
)
async def test_invalid_requests_for_prompts_are_refused(name: str, arguments: Any, message: str, era: str) -> None:
    from mcp.shared.exceptions import MCPError

    async with opened(Rooms(), "stdio", era) as client:
        with pytest.raises(MCPError, match=message) as refused:
            await client.get_prompt(name, arguments)
    assert refused.value.error.code == -32602


async def test_lists_and_documents_may_be_kept_for_a_minute() -> None:
    async with Rooms().on_http() as (url, _):
        sent = {name.replace("_", "-"): value for name, value in READER.items()}
        for method, more in (("resources/list", {}), ("prompts/list", {}), ("resources/read", {"uri": MANIFEST})):
            headers = {**sent, **({"Mcp-Name": more["uri"]} if more else {})}
            result = (await post(url, method, headers, **more)).json()["result"]
            assert (result["ttlMs"], result["cacheScope"]) == (60_000, "private")


async def test_a_stranger_who_may_not_discover_reads_nothing() -> None:
    async with Rooms(policies=Policies(anonymous_discovery=False)).on_http() as (url, _):
        refused = []
        for method, more in (
            ("resources/list", {}),
            ("prompts/list", {}),
            ("resources/read", {"uri": MANIFEST}),
            ("prompts/get", {"name": "rooms"}),
        ):
            headers = {"Mcp-Name": more["uri"]} if "uri" in more else {}
            refused.append(await post(url, method, headers, **more))
        async with connected_to(url, MODERN, **READER) as client:
            assert len((await client.list_resources()).resources) == 3
    assert {one.json()["error"]["data"]["code"] for one in refused} == {"authorization-required"}
    assert len({one.text for one in refused}) == 1


async def test_changes_of_prompts_and_resources_are_announced(era: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from mcp import Client
    from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated

    monkeypatch.setattr("bespeak.faces.mcp.http._INTERVAL", 0.01)
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def listen(message: Any) -> None:
        heard.put_nowait(type(message).__name__)

    async with Rooms().on_http() as (url, keeper), Client(url, mode=era, message_handler=listen) as client:
        before = [one.name for one in (await client.list_prompts()).prompts]
        add = keeper.dispatcher.server.add_endpoint
        if era == LEGACY:
            await add(HALLS)
            names = {await asyncio.wait_for(heard.get(), 20) for _ in range(3)}
            assert {"PromptListChangedNotification", "ResourceListChangedNotification"} < names
        else:
            wanted = {"prompts_list_changed": True, "resources_list_changed": True, "resource_subscriptions": [AGIS]}
            async with client.listen(**cast("Any", wanted)) as events:
                await add(HALLS)
                stream = aiter(events)
                found = [await asyncio.wait_for(anext(stream), 20) for _ in range(3)]
            assert {type(one) for one in found} == {PromptsListChanged, ResourcesListChanged, ResourceUpdated}
        after = [one.name for one in (await client.list_prompts(cache_mode="refresh")).prompts]
    assert (before, after) == (["floors", "rooms"], ["floors", "halls", "rooms"])


async def test_a_service_that_cannot_be_reached_is_not_explained_by_an_exception(era: str) -> None:
    from mcp.shared.exceptions import MCPError

    async def fail(*_: Any, **__: Any) -> None:
        raise BespeakError("secret of the network")

    async with Rooms().serving() as (server, _), connected(server, era) as client:
        backend = cast("Any", server)._backend
        backend.document = fail
        with pytest.raises(MCPError, match=r"^The resources cannot be read; try again later\.$"):
            await client.list_resources()


BOOK = endpoint(
    "BOOK",
    "/rooms/{room_id}",
    impact="irreversible",
    is_idempotent=False,
    intent="Reserve a room.",
    outcome="A reservation exists.",
    input_schema={"type": "object", "properties": {"room_id": {}}, "required": ["room_id"]},
)


def prompts(*endpoints: Endpoint) -> dict[str, NamespacePrompt]:
    return make_prompts("Acme", make_tools(endpoints).values())


def test_prompts_explain_tools_for_each_public_namespace_within_a_length() -> None:
    found = prompts(
        BOOK, endpoint("FIND", "/rooms"), endpoint("LIST", "/floors"), endpoint("FIND", "/x", namespace="b")
    )
    assert list(found) == ["b", "floors", "rooms"]
    assert found["rooms"].entry["arguments"] == [
        {"name": "task", "description": "What is to be done, in your words.", "required": False}
    ]
    assert prompts(endpoint("FIND", "/ledger", internal=True)) == {}
    text = prompts(BOOK, endpoint("FIND", "/rooms"))["rooms"].message("")
    read, booked = text.index("These only read:"), text.index("These cannot be undone:")
    assert read < text.index("- find_rooms: Find rooms. Outcome: The rooms are returned.") < booked
    line = text[text.index("- book_rooms") :].splitlines()[0]
    assert line == (
        "- book_rooms: Reserve a room. Outcome: A reservation exists. "
        "It cannot be undone, so a person confirms it before it runs. Requires room_id."
    )
    text = prompts(endpoint("SEND", "/mail", impact=""))["mail"].message("")
    assert "These cannot be undone:\n- send_mail" in text
    assert prompts(BOOK)["rooms"].message("Book 12.").endswith("\n\nTask: Book 12.")
    old = endpoint("AUDIT", "/rooms", deprecated=Deprecation(deprecated_in="2.0", successor_method="FIND"))
    text = prompts(old, endpoint("FIND", "/rooms"))["rooms"].message("")
    assert text.index("- find_rooms") < text.index("- audit_rooms")
    assert "Use find_rooms instead." in text
    many = [endpoint("FIND", f"/rooms/n{number}", tool=f"find_{number}", intent="x" * 900) for number in range(100)]
    text = prompts(*many)["rooms"].message("")
    assert len(text) < 12_100
    shown = text.count("\n- find_")
    assert f"And {100 - shown} more: see the list of tools." in text
    assert max(map(len, text.splitlines())) <= 400


def offer(path: str, *, impact: str = "informational", **named: str) -> Endpoint:
    return endpoint(
        "FETCH", path, handler=McpTool(mcp=McpServer(command="notes", **named)), impact=impact, description="It is."
    )


def test_first_of_a_name_is_offered_unless_it_is_taken_or_changes_something() -> None:
    first, second = offer("/prompts/a", prompt="greet"), offer("/prompts/b", prompt="greet")
    found = Offers([first, second, offer("/resources/a", resource="note://1")])
    assert found.prompts == {"greet": first}
    (entry,) = found.prompt_entries(())
    assert (entry["name"], entry["description"], entry["arguments"]) == ("greet", "It is.", [])
    assert (list(found.prompt_entries({"greet"})), found.resource_entries["note://1"]["name"]) == ([], "a")
    found = Offers([offer("/prompts/a", impact="irreversible", prompt="greet"), offer("/tools/a", tool="greet")])
    assert (found.prompts, found.resources) == ({}, {})

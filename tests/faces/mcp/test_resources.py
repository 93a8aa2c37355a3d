"""Resources and prompts through the official SDK's client, in both protocol eras, over both transports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from tests.faces.mcp.test_http import HALLS, READER, post
from tests.faces.mcp.tools import ERAS, LEGACY, MODERN, Rooms, connected, connected_to

from bespeak import Policies
from bespeak.errors import BespeakError

pytestmark = pytest.mark.anyio

MANIFEST, AGIS, LINT = (f"bespeak://rooms.example/{name}" for name in ("manifest", "agis", "lint"))


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["stdio", "http"])
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@asynccontextmanager
async def reading(face: str, era: str, **options: Any) -> AsyncIterator[Any]:
    """Connect a client to the server of the command, or to that of the HTTP face."""
    rooms = Rooms(**options)
    if face == "stdio":
        async with rooms.serving() as (server, _), connected(server, era) as client:
            yield client
    else:
        async with rooms.on_http() as (url, _), connected_to(url, era, **READER) as client:
            yield client


async def test_three_documents_are_listed_with_type_and_size(face: str, era: str) -> None:
    async with reading(face, era) as client:
        found = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        texts = {one.uri: (await client.read_resource(one.uri)).contents[0] for one in found}
    assert [str(one.uri) for one in found] == [MANIFEST, AGIS, LINT]
    assert templates == []
    assert [one.mime_type for one in found] == [
        "application/vnd.agtp.manifest+json",
        "application/agis+json",
        "application/json",
    ]
    for one in found[:2]:
        assert one.size == len(texts[one.uri].text.encode())
        assert texts[one.uri].mime_type == one.mime_type


async def test_documents_are_those_of_the_other_faces_without_internal_endpoints(face: str, era: str) -> None:
    async with reading(face, era) as client:
        manifest, agis, lint = [
            json.loads((await client.read_resource(uri)).contents[0].text) for uri in (MANIFEST, AGIS, LINT)
        ]
    assert manifest["server"]["server_id"] == "rooms.example"
    for document in (manifest, agis):
        paths = {endpoint["path"] for endpoint in document["endpoints"]}
        assert "/rooms/{room_id}" in paths
        assert "/ledger" not in paths
    assert lint["files"] == [MANIFEST]
    assert "ledger" not in str(lint)


async def test_an_unknown_resource_has_the_code_of_the_revision(face: str, era: str) -> None:
    from mcp.shared.exceptions import MCPError

    async with reading(face, era) as client:
        for uri in ("bespeak://other.example/manifest", "file:///etc/passwd"):
            with pytest.raises(MCPError, match="Resource not found") as refused:
                await client.read_resource(uri)
            assert refused.value.error.code == (-32602 if era == MODERN else -32002)
            assert refused.value.error.data == {"uri": uri}


async def test_a_prompt_explains_a_namespace(face: str, era: str) -> None:
    async with reading(face, era) as client:
        listed = (await client.list_prompts()).prompts
        plain = await client.get_prompt("floors")
        wanted = await client.get_prompt("rooms", {"task": " Book room 12. "})
    assert [one.name for one in listed] == ["floors", "rooms"]
    assert [argument.name for argument in listed[0].arguments] == ["task"]
    assert "- list_floors: List the floors." in plain.messages[0].content.text
    assert wanted.messages[0].content.text.endswith("\n\nTask: Book room 12.")


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("ledger", {}, "Unknown prompt: ledger"),
        ("rooms", {"goal": "x"}, "Unknown argument: goal. There is only task."),
        ("rooms", {"task": "x" * 4001}, "task may have at most 4000 characters."),
    ],
)
async def test_invalid_requests_for_prompts_are_refused(name: str, arguments: Any, message: str, era: str) -> None:
    from mcp.shared.exceptions import MCPError

    async with reading("stdio", era) as client:
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

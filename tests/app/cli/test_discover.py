"""Test `bespeak discover` and `bespeak call` against servers that send terminal control characters."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.agent.client.scripted import always, endpoint, manifest, serving
from tests.process import bespeak

pytestmark = [pytest.mark.anyio, pytest.mark.process]

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x7f"


def is_harmless(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


async def test_manifest_cannot_control_the_terminal() -> None:
    offered = {**endpoint("BOOK", f"/{ESCAPE}", is_idempotent=True), "description": ESCAPE, "required_scopes": [ESCAPE]}
    hostile = manifest(
        offered,
        server={"server_id": ESCAPE, "operator": ESCAPE, "contact": ESCAPE},
        document_version=ESCAPE,
        policies={"methods": {"redirects": [{"from_method": ESCAPE, "to_method": ESCAPE}]}},
    )
    async with serving(always(200, hostile)) as server:
        for options in ([], ["--json"]):
            result = await asyncio.to_thread(bespeak, "discover", server.uri, *options)
            assert result.returncode == 0, result.stderr
            assert is_harmless(result.stdout + result.stderr)
            assert "owned" in result.stdout


async def test_inventory_cannot_control_the_terminal() -> None:
    inventory = [{"method": "BOOK", "path": f"/{ESCAPE}", "description": ESCAPE}]
    async with serving(always(200, inventory)) as server:
        result = await asyncio.to_thread(bespeak, "discover", server.uri, "--methods")
    assert result.returncode == 0, result.stderr
    assert is_harmless(result.stdout)
    assert "owned" in result.stdout


async def test_refusal_cannot_control_the_terminal() -> None:
    refusal = {
        "code": ESCAPE,
        "message": ESCAPE,
        "violations": [{"pointer": ESCAPE, "message": ESCAPE}],
        "details": {ESCAPE: ESCAPE},
        "missing_scopes": [ESCAPE],
    }
    async with serving(always(422, {"error": refusal})) as server:
        result = await asyncio.to_thread(bespeak, "call", server.uri, "BOOK", "/room")
    assert result.returncode == 1
    assert is_harmless(result.stderr)
    assert result.stderr.count("owned") >= 6


async def test_server_error_cannot_control_the_terminal() -> None:
    async with serving(always(401, {"error": {"code": ESCAPE, "message": f"{ESCAPE}\nsecond line"}})) as server:
        result = await asyncio.to_thread(bespeak, "discover", server.uri)
    assert result.returncode == 2
    assert is_harmless(result.stderr)
    assert "owned" in result.stderr


async def test_json_escapes_terminal_control_characters() -> None:
    async with serving(always(200, {"text": ESCAPE})) as server:
        result = await asyncio.to_thread(bespeak, "call", server.uri, "QUERY", "/x")
    assert is_harmless(result.stdout)
    assert json.loads(result.stdout) == {"text": ESCAPE}


async def test_one_long_path_does_not_pad_the_other_rows() -> None:
    paths = ["/short", "/" + "x" * 5000]
    inventory = [{"method": "QUERY", "path": path, "description": "Look."} for path in paths]
    async with serving(always(200, inventory)) as server:
        result = await asyncio.to_thread(bespeak, "discover", server.uri, "--methods")
    short, long = result.stdout.splitlines()
    assert len(short) < 90
    assert paths[1] in long

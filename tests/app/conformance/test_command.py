"""`bespeak conform`: what it prints and how it exits."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from click.testing import CliRunner

from bespeak.agent.client.errors import UnreachableError
from bespeak.app.cli.conform import conform


@contextmanager
def served(mini: Any) -> Iterator[str]:
    """The miniature on a loop of its own, for the command runs one too."""
    ready = threading.Event()
    state: dict[str, Any] = {}

    async def serve() -> None:
        async with mini.serve() as uri:
            state.update(uri=uri, loop=asyncio.get_running_loop(), stop=asyncio.Event())
            ready.set()
            await state["stop"].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    try:
        yield state["uri"]
    finally:
        state["loop"].call_soon_threadsafe(state["stop"].set)
        thread.join(10)


def test_a_conforming_server_exits_with_0(mini: Any) -> None:
    with served(mini) as uri:
        result = CliRunner().invoke(conform, [uri])
    assert result.exit_code == 0, result.output
    assert "13.1-05   pass" in result.output
    assert "\x1b" not in result.output


def test_a_failing_server_exits_with_1_and_shows_why(mini: Any) -> None:
    mini.manifest["catalog_versions_supported"] = []
    with served(mini) as uri:
        result = CliRunner().invoke(conform, [uri])
    assert result.exit_code == 1
    assert "13.1-05   fail" in result.output
    assert "catalog_versions_supported is []" in result.output


def test_report_is_printed_as_json(mini: Any) -> None:
    with served(mini) as uri:
        result = CliRunner().invoke(conform, [uri, "--json", "--agent-id", "a" * 64])
    report = json.loads(result.output)
    assert report["conforms"] is True
    assert report["agent_id"] == "a" * 64


def test_unreachable_server_exits_with_2() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        uri = f"agtp://127.0.0.1:{free.getsockname()[1]}"
    result = CliRunner().invoke(conform, [uri])
    assert isinstance(result.exception, UnreachableError)


@pytest.mark.parametrize("arguments", [[], ["agtp://x", "--timeout", "0"], ["agtp://x", "--ca-file", "missing.pem"]])
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(conform, arguments).exit_code == 2

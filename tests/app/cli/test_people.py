"""`bespeak people`: what waits for people, and answers on the command line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.messaging import inbox, sent
from tests.service import AGENT
from tests.stateful import keeping

from bespeak.app.cli.cases import people
from bespeak.state.store.settings import open_store
from bespeak.terminal import CommandFailedError

METHODS = ("ALERT", "CHECK")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a store in which the operator has been sent a notification."""
    place = tmp_path / "store.db"

    async def fill() -> None:
        async with keeping(methods=METHODS, store=open_store(str(place))) as bench:
            await sent(bench, "NOTIFY", {"recipient": "operator", "content": "The roof leaks.\x1b[31m"})

    asyncio.run(fill())
    return place


def run(*arguments: str) -> str:
    result = CliRunner().invoke(people, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def waiting(place: Path, name: str = "operator") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("show", name, "--store", str(place), "--json"))["messages"]
    return found


def test_messages_are_shown_and_acknowledged_once_and_the_sender_is_told(place: Path) -> None:
    text = run("show", "operator", "--store", str(place))
    assert ("The roof leaks." in text, "\x1b" in text) == (True, False)
    assert "Nothing waits for chef" in run("show", "chef", "--store", str(place))
    [message] = waiting(place)
    assert "accepted by ann" in run("acknowledge", message["message_id"], "--store", str(place), "--by", "ann")
    assert waiting(place) == []
    with pytest.raises(CommandFailedError, match="answered before"):
        run("acknowledge", message["message_id"], "--store", str(place), "--by", "ann", "--decline")

    async def look() -> list[dict[str, Any]]:
        async with keeping(methods=METHODS, store=open_store(str(place))) as bench:
            return await inbox(bench, AGENT)

    [told] = asyncio.run(look())
    assert (told["sender"], told["content"]["attestation"]) == ("person:operator", {"by": "operator:ann"})


@pytest.mark.parametrize("message", ["msg-1", "ntf-1"])
def test_what_no_person_has_is_not_acknowledged(place: Path, message: str) -> None:
    with pytest.raises(CommandFailedError, match="no person has a message"):
        run("acknowledge", message, "--store", str(place), "--by", "ann")

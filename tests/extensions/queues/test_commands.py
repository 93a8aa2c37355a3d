"""`bespeak queues` shows items and tries dead ones again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from tests.service import AGENT
from tests.stateful import do_at

from bespeak.extensions.messages.store import PutInChannel
from bespeak.extensions.queues.commands import queues
from bespeak.extensions.queues.store import Item
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ChangeRecord, PutRecord
from bespeak.terminal import CommandFailedError


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    authority = Authority(agent_id=AGENT, scopes=(), headers={})
    broken = Item("invoices", {"order": "9"}, 5, authority, error={"code": "jammed", "message": "No paper."})
    puts = [
        PutInChannel(PutRecord(f"item-{number}", "submission", AGENT, "queued", text(broken), delay=0.0), "invoices")
        for number in (1, 2)
    ]
    do_at(path, *puts, ChangeRecord("item-2", ("submission",), ("queued",), "dead"), role="sole")
    return path


def text(item: Item) -> str:
    return msgspec.json.encode(item).decode()


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(queues, list(arguments))
    return result.exit_code, result.output


def shown(place: Path, *arguments: str) -> Any:
    code, output = run(*arguments, "--store", str(place), "--json")
    assert code == 0, output
    return json.loads(output)


def test_items_are_counted_shown_and_tried_again(place: Path) -> None:
    assert shown(place, "list") == {"queues": {"invoices": {"dead": 1, "queued": 1}}}
    (dead,) = shown(place, "show", "invoices")["items"]
    assert (dead["tracking_id"], dead["error"]["code"]) == ("item-2", "jammed")
    assert "jammed: No paper." in run("show", "invoices", "--store", str(place))[1]
    assert shown(place, "retry", "item-2")["state"] == "queued"
    assert shown(place, "list") == {"queues": {"invoices": {"queued": 2}}}


def test_what_is_not_dead_is_not_tried_again(place: Path) -> None:
    result = CliRunner().invoke(queues, ["retry", "item-1", "--store", str(place)])
    assert isinstance(result.exception, CommandFailedError)
    assert "there is no dead item 'item-1'" in str(result.exception)

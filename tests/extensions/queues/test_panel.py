"""The panel of queues counts items, shows the dead without what they carry, and tries them again."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.console import Mounted, code_of
from tests.service import AGENT
from tests.stateful import audited_backend, keeping

from bespeak.contract.standard.methods import choose_methods
from bespeak.extensions.messages.store import PutInChannel
from bespeak.extensions.queues.store import Item
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ChangeRecord, PutRecord

__all__ = ["audited_backend"]
pytestmark = pytest.mark.anyio


async def test_a_dead_item_is_shown_without_its_payload_and_tried_again() -> None:
    authority = Authority(agent_id=AGENT, scopes=(), headers={})
    item = Item("invoices", {"card": "4111-secret"}, 5, authority, error={"code": "jammed", "message": "No paper."})
    async with keeping(methods=choose_methods(("SUBMIT",))) as kept:
        text = msgspec.json.encode(item).decode()
        for number in (1, 2):
            record = PutRecord(f"item-{number}", "submission", AGENT, "queued", text, delay=3600.0)
            await kept.store.do(PutInChannel(record, "invoices"))
        await kept.store.do(ChangeRecord("item-2", ("submission",), ("queued",), "dead"))
        console = Mounted(bench=kept.bench)
        [queues] = await console.panel("queues")
        assert queues["rows"][0]["cells"] == ["invoices", 1, 0, 1, 0, 0]
        [dead] = await console.panel("queues", key="invoices")
        assert dead["rows"][0]["cells"][4:] == ["jammed", "No paper."]
        assert "4111" not in json.dumps(dead)
        assert code_of(await console.act("queues", "retry", "item-1")) == (409, "not-possible")
        blocks = (await console.act("queues", "retry", "item-2")).json()["blocks"]
        assert blocks[0]["rows"][0]["cells"] == ["invoices", 2, 0, 0, 0, 0]

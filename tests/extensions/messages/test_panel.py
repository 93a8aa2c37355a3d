"""The panel of deliveries counts what waits to be sent, by topic."""

from __future__ import annotations

import pytest
from tests.console import Mounted
from tests.stateful import keeping

from bespeak.contract.standard.methods import choose_methods
from bespeak.extensions.messages.store import PutOutbox

pytestmark = pytest.mark.anyio


async def test_the_outbox_is_counted_by_topic_without_what_it_carries() -> None:
    async with keeping(methods=choose_methods(("SEND",))) as kept:
        for number in range(3):
            await kept.store.do(PutOutbox("parcels", "", '"secret"', delay=3600.0 if number else 0.0))
        [outbox] = await Mounted(bench=kept.bench).panel("deliveries")
        assert [row["cells"][:4] for row in outbox["rows"]] == [["parcels", 3, 1, 0]]
        assert "secret" not in str(outbox)

"""A recipient confirms a message once; the first word counts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.messaging import ANN, BOB, inbox, sent
from tests.stateful import StatefulBench, keeping

from bespeak.state.store.opening import open_store

pytestmark = pytest.mark.anyio


async def message(bench: StatefulBench) -> str:
    await sent(bench, "NOTIFY", {"recipient": BOB, "content": "hello"})
    message_id: str = (await inbox(bench))[0]["message_id"]
    return message_id


async def confirm(bench: StatefulBench, target_id: str, status: str = "accepted", **fields: Any) -> Any:
    return await bench.send("CONFIRM", "/", {"target_id": target_id, "status": status, **fields}, agent=BOB)


async def test_the_same_confirmation_again_is_the_same_answer(shared_place: str) -> None:
    async with keeping(store=open_store(shared_place)) as bench:
        target_id = await message(bench)
        first = (await confirm(bench, target_id, reason="seen", attestation={"by": "me"})).json["result"]
        assert (await confirm(bench, target_id)).json["result"] == first
        other = await confirm(bench, target_id, "rejected")
        assert (other.status, other.error["code"]) == (409, "already-decided")
        [kept] = await inbox(bench, state="acknowledged")
        assert (kept["confirmed"]["reason"], kept["confirmed"]["attestation"]) == ("seen", {"by": "me"})
        assert len(await inbox(bench, ANN)) == 1


async def test_a_deferred_message_is_read_and_can_still_be_confirmed() -> None:
    async with keeping() as bench:
        target_id = await message(bench)
        assert (await confirm(bench, target_id, "deferred")).status == 200
        assert [one["state"] for one in await inbox(bench)] == ["read"]
        assert (await confirm(bench, target_id, "rejected")).status == 200
        assert [one["state"] for one in await inbox(bench)] == ["declined"]


async def test_of_confirmations_at_the_same_moment_one_counts(shared_place: str) -> None:
    async with keeping(store=open_store(shared_place)) as bench:
        target_id = await message(bench)
        replies = await asyncio.gather(confirm(bench, target_id), confirm(bench, target_id, "rejected"))
        assert sorted(reply.status for reply in replies) == [200, 409]
        assert len(await inbox(bench, ANN)) == 1

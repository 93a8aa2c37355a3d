"""A trail is verified against the configuration and the keys, not against what its records claim."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from joserfc.jwk import OKPKey
from tests.cases import rows
from tests.state.audit.trails import ANN, BOB, KEY, KEYS, NOW, append, faults_in, make_checkpointer, make_sealer

from bespeak.state.audit.checkpoints import make_checkpoint
from bespeak.state.audit.trail import Signing, StoreTrail, StreamHead
from bespeak.state.audit.verification import Expectation, Tally, Verification
from bespeak.state.identity.jws import generate_key, key_id
from bespeak.state.identity.key_files import SigningKey, TrustedKeys, trusted
from bespeak.state.store.commands.audit import AppendCheckpoint, LastCheckpoint
from bespeak.state.store.store import Command, Statement, Steps, Store

pytestmark = pytest.mark.anyio
EACH, CHECKPOINTS, NONE = (Expectation(sign) for sign in ("each", "checkpoints", "none"))
NEW = generate_key()
BOTH = {**KEYS, **trusted([NEW])}


class Sql(Command, frozen=True):
    """Changes the tables as an attacker with access to them could."""

    text: str

    def steps(self) -> Steps:
        yield Statement(self.text)


@asynccontextmanager
async def process(
    store: Store, prefix: str, signing: Signing | None = "each", key: OKPKey = KEY, *, killed: bool = False
) -> AsyncIterator[None]:
    """Run a process that records, from its start to its end."""
    sealer = make_sealer(signing=signing, prefix=prefix, key=key)
    store.attach(sealer)
    checkpointer = make_checkpointer(store, sealer, key=key) if signing is not None else None
    if checkpointer is not None:
        await checkpointer.start()
    yield
    if checkpointer is not None and not killed:
        await checkpointer.stop()


async def run(store: Store, prefix: str, signing: Signing | None = "each", key: OKPKey = KEY, **options: Any) -> None:
    async with process(store, prefix, signing, key, killed=options.pop("killed", False)):
        await append(store, [ANN, BOB, ANN], **options)


async def switch_off(store: Store) -> None:
    await make_checkpointer(store, make_sealer(signing=None)).end()


async def kinds(store: Store, expected: Expectation = EACH, keys: TrustedKeys = KEYS) -> list[tuple[str, str]]:
    return [(fault.kind, fault.stream) for fault in await faults_in(store, keys, expected)]


async def tally_of(store: Store, expected: Expectation = EACH, keys: TrustedKeys = KEYS) -> Tally:
    verification = Verification(StoreTrail(store), keys, expected)
    async for _ in verification.faults():
        pass
    return verification.tally


async def test_unsigned_stream_before_the_first_signed_record_is_a_fault(store: Store) -> None:
    await run(store, "a")
    await run(store, "forged", None)
    await store.do(Sql("UPDATE audit SET position = position + 1000 WHERE stream = 'a1'"))
    await store.do(Sql("UPDATE audit SET position = position - 3 WHERE stream = 'forged1'"))
    assert ("unsigned", "forged1") in await kinds(store)
    assert ("unsigned", "forged1") in await kinds(store, Expectation())
    assert ("unsigned", "forged1") in await kinds(store, Expectation(), {})


async def test_unsigned_stream_stays_a_fault_after_the_server_has_covered_it(store: Store) -> None:
    await run(store, "a")
    await run(store, "forged", None)
    await run(store, "b")
    assert ("unsigned", "forged1") in await kinds(store)


async def test_unsigned_trail_is_a_fault_if_there_is_a_key(store: Store) -> None:
    await run(store, "a", None)
    await run(store, "b", None)
    for expected in (EACH, CHECKPOINTS, Expectation()):
        assert await kinds(store, expected) == [("unsigned", "a1"), ("unsigned", "b1")]
    assert await kinds(store, NONE, {}) == []


async def test_trail_by_another_key_is_a_fault(store: Store) -> None:
    await run(store, "a", key=NEW)
    assert {kind for kind, _ in await kinds(store)} == {"forged", "checkpoint"}


async def test_records_from_before_signing_began_verify_and_are_counted(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await run(store, "old", None)
    await run(store, "new")
    assert "signing of the audit trail begins: 3 earlier records are accepted unsigned" in caplog.text
    assert await kinds(store) == []
    tally = await tally_of(store)
    assert (tally.adopted, tally.unproven, tally.signed, tally.signing) == (3, 0, 3, "begins")
    await run(store, "forged", None)
    assert await kinds(store) == [("unsigned", "forged1")]


async def test_stream_from_before_signing_began_cannot_grow(store: Store) -> None:
    old = make_sealer(signing=None, prefix="old")
    store.attach(old)
    await append(store, [ANN])
    await run(store, "new")
    store.attach(old)
    await append(store, ["c" * 64])
    assert await kinds(store) == [("unsigned", "old1")]


@pytest.mark.parametrize("expected", [NONE, Expectation()])
async def test_recorded_end_of_signing_explains_unsigned_records(store: Store, expected: Expectation) -> None:
    await run(store, "a")
    await switch_off(store)
    await run(store, "plain", None)
    assert await kinds(store, expected) == []
    tally = await tally_of(store, expected)
    assert (tally.unproven, tally.signing) == (3, "ends")
    assert await kinds(store, EACH) == [("unsigned", "plain1")]


async def test_signing_that_begins_again_covers_the_records_between(store: Store) -> None:
    await run(store, "a")
    await switch_off(store)
    await run(store, "plain", None)
    await run(store, "b")
    assert await kinds(store) == []
    assert (await tally_of(store)).adopted == 3
    await run(store, "forged", None)
    assert await kinds(store) == [("unsigned", "forged1")]


async def test_end_of_signing_that_is_not_recorded_is_a_fault(store: Store) -> None:
    await run(store, "a")
    await run(store, "plain", None)
    for expected in (NONE, EACH, Expectation()):
        assert await kinds(store, expected) == [("unsigned", "plain1")]


async def test_change_of_the_mode_verifies(store: Store) -> None:
    await run(store, "a", "checkpoints")
    await run(store, "b", "each")
    await run(store, "c", "checkpoints")
    for expected in (EACH, CHECKPOINTS):
        assert await kinds(store, expected) == []


async def test_unsigned_records_after_the_last_checkpoint_need_the_mode_that_allows_them(store: Store) -> None:
    await run(store, "a", "checkpoints", killed=True)
    assert await kinds(store, CHECKPOINTS) == []
    assert await kinds(store, EACH) == [("unsigned", "a1")]
    await run(store, "b", "each")  # the next start covers what the killed process left
    assert await kinds(store, EACH) == []


async def test_removed_checkpoints_are_missed_by_the_records(store: Store) -> None:
    await run(store, "a")
    await store.do(Sql("DELETE FROM checkpoints"))
    assert ("checkpoint", "a1") in await kinds(store)


@rows(
    "change",
    "UPDATE audit SET stream = 'x1' WHERE stream = 'a1'",
    "DELETE FROM audit WHERE stream = 'a1'",
    "DELETE FROM audit WHERE sequence = 1",
    "DELETE FROM audit WHERE sequence = 3",
    "INSERT INTO audit (position, stream, sequence, agent_id, audit_id, jws) "
    "SELECT position + 500, stream, sequence, agent_id, audit_id, jws FROM audit WHERE stream = 'a1'",
    "INSERT INTO audit (position, stream, sequence, agent_id, audit_id, jws) "
    "SELECT position + 500, 'x1', sequence, agent_id, audit_id, jws FROM audit WHERE stream = 'a1'",
)
@pytest.mark.parametrize("signing", ["each", "checkpoints"])
async def test_renamed_removed_cut_or_copied_stream_is_a_fault(store: Store, signing: Signing, change: str) -> None:
    await run(store, "a", signing)
    await run(store, "b", signing)
    assert await kinds(store, Expectation(signing)) == []
    await store.do(Sql(change))
    assert await kinds(store, Expectation(signing)) != []


async def test_trail_of_another_server_is_a_fault(store: Store) -> None:
    await run(store, "a", server_id="rooms")
    assert await kinds(store, Expectation("each", frozenset({"rooms"}))) == []
    found = await kinds(store, Expectation("each", frozenset({"seats"})))
    assert {kind for kind, _ in found} == {"foreign"}
    assert ("foreign", "a1") in found
    assert await kinds(store, Expectation("each", frozenset({"rooms", "seats"}))) == []


async def test_two_checkpoints_that_follow_the_same_one_are_a_fault(store: Store) -> None:
    await run(store, "a")
    [first] = await store.do(LastCheckpoint())
    for position in (1, 2):
        made = make_checkpoint(
            SigningKey(KEY),
            [StreamHead("a1", 1, bytes(32))],
            server_id="rooms",
            issued_at=NOW,
            previous=first[0],
            position=position,
        )
        await store.do(AppendCheckpoint(made.checkpoint_id, made.jws))
    assert [kind for kind, _ in await kinds(store)].count("checkpoint") == 1


@pytest.mark.parametrize(("replaced", "good"), [(NOW + 1, True), (NOW - 1, False)])
async def test_replaced_key_signs_nothing_after_its_end(store: Store, replaced: float, good: bool) -> None:
    await run(store, "a", issued_at="2026-05-01T12:00:00.000Z")
    expected = Expectation("each", replaced={key_id(KEY): replaced})
    assert (await kinds(store, expected, BOTH) == []) == good
    if not good:
        assert {kind for kind, _ in await kinds(store, expected, BOTH)} == {"forged", "checkpoint"}


async def test_newer_key_vouches_for_what_was_signed_until_the_restart(store: Store) -> None:
    await run(store, "a", issued_at="2026-05-01T12:00:00.000Z")
    await run(store, "b", key=NEW, issued_at="2026-05-01T12:00:00.000Z")
    expected = Expectation("each", replaced={key_id(KEY): NOW - 1})
    assert await kinds(store, expected, BOTH) == []
    await run(store, "forged", key=KEY, issued_at="2026-05-01T12:00:00.000Z")
    assert ("forged", "forged1") in await kinds(store, expected, BOTH)

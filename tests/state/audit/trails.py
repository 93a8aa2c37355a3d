"""Trails for tests: records sealed and stored as by a server."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from joserfc.jwk import OKPKey

from bespeak.state.audit.checkpoints import Checkpointer
from bespeak.state.audit.trail import ChainSealer, FileTrail, Signing, StoreTrail, Trail, export_lines
from bespeak.state.audit.verification import Expectation, TrailFault, Verification
from bespeak.state.identity.jws import generate_key
from bespeak.state.identity.key_files import SigningKey, TrustedKeys, trusted
from bespeak.state.store.commands.audit import AppendAudit
from bespeak.state.store.store import Conflict, Sealed, Store

KEY: OKPKey = generate_key()
KEYS: TrustedKeys = trusted([KEY])
ANN, BOB = "a" * 64, "b" * 64
NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC).timestamp()


def make_sealer(
    *, signing: Signing | None = "each", key: OKPKey = KEY, prefix: str = "s", heads: int = 100
) -> ChainSealer:
    """Make a sealer with streams called s1, s2 and so on; without a key if `signing` is None."""
    numbers = count(1)
    return ChainSealer(
        SigningKey(key) if signing is not None else None,
        signing=signing or "each",
        most_heads=heads,
        new_stream=lambda: f"{prefix}{next(numbers)}",
    )


def make_checkpointer(store: Store, sealer: ChainSealer, *, every: int = 1000, key: OKPKey = KEY) -> Checkpointer:
    return Checkpointer(
        store,
        sealer,
        SigningKey(key),
        server_id="rooms",
        trusted={**KEYS, **trusted([key])},
        every=every,
        clock=lambda: NOW,
    )


def sealing(store: Store, **options: Any) -> tuple[ChainSealer, Checkpointer]:
    """Let a new sealer seal the records of a store; return it with its checkpointer."""
    sealer = make_sealer()
    store.attach(sealer)
    return sealer, make_checkpointer(store, sealer, **options)


async def append(store: Store, agents: Iterable[str], **members: Any) -> list[Sealed]:
    """Append a record for each agent, each in its own transaction."""
    return [await append_one(store, agent, **members) for agent in agents]


async def append_one(store: Store, agent_id: str, **members: Any) -> Sealed:
    payload = {"method": "BOOK", "server_id": "rooms", **({"agent_id": agent_id} if agent_id else {}), **members}
    done = await store.do(AppendAudit(agent_id, payload))
    assert not isinstance(done, Conflict)
    sealed = done[0]
    assert isinstance(sealed, Sealed)
    return sealed


async def faults_of(trail: Trail, keys: TrustedKeys = KEYS, expected: Expectation | None = None) -> list[TrailFault]:
    return [fault async for fault in Verification(trail, keys, expected).faults()]


async def faults_in(store: Store, keys: TrustedKeys = KEYS, expected: Expectation | None = None) -> list[TrailFault]:
    return await faults_of(StoreTrail(store, page=3), keys, expected)


async def exported(store: Store) -> list[bytes]:
    return [line async for line in export_lines(store)]


async def faults_of_lines(
    lines: Iterable[bytes], path: Path, keys: TrustedKeys = KEYS, expected: Expectation | None = None
) -> list[TrailFault]:
    path.write_bytes(b"".join(lines))
    trail = FileTrail(path)
    try:
        return await faults_of(trail, keys, expected)
    finally:
        trail.close()

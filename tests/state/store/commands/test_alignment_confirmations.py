"""Confirmations of alignments, on every driver."""

from __future__ import annotations

import pytest

from bespeak.state.store.commands.cases import Case, DecideCase, ListCases
from bespeak.state.store.commands.semantics import (
    ALIGNMENT_CASE,
    REGISTRY_TOPIC,
    ConfirmAlignment,
    ListConfirmed,
    RegisterArtifact,
    RevokeConfirmation,
    compress,
)
from bespeak.state.store.store import Conflict, Store

pytestmark = pytest.mark.anyio

ID = "https://ex.org/align/1"


async def register(store: Store, version: str = "1.0", digest: str = "d1") -> None:
    done = await store.do(RegisterArtifact("alignment", ID, version, digest, compress(b"{}")))
    assert not isinstance(done, Conflict)


def confirmation(case_id: str = "align-1", by: str = "operator:ada", version: str | None = None) -> ConfirmAlignment:
    return ConfirmAlignment(ID, version, case_id, by, f"att-{case_id}", "reviewed")


async def test_confirmation_is_a_case_with_who_when_and_digest(store: Store) -> None:
    await register(store)
    told: list[str] = []
    store.watch(REGISTRY_TOPIC, lambda: told.append(REGISTRY_TOPIC))
    done = await store.do(confirmation())
    assert not isinstance(done, Conflict)
    case: Case = done[0]
    assert (case.kind, case.state, case.digest, case.decided_by) == (ALIGNMENT_CASE, "accepted", "d1", "operator:ada")
    assert (case.reason, case.expires) == ("reviewed", None)
    assert case.decided_at is not None
    assert case.decided_at > 1_600_000_000
    assert await store.read(ListConfirmed()) == {"d1": "operator:ada"}
    assert await store.read(ListCases("accepted")) == [case]
    assert told


async def test_second_confirmation_of_the_same_content_is_the_first(store: Store) -> None:
    await register(store)
    first = await store.do(confirmation())
    assert await store.do(confirmation("align-2", "operator:bob")) == first
    assert len(await store.read(ListCases())) == 1


async def test_new_version_has_no_confirmation(store: Store) -> None:
    await register(store)
    await store.do(confirmation())
    await register(store, "1.1", "d2")
    assert await store.read(ListConfirmed()) == {"d1": "operator:ada"}
    await store.do(confirmation("align-2", "operator:bob"))
    assert await store.read(ListConfirmed()) == {"d1": "operator:ada", "d2": "operator:bob"}


async def test_revoked_confirmation_does_not_count_and_keeps_its_history(store: Store) -> None:
    await register(store)
    await store.do(confirmation())
    done = await store.do(RevokeConfirmation(ID, "1.0", "operator:bob", "att-r"))
    assert not isinstance(done, Conflict)
    case: Case = done[0]
    assert (case.state, case.decided_by) == ("rejected", "operator:bob")
    assert '"confirmed_by":"operator:ada"' in (case.attestation or "")
    assert await store.read(ListConfirmed()) == {}
    assert await store.do(RevokeConfirmation(ID, None, "operator:bob", "att-s")) == Conflict("not-confirmed")
    await store.do(confirmation("align-2", "operator:eve"))
    assert await store.read(ListConfirmed()) == {"d1": "operator:eve"}


async def test_agent_cannot_decide_such_a_case(store: Store) -> None:
    await register(store)
    await store.do(confirmation())
    await store.do(RevokeConfirmation(ID, None, "operator:bob", "att-r"))
    decided = await store.do(DecideCase("align-1", "accepted", "agent-1", "att-a", kinds=(ALIGNMENT_CASE,)))
    assert isinstance(decided, Conflict)
    assert await store.read(ListConfirmed()) == {}


async def test_unknown_alignment_is_a_conflict(store: Store) -> None:
    assert await store.do(confirmation()) == Conflict("not-found")
    await register(store)
    assert await store.do(confirmation(version="2.0")) == Conflict("not-found")
    assert await store.do(RevokeConfirmation(ID, "2.0", "operator:bob", "att-r")) == Conflict("not-found")

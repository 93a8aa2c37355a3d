"""Registry of ontologies and alignments, on every driver."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from bespeak.contract.ontology.ontology import OntologyRef
from bespeak.state.store.commands.semantics import (
    REGISTRY_TOPIC,
    Artifact,
    ArtifactRow,
    ListArtifacts,
    Quota,
    ReadArtifact,
    ReadRegistryRevision,
    RegisterArtifact,
    compress,
    decompress,
    latest_of,
)
from bespeak.state.store.store import Conflict, Store

pytestmark = pytest.mark.anyio

CS = "https://ex.org/onto/cs"


def registration(version: str = "1.0", content: bytes = b"quads", **given: Any) -> RegisterArtifact:
    members: dict[str, Any] = {"kind": "ontology", "id": CS, "digest": content.hex(), "source": "cs.ttl", **given}
    return RegisterArtifact(version=version, content=compress(content), **members)


async def register(store: Store, command: RegisterArtifact) -> ArtifactRow | Conflict:
    done = await store.do(command)
    if isinstance(done, Conflict):
        return done
    [row] = done
    assert isinstance(row, ArtifactRow)
    return row


async def test_artifact_is_kept_with_its_provenance(store: Store) -> None:
    row = await register(store, registration(signer="key-1", signature="a.b.c", actor="alice"))
    assert isinstance(row, ArtifactRow)
    assert (row.id, row.version, row.digest, row.source) == (CS, "1.0", b"quads".hex(), "cs.ttl")
    assert (row.signer, row.signature, row.actor, row.supersedes) == ("key-1", "a.b.c", "alice", "")
    assert row.registered > 1_600_000_000
    assert await store.read(ReadArtifact("ontology", CS)) == Artifact(row, b"quads")
    assert await store.read(ListArtifacts()) == [row]


async def test_lower_rank_does_not_supersede_a_higher_one(store: Store) -> None:
    ranks = {"high": 2, "low": 1}
    await register(store, registration("1.0", signer="high"))
    refused = await register(store, registration("1.1", signer="low", ranks=ranks))
    assert refused == Conflict("signer-rank", {"signer": "high"})
    assert isinstance(await register(store, registration("1.1", signer="high", ranks=ranks)), ArtifactRow)
    assert isinstance(await register(store, registration("1.2", signer="low")), ArtifactRow)


async def test_newer_version_supersedes_the_latest(store: Store) -> None:
    for version in ("1.2", "1.10", "2.0"):
        await register(store, registration(version, version.encode()))
    rows = await store.read(ListArtifacts("ontology"))
    assert [(row.version, row.supersedes) for row in rows] == [("1.2", ""), ("1.10", "1.2"), ("2.0", "1.10")]
    latest = await store.read(ReadArtifact("ontology", CS))
    assert latest.content == b"2.0"
    older = await store.read(ReadArtifact("ontology", CS, "1.10"))
    assert older.content == b"1.10"
    assert await store.read(ReadArtifact("ontology", CS, "1.3")) is None
    assert await store.read(ReadArtifact("alignment", CS)) is None


async def test_registered_version_never_changes(store: Store) -> None:
    first = await register(store, registration())
    assert await register(store, registration(source="elsewhere")) == first
    taken = await register(store, registration(content=b"other"))
    assert taken == Conflict("version-taken", {"digest": b"quads".hex()})
    assert await store.read(ReadRegistryRevision()) == 1


@pytest.mark.parametrize("version", ["1.4", "draft", "2026-01-01"])
async def test_downgrade_and_versions_that_do_not_compare_are_refused(store: Store, version: str) -> None:
    await register(store, registration("1.5"))
    refused = await register(store, registration(version, b"other"))
    assert isinstance(refused, Conflict)
    assert refused.reason == "version-order"
    assert refused.details["latest"] == "1.5"
    assert await store.read(ReadRegistryRevision()) == 1


async def test_unsigned_version_does_not_follow_a_signed_one(store: Store) -> None:
    await register(store, registration("1.0", signer="key-1"))
    refused = await register(store, registration("1.1"))
    assert refused == Conflict("signature-missing", {"signer": "key-1"})
    assert isinstance(await register(store, registration("1.1", signer="key-2")), ArtifactRow)


async def test_alignment_references_registered_versions_exactly(store: Store) -> None:
    await register(store, registration("1.0"))
    refs = (OntologyRef(CS, "1.0"), OntologyRef("https://ex.org/onto/law", "1.0"))
    align = registration("1", b"{}", kind="alignment", id="https://ex.org/align/1", refs=refs)
    unknown = await register(store, align)
    assert unknown == Conflict("reference-unknown", {"id": "https://ex.org/onto/law", "version": "1.0"})
    assert await store.read(ListArtifacts("alignment")) == []
    await register(store, registration("1.0", id="https://ex.org/onto/law"))
    row = await register(store, align)
    assert isinstance(row, ArtifactRow)
    assert row.refs == refs


async def test_simultaneous_registrations_leave_one_order(first: Store, second: Store) -> None:
    versions = [f"1.{number}" for number in range(6)]
    done = await asyncio.gather(
        *(
            (first if number % 2 else second).do(registration(version, version.encode()))
            for number, version in enumerate(versions)
        )
    )
    kept = [one[0] for one in done if not isinstance(one, Conflict)]
    refused = {one.reason for one in done if isinstance(one, Conflict)}
    assert refused <= {"changed", "version-order"}
    rows = await first.read(ListArtifacts())
    assert {row.version for row in rows} == {row.version for row in kept}
    assert [row.supersedes for row in rows] == ["", *(row.version for row in rows[:-1])]
    assert [row.revision for row in rows] == list(range(1, len(rows) + 1))


async def test_watchers_are_woken_and_read_what_is_new(first: Store, second: Store) -> None:
    woken = asyncio.Event()
    second.watch(REGISTRY_TOPIC, woken.set)
    await register(first, registration("1.0"))
    await asyncio.wait_for(woken.wait(), 30)
    await register(first, registration("1.1", b"new"))
    assert [row.version for row in await second.read(ListArtifacts(since=1))] == ["1.1"]


def test_content_beyond_the_limit_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.state.store.commands.semantics.MOST_CONTENT", 100)
    assert len(decompress(compress(b"x" * 10_000))) == 100


def test_latest_is_the_highest_version_in_any_order() -> None:
    row = ArtifactRow("ontology", CS, "1.0", "", (), "", "", "", "", "", 1, 0.0)
    rows = [msgspec.structs.replace(row, version=version) for version in ("1.9", "1.10", "1.2")]
    latest = latest_of(rows)
    assert latest is not None
    assert latest.version == "1.10"
    assert latest_of([]) is None


async def test_agent_registers_no_more_than_its_quota_in_all_versions(store: Store) -> None:
    quota = Quota(3, 1_000)

    async def offer(number: int, version: str, actor: str = "agent-1", size: int = 10) -> ArtifactRow | Conflict:
        content = f"{number} {version} {actor}".encode()
        given = {"id": f"https://ex.org/onto/{number}", "actor": actor, "quota": quota, "size": size}
        return await register(store, registration(version, content, **given))

    for number, version in ((1, "1.0"), (1, "1.1"), (2, "1.0")):
        assert isinstance(await offer(number, version), ArtifactRow)
    for number, version in ((1, "1.2"), (3, "1.0")):
        assert await offer(number, version) == Conflict("quota", {"most": 3, "used": 3, "unit": "artifacts"})
    assert isinstance(await offer(2, "1.0"), ArtifactRow)  # the same content again takes no room
    assert isinstance(await offer(9, "1.0", "agent-2", size=995), ArtifactRow)
    exceeded = await offer(9, "1.1", "agent-2")
    assert exceeded == Conflict("quota", {"most": 1_000, "used": 995, "unit": "bytes"})
    assert isinstance(await register(store, registration("1.0", id="https://ex.org/onto/10")), ArtifactRow)


async def test_agents_leave_room_for_the_operator(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.state.store.commands.semantics.MOST_REGISTERED", 4)
    quota = Quota(100, 1_000)
    for number in range(2):
        given = {"id": f"https://ex.org/onto/{number}", "actor": f"agent-{number}", "quota": quota}
        assert isinstance(await register(store, registration(**given)), ArtifactRow)
    refused = await register(store, registration(id="https://ex.org/onto/3", actor="agent-3", quota=quota))
    assert refused == Conflict("registry-full", {"most": 2})
    for number in (4, 5):
        assert isinstance(await register(store, registration(id=f"https://ex.org/onto/{number}")), ArtifactRow)
    last = await register(store, registration(id="https://ex.org/onto/6"))
    assert last == Conflict("registry-full", {"most": 4})


async def test_agent_does_not_supersede_what_another_has_registered(store: Store) -> None:
    quota = Quota(100, 10_000)
    await register(store, registration("1.0", actor="ada"))
    taken = registration("1.1", b"other", actor="agent-1", quota=quota)
    assert await register(store, taken) == Conflict("of-another")
    signed = msgspec.structs.replace(taken, signer="key-1")
    assert isinstance(await register(store, signed), ArtifactRow)
    own = {"id": "https://ex.org/onto/own", "actor": "agent-1", "quota": quota}
    for version in ("1.0", "1.1"):
        assert isinstance(await register(store, registration(version, version.encode(), **own)), ArtifactRow)
    operator = registration("1.2", b"operator", id="https://ex.org/onto/own", actor="ada")
    assert isinstance(await register(store, operator), ArtifactRow)

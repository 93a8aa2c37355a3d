"""Registry of ontologies and alignments, on every driver."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from bespeak.extensions.semantics.store import (
    ALIGNMENT_CASE,
    REGISTRY_TOPIC,
    Artifact,
    ArtifactRow,
    ConfirmAlignment,
    CountMappedCalls,
    ListArtifacts,
    ListConfirmed,
    ListMappedCalls,
    MappedCalls,
    Quota,
    ReadArtifact,
    RecordedProfile,
    RecordProfile,
    RegisterArtifact,
    ReplaceProfile,
    RevokeConfirmation,
    UseProfile,
    compress,
    decompress,
    latest_of,
    record_id,
)
from bespeak.extensions.semantics.terms import OntologyRef
from bespeak.state.store.commands.cases import Case, DecideCase, ListCases
from bespeak.state.store.store import Command, Conflict, Statement, Steps, Store

pytestmark = pytest.mark.anyio

CS = "https://ex.org/onto/cs"


def registration(version: str = "1.0", content: bytes = b"quads", **given: Any) -> RegisterArtifact:
    members: dict[str, Any] = {"kind": "ontology", "id": CS, "digest": content.hex(), "source": "cs.ttl", **given}
    return RegisterArtifact(version=version, content=compress(content), **members)


async def register(store: Store, command: RegisterArtifact) -> ArtifactRow | Conflict:
    done = await store.do(command)
    return done if isinstance(done, Conflict) else done[0]


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
    assert (await store.read(ReadArtifact("ontology", CS))).content == b"2.0"
    assert (await store.read(ReadArtifact("ontology", CS, "1.10"))).content == b"1.10"
    assert await store.read(ReadArtifact("ontology", CS, "1.3")) is None
    assert await store.read(ReadArtifact("alignment", CS)) is None


async def test_registered_version_never_changes(store: Store) -> None:
    first = await register(store, registration())
    assert await register(store, registration(source="elsewhere")) == first
    taken = await register(store, registration(content=b"other"))
    assert taken == Conflict("version-taken", {"digest": b"quads".hex()})
    assert await store.read(ListArtifacts()) == [first]


@pytest.mark.parametrize("version", ["1.4", "draft", "2026-01-01"])
async def test_downgrade_and_versions_that_do_not_compare_are_refused(store: Store, version: str) -> None:
    await register(store, registration("1.5"))
    refused = await register(store, registration(version, b"other"))
    assert isinstance(refused, Conflict)
    assert (refused.reason, refused.details["latest"]) == ("version-order", "1.5")
    assert [row.version for row in await store.read(ListArtifacts())] == ["1.5"]


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
    stores = [first, second] * 3
    calls = (store.do(registration(one, one.encode())) for store, one in zip(stores, versions, strict=True))
    done = await asyncio.gather(*calls)
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


def test_content_beyond_the_limit_is_cut_and_latest_is_the_highest_version_in_any_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bespeak.extensions.semantics.store.MOST_CONTENT", 100)
    assert len(decompress(compress(b"x" * 10_000))) == 100
    row = ArtifactRow("ontology", CS, "1.0", "", (), "", "", "", "", "", 1, 0.0)
    rows = [msgspec.structs.replace(row, version=version) for version in ("1.9", "1.10", "1.2")]
    latest = latest_of(rows)
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
    monkeypatch.setattr("bespeak.extensions.semantics.store.MOST_REGISTERED", 4)
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


TASK = record_id("task", "a" * 64, "t-1038")


async def do(store: Store, command: Command) -> Any:
    done = await store.do(command)
    assert not isinstance(done, Conflict)
    return done[0]


class Expire(Command, frozen=True):
    """Let every record expire in some seconds."""

    seconds: int = -1

    def steps(self) -> Steps:
        yield Statement("UPDATE records SET expires = {now} + ?", (self.seconds,))


async def test_first_profile_of_a_task_stays(store: Store) -> None:
    assert (await do(store, UseProfile(TASK))).digest == ""
    first = await do(store, RecordProfile(TASK, "a", "d1", {"n": 1}))
    assert first == RecordedProfile("d1", {"n": 1}, "a", 1)
    assert await do(store, RecordProfile(TASK, "a", "d2", {"n": 2})) == first
    assert await do(store, UseProfile(TASK)) == first


async def test_renegotiated_profile_replaces_it(store: Store) -> None:
    await do(store, RecordProfile(TASK, "a", "d1", {}))
    assert await do(store, ReplaceProfile(TASK, "a", "d2", {"n": 2})) == RecordedProfile("d2", {"n": 2}, "a", 2)
    assert (await do(store, RecordProfile(TASK, "a", "d1", {}))).digest == "d2"
    other = record_id("task", "a", "t-2")
    assert await do(store, ReplaceProfile(other, "a", "d1", {})) == RecordedProfile("d1", {}, "a", 1)


class Remaining(Command, frozen=True):
    """Tell how many seconds a record is still kept."""

    def steps(self) -> Steps:
        rows = yield Statement("SELECT expires - {now} FROM records")
        return rows[0][0]


async def test_profile_that_calls_use_is_kept_longer(store: Store) -> None:
    assert (await do(store, UseProfile(TASK))).digest == ""
    await do(store, RecordProfile(TASK, "a", "d1", {}))
    await do(store, Expire(60))
    assert await store.read(Remaining()) < 61
    assert (await do(store, UseProfile(TASK))).digest == "d1"
    assert await store.read(Remaining()) > 86400


async def test_expired_profile_gives_way(store: Store) -> None:
    await do(store, RecordProfile(TASK, "a", "d1", {}))
    await do(store, Expire())
    assert (await do(store, RecordProfile(TASK, "a", "d2", {}))).digest == "d2"
    await do(store, Expire())
    assert (await do(store, ReplaceProfile(TASK, "a", "d3", {}))).digest == "d3"


async def test_calls_that_begin_a_task_at_once_agree_on_one_profile(first: Store, second: Store) -> None:
    commands = [RecordProfile(TASK, "a", f"d{number}", {}) for number in range(6)]
    found = await asyncio.gather(*(do(*one) for one in zip([first, second] * 3, commands, strict=True)))
    assert len({one.digest for one in found}) == 1


def test_agents_cannot_guess_the_tasks_of_others() -> None:
    ids = {
        record_id("task", "a", "b"),
        record_id("task", "ab", ""),
        record_id("task", "b", "a"),
        record_id("profile", "a", "b"),
    }
    assert len(ids) == 4


ID = "https://ex.org/align/1"


async def alignment_confirmations_register(store: Store, version: str = "1.0", digest: str = "d1") -> None:
    await do(store, RegisterArtifact("alignment", ID, version, digest, compress(b"{}")))


def confirmation(case_id: str = "align-1", by: str = "operator:ada", version: str | None = None) -> ConfirmAlignment:
    return ConfirmAlignment(ID, version, by, f"att-{case_id}", "reviewed", case_id)


async def test_confirmation_is_a_case_with_who_when_and_digest(store: Store) -> None:
    await alignment_confirmations_register(store)
    told: list[str] = []
    store.watch(REGISTRY_TOPIC, lambda: told.append(REGISTRY_TOPIC))
    case: Case = await do(store, confirmation())
    assert (case.kind, case.state, case.digest, case.decided_by) == (ALIGNMENT_CASE, "accepted", "d1", "operator:ada")
    assert (case.reason, case.expires) == ("reviewed", None)
    assert (case.decided_at or 0) > 1_600_000_000
    assert await store.read(ListConfirmed()) == {"d1": "operator:ada"}
    assert await store.read(ListCases("accepted")) == [case]
    assert told


async def test_second_confirmation_of_the_same_content_is_the_first(store: Store) -> None:
    await alignment_confirmations_register(store)
    first = await store.do(confirmation())
    assert await store.do(confirmation("align-2", "operator:bob")) == first
    assert len(await store.read(ListCases())) == 1


async def test_new_version_has_no_confirmation(store: Store) -> None:
    await alignment_confirmations_register(store)
    await store.do(confirmation())
    await alignment_confirmations_register(store, "1.1", "d2")
    assert await store.read(ListConfirmed()) == {"d1": "operator:ada"}
    await store.do(confirmation("align-2", "operator:bob"))
    assert await store.read(ListConfirmed()) == {"d1": "operator:ada", "d2": "operator:bob"}


async def test_revoked_confirmation_does_not_count_and_keeps_its_history(store: Store) -> None:
    await alignment_confirmations_register(store)
    await store.do(confirmation())
    case: Case = await do(store, RevokeConfirmation(ID, "1.0", "operator:bob", "att-r"))
    assert (case.state, case.decided_by) == ("rejected", "operator:bob")
    assert '"confirmed_by":"operator:ada"' in (case.attestation or "")
    assert await store.read(ListConfirmed()) == {}
    assert await store.do(RevokeConfirmation(ID, None, "operator:bob", "att-s")) == Conflict("not-confirmed")
    await store.do(confirmation("align-2", "operator:eve"))
    assert await store.read(ListConfirmed()) == {"d1": "operator:eve"}


async def test_agent_cannot_decide_such_a_case(store: Store) -> None:
    await alignment_confirmations_register(store)
    await store.do(confirmation())
    await store.do(RevokeConfirmation(ID, None, "operator:bob", "att-r"))
    decided = await store.do(DecideCase("align-1", "accepted", "agent-1", "att-a", kinds=(ALIGNMENT_CASE,)))
    assert isinstance(decided, Conflict)
    assert await store.read(ListConfirmed()) == {}


async def test_unknown_alignment_is_a_conflict(store: Store) -> None:
    assert await store.do(confirmation()) == Conflict("not-found")
    await alignment_confirmations_register(store)
    assert await store.do(confirmation(version="2.0")) == Conflict("not-found")
    assert await store.do(RevokeConfirmation(ID, "2.0", "operator:bob", "att-r")) == Conflict("not-found")


async def test_calls_add_up_and_the_most_used_mapping_comes_first(store: Store) -> None:
    await do(store, CountMappedCalls((MappedCalls("x:a", "y:a", 2, 1), MappedCalls("x:b", "y:b", 1, 0))))
    await do(store, CountMappedCalls((MappedCalls("x:b", "y:b", 5, 2), MappedCalls("y:a", "x:a", 0, 1))))
    assert await store.read(ListMappedCalls()) == [
        MappedCalls("x:b", "y:b", 6, 2),
        MappedCalls("x:a", "y:a", 2, 1),
        MappedCalls("y:a", "x:a", 0, 1),
    ]
    assert len(await store.read(ListMappedCalls(1))) == 1


async def test_longest_names_fit(store: Store) -> None:
    await do(store, CountMappedCalls((MappedCalls("x:" + "é" * 249, "y:" + "é" * 249, 1, 0),)))
    assert len(await store.read(ListMappedCalls())) == 1

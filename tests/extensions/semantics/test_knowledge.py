"""What a server knows of the registry follows what any process registers."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from joserfc.jwk import OKPKey
from tests.meaning import ALIGNMENT, CLINICAL, RAD, alignment, register_all, registration_of, registrations

from bespeak.checks.alignment.artifact import Trust
from bespeak.contract.ontology.alignment import Alignment
from bespeak.documents.alignment.draft_json import statement_of
from bespeak.extensions.semantics import knowledge
from bespeak.extensions.semantics.knowledge import Knowledge, read_artifact
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.artifact_signature import sign_artifact
from bespeak.state.identity.jws import PrivateKey
from bespeak.state.identity.key_text import generate_key, key_id
from bespeak.state.store.commands.semantics import (
    Artifact,
    ConfirmAlignment,
    ReadArtifact,
    RegisterArtifact,
    RevokeConfirmation,
    compress,
)
from bespeak.state.store.opening import open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with started("memory") as opened:
        yield opened


@asynccontextmanager
async def started(place: str) -> AsyncIterator[Store]:
    opened = open_store(place)
    await opened.start()
    yield opened
    await opened.close()


async def test_registry_is_loaded_and_followed_across_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bespeak.state.store.sqlite.POLL_SECONDS", 0.02)
    place = str(tmp_path / "store.db")
    async with started(place) as first, started(place) as second:
        await follow(first, second)


async def follow(first: Store, second: Store) -> None:
    known = Knowledge()
    await known.follow(second)
    assert known.snapshot.latest(RAD) is None
    await register_all(first)
    async with asyncio.timeout(30):
        while known.snapshot.revision < 5:  # woken by each registration of the other process
            await asyncio.sleep(0.01)
    assert known.snapshot.latest(CLINICAL) is not None
    assert known.snapshot.alignments[ALIGNMENT].confidence == 0.91
    await known.close()


async def test_changed_content_is_not_used(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    for command in registrations():
        poisoned = command.kind == "alignment" or command.id == RAD
        await store.do(msgspec.structs.replace(command, digest="0" * 64) if poisoned else command)
    known = Knowledge()
    with caplog.at_level(logging.ERROR):
        await known.follow(store)
    assert (known.snapshot.latest(RAD), known.snapshot.alignments) == (None, {})
    assert known.snapshot.latest(CLINICAL) is not None
    assert caplog.text.count("does not have the registered digest") == 2


async def test_contexts_are_registered_with_or_without_their_member(store: Store) -> None:
    for number, content in enumerate((b'{"x":"https://x.example/"}', b'{"@context":{"x":"https://x.example/"}}')):
        digest = hashlib.sha256(content).hexdigest()
        iri = f"https://ex.org/ctx/{number}"
        await store.do(RegisterArtifact("context", iri, "1.0", digest, compress(content)))
    known = Knowledge()
    await known.follow(store)
    assert list(known.snapshot.contexts.values()) == [{"x": "https://x.example/"}] * 2


async def test_memory_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await register_all(store)
    monkeypatch.setattr(knowledge, "MOST_ARTIFACTS", 3)
    known = Knowledge()
    await known.follow(store)
    assert len(known.snapshot.ontologies) == 4  # three, and the core
    assert known.snapshot.alignments == {}


async def test_alignment_keeps_who_signed_it(store: Store) -> None:
    await register_all(store, alignment())
    await store.do(msgspec.structs.replace(registration_of(alignment(version="1.1")), signer="key-1"))
    artifact: Artifact = await store.read(ReadArtifact("alignment", ALIGNMENT))
    found = read_artifact(artifact)
    assert isinstance(found, Alignment)
    assert (found.version, found.signer) == ("1.1", "key-1")
    broken = msgspec.structs.replace(artifact, content=b"{}")
    assert isinstance(read_artifact(broken), Fault)


def signed_by(key: OKPKey, found: Alignment) -> RegisterArtifact:
    """Return a registration with a signature, as a key has made it."""
    assert isinstance(key.private_key, PrivateKey)
    token = sign_artifact(statement_of(found), key.private_key, key_id(key), 0.0)
    return msgspec.structs.replace(registration_of(found), signer=key_id(key), signature=token)


async def test_only_artifacts_of_trusted_keys_are_used_once_there_are_keys(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    await register_all(store, alignment(id="https://0.example/unsigned"))
    key, stranger = generate_key(), generate_key()
    good = signed_by(key, alignment(id="https://ex.org/good"))
    await store.do(signed_by(stranger, alignment(id="https://ex.org/stranger")))
    # Rows that claim a signer, or have the signature of another artifact.
    await store.do(msgspec.structs.replace(registration_of(alignment(id="https://ex.org/claims")), signer=key_id(key)))
    copied = registration_of(alignment(id="https://ex.org/copied"))
    await store.do(msgspec.structs.replace(copied, signer=key_id(key), signature=good.signature))
    trust = Trust(keys={key_id(key): key.public_key}, signed=True)
    known = Knowledge(trust=trust)
    with caplog.at_level(logging.ERROR):
        await known.follow(store)
    assert known.snapshot.alignments == {}
    assert "`trusted_keys` of [semantic]" in known.snapshot.unused["https://0.example/unsigned"]
    await store.do(good)
    await known.refresh()
    assert list(known.snapshot.alignments) == ["https://ex.org/good"]
    assert "which is not trusted" in caplog.text


async def test_signed_version_stays_in_use_when_a_later_one_is_not_trusted(store: Store) -> None:
    key, stranger = generate_key(), generate_key()
    for command in registrations(alignment())[:-1]:
        await store.do(command)
    await store.do(signed_by(key, alignment()))
    await store.do(signed_by(stranger, alignment(version="1.1")))
    known = Knowledge(trust=Trust(keys={key_id(key): key.public_key}, signed=True))
    await known.follow(store)
    assert known.snapshot.alignments[ALIGNMENT].version == "1.0"


async def test_confirmation_is_followed_and_lost_with_a_new_version_or_a_revocation(store: Store) -> None:
    await register_all(store)
    known = Knowledge()
    await known.follow(store)
    assert known.snapshot.alignments[ALIGNMENT].confirmed_by == ""
    await store.do(ConfirmAlignment(ALIGNMENT, None, "align-1", "operator:ada", "att-1"))
    await known.refresh()
    assert known.snapshot.alignments[ALIGNMENT].confirmed_by == "operator:ada"
    after_restart = Knowledge()
    await after_restart.follow(store)
    assert after_restart.snapshot.alignments[ALIGNMENT].confirmed_by == "operator:ada"
    await store.do(registration_of(alignment(version="1.1")))
    await known.refresh()
    assert known.snapshot.alignments[ALIGNMENT].confirmed_by == ""
    await store.do(ConfirmAlignment(ALIGNMENT, None, "align-2", "operator:ada", "att-2"))
    await store.do(RevokeConfirmation(ALIGNMENT, None, "operator:bob", "att-3"))
    await known.refresh()
    assert known.snapshot.alignments[ALIGNMENT].confirmed_by == ""

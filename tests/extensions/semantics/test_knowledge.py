"""What a server knows of ontologies and alignments, and the methods that register them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from joserfc.jwk import OKPKey
from tests.extensions.semantics.alignment.artifacts import ARTIFACT, RULE
from tests.extensions.semantics.ontology.figures import FIGURE_3, FIGURE_4
from tests.meaning import ALIGNMENT, CLINICAL, RAD, alignment, register_all, registration_of, registrations
from tests.service import Reply
from tests.stateful import StatefulBench, keeping

from bespeak.app.server.assembly import list_builtins
from bespeak.contract.service import ServerIdentity, Service
from bespeak.extensions.semantics import knowledge
from bespeak.extensions.semantics.alignment.artifact import Trust
from bespeak.extensions.semantics.alignment.draft_json import statement_of
from bespeak.extensions.semantics.alignment.notation import write_alignment
from bespeak.extensions.semantics.alignment.policy import Alignment
from bespeak.extensions.semantics.knowledge import Knowledge, read_artifact
from bespeak.extensions.semantics.methods import READ_SCOPE, REGISTER_SCOPE
from bespeak.extensions.semantics.ontology.registration import canonical_quads, content_digest
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.store import (
    Artifact,
    ConfirmAlignment,
    ReadArtifact,
    RegisterArtifact,
    RevokeConfirmation,
    compress,
)
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jws import PrivateKey, generate_key, key_id, public_jwk
from bespeak.state.identity.signed_document import ArtifactStatement, sign_artifact
from bespeak.state.store.settings import open_store
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


async def test_registry_is_loaded_and_followed_by_processes(tmp_path: Path) -> None:
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
    assert isinstance(read_artifact(msgspec.structs.replace(artifact, content=b"{}")), Fault)


def signed_by(key: OKPKey, found: Alignment) -> RegisterArtifact:
    """Return a registration with a signature, as a key has made it."""
    assert isinstance(key.private_key, PrivateKey)
    token = sign_artifact(statement_of(found), key.private_key, key_id(key), 0.0)
    return msgspec.structs.replace(registration_of(found), signer=key_id(key), signature=token)


async def test_only_artifacts_of_trusted_keys_are_used_if_any(store: Store, caplog: pytest.LogCaptureFixture) -> None:
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
    await store.do(ConfirmAlignment(ALIGNMENT, None, "operator:ada", "att-1", case_id="align-1"))
    await known.refresh()
    assert known.snapshot.alignments[ALIGNMENT].confirmed_by == "operator:ada"
    after_restart = Knowledge()
    await after_restart.follow(store)
    assert after_restart.snapshot.alignments[ALIGNMENT].confirmed_by == "operator:ada"
    await store.do(registration_of(alignment(version="1.1")))
    await known.refresh()
    assert known.snapshot.alignments[ALIGNMENT].confirmed_by == ""
    await store.do(ConfirmAlignment(ALIGNMENT, None, "operator:ada", "att-2", case_id="align-2"))
    await store.do(RevokeConfirmation(ALIGNMENT, None, "operator:bob", "att-3"))
    await known.refresh()
    assert known.snapshot.alignments[ALIGNMENT].confirmed_by == ""


CS = "https://ex.org/onto/cs"
OPEN = SemanticSettings(registry=True)


async def register(bench: StatefulBench, version: str = "1.0", text: str = FIGURE_3, **more: Any) -> Reply:
    body = {"document": text, "media_type": "text/turtle", "id": CS, "version": version, **more}
    return await bench.send("REGISTER", "/ontologies", body, authority_scope=REGISTER_SCOPE)


async def query(bench: StatefulBench, **body: Any) -> Reply:
    return await bench.send("QUERY", "/ontologies", body, authority_scope=READ_SCOPE)


@pytest.fixture
async def bench() -> AsyncIterator[StatefulBench]:
    async with keeping(semantic=OPEN) as opened:
        yield opened


async def test_registered_ontology_is_listed_and_read(bench: StatefulBench) -> None:
    reply = await register(bench)
    assert reply.status == 200, reply.json
    assert reply.json["result"] | {"sha256": ""} == {"id": CS, "version": "1.0", "sha256": "", "supersedes": ""}
    assert (await register(bench, "1.1", FIGURE_4)).json["result"]["supersedes"] == "1.0"
    listed = (await query(bench)).json["result"]["artifacts"]
    assert [(one["id"], one["version"]) for one in listed] == [(CS, "1.0"), (CS, "1.1")]
    assert "actor" not in listed[0]
    [found] = (await query(bench, id=CS, version="1.0")).json["result"]["artifacts"]
    assert found["digest"] == reply.json["result"]["sha256"] == content_digest(found["content"].encode())
    assert [one["version"] for one in (await query(bench, after=1)).json["result"]["artifacts"]] == ["1.1"]


@pytest.mark.requirement("IOA-13-3")
async def test_scopes_are_required_for_reading_and_for_registering(bench: StatefulBench) -> None:
    body = {"document": FIGURE_3, "media_type": "text/turtle", "id": CS, "version": "1.0"}
    assert (await bench.send("REGISTER", "/ontologies", body, authority_scope=READ_SCOPE)).status == 455
    assert (await bench.send("REGISTER", "/ontologies", body)).status == 455
    assert (await bench.send("QUERY", "/ontologies", {}, authority_scope=REGISTER_SCOPE)).status == 455
    assert (await bench.send("REGISTER", "/ontologies", body, agent=None)).status == 262
    assert (await query(bench)).json["result"] == {"artifacts": []}


async def test_refusals_name_the_fault_and_register_nothing(bench: StatefulBench) -> None:
    await register(bench, "1.5")
    broken = await register(bench, "2.0", "<x:a> <x:p>")
    assert (broken.status, broken.error["code"]) == (422, "ontology-refused")
    assert broken.error["findings"][0]["rule"] == "I102"
    taken = await register(bench, "1.5", FIGURE_4)
    assert (taken.status, taken.error["code"]) == (409, "version-taken")
    for version in ("1.4", "2026-01-01"):
        order = await register(bench, version)
        assert (order.status, order.error["code"]) == (409, "version-order"), version
    assert (await register(bench, "draft")).error["code"] == "ontology-refused"
    assert (await query(bench, id="x:unknown")).status == 404
    assert len((await query(bench)).json["result"]["artifacts"]) == 1


async def test_json_ld_context_is_never_fetched(bench: StatefulBench) -> None:
    document = json.dumps({"@context": "https://evil.example/ctx", "@id": "x:a"})
    reply = await register(bench, text=document, media_type="application/ld+json")
    [finding] = reply.error["findings"]
    assert (finding["rule"], finding["pointer"]) == ("I104", "/@context")


async def test_long_content_is_named_by_its_size(bench: StatefulBench, monkeypatch: pytest.MonkeyPatch) -> None:
    await register(bench)
    monkeypatch.setattr("bespeak.extensions.semantics.methods._MOST_CONTENT", 10)
    [found] = (await query(bench, id=CS)).json["result"]["artifacts"]
    assert "content" not in found
    assert found["bytes"] > 100


async def test_pages_follow_each_other(bench: StatefulBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.semantics.methods._PAGE", 2)
    for version in ("1.0", "1.1", "1.2"):
        await register(bench, version)
    first = (await query(bench)).json["result"]
    rest = (await query(bench, after=first["next"])).json["result"]
    assert [one["version"] for one in first["artifacts"] + rest["artifacts"]] == ["1.0", "1.1", "1.2"]
    assert "next" not in rest


async def test_signature_of_a_trusted_key_is_verified_and_may_be_required() -> None:
    key = generate_key()
    assert isinstance(key.private_key, PrivateKey)
    content = canonical_quads(FIGURE_3.encode(), "f.ttl")
    assert isinstance(content, bytes)
    statement = ArtifactStatement("ontology", CS, "1.0", content_digest(content))
    token = sign_artifact(statement, key.private_key, key_id(key), 0.0)
    settings = SemanticSettings(registry=True, trusted_keys=(public_jwk(key)["x"],), require_signature=True)
    async with keeping(semantic=settings) as bench:
        for fields in ({}, {"signature": "a.b.c"}, {"signature": token, "version": "1.1"}):
            reply = await register(bench, **fields)
            assert (reply.status, reply.error["code"]) == (403, "signature-refused"), fields
        assert (await register(bench, signature=token)).status == 200
        [found] = (await query(bench, id=CS)).json["result"]["artifacts"]
        assert (found["signer"], found["signature"]) == (key_id(key), token)


async def register_ends(bench: StatefulBench) -> None:
    for end, iri in ((ARTIFACT.source, RULE.source), (ARTIFACT.target, RULE.target)):
        text = f"<{iri}> a <http://www.w3.org/2002/07/owl#Class> ."
        assert (await register(bench, end.version, text, id=end.id)).status == 200


async def register_alignment(
    bench: StatefulBench, alignment: Alignment = ARTIFACT, signature: str = "", **more: Any
) -> Reply:
    document = write_alignment(alignment, "json", signature).decode()
    body = {"document": document, "media_type": "application/json", **more}
    return await bench.send("REGISTER", "/ontologies", body, authority_scope=REGISTER_SCOPE)


def rules_of(reply: Reply) -> list[str]:
    return [one["rule"] for one in reply.error["findings"]]


async def test_alignment_between_registered_versions_is_registered_and_shown(bench: StatefulBench) -> None:
    await register_ends(bench)
    reply = await register_alignment(bench)
    assert reply.status == 200, reply.json
    assert (reply.json["result"]["id"], reply.json["result"]["version"]) == (ARTIFACT.id, ARTIFACT.version)
    assert (await register_alignment(bench)).json["result"] == reply.json["result"]
    [listed] = (await query(bench, kind="alignment")).json["result"]["artifacts"]
    assert listed["refs"] == [msgspec.to_builtins(end) for end in (ARTIFACT.source, ARTIFACT.target)]
    [found] = (await query(bench, kind="alignment", id=ARTIFACT.id)).json["result"]["artifacts"]
    assert json.loads(found["content"])["mappingRules"][0]["to"] == RULE.target


@pytest.mark.parametrize(
    ("notation", "media_type"), [("sssom", "text/tab-separated-values"), ("alignment", "application/rdf+xml")]
)
async def test_alignment_of_other_notation_is_registered(bench: StatefulBench, notation: Any, media_type: str) -> None:
    await register_ends(bench)
    document = write_alignment(ARTIFACT, notation).decode()
    named = {"id": ARTIFACT.id, "version": ARTIFACT.version}
    reply = await register_alignment(bench, document=document, media_type=media_type, **named)
    assert reply.status == 200, reply.json
    assert reply.json["result"]["id"] == ARTIFACT.id


async def test_poisoned_foreign_and_older_alignments_are_refused(bench: StatefulBench) -> None:
    unknown = await register_alignment(bench)
    assert (unknown.status, unknown.error["code"], rules_of(unknown)) == (422, "ontology-refused", ["I308", "I308"])
    await register_ends(bench)
    stray = msgspec.structs.replace(RULE, target="https://evil.example#x")
    poisoned = await register_alignment(bench, msgspec.structs.replace(ARTIFACT, rules=(stray,)))
    assert (poisoned.status, rules_of(poisoned)) == (422, ["I307"])
    assert (await query(bench, kind="alignment")).json["result"] == {"artifacts": []}
    assert (await register_alignment(bench, msgspec.structs.replace(ARTIFACT, version="2.0"))).status == 200
    older = await register_alignment(bench, msgspec.structs.replace(ARTIFACT, version="1.9"))
    assert (older.status, older.error["code"], rules_of(older)) == (409, "alignment-downgrade", ["I309"])


async def test_alignment_is_signed_by_a_trusted_key_where_that_is_required() -> None:
    key, stranger = generate_key(), generate_key()
    settings = SemanticSettings(registry=True, trusted_keys=(public_jwk(key)["x"],))
    async with keeping(semantic=settings) as bench:
        await register_ends(bench)
        for signer, version, expected in ((stranger, "1.0", 403), (key, "1.0", 200), (None, "1.1", 403)):
            alignment = msgspec.structs.replace(ARTIFACT, version=version)
            token = ""
            if signer is not None:
                assert isinstance(signer.private_key, PrivateKey)
                token = sign_artifact(statement_of(alignment), signer.private_key, key_id(signer), 0.0)
            reply = await register_alignment(bench, alignment, token)
            assert reply.status == expected, reply.json
        [found] = (await query(bench, kind="alignment")).json["result"]["artifacts"]
        assert found["signer"] == key_id(key)


async def test_signer_of_a_lower_rank_supersedes_nothing_of_a_higher_one() -> None:
    keys = {"high": generate_key(), "low": generate_key()}
    texts = {name: public_jwk(key)["x"] for name, key in keys.items()}
    settings = SemanticSettings(
        registry=True, trusted_keys=tuple(texts.values()), signer_ranks={texts["high"]: 2, texts["low"]: 1}
    )
    content = canonical_quads(FIGURE_3.encode(), "f.ttl")
    assert isinstance(content, bytes)

    def sign(name: str, statement: ArtifactStatement) -> str:
        key = keys[name]
        assert isinstance(key.private_key, PrivateKey)
        return sign_artifact(statement, key.private_key, key_id(key), 0.0)

    async with keeping(semantic=settings) as bench:
        await register_ends(bench)
        order = (("low", "1.0"), ("high", "1.1"), ("low", "1.2"), ("high", "1.2"))
        for (name, version), refused in zip(order, (False, False, True, False), strict=True):
            ontology = ArtifactStatement("ontology", CS, version, content_digest(content))
            alignment = msgspec.structs.replace(ARTIFACT, version=version)
            replies = [
                await register(bench, version, signature=sign(name, ontology)),
                await register_alignment(bench, alignment, sign(name, statement_of(alignment))),
            ]
            assert [reply.status for reply in replies] == ([403, 409] if refused else [200, 200]), (name, version)


def test_registry_is_served_only_where_it_is_enabled() -> None:
    def paths(semantic: SemanticSettings | None = None, *, stored: bool = True) -> set[str]:
        identity = ServerIdentity(server_id="rooms.example", operator="Acme", contact="desk@rooms.example")
        service = Service(identity=identity, semantic=semantic)
        return {endpoint.path for endpoint in list_builtins(service, stored=stored)}

    assert "/ontologies" in paths(OPEN)
    assert "/ontologies" not in paths(OPEN, stored=False) | paths(SemanticSettings()) | paths()


async def test_agent_registers_a_bounded_number_and_size() -> None:
    settings = SemanticSettings(registry=True, most_artifacts=2, most_bytes=100_000)
    async with keeping(semantic=settings) as bench:
        for version, expected in (("1.0", 200), ("1.1", 200), ("1.0", 200), ("1.2", 403)):
            text = FIGURE_3 if version == "1.0" else f"{FIGURE_3}\n# {version}\n"
            reply = await register(bench, version, text)
            assert reply.status == expected, reply.json
        assert reply.error["code"] == "registry-quota"
        assert "may register 2 artifacts" in reply.error["message"]
        other = {"document": FIGURE_4, "media_type": "text/turtle", "id": "https://ex.org/onto/law", "version": "1.0"}
        done = await bench.send("REGISTER", "/ontologies", other, agent="b" * 64, authority_scope=REGISTER_SCOPE)
        assert done.status == 200
    async with keeping(semantic=SemanticSettings(registry=True, most_bytes=100)) as bench:
        reply = await register(bench)
        assert (reply.status, reply.error["code"], reply.error["unit"]) == (403, "registry-quota", "bytes")

"""Offers of alignments are judged against what the store has."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest
from tests.documents.alignment.artifacts import ARTIFACT, RULE

from bespeak.checks.alignment.artifact import JudgedAlignment, Trust
from bespeak.checks.ontology.registration import judge_registration
from bespeak.contract.ontology.alignment import Alignment
from bespeak.contract.ontology.ontology import OntologyRef
from bespeak.documents.alignment.notation import write_alignment
from bespeak.extensions.semantics.registry import AlignmentOffer, judge_offer
from bespeak.state.store.opening import open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = open_store("memory")
    await opened.start()
    yield opened
    await opened.close()


async def register(store: Store, end: OntologyRef, iri: str) -> None:
    text = f"<{iri}> a <http://www.w3.org/2002/07/owl#Class> ."
    command = judge_registration(text.encode(), "x.ttl", id=end.id, version=end.version).command
    assert command is not None
    await store.do(command)


async def judge(store: Store, alignment: Alignment = ARTIFACT) -> JudgedAlignment:
    return await judge_offer(store, AlignmentOffer(data=write_alignment(alignment, "json"), file="a.json"), Trust())


async def test_each_end_that_is_not_registered_is_named(store: Store) -> None:
    await register(store, ARTIFACT.source, RULE.source)
    await register(store, OntologyRef(ARTIFACT.target.id, "2.0"), RULE.target)
    judged = await judge(store)
    assert judged.alignment is None
    [finding] = judged.findings
    assert (finding.rule, finding.pointer) == ("I308", "/targetOntologyId")
    assert "clinical 2.1', which is not registered" in finding.message


async def test_document_without_versions_is_for_the_latest_ones_and_follows_the_latest_artifact(store: Store) -> None:
    await register(store, ARTIFACT.source, RULE.source)
    await register(store, ARTIFACT.target, RULE.target)
    vague = msgspec.structs.replace(ARTIFACT, target=OntologyRef(ARTIFACT.target.id, ""))
    judged = await judge(store, vague)
    assert judged.alignment == ARTIFACT
    await store.do(judged.command())
    older = await judge(store, msgspec.structs.replace(ARTIFACT, version="1.1"))
    assert [one.rule for one in older.findings] == ["I309"]


async def test_document_that_cannot_be_read_is_refused_before_the_store_is_asked(store: Store) -> None:
    judged = await judge_offer(store, AlignmentOffer(data=b"{", file="a.json", notation="json"), Trust())
    assert (judged.alignment, len(judged.findings)) == (None, 1)

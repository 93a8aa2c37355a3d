"""The semantic layer of a server, and the work that it does outside the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import msgspec
import pytest
from tests.cases import rows
from tests.extensions.semantics.test_calls import NOTE, clinic, summarize
from tests.meaning import CLINICAL, CLINICAL_PROFILE, RAD, RAD_PROFILE, alignment, register_all, registrations, snapshot
from tests.service import AGENT, build, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.app.server.http_face import make_face
from bespeak.app.server.http_pages import Publishing, make_pages
from bespeak.contract.service import Vocabulary
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings
from bespeak.extensions.semantics import layer as module
from bespeak.extensions.semantics import offloading
from bespeak.extensions.semantics.envelope.reader import parse
from bespeak.extensions.semantics.envelope.writer import find_payload
from bespeak.extensions.semantics.knowledge import read_artifact
from bespeak.extensions.semantics.layer import SemanticLayer, digest_of, own_profile
from bespeak.extensions.semantics.methods import REGISTER_SCOPE
from bespeak.extensions.semantics.offloading import SMALL, run_beside, run_in_thread
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.store import Artifact, ArtifactRow, decompress
from bespeak.extensions.semantics.terms import Ontology

pytestmark = pytest.mark.anyio

CORE = "https://ex.org/onto/agent-core"
OWN = "agtp://test.example/"


def layer(*endpoints: Any, **settings: Any) -> SemanticLayer:
    routes = build(*(endpoints or (summarize(),))).routes
    made = SemanticLayer(SemanticSettings(**settings), lambda: routes)
    made.knowledge.snapshot = snapshot()
    return made


def test_service_speaks_the_ontologies_of_its_concepts() -> None:
    plain = make_endpoint("QUERY", "/notes", echo)
    assert layer().spoken((f"{CLINICAL}#note-summarize",)) == (CLINICAL, CORE, OWN)
    assert layer(plain, summarize()).spoken() == (CLINICAL, CORE, OWN)
    assert len(layer(plain).spoken()) == 6
    assert SemanticLayer(SemanticSettings()).spoken() == (CORE,)


def test_repeated_profile_is_looked_up_until_the_registry_changes() -> None:
    made, profile = layer(), parse(RAD_PROFILE).profile
    assert profile is not None
    first = made.negotiate(profile, summarize())
    assert made.negotiate(profile, summarize()) is first
    assert made.negotiate(profile, summarize("irreversible")) is not first
    made.knowledge.snapshot = snapshot(alignment(rules=()))
    assert made.negotiate(profile, summarize()).match == "none"


def test_hostile_profiles_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_OUTCOMES", 3)
    made = layer()
    for number in range(6):
        made.read({**CLINICAL_PROFILE, "ontologyVersion": f"2.{number}"}, summarize())
    assert len(made.view.outcomes) == 3


def test_digest_does_not_depend_on_the_notation() -> None:
    refs = {"capabilityRefs": f"{RAD}#report-summary", "intentRef": f"{RAD}#summarize-report"}
    plain = {**RAD_PROFILE, "@context": "https://ex.org/ctx", **refs}
    one, other = parse(RAD_PROFILE).profile, parse(plain).profile
    assert one is not None
    assert other is not None
    assert digest_of(one) == digest_of(other)


@rows(
    "required, impact, expected",
    ("never", "irreversible", False),
    ("irreversible", "irreversible", True),
    ("irreversible", "reversible", False),
    ("always", "informational", True),
)
def test_requirement_depends_on_the_impact(required: str, impact: str, *, expected: bool) -> None:
    assert layer(required=required).requires(summarize(impact)) is expected


@pytest.mark.requirement("IOA-9-4")
def test_envelope_that_nlip_carries_is_judged_like_any_other() -> None:
    for envelope, match in ((RAD_PROFILE, "mapped"), ({**RAD_PROFILE, "capabilityRefs": []}, "none")):
        part = {"Label": "semprofile", "Format": "structured", "Subformat": "json", "Content": envelope}
        carried = find_payload({"Format": "text", "Content": "Summarize it.", "Submessages": [part]}).payload
        _, outcome = layer().read(carried, summarize())
        assert outcome.match == match


HIDDEN = f"{CLINICAL}#note-summarize"
ABOVE = f"{CLINICAL}#document-summarize"


async def published(bench: StatefulBench) -> AsyncIterator[tuple[str, str]]:
    """Yield everything that the server tells a stranger, by its name."""
    web = HttpSettings(url="https://clinic.example", ai_alias=True)
    publishing = Publishing(agtp_port=4480, mcp=True, a2a=A2aSettings(enabled=True))
    pages = make_pages(bench.bench.server.routes, web, publishing, keeps_state=True)
    face = httpx.ASGITransport(make_face(bench.bench.dispatcher, web, publishing=publishing))
    async with httpx.AsyncClient(transport=face, base_url="https://clinic.example") as client:
        for path in pages:
            for accept in ("*/*", "application/agis", "text/html"):
                reply = await client.get(path, headers={"accept": accept})
                assert reply.status_code == 200, path
                yield f"{path} {accept}", reply.text
    rad = {**RAD_PROFILE, "type": "ioa:SemanticProfile"}
    for method, path, body in (
        ("DISCOVER", "/", None),
        ("DISCOVER", "/methods", None),
        ("DISCOVER", "/", {"criteria": "summarize a clinical note"}),
        ("DISCOVER", "/", {"criteria": "note-summarize"}),
        ("DISCOVER", "/", {"criteria": {"capability": f"{RAD}#report-summary"}}),
        ("DESCRIBE", "/", None),
        ("DESCRIBE", "/", {"semantic_profile": rad}),
        ("DESCRIBE", "/", {"semantic_profile": {"ontologyId": CLINICAL, "ontologyVersion": "2.1"}}),
        *(
            ("DESCRIBE", "/", {"semantic_profile": rad, "endpoint": {"method": "SUMMARIZE", "path": path}})
            for path in ("/note", "/patient")
        ),
        ("PROPOSE", "/", {"semantic_profile": rad}),
        ("PROPOSE", "/", {"semantic_profile": {**rad, "intentRef": "rad:Radiology"}}),
        ("SUMMARIZE", "/patient", {"semantic": rad}),
        ("SUMMARIZE", "/note", {"semantic": {**rad, "intentRef": "rad:Radiology"}}),
        ("SUMMARIZE", "/notes", {}),
        ("PLAN", "/", {"goal": "summarize a clinical note"}),
    ):
        for agent in (None, AGENT):
            reply = await bench.send(method, path, body, agent=agent)
            yield f"{method} {path} {body}", reply.response.body.decode()
            yield f"{method} {path} {body} headers", str(reply.response.headers)


@pytest.mark.anyio
@pytest.mark.requirement("IOA-13-4")
@pytest.mark.parametrize("sensitive", [HIDDEN, ABOVE])
async def test_sensitive_concept_is_told_nowhere_without_its_scopes(sensitive: str) -> None:
    secret = replace(summarize(), required_scopes=("notes:read",))
    plain = replace(summarize(), path="/patient")
    plain = replace(plain, semantic=replace(plain.semantic, concepts=(f"{CLINICAL}#patient-lookup",)))
    async with clinic(secret, plain, sensitive=(sensitive,)) as bench:
        told = {name: text async for name, text in published(bench)}
        leaks = [name for name, text in told.items() if "note-summarize" in text.replace('"note-summarize"', "")]
        assert leaks == []
        assert any(f"{CLINICAL}#patient-lookup" in text for text in told.values())
        manifest = (await bench.send("DISCOVER", "/", agent=None)).json
        shown = {one["path"]: one["semantic"].get("concepts") for one in manifest["endpoints"]}
        assert (shown["/note"], shown["/patient"]) == (None, [f"{CLINICAL}#patient-lookup"])
        asked = {"semantic_profile": RAD_PROFILE, "endpoint": {"method": "SUMMARIZE", "path": "/note"}}
        stranger = (await bench.send("DESCRIBE", "/", asked)).json["result"]["semantic"]
        doctor = (await bench.send("DESCRIBE", "/", asked, authority_scope="notes:read")).json["result"]["semantic"]
        assert (stranger["match"], doctor["match"]) == ("unmatched", "mapped")
        assert doctor["mappings"][0]["to"] == HIDDEN
        body = {**NOTE, "semantic": RAD_PROFILE}
        assert (await bench.send("SUMMARIZE", "/note", body, authority_scope="notes:read")).status == 200


@pytest.mark.anyio
async def test_documents_follow_a_registry_that_puts_a_concept_below_a_sensitive_one() -> None:
    async with clinic(register=False, sensitive=(ABOVE,)) as bench:
        assert HIDDEN in (await bench.send("DISCOVER", "/", agent=None)).response.body.decode()
        await register_all(bench.store)
        await bench.bench.server.part("semantic").knowledge.refresh()
        assert HIDDEN not in (await bench.send("DISCOVER", "/", agent=None)).response.body.decode()


HEAD = """
@prefix ioa: <https://ex.org/ioa/semantic#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix b: <https://big.example/{number}#> .
<https://big.example/{number}> a owl:Ontology ; owl:versionInfo "1.0" .
"""


def big(number: int = 0) -> str:
    """Return an ontology that is too big for a thread."""
    terms = "\n".join(f"b:capability{one} a ioa:Capability ." for one in range(1_500))
    text = HEAD.format(number=number) + terms
    assert len(text) > SMALL
    return text


def artifact() -> Artifact:
    command = next(one for one in registrations() if one.id == RAD)
    row = ArtifactRow("ontology", command.id, command.version, command.digest, (), "", "", "", "", "", 1, 0.0)
    return Artifact(row, decompress(command.content))


@pytest.mark.process
async def test_ontology_from_a_process_is_that_of_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offloading, "_PART", 2)
    found = await run_beside(read_artifact, artifact(), size=SMALL + 1)
    assert isinstance(found, Ontology)
    assert found == await run_beside(read_artifact, artifact(), size=SMALL) == read_artifact(artifact())
    assert len(found.terms) > 2


@pytest.mark.process
async def test_process_that_fails_or_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ChildProcessError, match="ended without a result"):
        await run_beside(os._exit, 7, size=SMALL + 1)
    monkeypatch.setattr(offloading, "_DEADLINE", 0.01)
    with pytest.raises(ChildProcessError, match=r"took longer than 0\.01 s"):
        await run_beside(time.sleep, 60, size=SMALL + 1)


@pytest.mark.process
async def test_cancelled_work_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    run = offloading._WorkerProcess.run

    def note(child: offloading._WorkerProcess) -> bytes | None:
        told = run(child)
        ended.append(0)
        return told

    monkeypatch.setattr(offloading._WorkerProcess, "run", note)
    for turns in (1, 200):  # before the process has started, perhaps, and after
        work = asyncio.create_task(run_beside(time.sleep, 600, size=SMALL + 1))
        for _ in range(turns):
            await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
    async with asyncio.timeout(30):
        while len(ended) < 2:
            await asyncio.sleep(0.01)


async def test_interpreter_is_handed_over_more_often_while_threads_work() -> None:
    before = sys.getswitchinterval()
    during = await asyncio.gather(*(run_in_thread(sys.getswitchinterval) for _ in range(3)))
    assert max(during) < before / 2
    assert sys.getswitchinterval() == before
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(lambda: 1 / 0)
    assert sys.getswitchinterval() == before


async def offer(bench: StatefulBench, text: str, agent: str) -> Any:
    body = {"document": text, "media_type": "text/turtle"}
    return await bench.send("REGISTER", "/ontologies", body, agent=agent, authority_scope=REGISTER_SCOPE)


@pytest.mark.process
async def test_agents_register_big_ontologies_in_rotation_and_calls_go_on() -> None:
    greedy, other = "a" * 64, "b" * 64
    done: list[str] = []
    async with keeping(semantic=SemanticSettings(registry=True)) as bench:

        async def register(number: int, agent: str) -> None:
            reply = await offer(bench, big(number), agent)
            assert reply.status == 200, reply.json
            done.append(agent)

        async with asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(register(number, greedy))
            await asyncio.sleep(0)
            group.create_task(register(9, other))
            await asyncio.sleep(0)
            assert (await bench.send("DISCOVER", "/methods")).status == 200
            assert done == []  # nobody waits for documents that are being judged
        assert done.index(other) <= 2
        await bench.bench.server.part("semantic").knowledge.refresh()
        assert len(bench.bench.server.part("semantic").knowledge.snapshot.ontologies) == 6


async def test_documents_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bespeak.extensions.semantics.knowledge._MOST_OF_ONE", 1)
    async with keeping(semantic=SemanticSettings(registry=True)) as bench:
        small = [HEAD.format(number=number) + "b:x a ioa:Capability ." for number in range(4)]
        found = await asyncio.gather(*(offer(bench, text, "a" * 64) for text in small))
        assert sorted(one.status for one in found) == [200, 200, 503, 503]
        refused = next(one for one in found if one.status == 503)
        assert (refused.error["code"], refused.header("Retry-After")) == ("too-many-waiting", "5")
        assert msgspec.json.encode(refused.error)


def test_version_of_the_own_vocabulary_compares_if_the_contract_has_one() -> None:
    for fields, wanted, match in (
        ({"document_version": "2.3"}, "2.1", "direct"),
        ({"document_version": "2.3"}, "2.4", "none"),
        ({"document_version": "2.3"}, "3.0", "none"),
        ({"document_version": "2.3", "vocabulary": Vocabulary(version="4.0")}, "4.0", "direct"),
    ):
        bench = build(summarize(), semantic=SemanticSettings(), **fields)
        layer, endpoint = bench.server.part("semantic"), summarize()
        profile = own_profile(bench.routes.service, endpoint, layer.snapshot.own)
        assert layer.negotiate(msgspec.structs.replace(profile, ontology_version=wanted), endpoint).match == match

"""The layer of a server: what it speaks, and what it remembers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from tests.extensions.semantics.test_calls import NOTE, clinic, summarize
from tests.meaning import CLINICAL, CLINICAL_PROFILE, RAD, RAD_PROFILE, alignment, register_all, snapshot
from tests.service import AGENT, build, echo, make_endpoint
from tests.stateful import StatefulBench

from bespeak.app.server.http_face import make_face
from bespeak.app.server.http_pages import Publishing, make_pages
from bespeak.contract.ontology.settings import SemanticSettings
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import A2aSettings
from bespeak.documents.envelope.message import NlipMessage, find_payload, write_nlip
from bespeak.documents.envelope.reader import parse
from bespeak.extensions.semantics import layer as module
from bespeak.extensions.semantics.layer import SemanticLayer, digest_of

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
    plain = {**RAD_PROFILE, "@context": "https://ex.org/ctx"}
    plain |= {
        "capabilityRefs": "https://x.org/onto/rad#report-summary",
        "intentRef": "https://x.org/onto/rad#summarize-report",
    }
    one, other = parse(RAD_PROFILE).profile, parse(plain).profile
    assert one is not None
    assert other is not None
    assert digest_of(one) == digest_of(other)


@pytest.mark.parametrize(
    ("required", "impact", "expected"),
    [
        ("never", "irreversible", False),
        ("irreversible", "irreversible", True),
        ("irreversible", "reversible", False),
        ("always", "informational", True),
    ],
)
def test_requirement_depends_on_the_impact(required: str, impact: str, *, expected: bool) -> None:
    assert layer(required=required).requires(summarize(impact)) is expected


@pytest.mark.requirement("IOA-9-4")
def test_envelope_that_nlip_carries_is_judged_like_any_other() -> None:
    message = NlipMessage("Summarize the report.")
    for envelope, match in ((RAD_PROFILE, "mapped"), ({**RAD_PROFILE, "capabilityRefs": []}, "none")):
        carried = find_payload(write_nlip(message, envelope)).payload
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

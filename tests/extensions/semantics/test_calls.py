"""Calls that say what they mean: understood before the handler runs, or refused with a way out."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import rows
from tests.meaning import (
    ALIGNMENT,
    CLINICAL,
    CLINICAL_PROFILE,
    CS,
    LAW,
    RAD,
    RAD_PROFILE,
    alignment,
    register_all,
    registration_of,
)
from tests.service import AGENT, build, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.app.server.http_face import make_face
from bespeak.contract.endpoint import Endpoint
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import ConfigError, StoreUnavailableError
from bespeak.extensions.semantics import calls
from bespeak.extensions.semantics.alignment.draft_json import statement_of
from bespeak.extensions.semantics.calls import MappingHistory
from bespeak.extensions.semantics.envelope.reader import parse
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.store import (
    ConfirmAlignment,
    ListMappedCalls,
    MappedCalls,
    RecordedProfile,
    RevokeConfirmation,
    UseProfile,
    record_id,
)
from bespeak.faces.http.dispatched import DispatchBackend
from bespeak.protocol.exchange.messages import Connection, Context, Request, Response
from bespeak.protocol.exchange.principal import Principal
from bespeak.protocol.exchange.refusal import Outcome
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.identity.authority import Authority, restore_call
from bespeak.state.audit.record import payload_of
from bespeak.state.audit.settings import AuditSettings
from bespeak.state.store.commands.audit import ReadAudit
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Store

pytestmark = pytest.mark.anyio

NOTE = {"text": "No finding."}
NONSENSE = {**CLINICAL_PROFILE, "capabilityRefs": ["clinical:patient-lookup"], "intentRef": "clinical:Medicine"}


def summarize(impact: str = "informational", function: Callable[..., Any] = echo) -> Endpoint:
    endpoint = make_endpoint("SUMMARIZE", "/note", function, properties={"text": {"type": "string"}}, impact=impact)
    return replace(endpoint, semantic=replace(endpoint.semantic, concepts=(f"{CLINICAL}#note-summarize",)))


@asynccontextmanager
async def clinic(
    *endpoints: Endpoint,
    register: bool = True,
    anonymous: bool = False,
    confirmed: bool = False,
    document: ServerDocument | None = None,
    methods: tuple[str, ...] = (),
    **settings: Any,
) -> AsyncIterator[StatefulBench]:
    """Serve the clinical domain, with the registry of the example."""
    store = open_store("memory", role="sole")
    await store.start()
    if register:
        await register_all(store, alignment(provenance=None) if anonymous else alignment())
    if confirmed:
        await store.do(ConfirmAlignment(ALIGNMENT, None, "operator:ada", "att-1", case_id="align-1"))
    served = {"document": document, "methods": methods, "semantic": SemanticSettings(**settings)}
    try:
        async with keeping(*(endpoints or (summarize(),)), store=store, **served) as bench:
            yield bench
    finally:
        await store.close()


@pytest.mark.requirement("IOA-7.1-1", "IOA-9-1", "IOA-12-2")
async def test_envelope_is_taken_out_of_the_body_and_understood() -> None:
    async with clinic() as bench:
        for envelope in (CLINICAL_PROFILE, RAD_PROFILE, {**RAD_PROFILE, "alignmentRef": ALIGNMENT}):
            reply = await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": envelope})
            assert (reply.status, reply.json) == (200, NOTE)
        wrapped = {"method": "SUMMARIZE", "parameters": NOTE, "semantic": RAD_PROFILE}
        assert (await bench.send("SUMMARIZE", "/note", wrapped)).json == NOTE
        assert (await bench.send("SUMMARIZE", "/note", NOTE)).json == NOTE


@pytest.mark.requirement("IOA-5.4-5", "IOA-5.4-6")
async def test_violation_refuses_the_call_before_the_handler_runs() -> None:
    ran = []

    def run(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
        ran.append(input)
        return {}

    async with clinic(summarize(function=run)) as bench:
        reply = await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": NONSENSE})
        assert (reply.status, reply.error["code"]) == (422, "semantic-rejected")
        assert [(one["rule"], one["path"]) for one in reply.error["violations"]] == [
            ("I223", "/intentRef"),
            ("I246", "/capabilityRefs/0"),
        ]
        assert reply.error["validation"]["status"] == "reject"
        assert ran == []


async def test_renegotiation_is_offered_with_the_control_exchange() -> None:
    async with clinic() as bench:
        unknown = {**RAD_PROFILE, "ontologyId": "https://z.example/onto"}
        reply = await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": unknown}, task_id="t-1")
        assert (reply.status, reply.error["code"]) == (409, "semantic-renegotiation")
        assert reply.error["control"]["settle"]["method"] == "PROPOSE"
        assert CLINICAL in reply.error["ontologies"]
        assert reply.error["task_id"] == "t-1"


@pytest.mark.requirement("IOA-6.2-5", "IOA-11.3-1")
async def test_figure_9_comes_back_as_the_draft_says() -> None:
    figure_9 = {
        "@context": ["https://ex.org/ctx", {"cs": f"{CS}#", "law": f"{LAW}#"}],
        "type": "ioa:SemanticProfile",
        "ontologyId": "https://ex.org/onto/agent-core",
        "ontologyVersion": "1.0",
        "intentRef": "cs:TranslateTechDoc",
        "profileContext": {
            "domain": "cs:ComputerScience",
            "termBindings": [{"term": "LLM", "sense": "law:MasterOfLaws"}],
        },
    }
    async with clinic(violations="renegotiate") as bench:
        reply = await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": figure_9})
        assert reply.status == 422
        reason = "termBinding sense conflicts with domain"
        assert reply.error["validation"] == {"status": "reject", "reason": reason}
        assert {one["rule"] for one in reply.error["violations"]} >= {"I206", "I227"}


@pytest.mark.parametrize("hostile", [[], "x", 7, {}, {"@context": "https://evil.example/ctx"}])
async def test_hostile_envelopes_are_refused_with_a_rule(hostile: Any) -> None:
    async with clinic(register=False) as bench:
        reply = await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": hostile})
        assert (reply.status, reply.error["code"]) == (422, "semantic-rejected")
        assert reply.error["violations"][0]["rule"] in ("I201", "I202")


async def test_member_named_like_the_envelope_stays_input_where_it_is_one() -> None:
    own = make_endpoint("ANALYZE", "/note", echo, properties={"semantic": {"type": "string"}})
    async with clinic(own) as bench:
        assert (await bench.send("ANALYZE", "/note", {"semantic": "own"})).json == {"semantic": "own"}
    bench = build(summarize())
    reply = bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": RAD_PROFILE})
    assert (reply.status, reply.error["code"]) == (422, "input-validation-failed")
    assert bench.server.part("semantic") is None


@pytest.mark.requirement("IOA-13-7")
async def test_irreversible_endpoint_needs_an_envelope_and_mappings_with_provenance() -> None:
    async with clinic(summarize("irreversible"), required="irreversible", confirmed=True) as bench:
        missing = await bench.send("SUMMARIZE", "/note", NOTE)
        assert (missing.status, missing.error["code"]) == (422, "semantic-profile-required")
        assert (await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": RAD_PROFILE})).status == 200
    async with clinic(summarize("irreversible"), anonymous=True, confirmed=True) as bench:
        refused = await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": RAD_PROFILE})
        assert refused.error["violations"][0]["rule"] == "I245"
    async with clinic(summarize(), required="irreversible") as bench:
        assert (await bench.send("SUMMARIZE", "/note", NOTE)).status == 200


async def test_irreversible_endpoint_needs_a_confirmed_mapping() -> None:
    async with clinic(summarize("irreversible")) as bench:
        body = {**NOTE, "semantic": RAD_PROFILE}
        refused = await bench.send("SUMMARIZE", "/note", body)
        assert (refused.status, refused.error["code"]) == (409, "semantic-mapping-unconfirmed")
        assert f"bespeak semantic confirm {ALIGNMENT}" in refused.error["message"]
        assert {one["rule"] for one in refused.error["violations"]} == {"I248"}
        executed = await bench.send(
            "EXECUTE", "/", {"action": "summarize_note", "parameters": NOTE, "semantic": RAD_PROFILE}
        )
        assert executed.error["code"] == "semantic-mapping-unconfirmed"
        assert (await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": CLINICAL_PROFILE})).status == 200
        await bench.store.do(ConfirmAlignment(ALIGNMENT, None, "operator:ada", "att-1", case_id="align-1"))
        await bench.bench.server.part("semantic").knowledge.refresh()
        assert (await bench.send("SUMMARIZE", "/note", body)).status == 200
        await bench.store.do(RevokeConfirmation(ALIGNMENT, None, "operator:ada", "att-2"))
        await bench.bench.server.part("semantic").knowledge.refresh()
        assert (await bench.send("SUMMARIZE", "/note", body)).status == 409


async def test_step_that_the_caller_names_is_judged_by_what_the_call_means() -> None:
    async with clinic(summarize("irreversible"), required="irreversible") as bench:
        body = {"action": "summarize_note", "parameters": NOTE}
        assert (await bench.send("EXECUTE", "/", body)).error["code"] == "semantic-profile-required"
        wrong = {**CLINICAL_PROFILE, "capabilityRefs": ["clinical:note-summarize", "clinical:patient-lookup"]}
        assert (await bench.send("EXECUTE", "/", {**body, "semantic": wrong})).status == 422
        assert (await bench.send("EXECUTE", "/", {**body, "semantic": NONSENSE})).status == 422


async def test_extra_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'bespeak\[semantic\]'"):
        build(summarize(), semantic=SemanticSettings()).dispatcher  # noqa: B018


async def test_handler_knows_what_the_call_means_in_its_own_vocabulary() -> None:
    seen = []

    def look(input: dict[str, Any], context: Context) -> dict[str, Any]:  # noqa: A002
        seen.append(context.semantic and context.semantic.capability_refs)
        return {}

    async with clinic(summarize(function=look)) as bench:
        for body in ({**NOTE, "semantic": RAD_PROFILE}, NOTE):
            assert (await bench.send("SUMMARIZE", "/note", body)).status == 200
        assert seen == [(f"{CLINICAL}#note-summarize",), None]


def web_client(bench: StatefulBench) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=make_face(bench.bench.dispatcher, HttpSettings()))
    return httpx.AsyncClient(transport=transport, base_url="http://clinic.example")


async def test_http_calls_carry_envelopes_and_references_too() -> None:
    async with clinic(required="always") as bench, web_client(bench) as web:
        caller = {"agent-id": "a" * 64}
        sent = await web.post("/note:summarize", json={**NOTE, "semantic": RAD_PROFILE}, headers=caller)
        assert (sent.status_code, sent.json()) == (200, NOTE)
        refused = await web.post("/note:summarize", json={**NOTE, "semantic": NONSENSE}, headers=caller)
        assert (refused.status_code, refused.json()["code"]) == (422, "semantic-rejected")
        proposed = await bench.send("PROPOSE", "/", {"semantic_profile": RAD_PROFILE})
        caller["semantic-profile"] = proposed.json["result"]["profile_id"]
        assert (await web.post("/note:summarize", json=NOTE, headers=caller)).status_code == 200


MAPPING = (
    f'confidence=0.91, artifacts=("{ALIGNMENT}";version="1.0";'
    f'sha256="{statement_of(alignment()).sha256}";signed=?0;confirmed=?0)'
)


async def test_mapped_call_says_so_on_every_face() -> None:
    async with clinic() as bench:
        mapped = await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": RAD_PROFILE})
        assert mapped.header("Semantic-Mapping") == MAPPING
        for body in (NOTE, {**NOTE, "semantic": CLINICAL_PROFILE}):
            assert (await bench.send("SUMMARIZE", "/note", body)).header("Semantic-Mapping") is None
        async with web_client(bench) as web:
            sent = await web.post("/note:summarize", json={**NOTE, "semantic": RAD_PROFILE})
            assert sent.headers["semantic-mapping"] == MAPPING
        proposed = await bench.send("PROPOSE", "/", {"semantic_profile": RAD_PROFILE})
        headers = {"agent-id": AGENT, "semantic-profile": proposed.json["result"]["profile_id"]}
        for name in ("mcp", "a2a"):
            backend = DispatchBackend(bench.bench.dispatcher, bench.bench.server, name)
            begun = backend.begin(summarize(), NOTE, headers, Connection(address="127.0.0.1"))
            outcome = begun if isinstance(begun, Outcome) else await begun
            assert (outcome.status, outcome.mapping) == (200, MAPPING)


async def test_record_of_a_mapped_call_names_the_artifact() -> None:
    document = ServerDocument(audit=AuditSettings(records="all"))
    async with clinic(document=document) as bench:
        reply = await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": RAD_PROFILE})
        row = await bench.store.read(ReadAudit(reply.header("Audit-ID") or ""))
        payload = payload_of(row[-1])
        digest = statement_of(alignment()).sha256
        artifact = {"id": ALIGNMENT, "version": "1.0", "sha256": digest, "signed": False, "confirmed": False}
        assert payload["semantic_mapping"] == {"confidence": 0.91, "artifacts": [artifact]}


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_MEMBERS = st.sampled_from([*RAD_PROFILE, "profileContext", "alignmentRef", "id", "@graph", "@id", "profileVersion"])


@settings(max_examples=60, deadline=None)
@given(changes=st.dictionaries(_MEMBERS, _VALUES, max_size=4))
def test_any_envelope_is_understood_or_refused(changes: dict[str, Any]) -> None:
    bench = build(summarize(), semantic=SemanticSettings())
    reply = bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": {**RAD_PROFILE, **changes}})
    assert reply.status in (409, 422), reply.json
    assert reply.error["violations"]
    assert reply.error["code"] in ("semantic-rejected", "semantic-renegotiation")
    for method in ("DESCRIBE", "PROPOSE"):
        told = bench.send(method, "/", {"semantic_profile": {**RAD_PROFILE, **changes}})
        assert told.status in (200, 422, 501), told.json


@rows(
    "envelope",
    *(b'"\\ud800"', b'{"@context":"\\ud800"}', b"[" * 900 + b"]" * 900),
    b'{"@context":' + b"[" * 400 + b"]" * 400 + b"}",
)
def test_text_and_depth_that_json_allows_are_no_accident(envelope: bytes) -> None:
    bench = build(summarize(), semantic=SemanticSettings())
    reply = bench.send("SUMMARIZE", "/note", b'{"text":"x","semantic":' + envelope + b"}")
    assert reply.status in (400, 422), reply.json


async def test_scope_and_input_are_judged_before_the_meaning() -> None:
    guarded = replace(summarize(), required_scopes=("notes:read",))
    async with clinic(guarded) as bench:
        wrong = {"text": 7, "semantic": NONSENSE}
        assert (await bench.send("SUMMARIZE", "/note", wrong)).status == 455
        scope = {"authority_scope": "notes:read"}
        input_first = await bench.send("SUMMARIZE", "/note", wrong, **scope)
        assert input_first.error["code"] == "input-validation-failed"
        meaning = await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": NONSENSE}, **scope)
        assert meaning.error["code"] == "semantic-rejected"


BODY = {**NOTE, "semantic": RAD_PROFILE}
OTHER = {**NOTE, "semantic": CLINICAL_PROFILE}


async def recorded(bench: StatefulBench, task_id: str = "t-1", agent: str = AGENT) -> RecordedProfile:
    found, *_ = await bench.store.do(UseProfile(record_id("task", agent, task_id)))
    assert isinstance(found, RecordedProfile)
    return found


@pytest.mark.requirement("IOA-9-2")
async def test_profile_is_recorded_with_the_task_and_stays() -> None:
    async with clinic() as bench:
        for _ in range(2):
            assert (await bench.send("SUMMARIZE", "/note", BODY, task_id="t-1")).status == 200
        first = await recorded(bench)
        assert first.profile["ontology_id"] == RAD_PROFILE["ontologyId"]
        changed = await bench.send("SUMMARIZE", "/note", OTHER, task_id="t-1")
        assert (changed.status, changed.error["code"]) == (409, "semantic-profile-changed")
        assert changed.error["violations"][0]["rule"] == "I247"
        assert changed.error["control"]["settle"]["method"] == "PROPOSE"
        assert await recorded(bench) == first


async def test_tasks_of_other_agents_and_other_tasks_have_their_own() -> None:
    async with clinic() as bench:
        await bench.send("SUMMARIZE", "/note", BODY, task_id="t-1")
        assert (await bench.send("SUMMARIZE", "/note", OTHER, task_id="t-2")).status == 200
        assert (await bench.send("SUMMARIZE", "/note", OTHER, task_id="t-1", agent="b" * 64)).status == 200
        assert (await bench.send("SUMMARIZE", "/note", OTHER)).status == 200


async def test_refused_profile_is_not_recorded() -> None:
    async with clinic() as bench:
        refused = {**NOTE, "semantic": {**RAD_PROFILE, "ontologyVersion": "9"}}
        assert (await bench.send("SUMMARIZE", "/note", refused, task_id="t-1")).status == 409
        assert (await recorded(bench)).digest == ""


async def test_task_with_a_profile_needs_no_further_envelope() -> None:
    async with clinic(summarize("irreversible"), required="irreversible", confirmed=True) as bench:
        missing = await bench.send("SUMMARIZE", "/note", NOTE, task_id="t-1")
        assert missing.error["code"] == "semantic-profile-required"
        await bench.send("SUMMARIZE", "/note", BODY, task_id="t-1")
        assert (await bench.send("SUMMARIZE", "/note", NOTE, task_id="t-1")).status == 200
        foreign = await bench.send("SUMMARIZE", "/note", NOTE, task_id="t-1", agent="b" * 64)
        assert foreign.error["code"] == "semantic-profile-required"


@pytest.mark.requirement("IOA-9-2", "IOA-9-3")
@pytest.mark.parametrize("required", ["never", "irreversible", "always"])
@pytest.mark.parametrize("impact", ["informational", "reversible", "irreversible"])
@pytest.mark.parametrize("recording", ["call", "proposal", "reference"])
@pytest.mark.parametrize("violations", ["reject", "renegotiate"])
async def test_profile_of_a_task_applies_to_later_calls_under_every_setting(
    required: str, impact: str, recording: str, violations: str
) -> None:
    meant = []

    def run(input: dict[str, Any], context: Context) -> dict[str, Any]:  # noqa: A002
        meant.append(context.semantic and context.semantic.capability_refs)
        return {}

    served = summarize(impact, run)
    lookup = replace(served.semantic, concepts=(f"{CLINICAL}#patient-lookup",))
    other = replace(served, path="/patient", semantic=lookup)
    code = "semantic-rejected" if violations == "reject" else "semantic-renegotiation"
    async with clinic(served, other, required=required, violations=violations, confirmed=True) as bench:
        if recording == "call":
            assert (await bench.send("SUMMARIZE", "/note", BODY, task_id="t-1")).status == 200
        else:
            task = {} if recording == "reference" else {"task_id": "t-1"}
            proposed = await bench.send("PROPOSE", "/", {"semantic_profile": RAD_PROFILE}, **task)
            reference = {"semantic_profile": proposed.json["result"]["profile_id"]} if not task else {}
            assert (await bench.send("SUMMARIZE", "/note", NOTE, task_id="t-1", **reference)).status == 200
        later = await bench.send("SUMMARIZE", "/note", NOTE, task_id="t-1")
        assert later.status == 200
        assert (later.header("Semantic-Mapping") or "").startswith("confidence=0.91")
        assert meant == [(f"{CLINICAL}#note-summarize",)] * 2
        wrong = await bench.send("SUMMARIZE", "/patient", NOTE, task_id="t-1")
        assert wrong.error["code"] == code
        step = {"action": "summarize_patient", "parameters": NOTE}
        assert (await bench.send("EXECUTE", "/", step, task_id="t-1")).error["code"] == code
        assert len(meant) == 2


async def test_task_can_be_renegotiated_when_its_profile_no_longer_matches() -> None:
    async with clinic() as bench:
        await bench.send("SUMMARIZE", "/note", BODY, task_id="t-1")
        await bench.store.do(registration_of(alignment(version="1.1", rules=())))
        await bench.bench.server.part("semantic").knowledge.refresh()
        assert (await bench.send("SUMMARIZE", "/note", NOTE, task_id="t-1")).status == 409
        proposed = {"semantic_profile": CLINICAL_PROFILE}
        assert (await bench.send("PROPOSE", "/", proposed, task_id="t-1")).status == 200
        assert (await bench.send("SUMMARIZE", "/note", NOTE, task_id="t-1")).status == 200


async def test_answer_from_before_a_change_is_replayed() -> None:
    async with clinic(summarize("reversible")) as bench:
        keyed = {"task_id": "t-1", "idempotency_key": "k-1"}
        assert (await bench.send("SUMMARIZE", "/note", BODY, **keyed)).status == 200
        proposed = {"semantic_profile": CLINICAL_PROFILE}
        assert (await bench.send("PROPOSE", "/", proposed, task_id="t-1")).status == 200
        again = await bench.send("SUMMARIZE", "/note", BODY, **keyed)
        assert (again.status, again.header("Idempotency-Replayed")) == (200, "true")
        assert (await bench.send("SUMMARIZE", "/note", BODY, task_id="t-1")).status == 409


async def test_store_that_cannot_record_the_profile_admits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with clinic() as bench:

        async def fail(*_: object, **__: object) -> Response:
            raise StoreUnavailableError("gone")

        with monkeypatch.context() as patch:
            patch.setattr(bench.store, "do", fail)
            assert (await bench.send("SUMMARIZE", "/note", BODY, task_id="t-1")).status == 503


async def test_steps_of_a_workflow_mean_what_their_call_means() -> None:
    steps = [{"name": "a", "method": "SUMMARIZE", "path": "/note", "parameters": NOTE}]
    body = {"steps": steps, "timeout": 20}
    served = summarize("irreversible")
    async with clinic(served, required="irreversible", confirmed=True, methods=("CHAIN",)) as bench:
        missing = await bench.send("CHAIN", "/", body, task_id="t-1")
        assert missing.json["result"]["steps"][0]["error"]["code"] == "semantic-profile-required"
        for given in ({**body, "semantic": RAD_PROFILE}, body):  # the second time, the task has a profile
            done = await bench.send("CHAIN", "/", given, task_id="t-1")
            assert done.json["result"]["status"] == "completed", done.json
        other = {**NOTE, "semantic": CLINICAL_PROFILE}
        assert (await bench.send("SUMMARIZE", "/note", other, task_id="t-1")).status == 409


async def test_workflow_keeps_its_meaning_over_a_restart() -> None:
    async with clinic(summarize("irreversible"), required="irreversible", methods=("CHAIN",)) as bench:
        server = bench.bench.server
        meaning = server.part("semantic").restore(msgspec.to_builtins(parse(RAD_PROFILE).profile))
        request = Request("CHAIN", "/", "", {"agent-id": AGENT}, b"", Connection(), semantic=meaning)
        call = Call(request, server)
        call.principal = Principal(agent_id=AGENT)
        kept = msgspec.json.decode(msgspec.json.encode(Authority.of(call.principal, call.request)), type=Authority)
        restored = restore_call(kept, server, "CHAIN")
        assert isinstance(restored, RoutedCall)
        assert restored.request.semantic == meaning


SUMMARY = (f"{RAD}#report-summary", f"{CLINICAL}#note-summarize")


def mapping_history_summarize(input: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    """Fail if the note says so."""
    if input["text"] == "fail":
        raise ValueError("broken")
    return {}


@asynccontextmanager
async def opened(place: str) -> AsyncIterator[Store]:
    store = open_store(place, role="sole")
    await store.start()
    yield store
    await store.close()


@pytest.fixture
async def place(tmp_path: Path) -> str:
    place = str(tmp_path / "store.db")
    async with opened(place) as store:
        await register_all(store)
    return place


@asynccontextmanager
async def mapping_history_clinic(place: str) -> AsyncIterator[StatefulBench]:
    served = summarize("reversible", mapping_history_summarize)
    async with keeping(served, store=open_store(place, role="sole"), semantic=SemanticSettings()) as bench:
        yield bench


async def call(bench: StatefulBench, text: Any = "", profile: Any = RAD_PROFILE, **headers: Any) -> int:
    reply = await bench.send("SUMMARIZE", "/note", {"text": text, "semantic": profile}, **headers)
    return reply.status


async def read(store: Store) -> dict[tuple[str, str], tuple[int, int]]:
    rows: list[MappedCalls] = await store.read(ListMappedCalls())
    return {(row.source, row.target): (row.succeeded, row.failed) for row in rows}


async def stored(place: str) -> dict[tuple[str, str], tuple[int, int]]:
    async with opened(place) as store:
        return await read(store)


async def test_successes_and_failures_of_mapped_calls_are_stored_when_the_server_ends(place: str) -> None:
    async with mapping_history_clinic(place) as bench:
        assert [await call(bench, text) for text in ("a", "b", "fail")] == [200, 200, 500]
        assert await call(bench, profile=CLINICAL_PROFILE) == 200
        assert await read(bench.store) == {}, "calls do not wait for a transaction of their own"
    counts = await stored(place)
    assert counts[SUMMARY] == (2, 1)
    assert set(counts.values()) == {(2, 1)}
    async with mapping_history_clinic(place) as bench:
        assert await call(bench) == 200
    assert (await stored(place))[SUMMARY] == (3, 1)


async def test_repeated_answers_and_refusals_do_not_count(place: str) -> None:
    async with mapping_history_clinic(place) as bench:
        for _ in range(3):
            assert await call(bench, idempotency_key="once") == 200
        assert await call(bench, "other", idempotency_key="once") == 422
        assert await call(bench, 7) == 422
    assert (await stored(place))[SUMMARY] == (1, 0)


async def test_counts_are_stored_after_period_and_counting_goes_on(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "PERIOD", 0.0)
    async with mapping_history_clinic(place) as bench:
        for number in (1, 2):
            await call(bench)
            history: MappingHistory = bench.bench.dispatcher.server.part("semantic").history
            assert history._flushing is not None
            await history._flushing
            assert (await read(bench.store))[SUMMARY] == (number, 0)


async def test_number_of_mappings_in_a_period_is_bounded(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_MAPPINGS", 1)
    async with mapping_history_clinic(place) as bench:
        await call(bench)
    assert len(await stored(place)) == 1
    monkeypatch.setattr(calls, "LONGEST", 5)
    async with mapping_history_clinic(place) as bench:
        await call(bench)
    assert sum(sum(two) for two in (await stored(place)).values()) == 1


async def test_store_that_fails_costs_only_the_counts(
    place: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: Any) -> Any:
        raise StoreUnavailableError("gone")

    async with mapping_history_clinic(place) as bench:
        assert await call(bench) == 200
        with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
            patched.setattr(bench.store, "do", fail)
            await bench.bench.dispatcher.server.part("semantic").history.flush()
        assert "could not be stored: gone" in caplog.text
    assert await stored(place) == {}


async def test_concept_that_no_ontology_has_is_reported_at_start(caplog: pytest.LogCaptureFixture) -> None:
    strange = replace(summarize(), semantic=replace(summarize().semantic, concepts=(f"{CLINICAL}#note-sumarize",)))
    async with clinic(strange):
        pass
    [text] = [one.getMessage() for one in caplog.records if "no registered ontology" in one.getMessage()]
    assert f"SUMMARIZE /note declares the concept {CLINICAL}#note-sumarize" in text

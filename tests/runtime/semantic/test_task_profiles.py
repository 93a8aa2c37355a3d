"""The profile of a task: recorded with its first call, and the same until it is renegotiated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.meaning import CLINICAL, CLINICAL_PROFILE, RAD_PROFILE, alignment, registration_of
from tests.runtime.semantic.test_calls import NOTE, clinic, summarize
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench

from bespeak.documents.envelope.reader import parse
from bespeak.errors import StoreUnavailableError
from bespeak.protocol.exchange.messages import Connection, Context, Request, Response
from bespeak.protocol.exchange.principal import Principal
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.workflows.spec import restore_call
from bespeak.state.store.commands.semantics import FindProfile, RecordedProfile, task_record

pytestmark = pytest.mark.anyio

BODY = {**NOTE, "semantic": RAD_PROFILE}
OTHER = {**NOTE, "semantic": CLINICAL_PROFILE}


async def recorded(bench: StatefulBench, task_id: str = "t-1", agent: str = AGENT) -> RecordedProfile:
    found = await bench.store.read(FindProfile(task_record(agent, task_id)))
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

    served = replace(summarize(impact), handler=make_endpoint("X", "/x", run).handler)
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
        await bench.bench.server.semantic.knowledge.refresh()
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
        meaning = server.semantic.restore(msgspec.to_builtins(parse(RAD_PROFILE).profile))
        request = Request("CHAIN", "/", "", {"agent-id": AGENT}, b"", Connection(), semantic=meaning)
        call = Call(request, server)
        call.principal = Principal(agent_id=AGENT)
        kept = msgspec.json.decode(msgspec.json.encode(Authority.of(call.principal, call.request)), type=Authority)
        restored = restore_call(kept, server, "CHAIN")
        assert isinstance(restored, RoutedCall)
        assert restored.request.semantic == meaning

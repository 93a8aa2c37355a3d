"""The profile of a task: recorded with its first call, and the same until it is renegotiated."""

from __future__ import annotations

import msgspec
import pytest
from tests.meaning import CLINICAL_PROFILE, RAD_PROFILE
from tests.runtime.semantic.test_calls import NOTE, clinic, summarize
from tests.service import AGENT
from tests.stateful import StatefulBench

from bespeak.documents.envelope.reader import parse
from bespeak.errors import StoreUnavailableError
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.protocol.exchange.principal import Principal
from bespeak.runtime.call import Call, RoutedCall
from bespeak.runtime.workflows.spec import Authority
from bespeak.state.store.commands.profiles import FindProfile, RecordedProfile, task_record

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
    async with clinic(summarize("irreversible"), required="irreversible") as bench:
        missing = await bench.send("SUMMARIZE", "/note", NOTE, task_id="t-1")
        assert missing.error["code"] == "semantic-profile-required"
        await bench.send("SUMMARIZE", "/note", BODY, task_id="t-1")
        assert (await bench.send("SUMMARIZE", "/note", NOTE, task_id="t-1")).status == 200
        foreign = await bench.send("SUMMARIZE", "/note", NOTE, task_id="t-1", agent="b" * 64)
        assert foreign.error["code"] == "semantic-profile-required"


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
    async with clinic(summarize("irreversible"), required="irreversible", methods=("CHAIN",)) as bench:
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
        route = server.routes.direct["/"]["CHAIN"]
        kept = msgspec.json.decode(msgspec.json.encode(Authority.of(RoutedCall(call, route))), type=Authority)
        restored = kept.restore(server, "CHAIN")
        assert isinstance(restored, RoutedCall)
        assert restored.request.semantic == meaning

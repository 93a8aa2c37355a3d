"""The profile of a task: recorded with its first call, and the same until it is renegotiated."""

from __future__ import annotations

import pytest
from tests.meaning import CLINICAL_PROFILE, RAD_PROFILE
from tests.runtime.semantic.test_calls import NOTE, clinic, summarize
from tests.service import AGENT
from tests.stateful import StatefulBench

from bespeak.errors import StoreUnavailableError
from bespeak.protocol.exchange.messages import Response
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

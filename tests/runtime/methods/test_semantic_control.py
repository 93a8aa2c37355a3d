"""The control exchange: DESCRIBE asks what would match, PROPOSE records a new profile for the task."""

from __future__ import annotations

from typing import Any

import pytest
from tests.meaning import ALIGNMENT, CLINICAL, CLINICAL_PROFILE, RAD, RAD_PROFILE
from tests.runtime.semantic.test_calls import NOTE, clinic
from tests.runtime.semantic.test_task_profiles import recorded
from tests.service import Reply, build, echo, make_endpoint
from tests.stateful import StatefulBench

from bespeak.contract.ontology.settings import SemanticSettings

pytestmark = pytest.mark.anyio


async def describe(bench: StatefulBench, profile: Any, **more: Any) -> dict[str, Any]:
    reply = await bench.send("DESCRIBE", "/", {"semantic_profile": profile, **more})
    assert reply.status == 200, reply.json
    result: dict[str, Any] = reply.json["result"]
    return result


async def propose(bench: StatefulBench, profile: Any, **headers: str) -> Reply:
    return await bench.send("PROPOSE", "/", {"semantic_profile": profile}, **headers)


@pytest.mark.requirement("IOA-9-5", "IOA-9-6")
async def test_describe_tells_what_would_come_of_an_ontology_and_alignments() -> None:
    async with clinic() as bench:
        asked = {"ontologyId": RAD, "ontologyVersion": "1.0"}
        told = await describe(bench, asked, alignments=[ALIGNMENT])
        assert (told["semantic"]["match"], told["semantic"]["confidence"]) == ("unmatched", 0.0)
        assert {"ontologyId": CLINICAL, "ontologyVersion": "2.1"} in told["ontologies"]
        unknown = await describe(bench, asked, alignments=["https://z.example/a"])
        assert [one["rule"] for one in unknown["semantic"]["violations"]] == ["I242"]
        assert (await recorded(bench)).digest == ""


async def test_describe_judges_a_whole_profile_for_an_endpoint() -> None:
    async with clinic() as bench:
        endpoint = {"method": "SUMMARIZE", "path": "/note"}
        told = await describe(bench, RAD_PROFILE, endpoint=endpoint)
        assert (told["semantic"]["match"], told["semantic"]["confidence"]) == ("mapped", 0.91)
        lookup = {**CLINICAL_PROFILE, "capabilityRefs": ["clinical:patient-lookup", "clinical:note-summarize"]}
        found = (await describe(bench, lookup, endpoint=endpoint))["semantic"]
        assert (found["match"], found["confidence"]) == ("direct", 0.5)
        assert found["unmatched"] == [f"{CLINICAL}#patient-lookup"]
        missing = await bench.send(
            "DESCRIBE", "/", {"semantic_profile": RAD_PROFILE, "endpoint": {"method": "BOOK", "path": "/x"}}
        )
        assert (missing.status, missing.error["code"]) == (404, "endpoint-not-found")


@pytest.mark.parametrize(
    "profile",
    [
        {"ontologyId": CLINICAL, "ontologyVersion": "2.1"},
        {"ontologyId": RAD, "ontologyVersion": "1.0"},
        CLINICAL_PROFILE,
        RAD_PROFILE,
    ],
)
async def test_describe_is_not_sure_of_what_no_endpoint_declares(profile: dict[str, Any]) -> None:
    silent = make_endpoint("BOOK", "/room", echo)
    async with clinic(silent) as bench:
        for endpoint in ({}, {"endpoint": {"method": "BOOK", "path": "/room"}}):
            told = (await describe(bench, profile, **endpoint))["semantic"]
            assert told["match"] in ("unmatched", "none"), told
            assert told["confidence"] == 0.0


@pytest.mark.requirement("IOA-9-3", "IOA-9-7")
async def test_successful_proposal_records_a_new_profile_for_the_task() -> None:
    async with clinic() as bench:
        await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": RAD_PROFILE}, task_id="t-1")
        reply = await propose(bench, CLINICAL_PROFILE, task_id="t-1")
        assert reply.status == 200, reply.json
        assert reply.json["result"]["task_profile_version"] == 2
        assert (await recorded(bench)).digest == reply.json["result"]["profile_digest"]
        after = await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": CLINICAL_PROFILE}, task_id="t-1")
        before = await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": RAD_PROFILE}, task_id="t-1")
        assert (after.status, before.status) == (200, 409)


async def test_rejected_proposal_changes_nothing() -> None:
    async with clinic() as bench:
        await bench.send("SUMMARIZE", "/note", {**NOTE, "semantic": RAD_PROFILE}, task_id="t-1")
        first = await recorded(bench)
        for profile in ({**RAD_PROFILE, "ontologyVersion": "9"}, {"ontologyId": RAD, "ontologyVersion": "1.0"}, {}):
            reply = await propose(bench, profile, task_id="t-1")
            assert (reply.status, reply.error["code"]) == (463, "semantic-proposal-rejected")
        assert await recorded(bench) == first


async def test_agreed_profile_is_used_by_reference() -> None:
    async with clinic(required="always") as bench:
        agreed = (await propose(bench, RAD_PROFILE)).json["result"]["profile_id"]
        assert (await bench.send("SUMMARIZE", "/note", NOTE, semantic_profile=agreed)).status == 200
        again = await bench.send("SUMMARIZE", "/note", NOTE, semantic_profile=agreed, task_id="t-9")
        assert again.status == 200
        assert (await recorded(bench, "t-9")).profile["ontology_id"] == RAD
        for agent, reference in (("b" * 64, agreed), ("a" * 64, "semantic-0")):
            foreign = await bench.send("SUMMARIZE", "/note", NOTE, agent=agent, semantic_profile=reference)
            assert (foreign.status, foreign.error["code"]) == (422, "semantic-profile-unknown")


async def test_proposals_of_endpoints_stay_what_they_are() -> None:
    async with clinic() as bench:
        reply = await bench.send("PROPOSE", "/", {"method": "BOOK", "path": "/room", "semantic": {"intent": "x"}})
        assert (reply.status, reply.error["reason"]) == (463, "synthesis-disabled")
        assert (await bench.send("DESCRIBE", "/", {"capability_domains": "version"})).status == 200


async def test_proposal_needs_an_identified_agent() -> None:
    async with clinic() as bench:
        reply = await bench.send("PROPOSE", "/", {"semantic_profile": RAD_PROFILE}, agent=None)
        assert reply.status == 262


def test_other_servers_do_not_offer_the_exchange() -> None:
    plain, semantic = build(), build(semantic=SemanticSettings())
    for bench, offered in ((plain, False), (semantic, True)):
        parameters = bench.routes.endpoints["DESCRIBE", "/"].input_schema["properties"]
        assert ("semantic_profile" in parameters) is offered

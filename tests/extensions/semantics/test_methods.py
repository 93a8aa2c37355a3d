"""The control exchange: DESCRIBE asks what would match, PROPOSE records a new profile for the task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.cases import rows
from tests.extensions.semantics.test_calls import NOTE, clinic, recorded, summarize
from tests.extensions.semantics.test_discovery import PATIENTS
from tests.meaning import ALIGNMENT, CLINICAL, CLINICAL_PROFILE, RAD, RAD_PROFILE
from tests.service import Reply, build, echo, make_endpoint
from tests.stateful import StatefulBench

from bespeak.extensions.semantics.settings import SemanticSettings

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
        assert found["match"] == "none"
        assert [(one["rule"], one["path"]) for one in found["violations"]] == [("I246", "/capabilityRefs/0")]
        missing = await bench.send(
            "DESCRIBE", "/", {"semantic_profile": RAD_PROFILE, "endpoint": {"method": "BOOK", "path": "/x"}}
        )
        assert (missing.status, missing.error["code"]) == (404, "endpoint-not-found")


@rows(
    "profile",
    {"ontologyId": CLINICAL, "ontologyVersion": "2.1"},
    {"ontologyId": RAD, "ontologyVersion": "1.0"},
    CLINICAL_PROFILE,
    RAD_PROFILE,
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


async def test_proposals_of_endpoints_stay_and_profiles_need_an_identified_agent() -> None:
    async with clinic() as bench:
        reply = await bench.send("PROPOSE", "/", {"method": "BOOK", "path": "/room", "semantic": {"intent": "x"}})
        assert (reply.status, reply.error["reason"]) == (463, "synthesis-disabled")
        assert (await bench.send("DESCRIBE", "/", {"capability_domains": "version"})).status == 200
        reply = await bench.send("PROPOSE", "/", {"semantic_profile": RAD_PROFILE}, agent=None)
        assert reply.status == 262


def test_other_servers_do_not_offer_the_exchange() -> None:
    plain, semantic = build(), build(semantic=SemanticSettings())
    for bench, offered in ((plain, False), (semantic, True)):
        parameters = bench.routes.endpoints["DESCRIBE", "/"].input_schema["properties"]
        assert ("semantic_profile" in parameters) is offered


WORDS = replace(make_endpoint("QUERY", "/weather", echo), description="Finds the weather forecast for a city.")


async def candidates(bench: StatefulBench, criteria: Any, **more: Any) -> list[dict[str, Any]]:
    reply = await bench.send("DISCOVER", "/", {"criteria": criteria, **more})
    assert reply.status == 200, reply.json
    found: list[dict[str, Any]] = reply.json["result"]["candidates"]
    return found


@pytest.mark.requirement("IOA-8-2")
async def test_capability_of_another_domain_is_found_first_and_can_be_called() -> None:
    async with clinic(WORDS, summarize()) as bench:
        for criteria in ("radiology-report-summary", {"capability": f"{RAD}#report-summary"}):
            first, *others = await candidates(bench, criteria)
            assert (first["path"], first["match"], first["confidence"]) == ("/note", "mapped", 0.91)
            assert "/note" not in [one["path"] for one in others]
        reply = await bench.send(first["method"], first["path"], {**NOTE, "semantic": first["semantic"]})
        assert (reply.status, reply.json) == (200, NOTE)


async def test_search_by_words_goes_on_for_everything_else() -> None:
    async with clinic(WORDS, summarize()) as bench:
        assert [one["path"] for one in await candidates(bench, "weather forecast")] == ["/weather"]
        assert await candidates(bench, "radiology-report-summary", max_results=1) != []
        assert await candidates(bench, {"goal": "zebra"}) == []
        assert "endpoints" in (await bench.send("DISCOVER", "/", agent=None)).json


@pytest.mark.requirement("IOA-13-4")
async def test_sensitive_capability_is_found_neither_by_meaning_nor_by_words() -> None:
    async with clinic(PATIENTS, sensitive=(f"{CLINICAL}#patient-lookup",)) as bench:
        assert await candidates(bench, "summarize patient") == []
        assert await candidates(bench, "patient lookup") == []
        doctor = await bench.send("DISCOVER", "/", {"criteria": "patient lookup"}, authority_scope="patients:read")
        assert doctor.json["result"]["candidates"][0]["path"] == "/patient"


async def test_filter_holds_for_candidates_by_meaning() -> None:
    async with clinic(summarize()) as bench:
        wanted = {"capability": f"{CLINICAL}#note-summarize"}
        assert len(await candidates(bench, wanted)) == 1
        assert await candidates(bench, wanted, filter={"principal": "somebody else"}) == []

"""Living syntheses: where they are found, who may call them, and when they end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.app.server.test_workers import eventually
from tests.extensions.negotiation.definitions import definition, fields
from tests.extensions.negotiation.negotiating import (
    CANCEL,
    FIND,
    LODGINGS,
    OTHER,
    SESSION,
    given,
    lodgings,
    negotiating,
    recipe,
    refunds,
)
from tests.service import AGENT, Reply, echo, make_endpoint
from tests.stateful import StatefulBench

from bespeak.contract.handler import Composition
from bespeak.contract.policy import MethodPolicy
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.negotiation import syntheses
from bespeak.extensions.negotiation.settings import ForbiddenCombination, NegotiationSettings
from bespeak.extensions.negotiation.store import DecideProposal, PublishProposal, RevokeSynthesis
from bespeak.protocol.exchange.messages import Request, Response
from bespeak.runtime.additions import EndpointOrigin, write_endpoint
from bespeak.state.store.commands.endpoints import PutEndpoint
from bespeak.state.store.settings import open_store
from bespeak.state.store.store import Command, Statement, Steps

pytestmark = pytest.mark.anyio

ROME = {"town": "Rome"}


class SessionsEnd(Command, frozen=True):
    """Lets the time of all sessions pass, and of syntheses outside of them."""

    def steps(self) -> Steps:
        yield Statement("UPDATE sessions SET expires = 1")
        yield Statement("UPDATE proposals SET expires = 1")


async def propose(bench: StatefulBench, body: Any = None, **headers: Any) -> str:
    approved = await bench.send("PROPOSE", "/", body or lodgings(), **headers)
    assert approved.status == 263, approved.json
    synthesis_id: str = approved.json["synthesis_id"]
    return synthesis_id


async def find(bench: StatefulBench, **headers: Any) -> int:
    return (await bench.send("FIND", "/lodgings", ROME, **headers)).status


async def manifest_for(bench: StatefulBench, agent: str | None = AGENT) -> Reply:
    return await bench.send("DISCOVER", "/", {"target": "manifest"}, agent=agent)


@pytest.mark.requirement("API-10.5-1")
async def test_synthesis_exists_in_the_session_that_proposed_it(bench: StatefulBench) -> None:
    await propose(bench, session_id=SESSION)
    assert await find(bench, session_id=SESSION) == 200
    assert await find(bench) == 404
    assert await find(bench, session_id=SESSION[::-1]) == 404
    assert await find(bench, agent=OTHER) == 404
    assert await find(bench, agent=None) == 404


@pytest.mark.requirement("API-10.5-1", "CORE-8-6")
@pytest.mark.parametrize("headers", [{"session_id": SESSION}, {}], ids=["session", "no session"])
async def test_synthesis_ends_with_its_session(bench: StatefulBench, headers: dict[str, str]) -> None:
    synthesis_id = await propose(bench, **headers)
    await bench.store.do(SessionsEnd())
    assert (await bench.send("FIND", "/lodgings", ROME, **headers)).refusal == (404, "synthesis-ended")
    assert await find(bench, synthesis_id=synthesis_id) == 404
    assert await propose(bench, **headers) != synthesis_id


async def test_synthesis_that_is_used_lives_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    async with negotiating() as bench:
        negotiator = bench.bench.server.part("negotiation")
        monkeypatch.setattr(negotiator.syntheses, "_clock", lambda: now)
        await propose(bench)
        assert await find(bench) == 200
        await bench.store.do(SessionsEnd())
        assert await find(bench) == 200, "certain to live for a quarter of the idle time"
        now += 1000.0
        assert await find(bench) == 404


async def test_synthesis_is_called_by_its_id_in_any_session(bench: StatefulBench) -> None:
    synthesis_id = await propose(bench, session_id=SESSION)
    assert await find(bench, synthesis_id=synthesis_id) == 200
    assert await find(bench, contract_synthesized=synthesis_id) == 200
    assert (await bench.send("FIND", "/elsewhere", ROME, synthesis_id=synthesis_id)).told("path") == (404, "/lodgings")


async def test_synthesis_of_another_agent_is_as_if_it_did_not_exist(bench: StatefulBench) -> None:
    synthesis_id = await propose(bench)
    known = await bench.send("FIND", "/lodgings", ROME, agent=OTHER, synthesis_id=synthesis_id)
    unknown = await bench.send("FIND", "/lodgings", ROME, agent=OTHER, synthesis_id="syn-" + "0" * 32)
    assert known.status == unknown.status == 404
    assert known.json == unknown.json


async def test_anonymous_caller_calls_its_synthesis_by_id_only(bench: StatefulBench) -> None:
    synthesis_id = await propose(bench, agent=None)
    assert await find(bench, agent=None) == 404
    assert await find(bench, agent=None, synthesis_id=synthesis_id) == 200


async def test_exact_path_of_a_synthesis_comes_before_a_template() -> None:
    one = make_endpoint("FIND", "/{kind}", echo, properties={"kind": {"type": "string"}})
    async with negotiating(FIND, one) as bench:
        assert (await bench.send("FIND", "/lodgings")).json == {"kind": "lodgings"}
        await propose(bench)
        assert (await bench.send("FIND", "/lodgings", ROME)).json["rooms"]
        assert (await bench.send("FIND", "/lodgings", agent=OTHER)).json == {"kind": "lodgings"}


async def test_template_of_a_synthesis_captures_its_parameters() -> None:
    towns = recipe("/towns/{town}/lodgings", ("FIND", "/rooms"), city=given("town"))
    async with negotiating(recipes=(towns,)) as bench:
        await propose(bench, lodgings(path="/towns/{town}/lodgings"))
        assert (await bench.send("FIND", "/towns/Bad%20Ems/lodgings")).json["rooms"][0]["city"] == "Bad Ems"


async def test_operators_own_endpoint_is_found_first(bench: StatefulBench) -> None:
    await propose(bench)
    own = make_endpoint("FIND", "/lodgings", echo, properties={"town": {"type": "string"}})
    await bench.bench.server.add_endpoint(replace(own, handler=replace(own.handler, function="tests.service.echo")))
    assert (await bench.send("FIND", "/lodgings", ROME)).json == ROME


@pytest.mark.requirement("API-4.5-3")
async def test_synthesis_over_a_removed_verb_is_410(tmp_path: Path) -> None:
    triage = replace(FIND, method="TRIAGE")
    steps = (recipe("/lodgings", ("TRIAGE", "/rooms"), city=given("town")),)
    place = str(tmp_path / "store.db")
    async with negotiating(triage, recipes=steps, store=open_store(place, role="sole")) as bench:
        await propose(bench)
        assert await find(bench) == 200
    older = {"catalog": "1.0.0"}
    async with negotiating(triage, recipes=steps, store=open_store(place, role="sole"), service=older) as bench:
        assert (await bench.send("FIND", "/lodgings", ROME)).refusal == (410, "synthesis-outdated")


async def test_synthesis_over_an_endpoint_that_is_gone_is_410(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    async with negotiating(store=open_store(place, role="sole")) as bench:
        await propose(bench)
        assert await find(bench) == 200
    async with negotiating(CANCEL, store=open_store(place, role="sole")) as bench:
        gone = await bench.send("FIND", "/lodgings", ROME)
        assert (gone.status, gone.error["code"]) == (410, "synthesis-outdated")
        assert "/rooms" not in str(gone.json)
    async with negotiating(store=open_store(place, role="sole")) as bench:
        assert await find(bench) == 200


async def test_few_syntheses_are_compiled_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntheses, "_MOST_COMPILED", 2)
    async with negotiating() as bench:
        ids = [await propose(bench, agent=f"{number}" * 64) for number in (1, 2, 3)]
        for _ in range(2):
            for number, synthesis_id in enumerate(ids, 1):
                assert await find(bench, agent=f"{number}" * 64, synthesis_id=synthesis_id) == 200


@asynccontextmanager
async def two_processes(place: Path, **settings: Any) -> AsyncIterator[tuple[StatefulBench, StatefulBench]]:
    """Serve the hotel twice on one store, as two workers do."""
    document = ServerDocument(extension_tables={"negotiation": NegotiationSettings(**settings)})
    stores = [open_store(str(place / "store.db")) for _ in range(2)]
    async with (
        negotiating(store=stores[0], document=document) as one,
        negotiating(store=stores[1], document=document) as other,
    ):
        yield one, other


async def test_synthesis_of_one_process_is_called_in_the_other_at_once(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (one, other):
        synthesis_id = await propose(one, session_id=SESSION)
        assert await find(other, session_id=SESSION) == 200
        assert await find(other, synthesis_id=synthesis_id) == 200
        assert await propose(other, session_id=SESSION) == synthesis_id


@pytest.mark.requirement("API-10.5-2", "CORE-2.4-8")
async def test_persistent_synthesis_is_in_the_manifest_of_its_agent_alone() -> None:
    async with negotiating(persistent=True) as bench:
        before = await manifest_for(bench)
        approved = await bench.send("PROPOSE", "/", {"endpoint": lodgings(), "persistent": True})
        assert (approved.status, approved.json["persistent"], approved.json["granted_duration"]) == (263, True, "1d")
        own = await manifest_for(bench)
        assert "/lodgings" in {endpoint["path"] for endpoint in own.json["endpoints"]}
        assert own.json["document_version"] != before.json["document_version"]
        assert "private" in str(own.header("Cache-Control"))
        assert (await manifest_for(bench, OTHER)).json == before.json
        assert await find(bench, session_id=SESSION) == 200
        assert await find(bench, agent=OTHER) == 404


@pytest.mark.requirement("CORE-2.4-8")
async def test_published_synthesis_is_in_the_manifest_of_everyone(bench: StatefulBench) -> None:
    synthesis_id = await propose(bench)
    assert (await bench.send("FIND", "/rooms", {"city": "x"})).header("AGTP-API-Version") == "1.0"
    await bench.store.do(PublishProposal(f"prop-{synthesis_id[4:]}", 3600.0))
    assert await find(bench, agent=OTHER) == 200
    assert "/lodgings" in str((await manifest_for(bench, None)).json["endpoints"])
    assert (await bench.send("FIND", "/rooms", {"city": "x"})).header("AGTP-API-Version") == "1.0.1"


async def test_row_of_an_earlier_version_that_one_agent_alone_may_call_is_not_served() -> None:
    async with negotiating(persistent=True) as bench:
        origin = EndpointOrigin(synthesis_id="syn-1", agent_id=OTHER, expires=2e9)
        document = write_endpoint(replace(FIND, path="/old", handler=Composition(recipe="lodgings")), LODGINGS, origin)
        await bench.store.do(PutEndpoint("FIND", "/old", document, 0))
        assert (await bench.send("FIND", "/old", ROME)).status == 404
        assert (await bench.send("FIND", "/old", ROME, agent=OTHER)).status == 404


async def test_words_of_a_synthesis_do_not_change_what_others_can_propose() -> None:
    output = {"type": "array", "items": fields("room_id", price={"type": "integer"})}
    schema = {"type": "object", "properties": {"rooms": output}, "required": ["rooms"]}
    rooms = make_endpoint("QUERY", "/rooms", echo, output=schema)
    wanted = definition(input_schema=fields(max_price={"type": "integer"}), output_schema=schema)
    async with negotiating(rooms, recipes=(), persistent=True) as bench:
        assert (await bench.send("PROPOSE", "/", {"endpoint": wanted, "persistent": True})).status == 263
        assert (await bench.send("PROPOSE", "/", {"endpoint": wanted}, agent=OTHER)).status == 263


@pytest.mark.parametrize("persistent", [True, False])
async def test_persistent_synthesis_does_not_hide_what_another_agent_proposes(persistent: bool) -> None:
    async with negotiating(persistent=True) as bench:
        await bench.send("PROPOSE", "/", {"endpoint": lodgings(), "persistent": True})
        wanted = {"endpoint": lodgings(), "persistent": persistent}
        own = await bench.send("PROPOSE", "/", wanted, agent=OTHER)
        assert own.status == 263
        assert (await bench.send("FIND", "/lodgings", ROME, agent=OTHER)).status == 200
        named = await bench.send("FIND", "/lodgings", ROME, agent=OTHER, synthesis_id=own.json["synthesis_id"])
        assert (named.status, named.header("Contract-Synthesized")) == (200, own.json["synthesis_id"])
        assert (await bench.send("FIND", "/lodgings", ROME)).status == 200


@pytest.mark.parametrize(("asked", "granted"), [("2h", "2h"), ("P7D", "7d"), ("999d", "30d"), (None, "1d")])
async def test_duration_is_granted_within_the_policy(asked: str | None, granted: str) -> None:
    async with negotiating(persistent=True) as bench:
        wanted = {"endpoint": lodgings(), "persistent": True, "requested_duration": asked}
        assert (await bench.send("PROPOSE", "/", wanted)).json["granted_duration"] == granted


@pytest.mark.parametrize("agent", ["a" * 64, None])
async def test_persistence_is_refused_independently_of_the_synthesis(agent: str | None) -> None:
    async with negotiating(persistent=agent is None) as bench:
        approved = await bench.send("PROPOSE", "/", {"endpoint": lodgings(), "persistent": True}, agent=agent)
        assert (approved.status, approved.json["persistent"]) == (263, False)
        assert "/lodgings" not in str((await bench.send("DISCOVER", "/", agent=None)).json)


async def test_persistent_synthesis_survives_a_restart_and_ends_at_its_time(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    async with negotiating(store=open_store(place, role="sole"), persistent=True) as bench:
        await propose(bench, {"endpoint": lodgings(), "persistent": True})
    async with negotiating(store=open_store(place, role="sole"), persistent=True) as bench:
        assert await find(bench) == 200
        await bench.store.do(SessionsEnd())
    async with negotiating(store=open_store(place, role="sole"), persistent=True) as bench:
        assert await find(bench) == 404
        assert "/lodgings" not in str((await manifest_for(bench)).json)


async def test_published_synthesis_is_called_by_every_agent(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (one, other):
        synthesis_id = await propose(one, session_id=SESSION)
        await one.store.do(PublishProposal(f"prop-{synthesis_id[4:]}", 3600.0))
        assert await find(one, agent=OTHER) == 200
        assert await find(other, agent=OTHER) == 200
        assert await find(other, agent=None) == 200


@pytest.mark.parametrize("is_published", [True, False])
async def test_revoked_synthesis_ends_in_every_process(tmp_path: Path, is_published: bool) -> None:
    async with two_processes(tmp_path, persistent=True) as (one, other):
        synthesis_id = await propose(one, {"endpoint": lodgings(), "persistent": True})
        proposal_id = f"prop-{synthesis_id[4:]}"
        if is_published:
            await one.store.do(PublishProposal(proposal_id, 3600.0))
        assert await find(other, agent=OTHER if is_published else AGENT) == 200
        await one.store.do(RevokeSynthesis(proposal_id, "operator:kim", "wrong rooms"))

        async def is_gone() -> bool:
            answers = [await find(bench, agent=agent) for bench in (one, other) for agent in (AGENT, OTHER)]
            shown = [str((await manifest_for(bench, agent)).json) for bench in (one, other) for agent in (AGENT, OTHER)]
            return set(answers) == {404} and not any("/lodgings" in text for text in shown)

        await eventually(is_gone)
        assert await find(one, synthesis_id=synthesis_id) == 404
        told = await other.send("QUERY", f"/proposals/{proposal_id}")
        assert (told.status, "wrong rooms" in told.error["message"]) == (410, True)


async def test_what_was_revoked_is_approved_again_by_an_operator_only(bench: StatefulBench) -> None:
    synthesis_id = await propose(bench)
    await bench.store.do(RevokeSynthesis(f"prop-{synthesis_id[4:]}", "operator:kim"))
    again = await bench.send("PROPOSE", "/", lodgings(description="Finds other rooms."))
    assert again.status == 261
    assert (await bench.send("PROPOSE", "/", lodgings(), agent=OTHER)).status == 263
    await bench.store.do(DecideProposal(again.json["proposal_id"], "approved", "operator:kim"))
    assert await find(bench) == 200


@pytest.mark.parametrize(("first", "second"), [(False, False), (True, False), (False, True), (True, True)])
async def test_synthesis_of_the_newest_263_is_the_current_one(tmp_path: Path, first: bool, second: bool) -> None:
    async with two_processes(tmp_path, persistent=True) as (one, other):
        wishes = [
            {"endpoint": lodgings(description=f"Finds rooms {number}."), "persistent": persistent}
            for number, persistent in enumerate((first, second))
        ]
        for wish in (*wishes, wishes[0], wishes[1], wishes[0]):
            current = await propose(one, wish, session_id=SESSION)
            for bench in (one, other):

                async def is_current(bench: StatefulBench = bench, current: str = current) -> bool:
                    called = await bench.send("FIND", "/lodgings", ROME, session_id=SESSION)
                    return (called.status, called.header("Contract-Synthesized")) == (200, current)

                await eventually(is_current)


async def test_contract_that_is_proposed_again_is_judged_again(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    async with negotiating(store=open_store(place, role="sole"), persistent=True) as bench:
        await propose(bench, refunds(), authority_scope="stays:cancel")
        assert (await bench.send("PROPOSE", "/", refunds())).status == 262
    forbidden = (ForbiddenCombination(together=("CANCEL /stays", "scope:stays:*")),)
    async with negotiating(store=open_store(place, role="sole"), forbidden=forbidden) as bench:
        refused = await bench.send("PROPOSE", "/", refunds(), authority_scope="stays:cancel")
        assert (refused.status, refused.json["reason"]) == (463, "policy-refused")


async def test_hidden_endpoint_at_the_path_is_not_revealed_by_a_proposal() -> None:
    secret = replace(make_endpoint("FIND", "/lodgings", echo, scopes=("secrets:read",)), internal=True)
    async with negotiating(FIND, secret, persistent=True) as bench:
        approved = await bench.send("PROPOSE", "/", {"endpoint": lodgings(), "persistent": True})
        assert (approved.status, approved.json["persistent"]) == (263, False)
        assert await find(bench) == 200


@pytest.mark.parametrize(("body", "status"), [(lodgings(), 200), (refunds(), 405)], ids=["reading", "changing"])
async def test_get_calls_only_a_synthesis_that_changes_nothing(bench: StatefulBench, body: Any, status: int) -> None:
    await propose(bench, body, authority_scope="stays:cancel")
    headers = {"agent-id": AGENT, "authority-scope": "stays:cancel"}
    query = "town=Rome" if status == 200 else "stay=7"
    request = Request(body["method"], body["path"], query, headers, b"", bench.connection, reads=True)
    answer = bench.bench.dispatcher(request)
    assert (answer if isinstance(answer, Response) else await answer).status == status


async def test_synthesis_whose_verb_the_policy_no_longer_allows_is_not_called(tmp_path: Path) -> None:
    place = str(tmp_path / "store.db")
    steps = (recipe("/lodgings", ("FIND", "/rooms"), "SEARCH", city=given("town")),)
    body = lodgings(method="SEARCH")
    async with negotiating(recipes=steps, store=open_store(place, role="sole")) as bench:
        await propose(bench, body)
        assert (await bench.send("SEARCH", "/lodgings", ROME)).status == 200
    closed = {"methods": MethodPolicy(disallow=("SEARCH",))}
    async with negotiating(recipes=steps, store=open_store(place, role="sole"), policies=closed) as bench:
        assert (await bench.send("SEARCH", "/lodgings", ROME)).status in (404, 405)


async def test_persistent_synthesis_is_served_when_an_operator_has_approved_it() -> None:
    async with negotiating(persistent=True, approval="persistent") as bench:
        pending = await bench.send("PROPOSE", "/", {"endpoint": lodgings(), "persistent": True})
        assert pending.status == 261
        await bench.store.do(DecideProposal(pending.json["proposal_id"], "approved", "operator:kim"))
        assert await find(bench) == 200
        assert "/lodgings" in str((await manifest_for(bench)).json)


async def test_persistent_synthesis_leaves_the_manifest_at_its_end() -> None:
    async with negotiating(persistent=True, default_duration=0.05) as bench:
        await propose(bench, {"endpoint": lodgings(), "persistent": True})

        async def is_gone() -> bool:
            return "/lodgings" not in str((await manifest_for(bench)).json)

        await eventually(is_gone)
        assert await find(bench) == 404

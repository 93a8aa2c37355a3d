"""Proposals that are composed by search: what agents get, within which authority, and what is never revealed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows as cases
from tests.extensions.negotiation.definitions import SEMANTIC, definition, fields
from tests.extensions.negotiation.negotiating import negotiating
from tests.service import AGENT, Reply, make_endpoint
from tests.stateful import StatefulBench

from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.extensions.negotiation.settings import ForbiddenCombination
from bespeak.state.store.settings import open_store

pytestmark = pytest.mark.anyio

TEXT, NUMBER = {"type": "string"}, {"type": "number"}


def rows(name: str, **members: Any) -> dict[str, Any]:
    """Return the schema of an object with one list of objects."""
    row = {"type": "object", "properties": members, "required": list(members)}
    return {"type": "object", "properties": {name: {"type": "array", "items": row}}, "required": [name]}


def list_rooms() -> dict[str, Any]:
    rooms = [{"room_id": "1", "price": 50}, {"room_id": "2", "price": 500}]
    return {"rooms": rooms}


def search_guests(email: str) -> dict[str, Any]:
    return {"guests": [{"guest_id": "g1", "email": email}]}


def list_stays(guest_id: str) -> dict[str, Any]:
    return {"stays": [{"stay_id": f"{guest_id}-s1", "total": 99.5}]}


ROOMS = make_endpoint("LIST", "/rooms", list_rooms, output=rows("rooms", room_id=TEXT, price=NUMBER))
GUESTS = make_endpoint(
    "SEARCH",
    "/guests",
    search_guests,
    properties={"email": TEXT},
    required=("email",),
    output=rows("guests", guest_id=TEXT, email=TEXT),
    scopes=("guests:read",),
)
STAYS = make_endpoint(
    "LIST",
    "/guests/{guest_id}/stays",
    list_stays,
    properties={"guest_id": TEXT},
    required=("guest_id",),
    output=rows("stays", stay_id=TEXT, total=NUMBER),
    scopes=("stays:read",),
)
HOTEL = (ROOMS, GUESTS, STAYS)

CHEAP = definition(
    path="/rooms/cheap", input_schema=fields(max_price=NUMBER), output_schema=rows("rooms", room_id=TEXT, price=NUMBER)
)
BY_EMAIL = definition(
    method="LIST",
    path="/guests/stays",
    semantic={**SEMANTIC, "intent": "List the stays of a guest with an email.", "outcome": "The stays are returned."},
    input_schema=fields("email"),
    output_schema=rows("stays", total=NUMBER),
)
BOTH = {"authority_scope": "guests:read, stays:read"}


async def propose(bench: StatefulBench, body: Any, **headers: str) -> Reply:
    return await bench.send("PROPOSE", "/", body, **headers)


async def test_filter_over_a_list_is_composed() -> None:
    async with negotiating(*HOTEL, recipes=()) as bench:
        approved = await propose(bench, CHEAP)
        assert approved.status == 263, approved.json
        assert "LIST /rooms" in str(approved.json["plan"])
        found = await bench.send("FIND", "/rooms/cheap", {"max_price": 100})
        assert found.json == {"rooms": [{"room_id": "1", "price": 50}]}


async def test_short_form_without_an_output_is_answered_with_that_of_the_nearest_endpoint() -> None:
    async with negotiating(*HOTEL, recipes=()) as bench:
        short = {"name": "FIND", "path": "/rooms/cheap", "parameters": {"max_price": "number"}}
        offered = await propose(bench, short)
        assert (offered.status, offered.json["reason"]) == (463, "ambiguous")
        assert "does not say which fields" in offered.json["explanation"]
        counter = offered.json["counter_proposal"]
        assert counter["output_schema"] == ROOMS.output_schema
        assert (await propose(bench, counter)).status == 263
        found = await bench.send("FIND", "/rooms/cheap", {"max_price": 100})
        assert found.json == {"rooms": [{"room_id": "1", "price": 50}]}


async def test_list_at_the_top_level_is_offered_as_a_field() -> None:
    async with negotiating(*HOTEL, recipes=()) as bench:
        listed = {"type": "array", "items": CHEAP["output_schema"]["properties"]["rooms"]["items"]}
        offered = await propose(bench, {**CHEAP, "output_schema": listed})
        assert (offered.status, offered.json["reason"]) == (463, "ambiguous")
        assert offered.json["counter_proposal"]["output_schema"]["properties"]["rooms"] == listed


@cases(
    "output, status",
    (rows("rooms", room_id=TEXT), 263),
    (rows("rooms", room_id=TEXT, price=NUMBER), 263),
    (rows("rooms", room_id=TEXT, size=NUMBER), 463),
    (rows("rooms", room_id=NUMBER), 463),
)
async def test_existing_endpoint_is_the_answer_if_it_yields_what_is_wanted(output: Any, status: int) -> None:
    async with negotiating(*HOTEL, recipes=()) as bench:
        proposed = definition(method="LIST", path="/rooms", input_schema=fields(), output_schema=output)
        answered = await propose(bench, proposed)
        assert answered.status == status, answered.json
        if status == 263:
            assert answered.json["output_schema"] == ROOMS.output_schema


@pytest.mark.requirement("API-10.4-3")
async def test_join_is_composed_within_the_authority_of_the_agent() -> None:
    async with negotiating(*HOTEL, recipes=()) as bench:
        lacking = await propose(bench, BY_EMAIL, authority_scope="stays:read")
        assert (lacking.status, lacking.error["missing_scopes"]) == (262, ["guests:read"])
        assert (await propose(bench, BY_EMAIL, **BOTH)).gives("required_scopes") == (263, ["guests:read", "stays:read"])
        assert (await bench.send("LIST", "/guests/stays", {"email": "a@b.c"}, **BOTH)).json == {
            "stays": [{"total": 99.5}]
        }
        narrowed = await bench.send("LIST", "/guests/stays", {"email": "a@b.c"}, authority_scope="stays:read")
        assert narrowed.status == 455


@pytest.mark.requirement("API-16.2-2")
async def test_what_must_not_meet_is_refused_although_each_part_is_allowed() -> None:
    together = ("scope:guests:*", "LIST /guests/*")
    rule = ForbiddenCombination(together=together, reason="Stays are not looked up by email.")
    async with negotiating(*HOTEL, recipes=(), forbidden=(rule,)) as bench:
        refused = await propose(bench, BY_EMAIL, **BOTH)
        assert (refused.status, refused.json["reason"]) == (463, "policy-refused")
        assert refused.json["explanation"] == "Stays are not looked up by email."
        assert "counter_proposal" not in refused.json
        assert (await propose(bench, CHEAP)).status == 263


@pytest.mark.requirement("API-10.2-1")
async def test_missing_field_is_named_with_the_nearest_endpoint() -> None:
    async with negotiating(*HOTEL, recipes=()) as bench:
        wanted = {**CHEAP, "output_schema": rows("rooms", room_id=TEXT, wallpaper=TEXT)}
        refused = await propose(bench, wanted)
        assert (refused.status, refused.json["reason"]) == (463, "composition-impossible")
        assert "wallpaper" in str(refused.json["misses"])
        assert refused.json["similar_endpoints"]


async def test_doubtful_plan_is_only_offered_and_accepted_when_it_comes_back() -> None:
    async with negotiating(*HOTEL, recipes=()) as bench:
        # Nothing says which of the rooms is meant.
        wanted = definition(
            method="FETCH", path="/room", input_schema=fields(), output_schema=_object(room_id=TEXT, price=NUMBER)
        )
        refused = await propose(bench, wanted)
        assert (refused.status, refused.json["reason"]) == (463, "ambiguous"), refused.json
        counter = refused.json["counter_proposal"]
        assert "LIST /rooms" in counter["description"]
        assert (await propose(bench, counter, agent="b" * 64)).status == 463, "it was offered to another agent"
        accepted = await propose(bench, {"endpoint": counter}, negotiation_id=refused.json["negotiation_id"])
        assert accepted.status == 263, accepted.json
        assert (await bench.send("FETCH", "/room", {})).json == {"room_id": "1", "price": 50}


def _object(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(members)}


def _internal(endpoint: Endpoint) -> Endpoint:
    return replace(endpoint, internal=True)


@pytest.mark.requirement("API-16.2-2")
async def test_internal_endpoints_are_used_only_where_allowed_and_never_named() -> None:
    secret = (ROOMS, _internal(GUESTS), STAYS)
    async with negotiating(*secret, recipes=()) as bench:
        refused = await propose(bench, BY_EMAIL, **BOTH)
        assert refused.status == 463
        assert "SEARCH" not in str(refused.json)
    async with negotiating(*secret, recipes=(), internal=("SEARCH /guests",)) as bench:
        lacking = await propose(bench, BY_EMAIL, authority_scope="stays:read")
        assert (lacking.status, "guests:read" in str(lacking.json)) == (463, False)
        approved = await propose(bench, BY_EMAIL, **BOTH)
        assert approved.status == 263
        assert "SEARCH" not in str(approved.json)
        assert (await bench.send("LIST", "/guests/stays", {"email": "a@b.c"}, **BOTH)).status == 200


async def test_failing_internal_step_is_not_named() -> None:
    def search_guests(email: str) -> dict[str, Any]:
        raise RuntimeError(email)

    broken = replace(GUESTS, handler=make_endpoint("SEARCH", "/guests", search_guests).handler)
    secret = (ROOMS, _internal(broken), STAYS)
    async with negotiating(*secret, recipes=(), internal=("SEARCH /guests",)) as bench:
        await propose(bench, BY_EMAIL, **BOTH)
        failed = await bench.send("LIST", "/guests/stays", {"email": "a@b.c"}, **BOTH)
        assert (failed.status, failed.error["code"]) == (422, "composition_failed")
        assert "SEARCH" not in str(failed.json)


@pytest.mark.parametrize(
    ("changes", "status"),
    [({"scopes": ("stays:read",)}, 455), ({"status": "suspended"}, 503), ({"status": "retired"}, 410)],
)
async def test_lost_scopes_and_suspension_stop_synthesis(tmp_path: Path, changes: dict[str, Any], status: int) -> None:
    place = str(tmp_path / "store.db")
    known = Agent(agent_id=AGENT, name="porter", scopes=("guests:read", "stays:read"))
    for agent, expected in ((known, 200), (replace(known, **changes), status)):
        store = open_store(place, role="sole")
        async with negotiating(*HOTEL, recipes=(), store=store, service={"agents": (agent,)}) as bench:
            if agent is known:
                assert (await propose(bench, BY_EMAIL)).status == 263
            called = await bench.send("LIST", "/guests/stays", {"email": "a@b.c"})
            assert called.status == expected, called.json


async def test_removed_step_makes_the_synthesis_410_while_the_server_runs() -> None:
    async with negotiating(GUESTS, STAYS, recipes=()) as bench:
        later = replace(ROOMS, handler=replace(ROOMS.handler, function=f"{__name__}.list_rooms"))
        await bench.bench.server.add_endpoint(later)
        await propose(bench, CHEAP)
        assert (await bench.send("FIND", "/rooms/cheap", {"max_price": 100})).status == 200
        await bench.bench.server.remove_endpoint("LIST", "/rooms")
        assert (await bench.send("FIND", "/rooms/cheap", {"max_price": 100})).refusal == (410, "synthesis-outdated")

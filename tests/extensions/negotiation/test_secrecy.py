"""Internal endpoints: nothing that a proposer is ever told names them, their scopes or their fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.extensions.negotiation.definitions import SEMANTIC, definition, fields
from tests.extensions.negotiation.negotiating import given as proposed
from tests.extensions.negotiation.negotiating import negotiating
from tests.extensions.negotiation.test_composing import NUMBER, STAYS, TEXT, rows
from tests.service import Reply, echo, make_endpoint
from tests.stateful import StatefulBench

from bespeak.contract.handler import Refusal
from bespeak.contract.recipe import Recipe, RecipeStep, Source
from bespeak.state.store.commands.cases import DecideCase

pytestmark = pytest.mark.anyio

SECRET = ("LOOKUP /", "qxvault", "qxscope", "qxfield", "qxerror")
"""Words that only the internal endpoint has."""
PLAIN = {"authority_scope": "stays:read"}
HELD = {"authority_scope": "stays:read, qxscope:read"}


def transcribe(email: str, qxfield: str = "") -> dict[str, Any]:
    if email == "broken":
        raise RuntimeError("qxerror")
    if email == "refused":
        raise Refusal("qxerror", "qxerror in qxvault")
    if email == "empty":
        return {"guests": []}
    if email == "odd":
        return {"guests": 7}
    return {"guests": [{"guest_id": "g1", "email": email}]}


VAULT = replace(
    make_endpoint(
        "LOOKUP",
        "/guests/qxvault",
        transcribe,
        properties={"email": TEXT, "qxfield": TEXT},
        required=("email",),
        output=rows("guests", guest_id=TEXT, email=TEXT),
        scopes=("qxscope:read",),
        errors=("qxerror",),
    ),
    internal=True,
)
BY_EMAIL = definition(
    method="LIST",
    path="/guests/stays",
    semantic={**SEMANTIC, "intent": "List the stays of a guest with an email.", "outcome": "The stays are returned."},
    input_schema=fields("email"),
    output_schema=rows("stays", total=NUMBER),
)
BY_RECIPE = Recipe(
    name="stays-by-qxvault",
    pattern={"name_exact": "LIST", "path_exact": "/guests/stays"},
    steps=(
        RecipeStep(method="LOOKUP", path="/guests/qxvault", output="found", input={"email": proposed("email")}),
        RecipeStep(
            method="LIST",
            path="/guests/{guest_id}/stays",
            input={"guest_id": Source(kind="previous_step", value="found.guests", pick="first", get="guest_id")},
        ),
    ),
)


PROPOSALS = {
    "plain": {},
    "same verb": {"method": "LOOKUP"},
    "other path": {"path": "/elsewhere"},
    "unknown field": {"output_schema": rows("stays", total=NUMBER, wallpaper=TEXT)},
    "unkept promise": {"output_schema": rows("stays", total={"type": "number", "minimum": 3})},
    "other type": {"path": "/guests", "output_schema": rows("guests", email=NUMBER, guest_id=TEXT)},
    "its rows": {"path": "/guests", "output_schema": rows("guests", email=TEXT, guest_id=TEXT)},
    "without key": {"path": "/guests", "output_schema": rows("guests", guest_id=TEXT), "input_schema": fields()},
    "any of them": {"path": "/guest", "output_schema": fields("guest_id"), "input_schema": fields()},
    "one of them": {"path": "/guest", "output_schema": fields("guest_id")},
    "unused input": {"input_schema": fields("email", "colour")},
    "itself": {"method": "LOOKUP", "path": "/guests/{number}", "input_schema": fields("email", "number")},
    "kept": {"persistent": True},
}
SERVERS: dict[str, dict[str, Any]] = {
    "recipe": {"recipes": (BY_RECIPE,)},
    "search": {"recipes": (), "internal": ("LOOKUP /guests*",)},
    "neither": {"recipes": ()},
}


async def listen(bench: StatefulBench, changes: dict[str, Any], headers: dict[str, str]) -> list[Reply]:
    """Return everything that an agent is told about a proposal, and about the calls of what came of it."""
    body = {**BY_EMAIL, **changes}
    told = [await bench.send("PROPOSE", "/", body, **headers)]
    if told[0].json.get("counter_proposal"):
        told.append(await bench.send("PROPOSE", "/", told[0].json["counter_proposal"], **headers))
    decided = [reply.json["proposal_id"] for reply in told if "proposal_id" in reply.json]
    told += [await bench.send("QUERY", f"/proposals/{proposal_id}", **headers) for proposal_id in decided]
    approved = told[-1].json if told[-1].status == 263 else None
    if approved is not None:
        inspected = {"target": "contract", "synthesis_id": approved["synthesis_id"]}
        told.append(await bench.send("INSPECT", "/", inspected, **headers))
        for email in ("a@b.c", "broken", "refused", "empty", "odd"):
            given = dict.fromkeys(approved["input_schema"]["properties"], email)
            told.append(await bench.send(approved["method"], approved["path"], given, **headers))
            told += await _walk(bench, headers)
    return told


async def _walk(bench: StatefulBench, headers: dict[str, str]) -> list[Reply]:
    """Follow the chain of the agent's own records: a step of its composition is one of them."""
    told = [await bench.send("INSPECT", "/", {"target": "chain_head"}, **headers)]
    for _ in range(3):
        if told[-1].status != 200:
            break
        previous = told[-1].json["result"]["record"]["previous_audit_id"]
        told.append(await bench.send("INSPECT", "/", {"target": "audit", "audit_id": previous}, **headers))
    return told


def words_in(reply: Reply, *own: str) -> list[str]:
    """Return the secret words of a reply, except those that the agent said itself."""
    text = f"{reply.json} {reply.response.headers} {reply.response.block.pairs}".lower()
    for word in own:
        text = text.replace(word.lower(), "")
    return [word for word in SECRET if word.lower() in text]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("wish", PROPOSALS)
async def test_no_answer_names_an_internal_endpoint(server: str, wish: str) -> None:
    settings = {"audit": True, "persistent": True, **SERVERS[server]}
    said = ("LOOKUP /guests/{number}", "LOOKUP /guests/stays") if PROPOSALS[wish].get("method") else ()
    for headers, held in ((PLAIN, ()), (HELD, ("qxscope:read",))):
        # A search finds it only if its path says what it is about.
        vault = replace(VAULT, path="/guests") if server == "search" else VAULT
        async with negotiating(STAYS, vault, **settings) as bench:
            for reply in await listen(bench, PROPOSALS[wish], headers):
                assert not words_in(reply, *said, *held), (server, wish, reply.status, reply.json)
            for path in ("/", "/methods"):
                listed = await bench.send("DISCOVER", path, agent=None)
                assert listed.status == 200
                assert not words_in(listed, *said), (server, wish, listed.json)


async def test_internal_step_that_waits_for_a_confirmation_is_not_named() -> None:
    async with negotiating(STAYS, replace(VAULT, confirm=True), recipes=(BY_RECIPE,)) as bench:
        assert (await bench.send("PROPOSE", "/", BY_EMAIL, **HELD)).status == 263
        call = ("LIST", "/guests/stays", {"email": "a@b.c"})
        waiting = await bench.send(*call, **HELD)
        assert (waiting.status, waiting.error["step"], words_in(waiting)) == (262, 1, [])
        case_id = waiting.error["confirmation_id"]
        await bench.store.do(DecideCase(case_id, "accepted", "operator:desk", "att-1", kinds=("confirmation",)))
        assert (await bench.send(*call, **HELD, confirmation_id=case_id)).status == 200


async def test_output_of_an_internal_endpoint_is_not_offered_for_a_short_form() -> None:
    ledger = make_endpoint("FETCH", "/ledgers", echo, output=fields("secret_balance"), scopes=("ledgers:read",))
    hidden = replace(ledger, internal=True)
    async with negotiating(hidden, recipes=(), internal=("FETCH /ledgers",)) as bench:
        short = {"name": "FETCH", "path": "/ledgers/summary"}
        refused = await bench.send("PROPOSE", "/", short, authority_scope="ledgers:read")
        assert refused.status == 463
        assert "secret_balance" not in str(refused.json)

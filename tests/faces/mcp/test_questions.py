"""What a user is asked before a composite or a purchase, who else may answer, and what strangers are told."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from tests.cases import rows
from tests.compositions import compose, recipe, step
from tests.faces.mcp.issuer import Issuer
from tests.faces.mcp.tools import MODERN, Agreeing, Rooms, agree, connected_to, error_in, modern, on_http
from tests.service import AGENT, make_endpoint
from tests.state.identity.issuer import new_key, public, write_keys

from bespeak import Policies
from bespeak.app.server.assembly import Keeper
from bespeak.app.server.target import Target, load_app
from bespeak.contract.confirmation import LONGEST
from bespeak.contract.limits import Rate, RateLimits
from bespeak.contract.procedure import Procedure
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_settings import McpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.extensions.payments.settings import AccountSettings, PaymentSettings
from bespeak.protocol.exchange.messages import Connection, Request, Response
from bespeak.state.identity.settings import AuthSettings, TokenSettings
from bespeak.state.store.commands.cases import ListCases

pytestmark = pytest.mark.anyio
FRIEND = "b" * 64
SCOPES = "rooms:read, rooms:write, activation:run, payments:purchase"
CALLER = {"agent_id": AGENT, "authority_scope": SCOPES}
BOOK = {"method": "BOOK", "path": "/rooms/{room_id}", "parameters": {"room_id": "12"}}
FIND = {"method": "QUERY", "path": "/rooms"}
TEXT = {"type": "string"}
BUILDING = [
    *("1. CLOSE /floor: irreversible", "1.1. REMOVE /shelf: irreversible"),
    *("1.2. CALL (an internal endpoint): irreversible", "2. REMOVE /shelf: irreversible"),
]
ORDER = {"item": "lamp", "principal_id": AGENT, "amount": {"value": "30.00", "currency": "EUR"}}


def clear(_: Any) -> dict[str, Any]:
    return {}


def composed() -> Target:
    """Return a service with a recipe of a recipe, a procedure, and the methods that call others."""
    target = load_app(Rooms(methods=["CHAIN", "BATCH", "ROUTE", "RUN", "RETRY"]).app, Path())
    erase = make_endpoint("REMOVE", "/shelf", clear, impact="irreversible")
    hidden = replace(make_endpoint("REMOVE", "/vault", clear, impact="irreversible"), internal=True)
    inner = compose("CLOSE", "/floor", "inner", impact="irreversible")
    outer = compose("CLOSE", "/building", "outer", impact="irreversible")
    recipes = (
        recipe(step("REMOVE /shelf"), step("REMOVE /vault"), name="inner"),
        recipe(step("CLOSE /floor"), step("REMOVE /shelf"), name="outer"),
    )
    procedure = Procedure(procedure_id="season.end", steps=(BOOK, {"method": "CLOSE", "path": "/building"}))
    service = replace(
        target.service,
        endpoints=(*target.service.endpoints, erase, hidden, inner, outer),
        recipes=recipes,
        procedures=(procedure,),
    )
    return replace(target, service=service)


@asynccontextmanager
async def asked_of(era: str, target: Target | None = None) -> AsyncIterator[tuple[Any, list[str], Keeper]]:
    """Connect a client whose asked agrees; yield it with the questions that the asked is asked."""
    asked = Agreeing()
    async with on_http(target or composed()) as (url, keeper, _), connected_to(url, era, asked, **CALLER) as client:
        yield client, asked, keeper


@rows(
    "tool, arguments, listed",
    (
        "chain",
        {"steps": [{**FIND, "compensate": BOOK}, BOOK, {"method": "CLOSE", "path": "/building"}]},
        [
            "1. QUERY /rooms: informational",
            "2. BOOK /rooms/{room_id}: irreversible, to undo the one before, if a later one fails, with "
            '{"room_id":"12"}',
            '3. BOOK /rooms/{room_id}: irreversible, with {"room_id":"12"}',
            "4. CLOSE /building: irreversible",
            *(f"4.{line}" for line in BUILDING),
        ],
    ),
    (
        "batch",
        {"calls": [FIND, {"method": "BOOK", "path": "/rooms/14"}, {"method": "BOOK", "path": "/nowhere"}]},
        ["1. QUERY /rooms: informational", "2. BOOK /rooms/14: irreversible", "3. BOOK /nowhere: unknown impact"],
    ),
    (
        "route",
        {"payload": {}, "criteria": {}, "candidates": ["QUERY /rooms", FRIEND], "fallback": "REMOVE /shelf"},
        [
            "1. QUERY /rooms: informational, if it is chosen",
            f"2. NOTIFY agent {FRIEND}: irreversible, if it is chosen",
            "3. REMOVE /shelf: irreversible, if no other fits",
        ],
    ),
    (
        "run",
        {"procedure_id": "season.end"},
        [
            '1. BOOK /rooms/{room_id}: irreversible, with {"room_id":"12"}',
            "2. CLOSE /building: irreversible",
            *(f"2.{line}" for line in BUILDING),
        ],
    ),
    ("close_building", {}, BUILDING),
)
async def test_question_about_a_composite_lists_every_call_with_its_impact(
    era: str, tool: str, arguments: dict[str, Any], listed: list[str]
) -> None:
    async with asked_of(era) as (client, asked, keeper):
        await client.call_tool(tool, arguments)
        (case,) = await keeper.dispatcher.server.store.read(ListCases())  # type: ignore[union-attr] # it is kept
    (question,) = asked
    lines = question.split("\n")
    start = lines.index("It makes these calls:") + 1
    assert lines[start : start + len(listed)] == listed
    assert len(msgspec.json.decode(case.subject)["calls"]) == len([one for one in listed if one.count(".") == 1])


async def test_questions_name_repeated_calls_and_agreement_covers_those_that_were_shown() -> None:
    async with asked_of(MODERN) as (client, asked, _):
        meta = {"bespeak/task-id": "t-1"}
        failed = error_in(await client.call_tool("reset_rooms", {}, meta=meta))
        again = await client.call_tool("retry", {"original_task_id": "t-1"})
        unknown = error_in(await client.call_tool("retry", {"original_task_id": "t-2"}))
    assert failed["code"] == "server-error"
    assert (again.structured_content["result"]["status"], again.structured_content["result"]["code"]) == ("failed", 500)
    assert [line for line in asked[0].split("\n") if line[0].isdigit()] == ["1. RESET /rooms: reversible"]
    assert (len(asked), unknown["code"]) == (1, "calls-not-listed")
    target = composed()
    async with asked_of(MODERN, target) as (client, asked, keeper):
        server = keeper.dispatcher.server
        await client.call_tool("run", {"procedure_id": "season.end"})
        # The operator changes what the procedure does.
        (known,) = server.registrar.procedures.values()
        changed = replace(known, procedure=replace(known.procedure, steps=(FIND,)))
        server.registrar.procedures = {"season.end": changed}
        await client.call_tool("run", {"procedure_id": "season.end"})
    assert "BOOK" in asked[0]
    assert "BOOK" not in asked[1]


async def test_composite_that_is_too_long_to_show_is_confirmed_another_way(era: str) -> None:
    calls = [{**BOOK, "parameters": {"room_id": f"{number:0120}"}} for number in range(300)]
    async with asked_of(era) as (client, asked, keeper):
        error = error_in(await client.call_tool("batch", {"calls": calls}))
        store = keeper.dispatcher.server.store
        (case,) = await store.read(ListCases())
        too_many = error_in(await client.call_tool("batch", {"calls": [FIND] * 1000, "timeout": 5}))
        few = await client.call_tool("batch", {"calls": calls[:3]})
    assert (error["code"], error["confirmation_id"]) == ("too-long-to-show", case.case_id)
    assert str(LONGEST) in error["message"]
    assert f"bespeak cases accept {case.case_id}" in error["remedy"]
    assert len(msgspec.json.decode(case.subject)["calls"]) == 300
    assert too_many["code"] == "too-long-to-show"
    assert len(asked) == 1
    assert few.structured_content["result"]["succeeded"] == 3


CONFIRMING = "rooms:read rooms:write confirmation:decide"


async def confirm(issuer: Issuer, keeper: Keeper, case_id: str, user: str) -> int:
    """Confirm a case by another agent, for a user; return the status."""
    body = msgspec.json.encode({"target_id": case_id, "status": "accepted"})
    headers = {"authorization": f"Bearer {issuer.token(agent_id=FRIEND, scope=CONFIRMING, sub=user)}"}
    answer = keeper.dispatcher(Request("CONFIRM", "/", "", headers, body, Connection()))
    response = await answer if inspect.isawaitable(answer) else answer
    assert isinstance(response, Response)
    return response.status


@pytest.mark.parametrize(("user", "status", "booked"), [("ann", 403, False), ("bob", 200, True)])
async def test_agent_of_the_same_user_confirms_nothing(user: str, status: int, booked: bool, tmp_path: Path) -> None:
    issued = Issuer(tmp_path)
    target = load_app(Rooms().app, Path())
    async with (
        on_http(target, issued.document) as (url, keeper, _),
        connected_to(url, MODERN, **issued.bearer(CONFIRMING, sub="ann")) as client,
    ):
        asked = error_in(await client.call_tool("book_rooms", {"room_id": "12"}))
        assert await confirm(issued, keeper, asked["confirmation_id"], user) == status
        again = await client.call_tool("book_rooms", {"room_id": "12"})
    assert again.is_error is not booked


async def test_confirmation_by_an_agent_of_the_user_who_uses_it_does_not_count(tmp_path: Path) -> None:
    issued = Issuer(tmp_path)
    async with on_http(load_app(Rooms().app, Path()), issued.document) as (url, keeper, _):
        async with connected_to(url, MODERN, **issued.bearer(CONFIRMING, sub="ann")) as client:
            asked = error_in(await client.call_tool("book_rooms", {"room_id": "12"}))
            assert await confirm(issued, keeper, asked["confirmation_id"], "bob") == 200
        async with connected_to(url, MODERN, **issued.bearer(CONFIRMING, sub="bob")) as client:
            again = error_in(await client.call_tool("book_rooms", {"room_id": "12"}))
    assert again["code"] == "confirmation-own-case"


# Purchases.


def shop() -> tuple[Target, ServerDocument]:
    account = AccountSettings(principal=AGENT, currency="EUR", opening="100.00")
    target = load_app(Rooms(methods=["PURCHASE", "CHAIN"]).app, Path())
    return target, ServerDocument(extension_tables={"payments": PaymentSettings(accounts=(account,))})


async def test_purchase_succeeds_with_the_merchant_as_arguments(era: str) -> None:
    asked = Agreeing()
    async with on_http(*shop()) as (url, _, _), connected_to(url, era, asked, **CALLER) as client:
        (manifest, *_) = (await client.list_resources()).resources
        text = (await client.read_resource(manifest.uri)).contents[0].text  # type: ignore[union-attr] # it is JSON
        missing = error_in(await client.call_tool("purchase", ORDER))
        named = {
            "merchant_id": "rooms.example",
            "merchant_manifest_fingerprint": hashlib.sha256(text.encode()).hexdigest(),
        }
        wrong = error_in(await client.call_tool("purchase", {**ORDER, **named, "merchant_id": "other.example"}))
        assert asked == []  # nobody is asked about a purchase that would be refused
        bought = await client.call_tool("purchase", {**ORDER, **named})
        step = {"method": "PURCHASE", "path": "/", "parameters": {**ORDER, **named}}
        chained = await client.call_tool("chain", {"steps": [step]})
    assert manifest.meta == {"bespeak/sha256": named["merchant_manifest_fingerprint"]}
    assert (missing["code"], missing["merchant"]) == ("counterparty-unverified", named)
    assert wrong["code"] == "counterparty-unverified"
    assert bought.structured_content["result"]["status"] == "settled"
    assert "- merchant_id: rooms.example" in asked[0].split("\n")
    assert chained.structured_content["result"]["status"] == "completed"


async def test_purchase_takes_merchant_and_budget_from_the_meta_of_a_call_or_from_http() -> None:
    async with on_http(*shop()) as (url, _, _):
        async with connected_to(url, MODERN, agree, **CALLER) as client:
            print_of = error_in(await client.call_tool("purchase", ORDER))["merchant"]["merchant_manifest_fingerprint"]
            meta = {"bespeak/merchant-id": "rooms.example", "bespeak/merchant-manifest-fingerprint": print_of}
            bought = await client.call_tool("purchase", ORDER, meta=meta)
            dear = error_in(await client.call_tool("purchase", ORDER, meta={**meta, "bespeak/budget-limit": "EUR=29"}))
            broken = error_in(await client.call_tool("purchase", ORDER, meta={**meta, "bespeak/task-id": "a\nb"}))
        sent = {**CALLER, "merchant_id": "rooms.example", "merchant_manifest_fingerprint": print_of}
        async with connected_to(url, MODERN, agree, **sent, budget_limit="EUR=31") as client:
            again = await client.call_tool("purchase", ORDER)
            wider = {"bespeak/budget-limit": "EUR=1000"}
            lamp = {"sale": "lamp", "input": {"value": "32.00"}}
            order = {**ORDER, "item": lamp, "amount": {"value": "32.00", "currency": "EUR"}}
            bound = error_in(await client.call_tool("purchase", order, meta=wider))
    assert [one.structured_content["result"]["status"] for one in (bought, again)] == ["settled", "settled"]
    assert (dear["code"], bound["code"], broken["code"]) == ("budget-exceeded", "budget-exceeded", "invalid-task-id")


# Strangers.


def closed(folder: Path, modes: tuple[str, ...]) -> tuple[Target, ServerDocument]:
    """Return a service that only identified agents may discover, and its settings."""
    key = new_key()
    token = TokenSettings(keys=write_keys(folder / "keys.json", public(key)), issuer="https://login.example")
    auth = AuthSettings(modes=modes, token=token) if modes else AuthSettings()
    policies = Policies(anonymous_discovery=False)
    app = Rooms(policies=policies).app

    @app.endpoint("LIST", "/lobby", impact="informational", idempotent=True, outcome="The things are returned.")
    def lobby() -> list[str]:
        """List what is in the lobby."""
        return []

    web = HttpSettings(url="https://rooms.example")
    return load_app(app, Path()), ServerDocument(auth=auth, http=web, mcp=McpSettings(tools_listed=2))


ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("tools/call", {"name": name, "arguments": {}}) for name in ("list_lobby", "query_rooms", "nothing", "")),
    *(("tools/call", {"name": "book_rooms", "arguments": given}) for given in ({"room_id": "1"}, {"bad": 1})),
    *(
        ("tools/call", {"name": "call_capability", "arguments": {"name": name}})
        for name in ("query_rooms", "book_rooms", "list_lobby", "nothing")
    ),
    ("tools/call", {"name": "find_capability", "arguments": {"query": "rooms"}}),
    ("tools/list", {}),
    ("server/discover", {}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "rooms"}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "bespeak://rooms.example/manifest"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "rooms"}, "argument": {"name": "task", "value": ""}},
    ),
    ("no/method", {}),
)


@pytest.mark.parametrize("modes", [(), ("token",)])
async def test_strangers_get_one_answer_whatever_they_ask_for(modes: tuple[str, ...], tmp_path: Path) -> None:
    answers = set()
    async with on_http(*closed(tmp_path, modes)) as (url, _, _), httpx.AsyncClient(trust_env=False) as client:
        for method, params in ASKED:
            sent, body = modern(method, **params)
            for headers in (sent, {name: value for name, value in sent.items() if not name.lower().startswith("mcp-")}):
                reply = await client.post(url, json=body, headers={**headers, "Host": "rooms.example"})
                challenge = reply.headers.get("www-authenticate")
                answers.add((reply.status_code, challenge, reply.text, tuple(sorted(reply.headers))))
        metadata = await client.get(
            url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"), headers={"Host": "rooms.example"}
        )
    (answer,) = answers
    assert answer[0] == 401
    assert not any(word in str(answer) for word in ("rooms:", "book_rooms", "lobby", "BOOK"))
    assert not any(word in metadata.text for word in ("rooms:read", "rooms:write", '"Rooms"'))


async def test_strangers_are_counted_against_the_rate_limits_whatever_they_call(tmp_path: Path) -> None:
    target, document = closed(tmp_path, ())
    limits = RateLimits(address=Rate(3, "h", 3))
    target = replace(target, service=replace(target.service, rate_limits=limits))
    for name in ("query_rooms", "nothing"):
        async with on_http(target, document) as (url, _, _), httpx.AsyncClient(trust_env=False) as client:
            sent, body = modern("tools/call", name=name, arguments={})
            found = [
                (await client.post(url, json=body, headers={**sent, "Host": "rooms.example"})).status_code
                for _ in range(5)
            ]
        assert found == [401, 401, 401, 429, 429], name


async def test_identified_agents_see_and_call_tools_that_strangers_do_not(tmp_path: Path) -> None:
    target, document = closed(tmp_path, ())
    async with (
        on_http(target, replace(document, http=HttpSettings())) as (url, _, _),
        connected_to(url, MODERN, **CALLER) as client,
    ):
        found = await client.call_tool("list_lobby", {})
        listed = await client.list_tools()
    assert found.structured_content == {"result": []}
    assert len(listed.tools) == 2

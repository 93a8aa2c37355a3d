"""Endpoints are registered when a server is constructed, and added and removed while it runs."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.cases import rows
from tests.service import AGENT, Bench, build, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.app.server.http_face import make_face
from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import UPSTREAM_ERRORS, Composition, ExternalService, RegisteredFunction
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.contract.recipe import Recipe, RecipeStep
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.errors import ConfigError, ContractError
from bespeak.protocol.exchange.headers import MEDIA_AGIS
from bespeak.protocol.exchange.messages import Connection, Context, Request, Response
from bespeak.runtime.dispatcher import Dispatcher
from bespeak.state.store.commands.endpoints import DropEndpoint, PutEndpoint
from bespeak.state.store.settings import open_store

pytestmark = pytest.mark.anyio


def rules(bench: Any) -> list[str]:
    return [finding.rule for finding in bench.findings if finding.severity == "error"]


@pytest.mark.requirement("API-13.2-1", "API-13.2-7", "API-13.2-8", "API-13.2-2", "API-4.5-1", "API-4.5-2")
def test_the_valid_endpoints_are_served_and_the_others_named() -> None:
    bench = build(
        make_endpoint("BOOK", "/room", echo), make_endpoint("FROBNICATE", "/room", echo, capability="creation")
    )
    assert bench.send("BOOK", "/room").status == 200
    assert bench.send("FROBNICATE", "/room").told("catalog_version") == (459, "1.1.0")
    [finding] = [finding for finding in bench.findings if finding.severity == "error"]
    assert "FROBNICATE /room" in finding.message
    assert "1.1.0" in finding.message


SEMANTIC: list[tuple[str, Any]] = [
    *(("intent", ""), ("actor", ""), ("outcome", ""), ("capability", "TRANSACT")),
    *(("confidence", 1.5), ("impact", ""), ("is_idempotent", None)),
]


@pytest.mark.requirement("API-13.2-3", "API-13.2-4", "API-13.2-5", "API-5.2-4", "API-5.3-2", "API-5.3-4")
def test_an_endpoint_that_breaks_the_contract_layer_is_omitted() -> None:
    good = make_endpoint("BOOK", "/room", echo)
    parameter = {"id": {"type": "string"}}
    broken = [
        make_endpoint("BOOK", "/book", echo),
        make_endpoint("BOOK", "/room/", echo),
        make_endpoint("BOOK", "/room/{id}", echo),
        make_endpoint("BOOK", "/room/{id}/{id}", echo, properties=parameter),
        make_endpoint("BOOK", "/room/x-{id}", echo, properties=parameter),
        make_endpoint("BOOK", "/room/{?id}", echo, properties=parameter),
        *(replace(good, path="/a", semantic=replace(good.semantic, **{field: value})) for field, value in SEMANTIC),
        replace(good, path="/c", input_schema={"type": "object"}),
        replace(good, path="/d", output_schema={"type": "nonsense"}),
    ]
    for endpoint in broken:
        bench = build(endpoint, good)
        assert rules(bench), endpoint
        assert bench.send("BOOK", "/room").status == 200
        assert endpoint.key not in bench.routes.endpoints


@pytest.mark.requirement("API-5.4-5", "API-5.4-6")
def test_of_two_ambiguous_templates_the_later_one_is_refused() -> None:
    properties = {name: {"type": "string"} for name in ("a", "b")}
    bench = build(
        make_endpoint("FETCH", "/{a}/x", echo, properties=properties),
        make_endpoint("FETCH", "/y/{b}", echo, properties=properties),
    )
    assert len(rules(bench)) == 1
    assert bench.send("FETCH", "/y/x").json == {"a": "y"}


@pytest.mark.requirement("API-6.1-1")
def test_a_method_is_declared_once_on_a_path() -> None:
    again = make_endpoint("BOOK", "/room", lambda context: {"second": True})
    bench = build(make_endpoint("BOOK", "/room", echo), again, make_endpoint("FIND", "/room", echo))
    assert len(rules(bench)) == 1
    assert bench.send("BOOK", "/room").json == {}
    assert bench.send("FIND", "/room").status == 200


@pytest.mark.requirement("API-12.2-2", "API-13.2-6")
@rows(
    "dotted, why",
    ("no_such_module.book", "ModuleNotFoundError"),
    ("json.no_such_function", "has no no_such_function"),
    ("math.pi", "not a function"),
    ("book", "book"),
)
def test_a_function_that_cannot_be_resolved_is_a_finding(dotted: str, why: str) -> None:
    endpoint = replace(make_endpoint("BOOK", "/room", echo), handler=RegisteredFunction(function=dotted))
    bench = build(endpoint)
    assert any(why in str(finding) for finding in bench.findings)
    assert bench.send("BOOK", "/room").status == 404


@pytest.mark.requirement("API-7.1-8")
def test_an_endpoint_without_a_capability_has_that_of_its_verb() -> None:
    own = make_endpoint("BOOK", "/suite", echo, capability="creation")
    bench = build(make_endpoint("BOOK", "/room", echo), own)
    listed = {each["path"]: each["semantic"]["capability"] for each in bench.send("DISCOVER", "/").json["endpoints"]}
    assert (listed["/room"], listed["/suite"]) == ("transaction", "creation")


@pytest.mark.requirement("API-12.1-2", "API-12.1-2")
def test_functions_are_imported_by_dotted_path_and_recipes_must_exist() -> None:
    endpoint = replace(make_endpoint("BOOK", "/room", echo), handler=RegisteredFunction(function="tests.service.echo"))
    assert build(endpoint).findings == []
    endpoint = make_endpoint("BOOK", "/room", echo, errors=("composition_failed",))
    assert rules(build(replace(endpoint, handler=Composition(recipe="r")))) == ["H719"]


def test_recipes_may_come_with_the_endpoints_that_are_added_later() -> None:
    bench = build(make_endpoint("FETCH", "/room", lambda context: {"n": 1}))
    recipe = Recipe(name="later", steps=(RecipeStep(method="FETCH", path="/room"),))
    endpoint = make_endpoint("FIND", "/room", echo, errors=("composition_failed",))
    added = replace(endpoint, handler=Composition(recipe="later"))
    routes, findings = bench.server.registrar.register([added], [], recipes=[recipe])
    assert ([str(route.endpoint) for route in routes], findings) == (["FIND /room"], [])
    assert bench.server.registrar.register([added], [])[0] == []


def test_internal_routes_are_steps_and_without_upstreams_there_is_no_pool() -> None:
    bench = build(replace(make_endpoint("FETCH", "/room", echo), internal=True))
    assert ("FETCH", "/room") in bench.routes.steps
    assert ("QUERY", "/") in bench.routes.steps
    assert ("BOOK", "/room") not in bench.routes.endpoints
    assert build(make_endpoint("BOOK", "/room", echo)).server.registrar.upstreams is None


@pytest.mark.requirement("API-4.5-4", "API-9.4-1")
def test_policy_entries_that_name_removed_methods_are_skipped_with_a_warning_each() -> None:
    methods = MethodPolicy(
        allow=("BOOK", "OLDVERB"),
        disallow=("GONEVERB",),
        redirects=(Redirect(from_method="LOSTVERB", to_method="BOOK"),),
    )
    bench = build(make_endpoint("BOOK", "/room", echo), policies=Policies(methods=methods))
    warnings = [str(finding) for finding in bench.findings if finding.severity == "warning"]
    for name in ("OLDVERB", "GONEVERB", "LOSTVERB"):
        assert any(name in warning for warning in warnings)
    assert (bench.send("BOOK", "/room").status, bench.send("LOSTVERB", "/room").status) == (200, 459)


@pytest.mark.requirement("API-5.8-5")
def test_an_operator_may_take_the_place_of_a_built_in() -> None:
    own = make_endpoint("SUMMARIZE", "/", lambda context: {"summary": "short"}, properties={"source": {}})
    bench = build(own)
    assert bench.send("SUMMARIZE", "/", {"source": "long"}).json == {"summary": "short"}
    manifest = bench.send("DISCOVER", "/").json
    assert [e["description"] for e in manifest["endpoints"] if e["method"] == "SUMMARIZE"] == ["Does SUMMARIZE on /."]


@pytest.mark.parametrize("confirmed", [True, False])
def test_ad_hoc_calls_that_must_be_confirmed_do_not_run_where_no_confirmation_can_be_kept(*, confirmed: bool) -> None:
    policies = Policies(wildcards_accepted=True, confirm_irreversible=confirmed)
    agent = Agent(agent_id=AGENT, name="explorer", wildcards=True)

    async def answer(context: Context) -> dict[str, bool]:
        return {"ran": True}

    bench = build(policies=policies, agents=(agent,), wildcard_handler=answer)
    assert bench.send("EXECUTE", "/thing", {}, agent_id=AGENT).status == (501 if confirmed else 200)


def upstream(path: str, **fields: Any) -> Endpoint:
    handler = ExternalService(
        url=f"https://upstream.example{path}", method="GET", error_map={"404": "upstream_error"}, **fields
    )
    return replace(make_endpoint("FETCH", path, echo, errors=UPSTREAM_ERRORS), handler=handler)


@pytest.mark.anyio
async def test_endpoints_with_upstreams_share_one_pool_that_is_closed_with_the_server() -> None:
    bench = build(upstream("/rooms"), upstream("/guests"))
    registrar = bench.server.registrar
    assert rules(bench) == []
    assert registrar.upstreams is not None
    await registrar.close()


@pytest.mark.requirement("API-12.3-2", "API-12.3-4", "API-12.3-8", "API-13.2-6")
@rows(
    "fields",
    {"url": "http://upstream.example/rooms"},
    {"headers": {"Authorization": "Bearer ${NO_SUCH_VARIABLE}"}},
    {"error_map": {"404": "room_not_found"}},
)
def test_an_upstream_that_may_not_be_called_is_omitted(fields: dict[str, Any]) -> None:
    good = upstream("/rooms")
    assert isinstance(good.handler, ExternalService)
    bench = build(replace(good, handler=replace(good.handler, **fields)), make_endpoint("BOOK", "/room", echo))
    assert len(rules(bench)) == 1
    assert ("FETCH", "/rooms") not in bench.routes.endpoints
    assert bench.send("BOOK", "/room").status == 200


def test_an_upstream_with_contradictory_placement_is_omitted() -> None:
    bench = build(upstream("/rooms", header_fields={"a": "Authorization"}), make_endpoint("BOOK", "/room", echo))
    assert rules(bench) == ["H720", "H727"]
    assert ("FETCH", "/rooms") not in bench.routes.endpoints


def test_no_published_document_contains_upstream_address_or_credentials() -> None:
    secrets = {"query_credentials": {"api_key": "${PATH}"}, "cookie_credentials": {"sid": "abc-sid"}}
    bench = build(upstream("/rooms", **secrets))
    bodies = [bench.send("DISCOVER", target).response.body for target in ("/", "/methods")]
    assert all(b"rooms" in body for body in bodies[:1])
    for hidden in (b"upstream.example", b"api_key", b"abc-sid", b"PATH"):
        assert all(hidden not in body for body in bodies)


BOOK = make_endpoint("BOOK", "/room", echo, impact="irreversible")
FIND = replace(
    make_endpoint("FIND", "/pools/{pool}", echo, properties={"pool": {"type": "string"}}),
    handler=RegisteredFunction(function="tests.service.echo", inline=True),
)
WEB = ("/", "/.well-known/ai", "/.well-known/agis.json", "/openapi.json", "/llms.txt")


async def read_documents(bench: Bench) -> dict[str, tuple[str, str | None]]:
    """Return every document of both faces with its ETag."""
    found = {}
    for name, target, headers in (
        ("manifest", "/", {}),
        ("agis", "/", {"accept": MEDIA_AGIS}),
        ("inventory", "/methods", {}),
        ("capabilities", "/", {}),
    ):
        reply = bench.send("DESCRIBE" if name == "capabilities" else "DISCOVER", target, **headers)
        found[name] = (reply.response.body.decode(), reply.header("ETag"))
    async with browse(bench.dispatcher) as http:
        for path in WEB:
            answer = await http.get(path)
            found[path] = (answer.text, answer.headers.get("etag"))
    return found


_FACES: dict[Dispatcher, Any] = {}


@asynccontextmanager
async def browse(dispatcher: Dispatcher) -> AsyncIterator[httpx.AsyncClient]:
    """Open a client of the HTTP face of a server, which outlives its changes."""
    face = _FACES.setdefault(dispatcher, make_face(dispatcher, HttpSettings()))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(face), base_url="http://rooms.test") as http:
        yield http


@pytest.mark.requirement("API-8.3-4")
async def test_an_added_endpoint_is_on_both_faces_and_in_every_document_until_it_is_removed() -> None:
    bench = build(BOOK)
    before = await read_documents(bench)
    await bench.server.add_endpoint(FIND)
    during = await read_documents(bench)
    updated = [json.loads(documents["manifest"][0])["server"]["updated"] for documents in (before, during)]
    assert updated[0] < updated[1]
    for name, (text, etag) in during.items():
        named = '"FIND"' if name == "/.well-known/agis.json" else "/pools"  # the summary lists methods alone
        assert named in text, name
        assert named not in before[name][0], name
        assert etag is None or etag != before[name][1], name
    assert bench.send("FIND", "/pools/3").json == {"pool": "3"}
    assert bench.send("BOOK", "/pools/3").error["allowed_methods_for_path"] == ["FIND"]
    bench.connection = Connection()
    assert "FIND" in (bench.send("DISCOVER", "/methods").header("Supported-Methods") or "").split(", ")
    async with browse(bench.dispatcher) as http:
        assert (await http.get("/pools/3:find")).json() == {"pool": "3"}
        assert (await http.post("/pools/3")).json()["routes"] == ["/pools/3:find"]
        await bench.server.remove_endpoint("FIND", FIND.path)
        assert (await http.get("/pools/3:find")).status_code == 404
    assert (bench.send("FIND", "/pools/3").status, bench.send("BOOK", "/room", {}).status) == (404, 200)
    after = await read_documents(bench)
    assert all("/pools" not in text for text, _ in after.values())
    assert after["inventory"] == before["inventory"]
    # What has a time of change in it says that there was one.
    assert {name for name in after if after[name] != before[name]} <= {"manifest", "/.well-known/ai"}


async def test_an_endpoint_is_added_once_and_a_replaced_built_in_one_returns() -> None:
    bench = build()
    own = make_endpoint("QUERY", "/", lambda context: {"own": True})
    await bench.server.add_endpoint(own)
    assert bench.send("QUERY", "/").json == {"own": True}
    await bench.server.remove_endpoint("QUERY", "/")
    assert bench.send("QUERY", "/", {"intent": "x"}).error["missing"] == "resources to search"
    await bench.server.add_endpoint(FIND)
    with pytest.raises(ContractError):
        await bench.server.add_endpoint(replace(FIND, path="/pools/{other}"))


@pytest.mark.parametrize(
    "endpoint",
    [BOOK, replace(FIND, path="/rooms/book"), replace(FIND, method="FROB"), replace(FIND, path="/pools/{a}/{a}")],
)
@pytest.mark.requirement("API-13.2-14")
async def test_an_invalid_endpoint_is_refused_and_changes_nothing(endpoint: Any) -> None:
    bench = build(BOOK)
    routes = bench.routes
    with pytest.raises(ContractError) as refused:
        await bench.server.add_endpoint(endpoint)
    assert refused.value.findings
    assert bench.routes is routes


async def test_endpoints_of_the_configuration_are_not_removed() -> None:
    bench = build(BOOK)
    with pytest.raises(ContractError, match="not added at run time"):
        await bench.server.remove_endpoint("BOOK", "/room")
    assert bench.send("BOOK", "/room", {}).status == 200


async def test_a_call_finishes_on_the_table_it_was_routed_with() -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def wait(context: Any) -> dict[str, Any]:
        begun.set()
        await go_on.wait()
        return {"done": True}

    bench = build()
    await bench.server.add_endpoint(make_endpoint("FETCH", "/slow", wait))
    answer = bench.dispatcher(Request("FETCH", "/slow", "", {}, b"", Connection()))
    assert inspect.iscoroutine(answer)
    task = asyncio.ensure_future(answer)
    await begun.wait()
    await bench.server.remove_endpoint("FETCH", "/slow")
    assert bench.send("FETCH", "/slow").status == 404
    go_on.set()
    response = await task
    assert isinstance(response, Response)
    assert (response.status, response.body) == (200, b'{"done":true}')


async def test_a_live_function_cannot_be_stored(bench: StatefulBench) -> None:
    with pytest.raises(ConfigError, match="import its function"):
        await bench.bench.server.add_endpoint(make_endpoint("FETCH", "/pool", echo))


@pytest.mark.parametrize("half", [{"description": "\ud800"}, {"input_schema": {"title": "\ud800"}}])
async def test_half_a_surrogate_pair_is_refused_before_it_is_stored(bench: StatefulBench, half: Any) -> None:
    with pytest.raises(ContractError, match=r"FIND /pools/\{pool\} cannot be added"):
        await bench.bench.server.add_endpoint(replace(FIND, **half))
    assert (await bench.send("FIND", "/pools/1", agent=None)).status == 404


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_store"))
    return str(tmp_path / "store.db")


async def eventually(condition: Any) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)


async def test_processes_that_share_a_store_serve_the_same_and_keep_it(place: str) -> None:
    one, other = open_store(place), open_store(place)
    async with keeping(BOOK, store=one) as first, keeping(BOOK, store=other) as second:
        await first.bench.server.add_endpoint(FIND)
        assert (await first.send("FIND", "/pools/1", agent=None)).status == 200
        await eventually(lambda: FIND.key in second.bench.routes.endpoints)
        assert (await second.send("FIND", "/pools/1", agent=None)).json == {"pool": "1"}
        documents = [await read_documents_of(bench) for bench in (first, second)]
        assert documents[0] == documents[1]
        await second.bench.server.add_endpoint(replace(FIND, path="/saunas/{pool}"))
        await eventually(lambda: ("FIND", "/saunas/{pool}") in first.bench.routes.endpoints)
        await first.bench.server.remove_endpoint("FIND", "/saunas/{pool}")
        await eventually(lambda: ("FIND", "/saunas/{pool}") not in second.bench.routes.endpoints)
    async with keeping(BOOK, store=open_store(place)) as again:
        assert (await again.send("FIND", "/pools/1", agent=None)).status == 200
        await again.bench.server.remove_endpoint("FIND", FIND.path)
        assert (await again.send("FIND", "/pools/1", agent=None)).status == 404


async def read_documents_of(bench: Any) -> list[Any]:
    replies = [await bench.send("DISCOVER", target, agent=None) for target in ("/", "/methods")]
    return [(reply.response.body, reply.header("ETag")) for reply in replies]


async def test_an_endpoint_is_checked_against_concurrent_additions(place: str) -> None:
    one, other = open_store(place), open_store(place)
    async with keeping(store=one) as first, keeping(store=other) as second:
        added = await asyncio.gather(
            first.bench.server.add_endpoint(FIND),
            second.bench.server.add_endpoint(replace(FIND, path="/pools/{name}")),
            second.bench.server.add_endpoint(replace(FIND, path="/saunas")),
            return_exceptions=True,
        )
        assert [type(result) for result in added].count(ContractError) == 1
        await eventually(lambda: len(added_to(first)) == len(added_to(second)) == 2)
        assert added_to(first) == added_to(second)
        assert "/saunas" in added_to(first)


def added_to(bench: StatefulBench) -> list[str]:
    return [path for (_, path), endpoint in bench.bench.routes.endpoints.items() if not endpoint.builtin]


async def test_endpoint_that_became_invalid_is_only_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = str(tmp_path / "store.db")
    async with keeping(store=open_store(place)) as bench:
        await bench.bench.server.add_endpoint(FIND)
    own = make_endpoint("FIND", "/pools/{id}", echo, properties={"id": {}})
    async with keeping(own, store=open_store(place)) as bench:
        assert (await bench.send("FIND", "/pools/1", agent=None)).json == {"id": "1"}
        assert "the endpoint FIND /pools/{pool} in the store is not served" in caplog.text
        await bench.bench.server.remove_endpoint("FIND", FIND.path)
    async with keeping(own, store=open_store(place)) as bench:
        await bench.store.do(PutEndpoint("FIND", "/x", "[]", 2))
        await eventually(lambda: "the endpoint FIND /x in the store is not served" in caplog.text)
        await bench.store.do(DropEndpoint("FIND", "/x", 3))

"""Which endpoints are registered, and which are omitted with a finding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.service import AGENT, build, echo, make_endpoint

from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import UPSTREAM_ERRORS, Composition, ExternalService, RegisteredFunction
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.contract.recipe import Recipe, RecipeStep


def rules(bench: Any) -> list[str]:
    return [finding.rule for finding in bench.findings if finding.severity == "error"]


@pytest.mark.requirement("API-13.2-1", "API-13.2-7", "API-13.2-8", "API-13.2-2", "API-4.5-1", "API-4.5-2")
def test_the_valid_endpoints_are_served_and_the_others_named() -> None:
    bench = build(
        make_endpoint("BOOK", "/room", echo), make_endpoint("FROBNICATE", "/room", echo, capability="creation")
    )
    assert bench.send("BOOK", "/room").status == 200
    reply = bench.send("FROBNICATE", "/room")
    assert (reply.status, reply.error["catalog_version"]) == (459, "1.1.0")
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
@pytest.mark.parametrize(
    ("dotted", "why"),
    [
        ("no_such_module.book", "ModuleNotFoundError"),
        ("json.no_such_function", "has no no_such_function"),
        ("math.pi", "not a function"),
        ("book", "book"),
    ],
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


def test_a_dotted_path_is_imported() -> None:
    endpoint = replace(make_endpoint("BOOK", "/room", echo), handler=RegisteredFunction(function="tests.service.echo"))
    assert build(endpoint).findings == []


@pytest.mark.requirement("API-12.1-2")
@pytest.mark.requirement("API-12.1-2")
def test_a_composition_without_its_recipe_is_refused() -> None:
    endpoint = make_endpoint("BOOK", "/room", echo, errors=("composition_failed",))
    bench = build(replace(endpoint, handler=Composition(recipe="r")))
    assert rules(bench) == ["H719"]


def test_recipes_may_come_with_the_endpoints_that_are_added_later() -> None:
    bench = build(make_endpoint("FETCH", "/room", lambda context: {"n": 1}))
    recipe = Recipe(name="later", steps=(RecipeStep(method="FETCH", path="/room"),))
    endpoint = make_endpoint("FIND", "/room", echo, errors=("composition_failed",))
    added = replace(endpoint, handler=Composition(recipe="later"))
    routes, findings = bench.server.registrar.register([added], [], recipes=[recipe])
    assert ([str(route.endpoint) for route in routes], findings) == (["FIND /room"], [])
    assert bench.server.registrar.register([added], [])[0] == []


def test_every_route_can_be_a_step_also_an_internal_one() -> None:
    bench = build(replace(make_endpoint("FETCH", "/room", echo), internal=True))
    assert ("FETCH", "/room") in bench.routes.steps
    assert ("QUERY", "/") in bench.routes.steps
    assert ("BOOK", "/room") not in bench.routes.endpoints


@pytest.mark.requirement("API-4.5-4", "API-9.4-1")
def test_policy_entries_that_name_removed_methods_are_skipped_with_a_warning_each() -> None:
    methods = MethodPolicy(
        allow=("BOOK", "OLDVERB"),
        disallow=("GONEVERB",),
        redirects=(Redirect(from_method="LOSTVERB", to_method="BOOK"),),
    )
    bench = build(
        make_endpoint("BOOK", "/room", echo),
        policies=Policies(scope_required_for_invocation=False, methods=methods),
    )
    warnings = [str(finding) for finding in bench.findings if finding.severity == "warning"]
    for name in ("OLDVERB", "GONEVERB", "LOSTVERB"):
        assert any(name in warning for warning in warnings)
    assert bench.send("BOOK", "/room").status == 200
    assert bench.send("LOSTVERB", "/room").status == 459


@pytest.mark.requirement("API-5.8-5")
def test_an_operator_may_take_the_place_of_a_built_in() -> None:
    own = make_endpoint("SUMMARIZE", "/", lambda context: {"summary": "short"}, properties={"source": {}})
    bench = build(own)
    assert bench.send("SUMMARIZE", "/", {"source": "long"}).json == {"summary": "short"}
    manifest = bench.send("DISCOVER", "/").json
    assert [e["description"] for e in manifest["endpoints"] if e["method"] == "SUMMARIZE"] == ["Does SUMMARIZE on /."]


@pytest.mark.parametrize("confirmed", [True, False])
def test_ad_hoc_calls_that_must_be_confirmed_do_not_run_where_no_confirmation_can_be_kept(*, confirmed: bool) -> None:
    policies = Policies(scope_required_for_invocation=False, wildcards_accepted=True, confirm_irreversible=confirmed)
    agent = Agent(agent_id=AGENT, name="explorer", wildcards=True)
    bench = build(policies=policies, agents=(agent,), wildcard_handler=lambda context: {"ran": True})
    reply = bench.send("EXECUTE", "/thing", {}, agent_id=AGENT)
    assert reply.status == (501 if confirmed else 200)


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


def test_a_server_without_upstreams_has_no_pool() -> None:
    assert build(make_endpoint("BOOK", "/room", echo)).server.registrar.upstreams is None


@pytest.mark.requirement("API-12.3-2", "API-12.3-4", "API-12.3-8", "API-13.2-6")
@pytest.mark.parametrize(
    "fields",
    [
        {"url": "http://upstream.example/rooms"},
        {"headers": {"Authorization": "Bearer ${NO_SUCH_VARIABLE}"}},
        {"error_map": {"404": "room_not_found"}},
    ],
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

"""What each gate refuses, with which status and details."""

from __future__ import annotations

import ast
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cases import rows
from tests.service import AGENT, build, echo, make_endpoint

import bespeak
from bespeak.app.server.assembly import assemble
from bespeak.contract.agent import Agent
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import MethodPolicy, Policies, Redirect
from bespeak.protocol.exchange.messages import Context
from bespeak.protocol.exchange.refusal import gate_of
from bespeak.runtime.additions import EndpointOrigin

ROOT = Path(bespeak.__file__).parent
OPEN = Policies(scope_required_for_invocation=False)


def open_with(**methods: Any) -> Policies:
    return Policies(scope_required_for_invocation=False, methods=MethodPolicy(**methods))


# vocabulary


@pytest.mark.requirement("API-3-1", "API-3.2-2", "API-13.1-2", "API-4.4-4", "API-9.2-6")
def test_only_verbs_of_the_catalog_are_admitted() -> None:
    reply = build().send("QUERRY", "/")
    assert (reply.status, reply.error["code"]) == (459, "method-violation")
    assert (reply.error["catalog_version"], reply.error["suggestions"][0]) == ("1.1.0", "QUERY")
    bench = build()
    assert {bench.send(verb, "/nowhere").status for verb in load_bundled().verbs} == {404}
    reply = build().send("Q" * 20_000)
    assert reply.status == 459
    assert len(reply.response.body) < 1000


@pytest.mark.requirement("API-3.2-1")
@pytest.mark.parametrize("method", ["query", "Query", "X-TEST", "QU", "Q" * 33, "Q1", "ÄNDERE"])
def test_a_name_that_breaks_the_lexical_rule_is_a_459(method: str) -> None:
    assert build().send(method).status == 459


def test_legacy_verbs_are_redirected_or_name_the_preferred_one() -> None:
    reply = build().send("GET", "/rooms")
    assert (reply.status, reply.error["suggestions"]) == (459, ["FETCH"])
    redirect = Redirect(from_method="GET", from_path="/old", to_method="FETCH", to_path="/new")
    bench = build(make_endpoint("FETCH", "/new", echo), policies=open_with(legacy=("GET",), redirects=(redirect,)))
    assert bench.send("GET", "/old").status == 200


@pytest.mark.requirement("API-3.3-1")
def test_custom_methods_are_admitted_and_agis_grammar_asks_for_454() -> None:
    endpoint = make_endpoint("GLAZE", "/pots", echo, capability="creation")
    assert build(endpoint, policies=open_with(custom=("GLAZE",))).send("GLAZE", "/pots").status == 200
    assert build(endpoint).send("GLAZE", "/pots").status == 459
    assert build().send("BOOKNIG", "/", method_grammar="AGIS/1.0").status == 454
    assert build().send("QUERY", "/orders/book", method_grammar="AGIS/1.0").status == 454


# legacy


@pytest.mark.requirement("API-3.2-2", "API-3.6-1", "API-9.2-3")
def test_get_becomes_the_preferred_verb_where_it_exists_else_query() -> None:
    bench = build(
        make_endpoint("FETCH", "/guest", lambda context: {"by": context.method}),
        make_endpoint("QUERY", "/rooms", lambda context: {"by": context.method}),
        policies=open_with(legacy=("GET",)),
    )
    assert bench.send("GET", "/guest").json == {"by": "FETCH"}
    assert bench.send("GET", "/rooms").json == {"by": "QUERY"}
    assert bench.send("POST", "/rooms").status == 459


@pytest.mark.requirement("API-3.6-2", "API-3.6-3", "API-3.6-4", "API-3.6-5")
def test_the_other_legacy_verbs_become_execute_with_their_action() -> None:
    properties = {name: {"type": "string"} for name in ("action", "idempotency_key", "name")}
    bench = build(
        make_endpoint("EXECUTE", "/thing", echo, properties=properties),
        policies=open_with(legacy=("GET", "POST", "PUT", "DELETE", "PATCH")),
    )
    assert bench.send("POST", "/thing", {"name": "x"}).json == {"name": "x"}
    assert bench.send("PUT", "/thing", idempotency_key="k1").json == {"idempotency_key": "k1"}
    assert bench.send("DELETE", "/thing").json == {"action": "delete"}
    assert bench.send("PATCH", "/thing").json == {"action": "modify"}
    preferred = {"POST": "CREATE", "PUT": "REPLACE", "DELETE": "REMOVE", "PATCH": "MODIFY"}
    bench = build(
        *(make_endpoint(verb, "/room", lambda context: {"by": context.method}) for verb in preferred.values()),
        policies=open_with(legacy=tuple(preferred)),
    )
    assert {verb: bench.send(verb, "/room").json["by"] for verb in preferred} == preferred


@pytest.mark.requirement("API-3.6-3")
def test_put_as_execute_requires_an_idempotency_key() -> None:
    keyed = make_endpoint("EXECUTE", "/keyed", echo, properties={"idempotency_key": {"type": "string"}})
    plain = make_endpoint("EXECUTE", "/plain", echo)
    bench = build(keyed, plain, make_endpoint("REPLACE", "/room", echo), policies=open_with(legacy=("PUT",)))
    assert bench.send("PUT", "/keyed").refusal == (400, "idempotency-key-required")
    assert bench.send("PUT", "/keyed", {"idempotency_key": "k1"}).json == {"idempotency_key": "k1"}
    assert bench.send("PUT", "/keyed?idempotency_key=k2").json == {"idempotency_key": "k2"}
    assert (bench.send("PUT", "/plain").status, bench.send("PUT", "/plain", idempotency_key="k3").json) == (400, {})
    assert bench.send("PUT", "/room").status == 200


@pytest.mark.requirement("API-9.2-2")
def test_a_disallowed_legacy_verb_is_a_405_that_names_it() -> None:
    properties = {"action": {"type": "string"}}
    bench = build(
        make_endpoint("EXECUTE", "/jobs", echo, properties=properties),
        policies=open_with(legacy=("GET", "PATCH"), disallow=("PATCH",)),
    )
    assert (bench.send("PATCH", "/jobs").status, bench.send("PATCH", "/jobs").error["method"]) == (405, "PATCH")
    assert bench.send("GET", "/jobs").error["method"] == "GET"


# path


@pytest.mark.requirement("API-5.1-1", "API-5.1-2", "API-5.1-3", "API-5.1-5", "API-13.1-3")
@pytest.mark.parametrize(
    ("path", "segment"),
    [("/orders/get-", None), ("/orders/Re-Serve", "Re-Serve"), ("/book", "book"), ("/rooms/", ""), ("rooms", "rooms")],
)
def test_a_path_that_breaks_the_grammar_is_a_460_with_the_segment(path: str, segment: str | None) -> None:
    reply = build().send("QUERY", path)
    if segment is None:
        assert reply.status == 404
    else:
        assert (reply.status, reply.error["segment"]) == (460, segment)


@pytest.mark.requirement("API-5.5-2")
def test_verbs_are_found_in_encoded_paths_but_may_be_in_the_query() -> None:
    assert build().send("QUERY", "/rooms/%62ook").status == 460
    bench = build(make_endpoint("QUERY", "/rooms", echo, properties={"book": {"type": "string"}}))
    assert bench.send("QUERY", "/rooms?book=/book/").json == {"book": "/book/"}


@pytest.mark.requirement("API-5.2-1")
@pytest.mark.parametrize("path", ["/a%zz", "/a%4", "/a b", "/a\\b", "/{id}", '/"'])
def test_characters_outside_the_grammar_are_a_460(path: str) -> None:
    assert (
        build(make_endpoint("FETCH", "/{id}", echo, properties={"id": {"type": "string"}})).send("FETCH", path).status
        == 460
    )


@pytest.mark.requirement("API-5.7-1")
def test_no_prefix_is_reserved() -> None:
    bench = build(make_endpoint("FETCH", "/.well-known/agtp", echo), make_endpoint("FETCH", "/_agtp/x", echo))
    assert bench.send("FETCH", "/.well-known/agtp").status == 200
    assert bench.send("FETCH", "/_agtp/x").status == 200
    assert build().send("FETCH", "/.well-known/agtp").status == 404


# policy


@pytest.mark.requirement("API-9.2-1")
def test_an_allow_list_admits_its_methods_and_the_floor_only() -> None:
    bench = build(
        make_endpoint("BOOK", "/room", echo), make_endpoint("FETCH", "/room", echo), policies=open_with(allow=("BOOK",))
    )
    assert (bench.send("BOOK", "/room").status, bench.send("FETCH", "/room").status) == (200, 405)
    assert bench.send("DISCOVER", "/").status == 200


@pytest.mark.requirement("API-5.8-6")
def test_a_built_in_endpoint_passes_every_gate() -> None:
    redirect = Redirect(from_method="DISCOVER", from_path="/agents", to_method="DISCOVER", to_path="/methods")
    bench = build(policies=open_with(disallow=("NOTIFY",), redirects=(redirect,)))
    assert bench.send("DISCOVERY", "/methods").status == 459
    assert bench.send("DISCOVER", "/methods/").status == 460
    assert bench.send("NOTIFY", "/", {"recipient": "r", "content": "c"}).status == 405
    assert bench.send("DISCOVER", "/agents").json == bench.send("DISCOVER", "/methods").json
    assert bench.send("PLAN", "/", {"goal": 7}).status == 422


@pytest.mark.requirement("API-9.2-2", "API-11-2", "API-11-3", "API-13.1-4")
def test_a_disallowed_method_is_a_405_with_both_fields_in_the_body_and_in_the_error() -> None:
    policies = open_with(
        disallow=("FETCH",), redirects=(Redirect(from_method="RESERVE", from_path="/room", to_method="BOOK"),)
    )
    bench = build(make_endpoint("BOOK", "/room", echo), make_endpoint("FETCH", "/room", echo), policies=policies)
    reply = bench.send("FETCH", "/room")
    assert reply.status == 405
    for place in (reply.json, reply.error):
        assert (place["allowed_methods_for_path"], place["redirects_for_path"]) == (["BOOK"], {"RESERVE": "BOOK"})


@pytest.mark.requirement("API-9.2-4")
def test_a_redirected_request_is_processed_as_its_target() -> None:
    policies = open_with(
        redirects=(Redirect(from_method="RESERVE", from_path="/room", to_method="BOOK", to_path="/suite"),)
    )
    bench = build(make_endpoint("BOOK", "/suite", lambda context: {"at": context.path}), policies=policies)
    assert bench.send("RESERVE", "/room").json == {"at": "/suite"}


# route


@pytest.mark.requirement("API-5.4-3", "API-11-1", "API-11-3", "API-13.2-11")
def test_the_most_specific_structural_code_is_answered_and_404_refers_to_discovery() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo))
    assert (bench.send("FROB", "/book").status, bench.send("BOOK", "/book").status) == (459, 460)
    assert bench.send("BOOK", "/hall").status == 404
    assert bench.send("FETCH", "/room").gives("redirects_for_path") == (405, {})
    reply = build().send("QUERY", "/nothing")
    assert reply.error["code"] == "endpoint-not-found"
    assert "DISCOVER /methods" in reply.error["message"]


@pytest.mark.requirement("API-11-1", "API-11-2")
def test_a_method_the_policy_refuses_is_a_404_on_a_path_that_does_not_exist() -> None:
    redirect = Redirect(from_method="RESERVE", from_path="/moved", to_method="BOOK", to_path="/room")
    bench = build(make_endpoint("BOOK", "/room", echo), policies=open_with(disallow=("FETCH",), redirects=(redirect,)))
    assert bench.send("FETCH", "/nothing").told("code", "path") == (404, "endpoint-not-found", "/nothing")
    assert bench.send("FETCH", "/room").error["allowed_methods_for_path"] == ["BOOK"]
    assert bench.send("FETCH", "/moved").error["redirects_for_path"] == {"RESERVE": "BOOK"}


CONSENTING = Agent(agent_id=AGENT, name="explorer", wildcards=True)


@pytest.mark.requirement("CORE-6.2-2", "API-2-1", "API-11-4", "API-16.4-2", "API-16.4-3")
def test_an_ad_hoc_call_needs_the_consent_of_both_sides() -> None:
    async def wildcard(context: Context) -> dict[str, str]:
        return {"asked": f"{context.method} {context.path}"}

    accepting = Policies(scope_required_for_invocation=False, wildcards_accepted=True)
    both = build(policies=accepting, agents=(CONSENTING,), wildcard_handler=wildcard)
    assert both.send("SCAN", "/attic", agent_id=AGENT).json == {"asked": "SCAN /attic"}
    only_server = build(policies=accepting, wildcard_handler=wildcard)
    assert only_server.send("SCAN", "/attic", agent_id=AGENT).told("type") == (262, "wildcards-required")
    only_agent = build(agents=(CONSENTING,), wildcard_handler=wildcard)
    # AGTP-API 5.4: a server without ad-hoc calls answers an unknown path with 404.
    assert only_agent.send("SCAN", "/attic", agent_id=AGENT).status == 404
    assert Policies().wildcards_accepted is False


# scope


@pytest.mark.requirement("API-6.3-8", "API-13.2-10", "CORE-2.3-2", "API-11-4")
def test_scoped_endpoints_ask_for_credentials_and_name_missing_scopes_before_the_body_is_read() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo, scopes=("booking:room", "calendar:write")))
    assert bench.send("BOOK", "/room", scopes="booking:room").told("missing_scopes") == (455, ["calendar:write"])
    assert bench.send("BOOK", "/room", agent_id=AGENT).status == 455
    assert bench.send("BOOK", "/room", scopes="booking:*, calendar:write").status == 200
    reply = build(make_endpoint("BOOK", "/room", echo, scopes=("booking:room",))).send("BOOK", "/room")
    assert (reply.status, reply.error["type"]) == (262, "credentials-missing")
    bench = build(make_endpoint("BOOK", "/room", echo, scopes=("booking:room",)))
    assert bench.send("BOOK", "/room", b"{broken", agent_id=AGENT).status == 455


STRICT = Policies(scope_required_for_invocation=True)
BOOKING_SCOPE = make_endpoint("BOOK", "/room", echo, scopes=("booking:room",))


@pytest.mark.requirement("CORE-6.2-1", "API-6.3-9", "API-8.7-3", "API-11-4")
def test_an_unscoped_endpoint_needs_authority_only_where_the_policy_says_so() -> None:
    calls = []
    endpoint = make_endpoint("FETCH", "/guest", lambda context: calls.append(1) or {})
    strict = build(endpoint, policies=STRICT)
    reply = strict.send("FETCH", "/guest", agent_id=AGENT)
    assert (reply.status, reply.error["type"], calls) == (262, "scope-required", [])
    assert strict.send("FETCH", "/guest", scopes="any:thing").status == 200
    granted = build(endpoint, policies=STRICT, agents=(Agent(agent_id=AGENT, name="a", scopes=("a:b",)),))
    assert granted.send("FETCH", "/guest", agent_id=AGENT).status == 200
    assert build(endpoint).send("FETCH", "/guest").status == 200


@pytest.mark.requirement("API-8.7-6")
@rows(
    "policies, endpoints, methods, required",
    (Policies(), (), (), False),
    (Policies(), (BOOKING_SCOPE,), (), True),
    (Policies(), (replace(BOOKING_SCOPE, internal=True),), (), True),
    (Policies(), (), ("CHAIN",), False),
    (Policies(), (), ("PURCHASE",), True),
    (STRICT, (), (), True),
    (OPEN, (BOOKING_SCOPE,), (), False),
)
def test_a_scope_is_asked_for_only_where_something_declares_one(
    policies: Policies, endpoints: tuple[Endpoint, ...], methods: tuple[str, ...], required: bool
) -> None:
    bench = build(make_endpoint("FETCH", "/guest", echo), *endpoints, policies=policies, methods=methods)
    assert (bench.send("FETCH", "/guest").status == 262) is required
    assert bench.send("DISCOVER", "/").json["policies"]["scope_required_for_invocation"] is required


@pytest.mark.requirement("API-8.7-6")
def test_a_scope_is_required_by_default_where_callers_authenticate() -> None:
    service = build(make_endpoint("FETCH", "/guest", echo), policies=Policies()).routes.service
    required = [assemble(service, verifies=verifies).registrar.policies for verifies in (False, True)]
    assert [policies.scope_required_for_invocation for policies in required] == [False, True]


@pytest.mark.anyio
async def test_an_endpoint_that_the_operator_adds_brings_the_first_scope() -> None:
    bench = build(make_endpoint("FETCH", "/guest", echo), policies=Policies())
    statuses = [bench.send("FETCH", "/guest").status]
    await bench.server.additions.add(BOOKING_SCOPE)
    statuses.append(bench.send("FETCH", "/guest").status)
    await bench.server.additions.remove("BOOK", "/room")
    statuses.append(bench.send("FETCH", "/guest").status)
    assert statuses == [200, 262, 200]


@pytest.mark.anyio
async def test_a_scope_that_an_agent_proposes_does_not_close_the_endpoints_of_others() -> None:
    bench = build(make_endpoint("FETCH", "/guest", echo), policies=Policies())
    origin = EndpointOrigin(synthesis_id="syn-1", expires=time.time() + 3600)
    await bench.server.additions.add(BOOKING_SCOPE, origin=origin)
    assert bench.send("FETCH", "/guest").status == 200
    assert bench.send("BOOK", "/room", agent_id=AGENT).status == 455


@pytest.mark.requirement("API-8.7-2")
def test_without_anonymous_discovery_the_built_ins_require_an_agent() -> None:
    bench = build(policies=Policies(anonymous_discovery=False))
    for target in ("/", "/methods"):
        assert bench.send("DISCOVER", target).told("type") == (262, "anonymous-discovery-disabled")
    assert bench.send("DISCOVER", "/methods", agent_id=AGENT).status == 200


# identity


@pytest.mark.requirement("CORE-7.6-5")
def test_agents_must_be_well_formed_active_and_validly_delegated() -> None:
    assert build().send("DISCOVER", "/", agent_id="agt-1").error["code"] == "invalid-canonical-id"
    assert build(require_known_agents=True).send("QUERY", "/", {"intent": "x"}, agent_id=AGENT).status == 401
    reply = build().send("DISCOVER", "/", delegation_chain="x", agent_id=AGENT)
    assert (reply.status, reply.error["code"], reply.error["hop"]) == (551, "authority-chain-broken", 1)
    bench = build(agents=(Agent(agent_id=AGENT, name="new", status="Pending"),))
    assert bench.send("QUERY", "/", {"intent": "x"}, agent_id=AGENT).refusal == (401, "agent-not-active")


# input

BOOKING: dict[str, Any] = {
    "party": {"type": "integer", "minimum": 1},
    "name": {"type": "string"},
    "vip": {"type": "boolean"},
}
TABLE = build(make_endpoint("BOOK", "/table", echo, properties=BOOKING))


@pytest.mark.requirement("CORE-6.1-6", "CORE-5.4-3")
@pytest.mark.requirement("API-13.2-9", "API-13.2-12", "API-13.2-13", "API-13.3-1", "API-13.3-2", "API-13.1-10")
def test_all_violations_are_reported_and_the_handler_never_runs() -> None:
    calls = []
    endpoint = make_endpoint(
        "BOOK", "/table", lambda values: calls.append(1) or {}, properties=BOOKING, required=("name",)
    )
    reply = build(endpoint).send("BOOK", "/table", {"party": 0, "colour": "red"})
    assert (reply.status, reply.error["code"]) == (422, "input-validation-failed")
    keywords = {violation["keyword"]: violation["pointer"] for violation in reply.error["violations"]}
    assert keywords == {"minimum": "/party", "required": "", "additionalProperties": ""}
    assert calls == []


@pytest.mark.requirement("API-5.5-3", "API-5.5-4", "API-5.5-5", "API-5.5-6")
def test_the_query_is_decoded_typed_and_merged_under_the_body() -> None:
    assert TABLE.send("BOOK", "/table?party=4&vip=true&name=Ann%20%26%20Bo%2B").json == {
        "party": 4,
        "vip": True,
        "name": "Ann & Bo+",
    }
    assert TABLE.send("BOOK", "/table?party=4&party=5").json == {"party": 5}
    assert TABLE.send("BOOK", "/table?party=4&p%61rty=5").json == {"party": 5}
    assert TABLE.send("BOOK", "/table?party=4", {"party": 7}).json == {"party": 7}
    assert TABLE.send("BOOK", "/table?party=four").status == 422
    assert TABLE.send("BOOK", "/table?name=a+b").json == {"name": "a+b"}
    assert TABLE.send("BOOK", "/table?name=%ff").error["code"] == "invalid-query"


@pytest.mark.requirement("API-5.3-5")
def test_path_parameters_are_part_of_the_input_and_must_agree_with_the_body() -> None:
    bench = build(make_endpoint("FETCH", "/tables/{number}", echo, properties={"number": {"type": "integer"}}))
    assert bench.send("FETCH", "/tables/12").json == {"number": 12}
    assert bench.send("FETCH", "/tables/12", {"number": 12}).json == {"number": 12}
    assert bench.send("FETCH", "/tables/12", {"number": 13}).error["violations"][0]["keyword"] == "path"
    assert bench.send("FETCH", "/tables/twelve").status == 422


@pytest.mark.requirement("API-6.3-10", "API-6.3-12")
def test_schemas_are_draft_2020_12_and_namespaces_change_no_answer() -> None:
    pair = {"type": "array", "prefixItems": [{"type": "integer"}], "items": False}
    bench = build(make_endpoint("BOOK", "/table", echo, properties={"pair": pair}))
    statuses = [bench.send("BOOK", "/table", {"pair": value}).status for value in ([1], ["a"], [1, 2])]
    assert statuses == [200, 422, 422]
    plain = make_endpoint("BOOK", "/table", echo, properties=BOOKING)
    replies = [build(replace(plain, namespace=name)).send("BOOK", "/table", {"party": 2}) for name in (None, "tables")]
    assert [(reply.status, reply.json) for reply in replies] == [(200, {"party": 2})] * 2


@pytest.mark.requirement("CORE-5.2-5")
def test_envelopes_are_unwrapped_unless_the_endpoint_has_such_fields() -> None:
    body = {"method": "BOOK", "task_id": "t", "parameters": {"party": 2}, "context": {}}
    assert TABLE.send("BOOK", "/table", body).json == {"party": 2}
    assert TABLE.send("BOOK", "/table", {**body, "extra": 1}).status == 422
    properties = {"parameters": {"type": "object"}, "action": {"type": "string"}}
    bench = build(make_endpoint("EXECUTE", "/job", echo, properties=properties))
    assert bench.send("EXECUTE", "/job", {"parameters": {"a": 1}}).json == {"parameters": {"a": 1}}
    enveloped = {"method": "EXECUTE", "parameters": {"action": "go", "parameters": {"a": 1}}}
    assert bench.send("EXECUTE", "/job", enveloped).json == {"action": "go", "parameters": {"a": 1}}


def test_deep_nesting_is_accepted_and_a_lone_surrogate_is_refused() -> None:
    bench = build(make_endpoint("BOOK", "/table", echo, properties={"name": {}}))
    assert bench.send("BOOK", "/table", b'{"name":' + b"[" * 900 + b"]" * 900 + b"}").status == 200
    assert bench.send("BOOK", "/table", b'{"name":"\\ud800"}').error["code"] == "invalid-body"


@rows(
    "body, headers, is_read",
    *((body, {}, False) for body in (b"{", b"[1]", b'"x"', b"1", b"null", b"\xff", b'{"a":\x00}', b"NaN", b"{} {}")),
    *((body * 100_000, {}, False) for body in (b"[", b'{"a":')),
    *((b'{"party":1}', {"content_encoding": value}, False) for value in ("gzip", "identity, gzip", "")),
    (b'{"party":1}', {"content_encoding": "Identity"}, True),
    *(
        (b'{"party":1}', {"content_type": f"application/json{rest}"}, False)
        for rest in (*("; charset=utf-16", '; charset="ISO-8859-1"', "; charset=utf-8; charset=utf-7", ", text/plain"),)
    ),
    *(
        (b'{"party":1}', {"content_type": value}, False)
        for value in ("", "text/notjson", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded")
    ),
    *(
        (b'{"party":1}', {"content_type": f"{value}"}, True)
        for value in (
            *("application/vnd.agtp+json", "Application/JSON", "application/x+json"),
            *("application/json; charset=utf-8", "application/json;charset=UTF8"),
        )
    ),
)
def test_body_is_read_if_declared_and_sent_as_json_object(body: bytes, headers: dict[str, str], is_read: bool) -> None:
    reply = TABLE.send("BOOK", "/table", body, **headers)
    assert (reply.json == {"party": 1}) if is_read else (reply.refusal == (400, "invalid-body"))


@rows(
    "body, key, place",
    (b'{"party":1,"party":2}', "party", 11),
    (b'{"party":1,"p\\u0061rty":2}', "party", 11),
    (b'{"parameters":{"name":"a:b","name":"c"},"method":"BOOK"}', "name", 28),
    (b'{"method":"BOOK","parameters":{},"parameters":{"party":2}}', "parameters", 33),
)
def test_a_repeated_key_is_refused_with_its_place(body: bytes, key: str, place: int) -> None:
    reply = TABLE.send("BOOK", "/table", body)
    assert (reply.status, reply.error["code"]) == (400, "invalid-body")
    assert f"the key {key!r} is repeated in one object (byte {place})" in reply.error["message"]


def test_query_values_take_nullable_and_listed_types_too() -> None:
    properties = {
        "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "k": {"enum": [1, 2]},
        "t": {"type": ["number", "null"]},
        "s": {"type": ["integer", "string"]},
    }
    bench = build(make_endpoint("FIND", "/things", echo, properties=properties))
    assert bench.send("FIND", "/things?n=3&k=2&t=1.5&s=4").json == {"n": 3, "k": 2, "t": 1.5, "s": "4"}


def test_templates_and_invalid_text_in_a_path_are_a_460_with_the_segment() -> None:
    endpoint = make_endpoint("FETCH", "/a/{id}/b", echo, properties={"id": {"type": "string"}})
    assert build(endpoint).send("FETCH", "/a/{id}/b").told("segment") == (460, "{id}")
    bench = build(make_endpoint("FETCH", "/items/{id}", echo, properties={"id": {"type": "string"}}))
    assert bench.send("FETCH", "/items/%ff").error["segment"] == "%ff"
    assert bench.send("FETCH", "/items/%C3%A9").json == {"id": "é"}


def test_an_operators_own_inventory_is_discovery_with_its_own_scopes() -> None:
    bench = build(make_endpoint("DISCOVER", "/methods", lambda context: {}), policies=Policies())
    assert bench.send("DISCOVER", "/methods").status == 200
    bench = build(make_endpoint("DISCOVER", "/methods", lambda context: {}, scopes=("a:b",)))
    assert bench.send("DISCOVER", "/methods").error["type"] == "credentials-missing"
    assert bench.send("DISCOVER", "/methods", agent_id=AGENT).status == 455
    assert bench.send("DISCOVER", "/methods", scopes="a:b").status == 200


# the names of gates, by which clients tell what refused


JUDGING = (
    *(ROOT / "runtime" / "gates").glob("*.py"),
    *(
        ROOT / "state" / "identity" / f"{name}.py"
        for name in ("authenticator", "bearer", "credentials", "signed_request")
    ),
)


def test_every_code_that_a_gate_refuses_with_belongs_to_a_gate() -> None:
    codes = {
        code
        for file in JUDGING
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("Refused", "unauthorized")
        for argument in call.args[:2]
        if isinstance(argument, ast.Constant)
        and isinstance(code := argument.value, str)
        and "-" in code
        and " " not in code
    }
    assert {"key-revoked", "scope-violation", "invalid-body", "token-expired"} <= codes
    # A server without a store cannot confirm at all: it lacks a part, and no gate has judged the call.
    assert {code for code in codes if gate_of(code) is None} == {"not-implemented"}


@rows(
    "code, condition, gate",
    ("authorization-required", "credentials-missing", "identity"),
    ("authorization-required", "scope-required", "scope"),
    ("authorization-required", "anonymous-discovery-disabled", "discovery"),
    ("authorization-required", None, None),
    ("scope-claim-invalid", "scope-required", "identity"),
    ("scope-violation", None, "scope"),
    ("room_unavailable", None, None),
    ("", None, None),
)
def test_a_262_is_told_by_its_type(code: str, condition: str | None, gate: str | None) -> None:
    assert gate_of(code, condition) == gate

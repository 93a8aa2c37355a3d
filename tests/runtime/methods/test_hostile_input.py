"""Floor and standard methods: when they are offered, and what hostile input gets."""

from __future__ import annotations

import hashlib
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.cases import check_each, rows
from tests.service import AGENT, Reply, build, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak import App
from bespeak.app.server.assembly import choose_extensions, list_builtins
from bespeak.app.server.local import connect_local
from bespeak.contract.agent import Agent
from bespeak.contract.extensions import BUNDLED, KnownExtension
from bespeak.contract.policy import Policies
from bespeak.contract.schema.validation import Validator, compile_schema
from bespeak.contract.service import ServerIdentity, Service
from bespeak.contract.standard.definition import StandardMethod
from bespeak.contract.standard.floor import FLOOR
from bespeak.contract.standard.methods import STANDARD, choose_methods
from bespeak.runtime.call import REQUIRES_STORE
from bespeak.runtime.extension import handlers_of
from bespeak.runtime.methods.builtin import find_missing
from bespeak.state.store.transfer import export_store

pytestmark = pytest.mark.anyio

ON_THE_FLOOR = {"EXECUTE", "PLAN", "NOTIFY", "SUSPEND"}
"""Floor methods that belong to the standard ones."""
METHODS = [*STANDARD.values(), *(method for method in FLOOR if method.name in ON_THE_FLOOR)]
SCOPES = ", ".join(sorted({scope for method in METHODS for scope in method.scopes}))

DEEP: list[Any] = []
for _ in range(200):
    DEEP = [DEEP]

HOSTILE: Mapping[str, Any] = {
    "null": None,
    "true": True,
    "negative": -1,
    "huge number": 10**30,
    "fraction": 0.5,
    "no text": "",
    "long text": "x" * 5_000,
    "NUL": "a\x00b",
    "escape": "\x1b[2J",
    "line break": "a\nb",
    "NaN": "NaN",
    "list": [],
    "list of lists": [[[]]],
    "long list": [1] * 2_000,
    "object": {},
    "strange object": {"$from": "x", "__proto__": {"a": None}},
    "nested": DEEP,
}
RAW: Mapping[str, bytes] = {
    "NaN literal": b"NaN",
    "infinity": b"-Infinity",
    "exponent": b"1e999999",
    "half a surrogate": b'"\\ud800"',
    "not UTF-8": b'"\xff\xfe"',
    "very deep": b"[" * 20_000 + b"]" * 20_000,
}
SAMPLES: tuple[Any, ...] = ("x", "FETCH", "/news", "USD", "2099-01-01T00:00:00Z", "1", 1, 0.5, True, {}, [])


class Case(NamedTuple):
    """One request, and what it should be refused for."""

    method: StandardMethod
    place: str
    value: str
    reply: Reply

    def __str__(self) -> str:
        return f"{self.method.name} {self.place}={self.value}: {self.reply.status} {self.reply.json}"[:400]


def compiled(schema: Mapping[str, Any]) -> Validator:
    validator = compile_schema(schema)
    assert isinstance(validator, Validator)
    return validator


def sample(schema: Mapping[str, Any]) -> Any:
    """Return a value that a schema accepts."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("properties"):
        return {name: sample(schema["properties"][name]) for name in schema.get("required", ())}
    if schema.get("type") == "array":
        return [sample(schema["items"])] * schema.get("minItems", 0)
    accepts = compiled(schema).is_valid
    return next(value for value in SAMPLES if accepts(value))


def least(method: StandardMethod) -> dict[str, Any]:
    """Return the smallest body that the schema of a method accepts."""
    return {name: sample(method.parameters[name]) for name in method.required}


def places(schema: Mapping[str, Any], place: str) -> Iterator[Place]:
    """Yield every place inside a value: its pointer, its schema, and what builds the value around another one."""
    yield place, schema, lambda value: value
    for name, inner in schema.get("properties", {}).items():
        around = {**sample(schema)}
        for deeper, its, fill in places(inner, f"{place}/{name}"):
            yield (
                deeper,
                its,
                partial(lambda around, name, fill, one: {**around, name: fill(one)}, around, name, fill),
            )
    for deeper, its, fill in places(schema["items"], f"{place}/0") if "items" in schema else ():
        yield deeper, its, partial(lambda fill, one: [fill(one)], fill)


Place = tuple[str, Mapping[str, Any], Callable[[Any], Any]]
Body = tuple[str, str, bytes]
"""A place, the name of its value, and a body that is right but for that place."""


def excluded(method: StandardMethod) -> Iterator[Body]:
    """Yield bodies that a schema refuses, and those that are not JSON."""
    for field, schema in method.parameters.items():
        accepts = compiled(schema).is_valid
        for place, _, fill in places(schema, f"/{field}"):
            for name, value in HOSTILE.items():
                if not accepts(made := fill(value)):
                    yield place, name, msgspec.json.encode({**least(method), field: made})
        marked = msgspec.json.encode({**least(method), field: "~here~"})
        for name, raw in RAW.items():
            yield f"/{field}", name, marked.replace(b'"~here~"', raw)


def incomplete(method: StandardMethod) -> Iterator[Body]:
    """Yield bodies without one of the required parameters."""
    for field in method.required:
        yield field, "missing", msgspec.json.encode({k: v for k, v in least(method).items() if k != field})


def let_through(method: StandardMethod) -> Iterator[Body]:
    """Yield hostile bodies that a schema accepts."""
    for field, schema in method.parameters.items():
        accepts = compiled(schema).is_valid
        for name, value in HOSTILE.items():
            if accepts(value):
                yield field, name, msgspec.json.encode({**least(method), field: value})


async def send_each(bench: StatefulBench, make: Callable[[StandardMethod], Iterator[Body]]) -> list[Case]:
    return [
        Case(method, place, name, await bench.send(method.name, "/", body, authority_scope=SCOPES))
        for method in METHODS
        for place, name, body in make(method)
    ]


async def exported(bench: StatefulBench) -> bytes:
    rows: list[bytes] = []
    await export_store(bench.store, rows.append)
    return b"".join(rows)


def check_refusal(case: Case) -> None:
    """Show that a refusal is of the caller's making, names the field, and gives nothing away."""
    assert 400 <= case.reply.status < 500
    assert case.reply.error["message"]
    if case.value in HOSTILE:
        assert (case.reply.status, case.reply.error["code"]) == (422, "input-validation-failed")
        # A value with a choice of forms is named as a whole.
        named = [one["pointer"] for one in case.reply.error["violations"]]
        assert any(one.startswith(case.place) or case.place.startswith(one) for one in named if one), named
    assert "Traceback" not in str(case.reply.json)


def check_missing(case: Case) -> None:
    assert (case.reply.status, case.reply.error["code"]) == (422, "input-validation-failed")
    assert case.place in case.reply.error["message"]


def check_answer(case: Case) -> None:
    """Show that whatever is answered is declared: a result, a refusal, or that something is not there."""
    if case.reply.status >= 500:
        declared = {error.name: error.status for error in case.method.errors} | {"not-implemented": 501}
        assert declared.get(case.reply.error["code"]) == case.reply.status


@pytest.mark.process  # some evaluate expressions
async def test_every_parameter_refuses_what_its_schema_excludes_and_nothing_changes() -> None:
    async with keeping(make_endpoint("FETCH", "/news", dict), methods=choose_methods(["*"])) as bench:
        before = await exported(bench)
        check_each(await send_each(bench, excluded), check_refusal)
        assert await exported(bench) == before


async def test_a_call_without_a_required_parameter_names_it_and_changes_nothing() -> None:
    async with keeping(methods=choose_methods(["*"])) as bench:
        before = await exported(bench)
        check_each(await send_each(bench, incomplete), check_missing)
        assert await exported(bench) == before


@pytest.mark.process  # some evaluate expressions
async def test_what_a_schema_lets_through_ends_in_an_answer_or_a_declared_refusal() -> None:
    async with keeping(make_endpoint("FETCH", "/news", dict), methods=choose_methods(["*"])) as bench:
        check_each(await send_each(bench, let_through), check_answer)


IDENTITY = ServerIdentity(server_id="rooms.example", operator="Acme", contact="desk@rooms.example")


@pytest.mark.requirement("METHODS-1.1-1")
def test_every_method_of_the_table_has_a_handler() -> None:
    # RESUME also resumes sessions, so it belongs to the kernel.
    assert {
        *handlers_of(choose_extensions(Service(identity=IDENTITY, methods=("LOG",)), stored=True)),
        "RESUME",
    } == set(STANDARD)


@pytest.mark.parametrize("known", BUNDLED, ids=lambda known: known.name)
def test_an_entry_of_the_index_says_what_its_extension_has(known: KnownExtension) -> None:
    extension = known.value.load()
    assert (extension.name, set(extension.methods)) == (known.name, set(known.methods))
    assert all(callable(known.lazy(place).load()) for place in (*known.floor.values(), *known.hooks.values()))


async def test_a_method_that_is_not_enabled_is_not_there(bench: StatefulBench) -> None:
    reply = await bench.send("LOG", "/", {"event_type": "x", "data": 1})
    assert (reply.status, reply.json["error"]["code"]) == (405, "method-not-allowed")


async def test_an_enabled_method_is_announced_and_listed() -> None:
    async with keeping(methods=("LOG",)) as bench:
        routes = bench.bench.routes
        assert "LOG" in routes.supported_methods
        [endpoint] = [endpoint for endpoint in routes.endpoints.values() if endpoint.is_listed]
        assert (str(endpoint), endpoint.namespace) == ("LOG /", "transact")


async def test_resume_is_listed_where_it_is_enabled_and_served_everywhere() -> None:
    for methods in ((), choose_methods(["*"])):
        async with keeping(methods=methods) as bench:
            listed = {endpoint.method for endpoint in bench.bench.routes.endpoints.values() if endpoint.is_listed}
            assert ("RESUME" in listed) == bool(methods)
            manifest = (await bench.send("DISCOVER", "/methods", agent=None)).json
            assert [one["method"] for one in manifest].count("RESUME") == 1
            reply = await bench.send("RESUME", "/", {"workflow_id": "x", "resumption_nonce": "y"})
            assert (reply.status, reply.error["code"]) == (404, "session-not-found")


async def test_the_policies_for_endpoints_hold_for_it() -> None:
    policies = Policies(scope_required_for_invocation=True, confirm_irreversible=True)
    async with keeping(methods=("LOG",), policies=policies) as bench:
        body = {"event_type": "x", "data": 1}
        assert (await bench.send("LOG", "/", body)).status == 262
        waiting = await bench.send("LOG", "/", body, authority_scope="log:write")
        assert waiting.json["error"]["code"] == "confirmation-required"


def test_what_a_server_lacks_depends_on_its_parts_and_is_said() -> None:
    service = Service(identity=IDENTITY, methods=("LOG",))
    endpoints = {str(endpoint): endpoint for endpoint in list_builtins(service, stored=False)}
    assert endpoints["LOG /"].missing == REQUIRES_STORE
    assert build(methods=("LOG",)).send("LOG", "/", {"event_type": "x", "data": 1}, agent_id=AGENT).status == 501
    assert find_missing("SUSPEND", stored=True, searchable=True) is None
    assert find_missing("SUSPEND", stored=False, searchable=True) == "a store to keep state in"
    assert find_missing("QUERY", stored=False, searchable=True) is None
    assert find_missing("DISCOVER", stored=False, searchable=False) is None


def test_every_published_form_says_what_is_not_implemented() -> None:
    bench = build(make_endpoint("EXECUTE", "/jobs", echo), agents=(Agent(agent_id=AGENT, name="ada"),))
    manifest = bench.send("DISCOVER", "/")
    entries = {(entry["method"], entry["path"]): entry for entry in manifest.json["endpoints"]}
    inventory = {(entry["method"], entry["path"]): entry for entry in bench.send("DISCOVER", "/methods").json}
    for method, missing in {"QUERY": "resources to search"}.items():
        entry = entries[method, "/"]
        assert (entry["implemented"], entry["missing"], entry["semantic"]["confidence"]) == (False, missing, 0.0)
        assert f"lacks {missing}" in entry["description"]
        assert inventory[method, "/"]["description"] == entry["description"]
    assert "implemented" not in entries["EXECUTE", "/jobs"]
    described = bench.send("DESCRIBE", "/", {"capability_domains": "methods"}).json["result"]["methods"]
    supported = (manifest.header("Supported-Methods") or "").split(", ")
    assert described == supported
    assert {"EXECUTE", "DISCOVER", "PROPOSE"} <= set(supported)
    assert "SUMMARIZE" in supported


@pytest.mark.anyio
async def test_a_client_without_state_is_told_what_does_not_work() -> None:
    app = App("A", server_id="a.example", operator="A", contact="a@a.example")
    async with connect_local(app, with_state=False) as service:
        manifest = await service.discover()
    missing = {entry["method"] for entry in manifest.raw["endpoints"] if entry.get("implemented") is False}
    assert {"ESCALATE", "CONFIRM", "SUSPEND", "RESUME", "DELEGATE", "REVOKE", "INSPECT"} <= missing


async def test_documents_are_there_only_with_report() -> None:
    async with keeping(methods=("LOG",)) as bench:
        assert (await bench.send("FETCH", "/documents/doc-1")).error["code"] == "endpoint-not-found"
    async with keeping(methods=("REPORT",)) as bench:
        assert (await bench.send("FETCH", "/documents/doc-1")).error["code"] == "document-not-found"
        assert (await bench.send("FETCH", "/documents/doc-1", agent=None)).status in (262, 401)


async def made(bench: StatefulBench, form: str) -> dict[str, Any]:
    body = {"report_type": "log", "scope": "all", "recipient": "ann", "format": form}
    receipt: dict[str, Any] = (await bench.send("REPORT", "/", body)).json["result"]
    return receipt


@pytest.mark.parametrize("form", ["json", "pdf"])
async def test_a_document_is_a_member_of_an_object(form: str) -> None:
    async with keeping(methods=("REPORT",)) as bench:
        receipt = await made(bench, form)
        found = (await bench.send("FETCH", f"/documents/{receipt['document_id']}", accept="application/json")).json
        content = found["result"]["text"].encode() if form == "json" else b64decode(found["result"]["base64"])
        assert f"sha256:{hashlib.sha256(content).hexdigest()}" == found["result"]["digest"] == receipt["digest"]


async def test_a_document_is_a_file_for_those_who_ask_for_its_type() -> None:
    async with keeping(methods=("REPORT",)) as bench:
        document_id = (await made(bench, "json"))["document_id"]
        found = await bench.send("FETCH", f"/documents/{document_id}", accept="text/html, application/octet-stream;q=1")
        assert found.header("Content-Type") == "application/json"
        assert found.header("Content-Disposition") == f'attachment; filename="{document_id}.json"'
        assert found.header("X-Content-Type-Options") == "nosniff"
        assert found.json["report_type"] == "log"


@pytest.mark.requirement("CORE-4.6-1", "CORE-4.6-2", "API-8.7-4")
@rows(
    "body",
    None,
    {"proposed_method": "AUDIT", "signature": {}, "intent": "Audit a stay."},
    {"endpoint": {"method": "AUDIT", "path": "/stays"}},
    {"method": "PROPOSE", "parameters": {"proposal": {"method": "AUDIT", "path": "/stays"}, "session_id": "s"}},
    {"name": "AUDIT", "parameters": {"subject": "string"}},
    {"endpoint": {}, "negotiation_id": "x", "zork": 1},
    {"proposal": "text"},
)
def test_every_form_of_proposal_is_rejected_with_the_reason(body: Any) -> None:
    reply = build().send("PROPOSE", "/", body)
    assert reply.status == 463
    for place in (reply.json, reply.error):
        assert place["reason"] == "synthesis-disabled"
        assert place["explanation"]


@pytest.mark.requirement("API-17.2-2")
def test_a_proposal_is_read_in_its_own_media_type() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo))
    wanted = {"endpoint": {"method": "RESERVE", "path": "/room"}}
    reply = bench.send("PROPOSE", "/", wanted, content_type="application/vnd.agtp.endpoint+json")
    assert (reply.status, reply.error["similar_endpoints"][0]["path"]) == (463, "/room")


@pytest.mark.requirement("API-10.2-1", "API-8.7-2")
def test_a_rejected_proposal_names_the_reason_and_only_discoverable_endpoints() -> None:
    bench = build(make_endpoint("BOOK", "/room", echo), make_endpoint("QUERY", "/menus", echo))
    reply = bench.send("PROPOSE", "/", {"endpoint": {"method": "RESERVE", "path": "/room"}})
    assert reply.error["similar_endpoints"][0]["path"] == "/room"
    assert build(policies=Policies(anonymous_discovery=False)).send("PROPOSE", "/").status == 463
    bench = build(make_endpoint("BOOK", "/room", echo), policies=Policies(anonymous_discovery=False))
    wanted = {"endpoint": {"method": "RESERVE", "path": "/room"}}
    assert "similar_endpoints" not in bench.send("PROPOSE", "/", wanted).error
    assert bench.send("PROPOSE", "/", wanted, agent_id=AGENT).error["similar_endpoints"]

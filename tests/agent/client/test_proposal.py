"""What is sent as a proposal: complete, and honest about what the agent does not know."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.agent.client.faces import AT_ONCE, NOTHING_KEPT
from tests.cases import rows
from tests.service import AGENT, echo, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.agent.client import errors
from bespeak.agent.client.connect import connect
from bespeak.agent.client.negotiation import define, read_fields, read_proposal
from bespeak.agent.client.service import ServiceClient
from bespeak.app.server.http_face import make_face
from bespeak.checks.lint.registration import check_contract
from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.errors import ConfigError
from bespeak.extensions.negotiation.settings import NegotiationSettings
from bespeak.faces.agtp.server import AgtpServer
from bespeak.faces.http.server import HttpServer
from bespeak.state.store.commands.cases import ListCases

pytestmark = pytest.mark.anyio
POLICIES = Policies(synthesis_enabled=True, scope_required_for_invocation=False)
ROOMS = [{"room_id": "1", "price": 80}, {"room_id": "2", "price": 120}]
CHEAP: dict[str, Any] = {"given": {"max_price": int}, "needs": ["rooms[].room_id:string"]}
every_face = pytest.mark.parametrize("face", ["agtp", "tls", "http"])


def test_definition_is_complete_and_valid_and_needs_a_method_and_a_path() -> None:
    proposal = define("find", "/rooms/cheap", given=["max_price:number"], needs=["rooms[].room_id"])
    assert proposal.definition["method"] == "FIND"
    assert set(proposal.definition) >= {
        "path",
        "description",
        "semantic",
        "input_schema",
        "output_schema",
        "errors",
        "handler",
    }
    assert proposal.definition["input_schema"] == {
        "type": "object",
        "properties": {"max_price": {"type": "number"}},
        "required": ["max_price"],
        "additionalProperties": False,
    }
    assert proposal.endpoint.key == ("FIND", "/rooms/cheap")
    found = check_contract(proposal.endpoint, load_bundled(), Policies())
    assert [finding for finding in found if finding.severity == "error"] == []
    with pytest.raises(ConfigError, match="without a method and a path"):
        read_proposal({"method": "FIND"})


@rows(
    "method, impact, said, idempotent",
    ("FIND", None, "informational", True),
    ("SUMMARIZE", None, "informational", True),
    ("BOOK", None, "irreversible", False),
    ("BOOK", "reversible", "reversible", False),
    ("FIND", "irreversible", "irreversible", False),
    ("FROBNICATE", None, "irreversible", False),
)
def test_impact_is_the_worst_that_is_allowed(method: str, impact: str | None, said: str, idempotent: bool) -> None:
    semantic = define(method, "/rooms", impact=impact).endpoint.semantic
    assert (semantic.impact, semantic.is_idempotent, semantic.confidence) == (said, idempotent, 1.0)


def test_path_parameters_are_required_and_untyped_inputs_take_the_type_of_the_service() -> None:
    schema = define("FETCH", "/rooms/{room_id}/guests/{id}", given=["id:integer"]).definition["input_schema"]
    assert schema["properties"] == {"id": {"type": "integer"}, "room_id": {"type": "string"}}
    assert sorted(schema["required"]) == ["id", "room_id"]
    known = [
        make_endpoint(
            "QUERY", "/a", echo, properties={"beds": {"type": "integer", "minimum": 1}, "id": {"type": "string"}}
        ),
        make_endpoint("QUERY", "/b", echo, properties={"beds": {"type": "integer"}, "id": {"type": "integer"}}),
        make_endpoint("QUERY", "/c", echo, properties={"kind": {"$ref": "#/$defs/kind"}}),
    ]
    schema = define("FIND", "/x", given=["beds", "id", "kind", "other"], known=known).definition["input_schema"]
    assert schema["properties"] == {
        "beds": {"type": "integer"},
        "id": {"type": "string"},
        "kind": {"type": "string"},
        "other": {"type": "string"},
    }


@rows(
    "options, message",
    ({"impact": "none"}, "impact must be one of informational, reversible, irreversible; got 'none'"),
    ({"given": {"a": {"enum": [object()]}}}, "is not JSON"),
)
def test_what_cannot_be_proposed_is_refused_before_it_is_sent(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        define("FIND", "/x", **options)


@rows(
    "fields, properties, required",
    (["email"], {"email": {}}, ["email"]),
    (["limit:integer"], {"limit": {"type": "integer"}}, ["limit"]),
    (
        ["born:date", "price:number"],
        {"born": {"type": "string", "format": "date"}, "price": {"type": "number"}},
        None,
    ),
    (["tags:string[]"], {"tags": {"type": "array", "items": {"type": "string"}}}, ["tags"]),
    (["tags[]:string"], {"tags": {"type": "array", "items": {"type": "string"}}}, ["tags"]),
    (["max-price", "x$y", "größe"], {"max-price": {}, "x$y": {}, "größe": {}}, None),
    ({"email": str, "limit": int, "price": float, "paid": bool}, None, ["email", "limit", "price", "paid"]),
    (
        {"born": "date", "kind": {"enum": ["a"]}},
        {"born": {"type": "string", "format": "date"}, "kind": {"enum": ["a"]}},
        None,
    ),
)
def test_fields_become_properties_of_an_object(fields: Any, properties: Any, required: Any) -> None:
    schema = read_fields(fields)
    assert schema["type"] == "object"
    if properties is not None:
        assert schema["properties"] == properties
    assert schema["required"] == (required or list(schema["properties"]))


def test_paths_become_nested_objects_and_schemas_are_returned_as_they_are() -> None:
    schema = read_fields(["invoices[].total:number", "invoices[].lines[].sku", "customer.name"])
    invoice = schema["properties"]["invoices"]["items"]
    assert invoice["properties"] == {
        "total": {"type": "number"},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"sku": {}}, "required": ["sku"]}},
    }
    assert invoice["required"] == ["total", "lines"]
    assert schema["properties"]["customer"]["required"] == ["name"]
    assert schema["required"] == ["invoices", "customer"]
    schema = read_fields(["limit?:integer", "owner.phone?"])
    assert schema["required"] == ["owner"]
    assert "required" not in schema["properties"]["owner"]
    assert read_fields(["rooms[]", "rooms[].id"]) == read_fields(["rooms[].id"])
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1}
    assert read_fields(schema) == schema


@pytest.mark.parametrize(
    "text",
    ["", ".", "a.", "a..b", "a b", "a[", "a[0].b", "[]", "a?b", "a:", "a,b", "{a}", ".".join("a" * 17), "a" * 501],
)
def test_texts_that_are_not_fields_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid field; write it like"):
        read_fields([text])


@rows(
    "fields, message",
    (["limit:banana"], "'banana' is not a valid type of the field 'limit:banana'; use one of string, integer"),
    ({"limit": 3}, "3 is not a valid type"),
    ({"limit": complex}, "is not a valid type"),
    (["a:string", "a.b"], "lies in a field that is named as string, not as object"),
    (["a:string", "a:integer"], "is named twice, as string and as integer"),
    (["a[]", "a.b"], "lies in a field that is named as array"),
    ("email", "must be a list, not the string 'email'"),
    ([f"a{number}" for number in range(501)], "At most 500 fields"),
    ([3], "is not a valid field"),
)
def test_contradictions_are_refused(fields: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        read_fields(fields)


def rows(**fields: str) -> dict[str, Any]:
    properties = {name: {"type": kind} for name, kind in fields.items()}
    items = {"type": "object", "properties": properties, "required": list(fields)}
    return {"type": "object", "properties": {"rooms": {"type": "array", "items": items}}, "required": ["rooms"]}


def list_rooms() -> dict[str, Any]:
    return {"rooms": ROOMS}


def book_room(room_id: str) -> dict[str, Any]:
    return {"booking_id": f"b-{room_id}"}


def endpoints() -> tuple[Endpoint, ...]:
    output = rows(room_id="string", price="integer")
    taken = {"type": "object", "properties": {"booking_id": {"type": "string"}}, "required": ["booking_id"]}
    room = {"room_id": {"type": "string"}}
    return (
        make_endpoint("QUERY", "/rooms", list_rooms, output=output),
        make_endpoint(
            "BOOK",
            "/room",
            book_room,
            properties=room,
            required=("room_id",),
            output=taken,
            scopes=("booking:room",),
            impact="irreversible",
        ),
    )


@asynccontextmanager
async def talking(
    face: str, folder: Path, settings: NegotiationSettings | None = None, **options: Any
) -> AsyncIterator[tuple[ServiceClient, StatefulBench]]:
    """A client of a negotiating service over one face."""
    document = ServerDocument(extension_tables={"negotiation": settings or NegotiationSettings()})
    async with keeping(*endpoints(), document=document, policies=POLICIES) as bench:
        dispatcher, context = bench.bench.dispatcher, None
        server: AgtpServer | HttpServer = AgtpServer(dispatcher)
        if face == "http":
            server = HttpServer(make_face(dispatcher, HttpSettings(), loopback=True))
        if face == "tls":
            authority = trustme.CA()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            authority.issue_cert("127.0.0.1").configure_cert(context)
            authority.cert_pem.write_to_path(str(folder / "ca.pem"))
            options["ca_file"] = folder / "ca.pem"
        [(_, port)] = await server.start("127.0.0.1", 0, **({} if face == "http" else {"ssl": context}))
        uri = f"{'http' if face == 'http' else 'agtp'}://127.0.0.1:{port}"
        try:
            async with connect(uri, **{"agent_id": AGENT, "retry": AT_ONCE, "web": NOTHING_KEPT, **options}) as service:
                yield service, bench
        finally:
            await server.close()


@every_face
@pytest.mark.parametrize("agent_id", [AGENT, None])
async def test_endpoint_is_proposed_and_called(face: str, agent_id: str | None, tmp_path: Path) -> None:
    async with talking(face, tmp_path, agent_id=agent_id) as (service, _):
        cheap = await service.propose("FIND", "/rooms/cheap", **CHEAP)
        assert await cheap.call(max_price=100) == {"rooms": [{"room_id": "1"}]}
    assert (cheap.endpoint.semantic.impact, cheap.notes) == ("informational", ())
    assert any("QUERY /rooms" in step for step in cheap.explanation)
    assert cheap.synthesis_id
    assert cheap.expires_at


@every_face
async def test_refusals_are_typed(face: str, tmp_path: Path) -> None:
    async with talking(face, tmp_path) as (service, _):
        with pytest.raises(errors.ProposalRejectedError) as rejected:
            await service.propose("FIND", "/rooms/quiet", needs=["rooms[].decibels:integer"])
        with pytest.raises(errors.AuthorityMissingError) as missing:
            await service.propose("BOOK", "/rooms/room", given=["room_id"], needs=["booking_id:string"])
        with pytest.raises(errors.MethodViolationError):
            await service.propose("FROBNICATE", "/rooms/cheap", **CHEAP)
        with pytest.raises(errors.EndpointViolationError):
            await service.propose("FIND", "/rooms/book", **CHEAP)
        scopes, id_ = missing.value.missing_scopes, missing.value.negotiation_id
        booking = await service.propose(
            "BOOK", "/rooms/room", given=["room_id"], needs=["booking_id:string"], scopes=scopes, negotiation_id=id_
        )
        assert await booking.call(room_id="2") == {"booking_id": "b-2"}
    expected = ("composition-impossible", "rooms[].decibels")
    assert (rejected.value.rejection, rejected.value.misses[0]["field"]) == expected
    assert (scopes, booking.negotiation_id) == (("booking:room",), id_)


@every_face
async def test_pending_proposal_is_followed_and_can_be_proposed_again(face: str, tmp_path: Path) -> None:
    async with talking(face, tmp_path, NegotiationSettings(approval="all")) as (service, _):
        ids = []
        for _ in range(2):
            with pytest.raises(errors.ProposalPendingError) as caught:
                await service.propose("FIND", "/rooms/cheap", **CHEAP, wait=0)
            ids.append(caught.value.proposal_id)
        polled = await service.request("QUERY", f"/proposals/{ids[0]}")
    assert ids[0] == ids[1]
    assert polled.status == 261


async def test_third_rejection_is_escalated_to_a_case(tmp_path: Path) -> None:
    async with talking("agtp", tmp_path) as (service, bench):
        for number in range(2):
            with pytest.raises(errors.ProposalRejectedError) as caught:
                await service.propose("FIND", "/rooms/quiet", needs=[f"rooms[].noise{number}"])
        negotiation_id = caught.value.negotiation_id
        with pytest.raises(errors.ProposalEscalatedError) as escalated:
            await service.propose(
                "FIND", "/rooms/quiet", needs=["rooms[].noise"], negotiation_id=negotiation_id, escalate=True
            )
        cases = await bench.store.read(ListCases())
    assert [case.case_id for case in cases] == [escalated.value.escalation_id]

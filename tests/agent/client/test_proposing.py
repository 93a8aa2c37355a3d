"""Proposals to a server of bespeak: over AGTP, over TLS and over HTTP, with every answer it gives."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from tests.agent.client.faces import AT_ONCE, NOTHING_KEPT
from tests.service import AGENT, make_endpoint
from tests.stateful import StatefulBench, keeping

from bespeak.agent.client.connect import connect
from bespeak.agent.client.errors import (
    AuthorityMissingError,
    EndpointViolationError,
    MethodViolationError,
    ProposalEscalatedError,
    ProposalPendingError,
    ProposalRejectedError,
)
from bespeak.agent.client.service import ServiceClient
from bespeak.app.server.http_face import make_face
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.negotiation import NegotiationSettings
from bespeak.contract.policy import Policies
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.deployment.server_toml import ServerDocument
from bespeak.faces.agtp.server import AgtpServer
from bespeak.faces.http.server import HttpServer
from bespeak.state.store.commands.cases import ListCases

pytestmark = pytest.mark.anyio

POLICIES = Policies(synthesis_enabled=True, scope_required_for_invocation=False)
ROOMS = [{"room_id": "1", "price": 80}, {"room_id": "2", "price": 120}]
CHEAP: dict[str, Any] = {"given": {"max_price": int}, "needs": ["rooms[].room_id:string"]}


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
    document = ServerDocument(negotiation=settings or NegotiationSettings())
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


every_face = pytest.mark.parametrize("face", ["agtp", "tls", "http"])


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
        with pytest.raises(ProposalRejectedError) as rejected:
            await service.propose("FIND", "/rooms/quiet", needs=["rooms[].decibels:integer"])
        with pytest.raises(AuthorityMissingError) as missing:
            await service.propose("BOOK", "/rooms/room", given=["room_id"], needs=["booking_id:string"])
        with pytest.raises(MethodViolationError):
            await service.propose("FROBNICATE", "/rooms/cheap", **CHEAP)
        with pytest.raises(EndpointViolationError):
            await service.propose("FIND", "/rooms/book", **CHEAP)
        scopes, id_ = missing.value.missing_scopes, missing.value.negotiation_id
        booking = await service.propose(
            "BOOK", "/rooms/room", given=["room_id"], needs=["booking_id:string"], scopes=scopes, negotiation_id=id_
        )
        assert await booking.call(room_id="2") == {"booking_id": "b-2"}
    assert (rejected.value.rejection, rejected.value.misses[0]["field"]) == (
        "composition-impossible",
        "rooms[].decibels",
    )
    assert (scopes, booking.negotiation_id) == (("booking:room",), id_)


@every_face
async def test_pending_proposal_is_followed_and_can_be_proposed_again(face: str, tmp_path: Path) -> None:
    async with talking(face, tmp_path, NegotiationSettings(approval="all")) as (service, _):
        ids = []
        for _ in range(2):
            with pytest.raises(ProposalPendingError) as caught:
                await service.propose("FIND", "/rooms/cheap", **CHEAP, wait=0)
            ids.append(caught.value.proposal_id)
        polled = await service.request("QUERY", f"/proposals/{ids[0]}")
    assert ids[0] == ids[1]
    assert polled.status == 261


async def test_third_rejection_is_escalated_to_a_case(tmp_path: Path) -> None:
    async with talking("agtp", tmp_path) as (service, bench):
        for number in range(2):
            with pytest.raises(ProposalRejectedError) as caught:
                await service.propose("FIND", "/rooms/quiet", needs=[f"rooms[].noise{number}"])
        negotiation_id = caught.value.negotiation_id
        with pytest.raises(ProposalEscalatedError) as escalated:
            await service.propose(
                "FIND", "/rooms/quiet", needs=["rooms[].noise"], negotiation_id=negotiation_id, escalate=True
            )
        cases = await bench.store.read(ListCases())
    assert [case.case_id for case in cases] == [escalated.value.escalation_id]

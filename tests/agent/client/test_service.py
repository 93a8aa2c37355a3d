"""Discovering and calling: what the client sends, and what it makes of the answers."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.agent.client.faces import FACES, Face, talking
from tests.agent.client.scripted import AGENT, always, endpoint, in_turn, manifest, service_of
from tests.cases import rows
from tests.service import AGENT as SERVICE_AGENT

from bespeak.agent.client.called_service import CalledService
from bespeak.agent.client.connect import connect
from bespeak.agent.client.errors import (
    AuthorityMissingError,
    BusinessError,
    InventoryEntry,
    NoCommonCatalogError,
    NotFoundError,
)
from bespeak.agent.client.web import described_manifest
from bespeak.agent.discovery.lookup import Discovered
from bespeak.agent.discovery.readers import Capability
from bespeak.contract.policy import Policies
from bespeak.documents.ai.document import AiDocument
from bespeak.documents.projections.manifest_signature import sign_manifest
from bespeak.errors import ConfigError, RemoteProtocolError
from bespeak.protocol.address_guard import Origin, WebAddress
from bespeak.protocol.exchange.principal import Scopes
from bespeak.state.identity.jws import generate_key, public_jwk

pytestmark = pytest.mark.anyio
HERE = Origin("https", "flights.test", 443)


@pytest.mark.requirement("CORE-2.3-9", "CORE-2.3-15", "CORE-7.5-4", "CORE-3-15")
@pytest.mark.requirement("API-16.4-1")
async def test_a_request_carries_the_agent_its_scopes_and_the_input() -> None:
    options = {"agent_id": AGENT, "scopes": ["booking:room", "a:b"]}
    async with service_of(always(200, {"ok": True}), **options) as (service, server):
        reply = await service.request("BOOK", "/room", {"room_id": "12"}, task_id="t-1", headers={"Session-ID": "s"})
    assert reply.ok
    assert reply.json() == {"ok": True}
    seen = server.seen[0]
    assert seen.line == "AGTP/1.0 BOOK /room"
    assert seen.headers == {
        "agent-id": AGENT,
        "authority-scope": "booking:room, a:b",
        "task-id": "t-1",
        "session-id": "s",
        "content-type": "application/vnd.agtp+json",
        "content-length": str(len(seen.body)),
    }
    assert json.loads(seen.body) == {"room_id": "12"}


async def test_requests_carry_nothing_that_is_not_given_and_may_narrow_scopes() -> None:
    async with service_of(always(200, {})) as (service, server):
        await service.request("QUERY", "/rooms")
    assert server.seen[0].headers == {"content-length": "0"}
    async with service_of(always(200, {}), agent_id=AGENT, scopes=["a:b", "c:d"]) as (service, server):
        await service.request("QUERY", "/x", {}, scopes=["a:b"], headers={"agent-id": "cd" * 32})
        await service.request("QUERY", "/x", scopes=[])
    assert (server.seen[0].headers["authority-scope"], server.seen[0].headers["agent-id"]) == ("a:b", "cd" * 32)
    assert "authority-scope" not in server.seen[1].headers


async def test_query_parameters_are_percent_encoded_and_path_templates_filled() -> None:
    async with service_of(always(200, {})) as (service, server):
        await service.request("QUERY", "/rooms", query={"q": "a b&c+ü", "free": True, "n": 2})
        await service.request("QUERY", "/rooms?x=1", query={"y": "2"})
    assert server.seen[0].line == "AGTP/1.0 QUERY /rooms?q=a%20b%26c%2B%C3%BC&free=true&n=2"
    assert server.seen[1].line == "AGTP/1.0 QUERY /rooms?x=1&y=2"
    async with service_of(always(200, {})) as (service, server):
        await service.call("FETCH", "/books/{isbn}/pages/{page}", isbn="a/b é?", page=7, side="left")
        await service.call("FETCH", "/books/{isbn}", isbn="0441")
    assert server.seen[0].line == "AGTP/1.0 FETCH /books/a%2Fb%20%C3%A9%3F/pages/7"
    assert json.loads(server.seen[0].body) == {"side": "left"}
    assert (server.seen[1].line, server.seen[1].body) == ("AGTP/1.0 FETCH /books/0441", b"")


@pytest.mark.parametrize("given", [{}, {"isbn": ""}, {"isbn": ".."}], ids=["missing", "empty", "dots"])
async def test_a_path_template_without_a_usable_value_is_refused_before_sending(given: dict[str, str]) -> None:
    async with service_of(always(200, {})) as (service, server):
        with pytest.raises(ConfigError, match=r"/books/\{isbn\} needs a value for 'isbn'"):
            await service.call("FETCH", "/books/{isbn}", **given)
    assert not server.seen


async def test_less_of_an_answer_is_asked_for_and_arguments_of_the_wrong_kind_are_refused() -> None:
    noon = datetime(2026, 12, 1, 12, tzinfo=UTC)
    async with service_of(always(200, {})) as (service, server):
        await service.request("QUERY", "/rooms", query={"beds": 2}, fields=["id", "owner.name"], compact=True)
        await service.request("QUERY", "/rooms", since=noon)
        await service.request("QUERY", "/rooms", since="2026-12-01")
        with pytest.raises(ConfigError, match=r"write \['id'\]"):
            await service.request("QUERY", "/rooms", fields="id")
    assert [seen.line.rpartition(" ")[2] for seen in server.seen] == [
        "/rooms?beds=2&compact=true&fields=id%2Cowner.name",
        "/rooms?since=2026-12-01T12%3A00%3A00%2B00%3A00",
        "/rooms?since=2026-12-01",
    ]
    async with service_of(always(200, {})) as (service, _):
        with pytest.raises(ConfigError, match=r"not the string 'rooms:read'; write \['rooms:read'\]"):
            await service.request("QUERY", "/x", scopes="rooms:read")
        with pytest.raises(ConfigError, match="does not name an agent"):
            await service.identify()


@pytest.mark.requirement("CORE-6.1-16")
async def test_request_returns_refusals_and_call_raises_them_typed() -> None:
    refusal = {"error": {"code": "authorization-required", "type": "scope-required"}}
    async with service_of(always(262, refusal)) as (service, _):
        reply = await service.request("BOOK", "/room")
    assert not reply.ok
    assert reply.error.code == "authorization-required"
    refusal = {"error": {"code": "room_unavailable", "message": "Taken.", "details": {"next": 3}}}
    script = in_turn(
        always(200, {"reservation_id": "r"}), always(422, refusal), always(262, {}), always(455, {}), always(404, {})
    )
    async with service_of(script) as (service, server):
        assert await service.call("BOOK", "/room", room_id="12") == {"reservation_id": "r"}
        with pytest.raises(BusinessError, match="room_unavailable: Taken") as caught:
            await service.call("BOOK", "/room")
        for expected in (AuthorityMissingError, AuthorityMissingError, NotFoundError):
            with pytest.raises(expected):
                await service.call("BOOK", "/room")
    assert caught.value.details == {"next": 3}
    assert json.loads(server.seen[0].body) == {"room_id": "12"}


@pytest.mark.requirement("METHODS-2-1")
@pytest.mark.requirement("API-8.4-2")
async def test_the_manifest_decides_what_may_be_repeated() -> None:
    document = manifest(
        endpoint("CANCEL", "/rooms/{id}", is_idempotent=True), endpoint("QUERY", "/next", is_idempotent=False)
    )
    script = in_turn(always(200, document), always(503), always(200, {}), always(503))
    async with service_of(script) as (service, server):
        await service.discover()
        assert (await service.request("CANCEL", "/rooms/12")).ok
        assert (await service.request("QUERY", "/next")).status == 503
    assert len(server.seen) == 4


@pytest.mark.requirement("CORE-3-9", "API-5.8-4")
async def test_the_manifest_is_asked_for_once_without_an_agent_and_refreshed_conditionally() -> None:
    document = manifest(endpoint("BOOK", "/room", is_idempotent=False))
    async with service_of(always(200, document), agent_id=AGENT) as (service, server):
        found = await service.discover()
        assert await service.discover() is found
    assert [item.path for item in found.endpoints] == ["/room"]
    assert (len(server.seen), server.seen[0].line) == (1, "AGTP/1.0 DISCOVER /")
    assert "agent-id" not in server.seen[0].headers
    script = in_turn(
        always(200, manifest(), ETag='"one"'),
        always(304, ETag='"one"'),
        always(200, manifest(document_version="v2"), ETag='"two"'),
        always(304),
    )
    async with service_of(script) as (service, server):
        first = await service.discover()
        assert await service.discover(refresh=True) is first
        assert (await service.discover(refresh=True)).document_version == "v2"
        await service.discover(refresh=True)
    assert [seen.headers.get("if-none-match") for seen in server.seen] == [None, '"one"', '"one"', '"two"']


@pytest.mark.requirement("CORE-2.4-9")
async def test_a_new_api_version_makes_the_client_read_the_manifest_before_the_next_call() -> None:
    script = in_turn(
        always(200, manifest(), AGTP_API_Version="1.0"),
        always(200, {}, AGTP_API_Version="1.0"),
        always(200, {}, AGTP_API_Version="1.1"),
        always(200, manifest(document_version="v2"), AGTP_API_Version="1.1"),
        always(200, {}, AGTP_API_Version="1.1"),
    )
    async with service_of(script) as (service, server):
        await service.discover()
        for _ in range(3):
            await service.call("BOOK", "/room")
        assert service.manifest.document_version == "v2"
    assert [seen.line.split(" ")[1] for seen in server.seen] == ["DISCOVER", "BOOK", "BOOK", "DISCOVER", "BOOK"]


@pytest.mark.parametrize("body", [[], "x", None])
async def test_an_unreadable_manifest_is_a_fault_of_the_peer(body: Any) -> None:
    async with service_of(always(200, body)) as (service, _):
        with pytest.raises(RemoteProtocolError, match="manifest"):
            await service.discover()


async def test_refused_discovery_is_typed_and_the_inventory_is_read_in_both_forms() -> None:
    async with service_of(always(262, {"error": {"type": "anonymous-discovery-disabled"}})) as (service, _):
        with pytest.raises(AuthorityMissingError) as caught:
            await service.discover()
    assert caught.value.condition == "anonymous-discovery-disabled"
    entry = {"method": "BOOK", "path": "/room", "description": "Book a room."}
    async with service_of(in_turn(always(200, [entry]), always(200, {"items": [entry]}))) as (service, server):
        assert await service.methods() == [InventoryEntry("BOOK", "/room", "Book a room.")]
        assert await service.methods() == [InventoryEntry("BOOK", "/room", "Book a room.")]
    assert server.seen[0].line == "AGTP/1.0 DISCOVER /methods"


@pytest.mark.requirement("API-8.8-2", "API-8.8-3")
async def test_unsigned_and_forged_manifests_are_used_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with service_of(always(200, manifest())) as (service, _):
        with caplog.at_level(logging.WARNING):
            await service.discover()
            await service.discover(refresh=True)
        assert service.signature.state == "absent"
    assert sum("not signed" in record.message for record in caplog.records) == 1
    forged = {**manifest(), "manifest_signature": sign_manifest({"other": 1}, generate_key())}
    async with service_of(always(200, forged)) as (service, _):
        with caplog.at_level(logging.WARNING):
            await service.discover()
        assert service.signature.state == "invalid"
    assert "invalid" in caplog.text


@pytest.mark.requirement("CORE-10.2-2")
async def test_a_signed_manifest_is_checked_against_the_pinned_key(caplog: pytest.LogCaptureFixture) -> None:
    key = generate_key()
    signed = {**manifest(), "manifest_signature": sign_manifest(manifest(), key)}
    for pinned, state, trusted in (
        (None, "valid", False),
        (json.dumps(public_jwk(key)), "valid", True),
        (json.dumps(public_jwk(generate_key())), "unknown-key", False),
    ):
        async with service_of(always(200, signed), signing_key=pinned) as (service, _):
            await service.discover()
            assert (service.signature.state, service.signature.trusted) == (state, trusted)


@pytest.mark.requirement("API-4.6-1", "API-4.6-2", "API-4.6-3")
@rows("versions, chosen", (("1.0.0",), "1.0.0"), (("1.0.0", "1.1.0"), "1.1.0"), (("0.9.0", "1.0.0", "7.0.0"), "1.0.0"))
async def test_the_highest_common_catalog_version_is_chosen(versions: tuple[str, ...], chosen: str) -> None:
    async with service_of(always(200, manifest(versions=versions))) as (service, _):
        await service.discover()
        assert service.catalog_version == chosen


@pytest.mark.requirement("API-4.6-4")
async def test_without_a_common_catalog_version_calls_are_given_up() -> None:
    async with service_of(always(200, manifest(versions=("9.0.0",)))) as (service, server):
        await service.discover()
        assert service.catalog_version is None
        with pytest.raises(NoCommonCatalogError, match=r"9\.0\.0"):
            await service.call("BOOK", "/room")
    assert len(server.seen) == 1


def holding_itself() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


@rows("value, reason", (holding_itself(), "contains itself"), (object(), "object"), ("\ud800", "surrogates"))
async def test_input_that_is_not_json_is_refused_before_sending(value: object, reason: str) -> None:
    async with service_of(always(200, {})) as (service, server):
        with pytest.raises(ConfigError, match=f"input is not JSON: .*{reason}"):
            await service.call("BOOK", "/room", x=value)
        with pytest.raises(ConfigError, match=f"The query .*{reason}"):
            await service.request("QUERY", "/rooms", query={"x": value})
    assert server.seen == []


@pytest.mark.parametrize("face", FACES)
async def test_a_call_has_an_outcome_whatever_the_status(face: Face) -> None:
    async with talking(face, agent_id=SERVICE_AGENT) as (client, _):
        service = CalledService(client)
        endpoints = {str(endpoint): endpoint for endpoint in await service.endpoints()}
        assert await service.endpoints() is await service.endpoints()
        found = await service.call(endpoints["FIND /rooms/{room_id}"], {"room_id": "a/b", "guests": 2}, {})
        assert found.output == {"room_id": "a/b", "guests": 2}
        refused = await service.call(endpoints["BOOK /room"], {"room_id": "taken"}, {})
        assert (refused.status, refused.error["code"]) == (422, "room_unavailable")
        warned = await service.call(endpoints["RESERVE /room"], {}, {})
        assert warned.warning.startswith("deprecated")


async def test_outcomes_of_unreachable_services_and_facts_about_authority(unused_port: int) -> None:
    async with talking("agtp", agent_id=SERVICE_AGENT) as (client, _):
        service = CalledService(client, policies=Policies(confirm_irreversible=True), scopes=Scopes(["room:read"]))
        endpoints = {str(endpoint): endpoint for endpoint in await service.endpoints()}
        assert service.lacking(endpoints["CANCEL /room"]) == ["room:cancel"]
        assert service.is_confirmed(endpoints["BOOK /room"])
        open_ended = CalledService(client)
        assert open_ended.lacking(endpoints["CANCEL /room"]) == []
        assert not open_ended.is_confirmed(endpoints["BOOK /room"])
        endpoint = (await CalledService(client).endpoints())[0]
    async with connect(f"agtp://127.0.0.1:{unused_port}") as gone:
        found = await CalledService(gone).call(endpoint, {"room_id": "1"}, {})
        assert found.error["code"] == "service-not-reached"


def test_capabilities_are_endpoints_with_the_effects_of_their_methods() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    found = Discovered(
        WebAddress(HERE, "/"),
        ai=AiDocument(name="Flights", description="", capabilities=()),
        capabilities=[
            Capability(id="a", method="GET", path="/x", origin=HERE, target="/x", input_schema=schema),
            Capability(id="b", method="POST", path="/x", origin=HERE, target="/x", description="Book"),
        ],
    )
    manifest = described_manifest(found)
    read, write = manifest.endpoints
    assert (read.semantic.impact, read.semantic.is_idempotent) == ("informational", True)
    assert (write.semantic.impact, write.semantic.is_idempotent) == ("irreversible", False)
    assert manifest.endpoint("GET", "/x") is read
    assert read.input_schema == schema
    assert (manifest.server.server_id, manifest.server.name) == ("flights.test", "Flights")
    assert [entry["description"] for entry in manifest.raw["endpoints"]] == ["", "Book"]

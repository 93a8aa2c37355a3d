"""The example hotel: one contract written twice, and a state that keeps its promises."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.process import HOTEL, serving

from bespeak import connect_sync
from bespeak.agent.client.errors import BusinessError, NotFoundError
from bespeak.agent.client.synchronous import SyncServiceClient
from bespeak.app.server.target import load_target
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.service import Service

AGENT = "0a3f" * 16
SCOPES = ["booking:room", "calendar:write"]
STAY = {"room_id": "105", "arrival": "2027-05-01", "departure": "2027-05-03"}


@pytest.fixture(scope="module")
def in_toml() -> Service:
    return load_target(str(HOTEL)).service


@pytest.fixture(scope="module")
def in_python() -> Service:
    return load_target(str(HOTEL / "app.py")).service


def shape(schema: Any, definitions: Any = None) -> Any:
    """Return a schema without descriptions and references: what a caller must follow."""
    if isinstance(schema, list):
        return [shape(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    definitions = schema.get("$defs", definitions)
    if "$ref" in schema:
        return shape(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    prose = {"$schema", "$defs", "title", "description"}
    kept = {key: shape(value, definitions) for key, value in schema.items() if key not in prose}
    if "required" in kept:
        kept["required"] = sorted(kept["required"])
    return {key: value for key, value in kept.items() if key != "required" or value}


def contract(endpoint: Endpoint) -> dict[str, Any]:
    """Return everything of an endpoint that a caller sees."""
    return {
        "description": endpoint.description,
        "namespace": endpoint.namespace,
        "semantic": endpoint.semantic,
        "input": shape(endpoint.input_schema),
        "output": shape(endpoint.output_schema),
        "errors": endpoint.errors,
        "scopes": endpoint.required_scopes,
        "deprecated": endpoint.deprecated,
    }


def test_toml_and_python_declare_the_same_server_and_endpoints(in_toml: Service, in_python: Service) -> None:
    files = {endpoint.key: contract(endpoint) for endpoint in in_toml.endpoints}
    functions = {endpoint.key: contract(endpoint) for endpoint in in_python.endpoints}
    assert files == functions
    assert (in_toml.policies, in_toml.catalog) == (in_python.policies, in_python.catalog)
    assert [resource.name for resource in in_toml.resources] == [resource.name for resource in in_python.resources]
    for name in ("server_id", "operator", "contact"):
        assert getattr(in_toml.identity, name) == getattr(in_python.identity, name)


@pytest.mark.parametrize("form", ["in_toml", "in_python"])
def test_book_room_is_the_contract_of_the_draft(form: str, request: pytest.FixtureRequest) -> None:
    """AGTP-API 6.1: the fields, formats, scopes and errors of its example."""
    service: Service = request.getfixturevalue(form)
    [book] = [endpoint for endpoint in service.endpoints if endpoint.key == ("BOOK", "/room")]
    assert shape(book.input_schema) == {
        "type": "object",
        "properties": {
            "guest_id": {"type": "string", "format": "uuid"},
            "room_id": {"type": "string"},
            "arrival": {"type": "string", "format": "date"},
            "departure": {"type": "string", "format": "date"},
        },
        "required": ["arrival", "departure", "guest_id", "room_id"],
        "additionalProperties": False,
    }
    assert shape(book.output_schema) == {
        "type": "object",
        "properties": {"reservation_id": {"type": "string", "format": "uuid"}},
        "required": ["reservation_id"],
        "additionalProperties": True,
    }
    assert book.error_names == ("room_unavailable", "invalid_dates")
    assert (book.required_scopes, book.namespace) == (("booking:room", "calendar:write"), "reservations")
    semantic = book.semantic
    assert (semantic.actor, semantic.capability, semantic.confidence) == ("agent", "transaction", 0.85)
    assert (semantic.impact, semantic.is_idempotent) == ("irreversible", False)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"HOTEL_LEDGER": str(tmp_path / "ledger.sqlite3")}


@pytest.fixture(params=["", "app.py"], ids=["toml", "python"])
def hotel(request: pytest.FixtureRequest, environment: dict[str, str]) -> Iterator[SyncServiceClient]:
    with (
        serving(HOTEL / request.param, env=environment) as server,
        connect_sync(server.uri, agent_id=AGENT, scopes=SCOPES) as client,
    ):
        yield client


def book(client: SyncServiceClient, method: str = "BOOK", **changes: str) -> str:
    output = client.call(method, "/room", **{"guest_id": str(uuid4()), **STAY, **changes})
    return str(UUID(output["reservation_id"]))


@pytest.mark.process
def test_bookings_of_one_room_collide_and_dates_are_in_order(hotel: SyncServiceClient) -> None:
    book(hotel)
    with pytest.raises(BusinessError) as refused:
        book(hotel, arrival="2027-05-02", departure="2027-05-09")
    assert (refused.value.name, refused.value.details) == ("room_unavailable", {"next_free": "2027-05-03"})
    book(hotel, arrival="2027-05-03", departure="2027-05-04")
    with pytest.raises(BusinessError) as refused:
        book(hotel, departure="2027-05-01")
    assert refused.value.name == "invalid_dates"


@pytest.mark.process
def test_a_cancelled_reservation_frees_its_room(hotel: SyncServiceClient) -> None:
    reservation = book(hotel)
    taken = hotel.call("QUERY", "/rooms", arrival="2027-05-01", departure="2027-05-02")
    assert "105" not in {room["room_id"] for room in taken["rooms"]}
    assert hotel.call("CANCEL", f"/reservations/{reservation}")["cancelled"] is True
    assert book(hotel) != reservation


@pytest.mark.process
def test_a_reservation_is_fetched_as_it_was_made_also_by_reserve(hotel: SyncServiceClient) -> None:
    reservation = book(hotel, "RESERVE", arrival="2027-06-01", departure="2027-06-02")
    assert hotel.call("FETCH", f"/reservations/{reservation}")["room_id"] == "105"
    reservation = book(hotel)
    found = hotel.call("FETCH", f"/reservations/{reservation}")
    assert found == {"reservation_id": reservation, "guest_id": found["guest_id"], **STAY, "cancelled": False}
    with pytest.raises(BusinessError) as refused:
        hotel.call("FETCH", f"/reservations/{uuid4()}")
    assert refused.value.name == "reservation_unknown"
    with pytest.raises(NotFoundError):
        hotel.call("FETCH", "/reservations")


@pytest.mark.process
def test_the_deprecated_endpoint_and_the_deprecated_verb_warn(hotel: SyncServiceClient) -> None:
    old_path = hotel.request("QUERY", "/availability", {"arrival": "2027-05-01", "departure": "2027-05-02"})
    assert [(warning.about, warning.successor) for warning in old_path.warnings] == [("endpoint", "QUERY /rooms")]
    note = {"reservation_id": book(hotel), "note": "Late arrival."}
    old_verb = hotel.request("AUDITLOG", "/stays", note)
    assert old_verb.ok
    assert [(warning.about, warning.successor) for warning in old_verb.warnings] == [("catalog", "LOG")]


@pytest.mark.process
def test_a_booking_that_was_answered_survives_kill_9(environment: dict[str, str]) -> None:
    with serving(HOTEL, env=environment) as server:
        with connect_sync(server.uri, agent_id=AGENT, scopes=SCOPES) as client:
            reservation = book(client)
            server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    with serving(HOTEL, env=environment) as server, connect_sync(server.uri, agent_id=AGENT, scopes=SCOPES) as client:
        assert client.call("FETCH", f"/reservations/{reservation}")["room_id"] == "105"
        with pytest.raises(BusinessError):
            book(client)


@pytest.mark.process
def test_two_workers_share_one_ledger(environment: dict[str, str]) -> None:
    with serving(HOTEL, "--workers", "2", env=environment) as server:
        outcomes = []
        for _ in range(6):
            # Each connection may reach either worker.
            with connect_sync(server.uri, agent_id=AGENT, scopes=SCOPES) as client:
                try:
                    outcomes.append(book(client))
                except BusinessError as error:
                    outcomes.append(error.name)
        assert server.stop() == 0
    assert outcomes[1:] == ["room_unavailable"] * 5

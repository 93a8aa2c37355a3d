"""One endpoint as operations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.service import echo, make_endpoint

from bespeak.contract.endpoint import Deprecation, Endpoint
from bespeak.contract.limits import read_cost
from bespeak.contract.policy import Policies
from bespeak.documents.projections.openapi.document import Operations
from bespeak.documents.projections.openapi.responses import Circumstances
from bespeak.documents.projections.openapi.schemas import SchemaComponents, reference

ROOM = {"room_id": {"type": "string", "description": "Which room."}, "beds": {"type": "integer"}}
FIND = make_endpoint("FIND", "/room/{room_id}", echo, properties=ROOM, required=("room_id", "beds"))


def item(endpoint: Endpoint, **policies: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    schemas = SchemaComponents({})
    served = Circumstances(modes=("open",), policies=Policies(**policies))
    operations = Operations({endpoint.key: "find_room"}, schemas, served)
    operations.reserve(endpoint)
    return operations.path_item(endpoint), schemas.schemas


def test_an_endpoint_that_can_be_read_has_a_get_and_a_post() -> None:
    found, schemas = item(FIND)
    assert [parameter["name"] for parameter in found["parameters"]] == ["room_id"]
    assert found["parameters"][0]["description"].startswith("Which room. It must not be")
    query = [entry for entry in found["get"]["parameters"] if "$ref" not in entry]
    assert query == [{"name": "beds", "in": "query", "required": True, "schema": {"type": "integer"}}]
    assert found["post"]["requestBody"] == {
        "required": True,
        "content": {"application/json": {"schema": reference("FindRoomBody")}},
    }
    assert schemas["FindRoomBody"]["required"] == ["beds"]
    assert schemas["FindRoomInput"] == FIND.input_schema
    assert (found["get"]["operationId"], found["post"]["operationId"]) == ("find_room", "post_find_room")


def test_an_endpoint_that_changes_something_has_a_post_of_its_own_id() -> None:
    found, _ = item(make_endpoint("BOOK", "/room", echo, impact="irreversible", properties=ROOM))
    assert "get" not in found
    assert found["post"]["operationId"] == "find_room"
    assert found["post"]["requestBody"]["content"]["application/json"]["schema"] == reference("FindRoomInput")
    assert found["post"]["requestBody"]["required"] is False


def test_facts_that_openapi_lacks_are_agtp_extensions() -> None:
    endpoint = replace(
        FIND,
        namespace="desk",
        required_scopes=("room:look",),
        deprecated=Deprecation(deprecated_in="1", successor_method="QUERY", successor_path="/rooms"),
        cost=read_cost({"tokens": 5})[0],
        confirm=False,
        since="changed",
    )
    post = item(endpoint)[0]["post"]
    assert post["deprecated"] is True
    assert post["tags"] == ["desk"]
    assert post["summary"] == endpoint.description
    assert post["description"] == "Do the thing.\n\nOutcome: The thing is done."
    told = {name.removeprefix("x-agtp-"): value for name, value in post.items() if name.startswith("x-agtp-")}
    assert told == {
        "method": "FIND",
        "path": "/room/{room_id}",
        "semantic": endpoint.semantic.to_json(),
        "input": "#/components/schemas/FindRoomInput",
        "output": "#/components/schemas/FindRoomOutput",
        "required-scopes": ["room:look"],
        "errors": [],
        "namespace": "desk",
        "deprecated": {"deprecated_in": "1", "successor": {"method": "QUERY", "path": "/rooms"}},
        "cost": {"tokens": 5},
        "confirm": False,
        "since": "changed",
        "token-hints": ["compact", "fields", "since"],
    }


def test_confirmation_required_by_the_policy_is_documented() -> None:
    book = make_endpoint("BOOK", "/room", echo, impact="irreversible")
    assert item(book, confirm_irreversible=True)[0]["post"]["x-agtp-confirm"] is True
    assert "x-agtp-confirm" not in item(book)[0]["post"]

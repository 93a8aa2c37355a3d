"""A service as files: unique names, and texts that are read back."""

from __future__ import annotations

import ast
from dataclasses import replace

from tests.cases import rows
from tests.documents.deployment.endpoint_text import parse_endpoint
from tests.process import HOTEL

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService
from bespeak.contract.limits import read_cost
from bespeak.documents.deployment.deployment import read_deployment
from bespeak.documents.deployment.server_toml import parse_server
from bespeak.documents.projections.deployment_files import deployment_files, function_names, whole_input_name


def hotel_endpoints() -> tuple[Endpoint, ...]:
    return read_deployment(HOTEL)[0].endpoints


@rows(
    "pairs, names",
    (["BOOK /room"], ["book_room"]),
    (["BOOK /room", "BOOK /room/{id}", "BOOK /room/{id}/bed"], ["book_room", "book_room_id", "book_room_id_bed"]),
    (["BOOK /room", "book /Room"], ["book_room", "book_room_2"]),
    (["BOOK /patient-record/{id}"], ["book_patient_record"]),
    (["BOOK /", "BOOK /日本", "1 /"], ["book", "book_2", "call_2"]),
    (["FIND /" + "a" * 300], ["find_" + "a" * 75]),
)
def test_a_function_is_named_after_its_endpoint(pairs: list[str], names: list[str]) -> None:
    (first, *_) = hotel_endpoints()
    endpoints = [replace(first, method=pair.split()[0], path=pair.split()[1]) for pair in pairs]
    assert function_names(endpoints) == names


def test_tool_name_is_used_unless_taken_or_not_a_python_name() -> None:
    (first, *_) = hotel_endpoints()
    named = [
        replace(first, semantic=replace(first.semantic, mcp_tool_name=name))
        for name in ("make_it", "make_it", "class", "dict", "../x")
    ]
    assert function_names(named) == ["make_it", "book_room", "class_", "dict_", "book_room_2"]


@rows(
    "fields, name",
    ((), "values"),
    (("values",), "given"),
    (("value", "given"), "whole_input"),
    (("value", "give", "whole_inputs"), "whole_input_input"),
)
def test_whole_input_parameter_is_not_similar_to_a_field(fields: tuple[str, ...], name: str) -> None:
    assert whole_input_name(fields) == name


def test_every_file_is_read_back() -> None:
    service = read_deployment(HOTEL)[0].service()
    files = deployment_files(service)
    endpoints = {}
    for name, text in files.items():
        if name.startswith("endpoints/"):
            endpoint, findings = parse_endpoint(text, name)
            assert findings == []
            endpoints[endpoint.key] = endpoint
    declared = {endpoint.key: (endpoint.semantic, endpoint.deprecated) for endpoint in service.endpoints}
    assert {key: (endpoint.semantic, endpoint.deprecated) for key, endpoint in endpoints.items()} == declared
    functions = {node.name for node in ast.parse(files["handlers.py"]).body if isinstance(node, ast.FunctionDef)}
    assert functions - {"_not_implemented"} == {
        endpoint.handler.function.removeprefix("handlers.") for endpoint in endpoints.values()
    }


UPSTREAM = ExternalService(
    url="https://pms.example/rooms/{room_id}?limit=20",
    method="POST",
    headers={"Authorization": "Bearer ${PMS_TOKEN}"},
    query_credentials={"key": "${PMS_KEY}"},
    cookie_credentials={"sid": "${PMS_SID}"},
    input_transform={"guest_id": "guestId"},
    output_transform={"code": "confirmationNumber"},
    error_map={"404": "room_unavailable"},
    timeout_seconds=2.5,
    query=("guest_id",),
    lists={"guest_id": "comma"},
    header_fields={"arrival": "X-Arrival"},
    cookie_fields={"departure": "departure"},
    body="multipart",
    files=("passport",),
    answer="text",
    output_field="text",
)


@rows(
    "field, value",
    ("cost", read_cost({"tokens": 500, "USD": "0.02"})[0]),
    *(("confirm", value) for value in (True, False, None)),
    ("internal", True),
    ("since", "[].updated_at"),
    ("handler", UPSTREAM),
)
def test_field_is_written_and_read_back(field: str, value: object) -> None:
    service = read_deployment(HOTEL)[0].service()
    changed = replace(service.endpoints[0], **{field: value})  # type: ignore[arg-type]
    files = deployment_files(replace(service, endpoints=(changed,)))
    [text] = [text for name, text in files.items() if name.startswith("endpoints/")]
    endpoint, findings = parse_endpoint(text, "x.toml")
    assert findings == []
    assert getattr(endpoint, field) == value


def test_built_in_endpoint_gets_no_file() -> None:
    service = read_deployment(HOTEL)[0].service()
    (first, *_) = service.endpoints
    only = replace(service, endpoints=(first, replace(first, path="/", builtin=True)))
    assert sorted(deployment_files(only)) == ["bespeak.toml", "endpoints/book-room.toml", "handlers.py"]


def test_configuration_has_the_service_name_and_its_apis() -> None:
    service = read_deployment(HOTEL)[0].service()
    named = replace(service, description="Rooms.", apis=({"type": "openapi"},))
    named = replace(named, identity=replace(named.identity, name="Acme Rooms", contact="ops@acme.example"))
    document, findings = parse_server(deployment_files(named)["bespeak.toml"], "bespeak.toml")
    assert findings == []
    assert (document.identity.name, document.main.description) == ("Acme Rooms", "Rooms.")
    assert document.apis == ({"type": "openapi"},)

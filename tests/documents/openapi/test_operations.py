"""Every operation is found, and none is lost silently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.documents.openapi.reading import OK, document, read, rules

from bespeak.documents.openapi import reader
from bespeak.documents.openapi.reader import read_description


def test_operation_has_every_described_field() -> None:
    item = {
        "summary": "Rooms",
        "get": {
            "operationId": "findRoom",
            "description": "Finds.",
            "tags": ["room", 1],
            "deprecated": True,
            "responses": OK,
        },
    }
    made, found = read(document({"/room/": item, "x-paths": {}}))
    operation = made.operations[0]
    assert (operation.method, operation.path, operation.pointer) == ("GET", "/room/", "/paths/~1room~1/get")
    assert (operation.operation_id, operation.summary, operation.description) == ("findRoom", "Rooms", "Finds.")
    assert (operation.tags, operation.deprecated) == (("room",), True)
    assert found == []


def test_every_method_is_an_operation() -> None:
    methods = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
    made, _ = read(
        document({"/room": {method: {"responses": OK} for method in methods} | {"x-get": {}, "servers": None}})
    )
    assert [operation.method for operation in made.operations] == [method.upper() for method in methods]


def test_two_operations_with_one_id_are_both_kept() -> None:
    operation = {"operationId": "room", "responses": OK}
    made, found = read(document({"/a": {"get": operation}, "/b": {"get": operation}}))
    assert [one.operation_id for one in made.operations] == ["room", "room"]
    assert rules(found) == ["D166"]


@pytest.mark.parametrize(
    ("paths", "rule", "count"),
    [
        ({"room": {"get": {"responses": OK}}}, "D104", 1),
        ({"/room?x=1": {"get": {"responses": OK}}}, "D104", 1),
        ({"/room": {"get": "x", "put": {"responses": OK}}}, "D104", 1),
        ({"/room": ["get"], "/x": {"get": {"responses": OK}}}, "D104", 1),
        ({"/room": {"$ref": "https://x.example/p.json"}, "/x": {"get": {"responses": OK}}}, "D161", 1),
        ({"/a": {"$ref": "#/paths/~1b"}, "/b": {"$ref": "#/paths/~1a"}, "/x": {"get": {"responses": OK}}}, "D161", 1),
        ({"/room": {"get": {"responses": OK, "callbacks": {"done": {}}}}}, "D165", 1),
    ],
)
def test_invalid_path_is_reported_and_others_are_kept(paths: Any, rule: str, count: int) -> None:
    made, found = read(document(paths))
    assert len(made.operations) == count
    assert set(rules(found)) == {rule}
    assert all(operation.path.startswith("/") for operation in made.operations)


def test_a_path_may_refer_to_another_and_add_to_it() -> None:
    paths = {
        "/a": {"get": {"summary": "A", "responses": OK}},
        "/b": {"$ref": "#/paths/~1a"},
        "/c": {"$ref": "#/paths/~1a", "put": {"summary": "C", "responses": OK}},
    }
    made, found = read(document(paths))
    assert [(one.method, one.path, one.summary) for one in made.operations] == [
        ("GET", "/a", "A"),
        ("GET", "/b", "A"),
        ("GET", "/c", "A"),
        ("PUT", "/c", "C"),
    ]
    assert found == []


def test_a_description_may_be_split_into_files(tmp_path: Path) -> None:
    (tmp_path / "paths").mkdir()
    (tmp_path / "room.yaml").write_text("type: object\nproperties: {next: {$ref: 'room.yaml'}, id: {type: string}}\n")
    (tmp_path / "paths" / "room.yaml").write_text(
        "get:\n  responses:\n    200:\n      description: ok\n"
        "      content: {application/json: {schema: {$ref: '../room.yaml'}}}\n"
    )
    root = tmp_path / "api.json"
    root.write_text(json.dumps(document({"/room": {"$ref": "paths/room.yaml"}})))
    made, found = read_description(root.read_bytes(), str(root))
    assert made is not None
    schema = made.operations[0].answers[0].schema
    assert schema is not None
    assert schema["properties"]["next"] == {"$ref": "#/$defs/room"}
    assert list(schema["$defs"]) == ["room"]
    assert found == []


def test_number_of_operations_is_limited_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_OPERATIONS", 5)
    made, found = read(document({f"/{n}": {"get": {"responses": OK}} for n in range(9)}))
    assert (len(made.operations), rules(found)) == (5, ["D165"])

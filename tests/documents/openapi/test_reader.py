"""A description of any version and notation is read whole, and nothing in a text raises."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases import check_each
from tests.documents.openapi.reading import OK, compiled, document, read, rules

from bespeak.documents.openapi.reader import read_description
from bespeak.text.diagnostics.diagnostic import has_errors

ROOM: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}}
PATHS: dict[str, Any] = {
    "/room/{id}": {
        "get": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "responses": {200: {"description": "ok", "content": {"application/json": {"schema": ROOM}}}},
        }
    }
}


@pytest.mark.parametrize("version", ["3.0.0", "3.0.3", "3.1.0", "3.1.1"])
@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump])
def test_json_and_yaml_of_every_version_are_the_same_description(version: str, write: Any) -> None:
    data = document(PATHS, version, info={"title": "Rooms", "version": 1.5, "contact": {"url": "https://x.example"}})
    made, found = read_description(write(data), "api")
    assert made is not None
    assert (made.openapi, made.title, made.version, made.contact) == (version, "Rooms", "1.5", "https://x.example")
    assert made.operations[0].answers[0].schema == ROOM
    assert made.operations[0].answers[0].status == "200"
    assert found == []


def test_2_0_description_gives_the_same_result() -> None:
    paths = {
        "/room/{id}": {
            "get": {
                "parameters": [{"name": "id", "in": "path", "required": True, "type": "string"}],
                "responses": {"200": {"description": "ok", "schema": {"$ref": "#/definitions/Room"}}},
            }
        }
    }
    old, found = read(document(paths, "2.0", definitions={"Room": ROOM}))
    new, _ = read(document(PATHS))
    assert old.operations == new.operations
    assert (old.openapi, found) == ("2.0", [])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"paths": {}}, "neither"),
        ({"openapi": "4.0", "paths": {}}, "not understood"),
        ({"swagger": "1.2", "paths": {}}, "not understood"),
        ({"openapi": "three", "paths": {}}, "three"),
        ({"openapi": ["3.1.0"], "paths": {}}, "neither"),
        ({"openapi": "3.1.0"}, "missing"),
        ({"openapi": "3.1.0", "webhooks": {"a": {}}}, "webhooks"),
        ({"openapi": "3.1.0", "paths": []}, "not an object"),
    ],
)
def test_other_documents_are_refused(data: Any, message: str) -> None:
    made, found = read_description(json.dumps(data), "api.json")
    assert made is None
    assert [(one.rule, one.severity) for one in found] == [("D160", "error")]
    assert message in found[0].message


def test_yaml_number_is_read_as_a_version() -> None:
    made, _ = read_description(
        "swagger: 2.0\nhost: x.example\npaths: {/a: {get: {responses: {200: {description: ok}}}}}\n", "a"
    )
    assert made is not None
    assert made.openapi == "2.0"


@pytest.mark.parametrize(
    ("extra", "rule"),
    [({"openapi": "3.2.0"}, "D160"), ({"webhooks": {"a": {}, "b": {}}}, "D165"), ({"paths": {}}, "D160")],
)
def test_changed_or_ignored_parts_are_reported(extra: Any, rule: str) -> None:
    made, found = read(document(PATHS, "3.1.0") | extra)
    assert (rules(found), has_errors(found)) == ([rule], False)
    assert made.title == "Rooms"


def test_values_of_a_wrong_type_never_raise() -> None:
    keys = ("info", "servers", "security", "components", "tags", "paths", "webhooks", "externalDocs", "x-anything")
    values = (None, 1, "x", [], [1, None, {}], {"a": 1}, {"a": {"b": [None]}}, True)

    def check(case: tuple[str, str, Any]) -> None:
        version, key, value = case
        made, found = read_description(json.dumps(document(PATHS, version) | {key: value}), "api.json")
        assert made is not None or has_errors(found)

    check_each(product(("2.0", "3.0.0", "3.1.0"), keys, values), check)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 500)
    | st.sampled_from(["", "a", "get", "#/paths", "#/components/x", "path"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "get",
                        "post",
                        "parameters",
                        "name",
                        "in",
                        "schema",
                        "content",
                        "application/json",
                        "responses",
                        "200",
                    ),
                    *(
                        "requestBody",
                        "$ref",
                        "/a",
                        "/a/{b}",
                        "components",
                        "schemas",
                        "type",
                        "security",
                        "servers",
                        "url",
                    ),
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)


@settings(max_examples=300, deadline=None)
@given(json_values, json_values, st.sampled_from(["2.0", "3.0.0", "3.1.0"]))
def test_any_json_in_place_of_the_paths_never_raises(paths: Any, components: Any, version: str) -> None:
    data = document({"/a/{b}": paths, "/c": {"post": paths}}, version, components=components)
    made, _ = read_description(json.dumps(data), "api.json")
    assert made is not None
    for operation in made.operations:
        for schema in [parameter.schema for parameter in operation.parameters]:
            compiled(schema)


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    made, found = read_description(text, "api")
    assert made is not None or has_errors(found)


def test_thousands_of_operations_give_few_findings() -> None:
    operation = {
        "operationId": "same",
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/None"}}}},
        "responses": OK,
    }
    made, found = read(document({f"/things/{n}/{{id}}": {"put": operation, "post": operation} for n in range(500)}))
    assert len(made.operations) == 1_000
    assert len(found) < 60
    assert {"D161", "D164", "D166"} == set(rules(found))
    assert any("990 more findings of D161" in one.message for one in found)

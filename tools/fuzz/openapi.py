"""Invariant: no text makes the OpenAPI reader raise, and every schema it returns compiles and has no null.

Run `python tools/fuzz/openapi.py --seconds 60`. It prints how many texts it tried, or the one that broke the
invariant.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

from campaign import campaign
from source_tree import mutate

from bespeak.contract.schema.validation import compile_schema
from bespeak.documents.openapi.description import Description
from bespeak.documents.openapi.reader import read_description
from bespeak.documents.toml_text import find_null
from bespeak.protocol.exchange.refusal import Fault

_ROOM: dict[str, Any] = {
    "type": "object",
    "required": ["id", "beds"],
    "properties": {
        "id": {"type": "string", "format": "uuid", "readOnly": True},
        "beds": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "default": 1},
        "kind": {"type": "string", "enum": ["single", "double"], "nullable": True},
        "next": {"nullable": True, "allOf": [{"$ref": "#/components/schemas/Room"}]},
        "tags": {"type": "array", "items": {"$ref": "#/components/schemas/Tag"}},
    },
    "additionalProperties": False,
}
_TAG: dict[str, Any] = {
    "oneOf": [{"type": "string", "pattern": "^[a-z]+$"}, {"$ref": "#/components/schemas/Room"}],
    "discriminator": {"propertyName": "kind"},
}
_MODERN = {
    "openapi": "3.0.3",
    "info": {"title": "Rooms", "version": "1"},
    "servers": [{"url": "https://{env}.rooms.example/v1", "variables": {"env": {"default": "api"}}}],
    "security": [{"key": []}, {}],
    "paths": {
        "/room/{id}": {
            "parameters": [{"$ref": "#/components/parameters/id"}],
            "put": {
                "operationId": "bookRoom",
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Room"}}}},
                "responses": {"200": {"$ref": "#/components/responses/Room"}, "4XX": {"description": "No."}},
            },
        }
    },
    "components": {
        "parameters": {"id": {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}},
        "responses": {
            "Room": {"description": "A room.", "content": {"*/*": {"schema": {"$ref": "#/components/schemas/Room"}}}}
        },
        "schemas": {"Room": _ROOM, "Tag": _TAG},
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    },
}
_SWAGGER = """\
swagger: '2.0'
host: rooms.example
basePath: /v1
consumes: [application/json]
paths:
  /room/{id}:
    post:
      parameters:
        - {name: id, in: path, required: true, type: string}
        - {name: map, in: formData, type: file}
        - {name: tags, in: query, type: array, items: {type: string}, collectionFormat: multi}
      responses: {200: {description: ok, schema: &room {$ref: '#/definitions/Room'}}, default: {description: no}}
definitions:
  Base: {type: object, properties: {id: {type: integer, format: int64}}, additionalProperties: false}
  Room: {allOf: [{$ref: '#/definitions/Base'}, {properties: {next: *room}}], x-nullable: true}
"""
_TEXTS = [json.dumps(_MODERN, indent=1), json.dumps(_MODERN | {"openapi": "3.1.0"}), _SWAGGER]
_PIECES = [
    *'[]{},:"\\\n\t 0-1e.a/#&*~$',
    *("null", "true", "[]", "{}", '"a": 1,', "9" * 5000, "1e999", "\ud800", "\x00", "[" * 300, "\\ud800", "é"),
    *('"$ref": "#/components/schemas/Room",', '"$ref": "https://x.example/a",', '"$ref": "#/",', '"allOf": [{}],'),
    *(
        '"nullable": true,',
        '"enum": [null],',
        '"const": null,',
        '"pattern": "(?!a)",',
        '"type": "file",',
        "*room",
        "<<: ",
    ),
    *('"anyOf": [{"$ref": "#/components/schemas/Tag"}],', '"not": {},', '"items": [{}],', '"required": true,'),
]


def trial(source: random.Random, noted: list[object]) -> None:
    """Try a mutated text."""
    text = mutate(source.choice(_TEXTS), _PIECES, source)
    noted.append(text)
    made, found = read_description(text, "fuzz.json")
    assert made is not None or found
    for finding in found:
        assert finding.message
        assert "\n" not in finding.message
    for schema in _schemas(made) if made is not None else ():
        compiled = compile_schema(schema)
        assert not isinstance(compiled, Fault), (compiled, schema)
        assert find_null(dict(schema)) is None, schema


def _schemas(made: Description) -> list[Any]:
    found: list[Any] = []
    for operation in made.operations:
        found += [parameter.schema for parameter in operation.parameters]
        found += [answer.schema for answer in operation.answers if answer.schema is not None]
        found += [operation.body.schema] if operation.body is not None else []
    return found


if __name__ == "__main__":
    sys.exit(campaign(__doc__, trial))

"""Time and memory of reading an OpenAPI description as large as the largest public ones.

Run `python bench/large_description.py`; with `--dense` every schema refers to every other, `--yaml` writes YAML.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from typing import Any, Final

import yaml

from bespeak.documents.openapi.reader import read_description

OPERATIONS: Final = 1_000
SCHEMAS: Final = 900

_ASC: Final = {"type": "string", "enum": ["asc", "desc"], "default": "asc"}


def description(operations: int, schemas: int, *, dense: bool = False) -> dict[str, Any]:
    """Return a description with that many operations and schemas; the result is deterministic."""
    source = random.Random(1)
    names = [f"model-{number}" for number in range(schemas)]
    models = {name: _model(number, names, source, dense=dense) for number, name in enumerate(names)}
    paths: dict[str, dict[str, Any]] = {}
    for number in range(operations):
        method = ("get", "post", "delete")[number % 3]
        item = paths.setdefault(f"/orgs/{{org}}/things-{number // 3}/{{thing_id}}", {})
        item[method] = _operation(number, method, names, source)
    missing = {"description": "Not found.", "content": {"application/json": {"schema": _reference(names[0])}}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Things", "version": "1"},
        "servers": [{"url": "https://things.example"}],
        "paths": paths,
        "components": {
            "parameters": {"org": {"name": "org", "in": "path", "required": True, "schema": {"type": "string"}}},
            "responses": {"not_found": missing},
            "schemas": models,
        },
    }


def _operation(number: int, method: str, names: list[str], source: random.Random) -> dict[str, Any]:
    example = {f"key_{k}": "a value of some length " * 2 for k in range(120)}
    content = {"schema": _reference(source.choice(names)), "examples": {"default": {"value": example}}}
    made: dict[str, Any] = {
        "operationId": f"things/{method}-{number}",
        "summary": f"Does the thing with number {number}",
        "description": "A description of several sentences. " * 8,
        "parameters": [
            {"$ref": "#/components/parameters/org"},
            {"name": "thing_id", "in": "path", "required": True, "schema": {"type": "integer"}},
            *({"name": f"order_{k}", "in": "query", "schema": _ASC} for k in range(5)),
        ],
        "responses": {
            "200": {"description": "Done.", "content": {"application/json": content}},
            "404": {"$ref": "#/components/responses/not_found"},
        },
    }
    if method == "post":
        body = {"application/json": {"schema": _reference(source.choice(names))}}
        made["requestBody"] = {"required": True, "content": body}
    return made


def _model(number: int, names: list[str], source: random.Random, *, dense: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for field in range(source.randrange(8, 45)):
        near = names if dense else names[max(0, number - 30) : number + 2]
        properties[f"field_{field}"] = _field(source, _reference(source.choice(near)), dense=dense)
    made = {"title": names[number], "type": "object", "properties": properties, "required": list(properties)[:5]}
    if number and source.random() < 0.15:
        return {"allOf": [_reference(source.choice(names[:number])), made]}
    return made


def _field(source: random.Random, reference: dict[str, str], *, dense: bool) -> dict[str, Any]:
    kinds: list[dict[str, Any]] = [
        {"type": "string", "description": "What this field holds. " * source.randrange(6), "example": "abc"},
        {"type": "integer", "format": "int64", "nullable": True},
        {"type": "string", "enum": ["a", "b", "c"], "nullable": True},
        {"type": "string", "format": "uri"},
        {"type": "array", "items": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        reference,
        {"nullable": True, "allOf": [reference]},
        {"anyOf": [{"type": "string"}, reference]},
    ]
    rare = 3 if dense else 1
    return source.choices(kinds, [40, 15, 7, 8, 8, 5, rare, rare, rare])[0]


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def main() -> int:
    """Read one description and print the time and memory used."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dense", action="store_true")
    parser.add_argument("--yaml", action="store_true")
    parser.add_argument("--operations", type=int, default=OPERATIONS)
    parser.add_argument("--schemas", type=int, default=SCHEMAS)
    options = parser.parse_args()
    data = description(options.operations, options.schemas, dense=options.dense)
    text = yaml.dump(data, Dumper=yaml.CSafeDumper) if options.yaml else json.dumps(data, indent=1)
    del data
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    made, found = read_description(text, "things.yaml" if options.yaml else "things.json")
    seconds, after = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = len(made.operations) if made is not None else 0
    print(f"{len(text) / 1e6:.1f} MB, {count} operations, {len(found)} findings: {seconds:.1f} s of processor time")
    print(f"memory grew from {before >> 10} MB to at most {after >> 10} MB")
    return 0 if count == options.operations else 1


if __name__ == "__main__":
    sys.exit(main())

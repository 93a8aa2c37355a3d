"""All faces of one service tell the same of it: the same endpoints, schemas, scopes, errors, deprecations, costs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.process import HOTEL
from tests.service import Bench, echo, make_endpoint
from tests.service_strategy import services

from bespeak.app.server.assembly import assemble
from bespeak.app.server.http_face import make_face
from bespeak.app.server.target import load_target
from bespeak.contract.confirmation import needs_confirmation
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.http_route import http_route, split_verb
from bespeak.contract.service import ServerIdentity, Service
from bespeak.documents.agis.shape import AGIS_CAPABILITY
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.documents.manifest_json import parse_manifest
from bespeak.extensions.semantics.jsonld import project_jsonld
from bespeak.protocol.exchange.headers import MEDIA_AGIS, MEDIA_MANIFEST
from bespeak.runtime.dispatcher import Dispatcher

URL = "https://rooms.example/api"
DEPTH = 4
"""How deep references are followed: deeper than any difference here could hide."""
Key = tuple[str, str]
MANY = Service(
    identity=ServerIdentity(server_id="many.example", operator="M", contact="m@many.example"),
    endpoints=tuple(make_endpoint("FETCH", f"/thing{number}", echo) for number in range(150)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faces:
    """Every document of one service, as a client receives it."""

    listed: dict[Key, Endpoint]
    hidden: list[Endpoint]
    confirmed: set[Key]
    """Endpoints whose calls must be confirmed."""
    manifest: Any
    inventory: Any
    agis: Any
    web_manifest: Any
    web_agis: Any
    summary: Any
    openapi: Any
    ai: list[Any]
    """The document, and those it leads to."""
    llms: str
    jsonld: Any


def open_faces(service: Service) -> Faces:
    assembled = assemble(service, updated="2026-01-01T00:00:00Z")
    bench = Bench(assembled)
    web = asyncio.run(_read_web(bench.dispatcher))
    endpoints = bench.routes.endpoints
    return Faces(
        listed={key: endpoint for key, endpoint in endpoints.items() if endpoint.is_listed},
        hidden=[endpoint for endpoint in endpoints.values() if endpoint.internal],
        confirmed={key for key, endpoint in endpoints.items() if needs_confirmation(endpoint, service.policies)},
        manifest=bench.send("DISCOVER", "/").json,
        inventory=bench.send("DISCOVER", "/methods").json,
        agis=bench.send("DISCOVER", "/", accept=MEDIA_AGIS).json,
        jsonld=project_jsonld(service, endpoints.values(), version=bench.routes.publication.version),
        **web,
    )


async def _read_web(dispatcher: Dispatcher) -> dict[str, Any]:
    face = make_face(dispatcher, HttpSettings(url=URL))
    transport = httpx.ASGITransport(face)
    async with httpx.AsyncClient(transport=transport, base_url=URL) as http:
        ai = await _read_ai(http, "/.well-known/ai")
        openapi = await http.get("openapi.json")
        return {
            "web_manifest": (await http.get("", headers={"Accept": MEDIA_MANIFEST})).json(),
            "web_agis": (await http.get("", headers={"Accept": MEDIA_AGIS})).json(),
            "summary": (await http.get(".well-known/agis.json")).json(),
            "openapi": openapi.json() if openapi.is_success else {"paths": {}},
            "ai": ai,
            "llms": (await http.get("llms.txt")).text,
        }


async def _read_ai(http: httpx.AsyncClient, path: str) -> list[Any]:
    """Read a document and all documents it refers to."""
    reply = await http.get(path.removeprefix("/api").lstrip("/"))
    if reply.status_code == 404:
        return []
    document = reply.json()
    found = [document]
    for entry in document["capabilities"]:
        if "/.well-known/ai/" in entry["endpoint"]:
            found += await _read_ai(http, entry["endpoint"])
    return found


def capabilities(faces: Faces) -> dict[Key, Any]:
    """Return the capabilities of /.well-known/ai by method and path."""
    found = {}
    for document in faces.ai:
        for entry in document["capabilities"]:
            if "/.well-known/ai/" not in entry["endpoint"]:
                found[_key(entry["endpoint"].removeprefix("/api"))] = entry
    return found


def operations(faces: Faces) -> Iterator[tuple[Key, str, Any]]:
    for path, item in faces.openapi["paths"].items():
        for method in ("get", "post"):
            if method in item:
                yield _key(path), method, item[method]


def lines(faces: Faces) -> dict[Key, str]:
    """Return the lines of llms.txt by their links."""
    found = {}
    for line in faces.llms.partition("\n## Endpoints\n")[2].partition("\n## ")[0].splitlines():
        linked = re.search(rf"\]\({re.escape(URL)}([^)]*)\)", line)
        if linked is not None:
            found[_key(linked[1])] = line
    return found


def _key(route: str) -> Key:
    split = split_verb(route)
    return split[1], unquote(split[0])


def plain(keys: Any) -> set[Key]:
    """Methods and paths without percent-encoding, which faces may put on."""
    return {(method, unquote(path)) for method, path in keys}


def expanded(schema: Any, roots: tuple[Any, ...], depth: int = DEPTH) -> Any:
    """Replace the references of a schema, recursively, by their targets."""
    if isinstance(schema, list):
        return [expanded(item, roots, depth) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    found = {
        key: value if key in ("enum", "const") else expanded(value, roots, depth)
        for key, value in schema.items()
        if key not in ("$defs", "$schema", "default", "examples") and not (key == "$ref" and isinstance(value, str))
    }
    if isinstance(reference, str):
        found["to"] = expanded(_target(reference, roots), roots, depth - 1) if depth else "further"
    return found


def _target(reference: str, roots: tuple[Any, ...]) -> Any:
    for root in roots:
        node = root
        try:
            for part in filter(None, unquote(reference[1:]).split("/")):
                node = node[part.replace("~1", "/").replace("~0", "~")]
        except KeyError:
            continue
        return node
    raise AssertionError(f"{reference} leads nowhere")


def alone(schema: Any) -> Any:
    return expanded(msgspec.to_builtins(schema), (schema,))


def check_endpoints(faces: Faces) -> None:
    listed = plain(faces.listed)
    manifest, _ = parse_manifest(msgspec.json.encode(faces.manifest))
    builtin = plain(endpoint.key for endpoint in manifest.endpoints) - plain(
        endpoint.key for endpoint in manifest.own_endpoints
    )
    assert plain(endpoint.key for endpoint in manifest.own_endpoints) == listed
    assert plain((entry["method"], entry["path"]) for entry in faces.inventory) - builtin == listed
    assert plain((entry["method"], entry["path"]) for entry in faces.agis["endpoints"]) == listed
    assert plain((operation["x-agtp-method"], operation["x-agtp-path"]) for _, _, operation in operations(faces)) == (
        listed
    )
    assert {key for key, _, _ in operations(faces)} == listed
    assert (capabilities(faces).keys(), lines(faces).keys()) == (listed, listed)
    assert (set(faces.summary["methods"]), faces.web_agis) == ({method for method, _ in listed}, faces.agis)
    assert faces.web_manifest["endpoints"] == faces.manifest["endpoints"]


def check_manifest(faces: Faces) -> None:
    for entry in faces.manifest["endpoints"]:
        endpoint = faces.listed.get((entry["method"], entry["path"]))
        if endpoint is not None:
            assert alone(entry["input_schema"]) == alone(endpoint.input_schema)
            assert alone(entry["output_schema"]) == alone(endpoint.output_schema)
            confirm = True if endpoint.key in faces.confirmed else endpoint.confirm
            assert _told(entry) == {**_facts(endpoint), "confirm": confirm}


def check_agis(faces: Faces) -> None:
    for entry in faces.agis["endpoints"]:
        endpoint = faces.listed[entry["method"], entry["path"]]
        for name, schema in (("input", endpoint.input_schema), ("output", endpoint.output_schema)):
            # AGIS 7: an input with parameters says which are required, even if none is.
            told = {"required": [], **schema} if name == "input" and schema.get("properties") else schema
            assert expanded(entry[name], (entry[name], faces.agis)) == alone(told)
        assert _told(entry) == _facts(endpoint)
        semantic = entry["semantic"]
        assert (semantic["impact_tier"], semantic["intent"]) == (endpoint.semantic.impact, endpoint.semantic.intent)
    used = [endpoint.semantic.capability for endpoint in faces.listed.values()]
    assert set(faces.summary["capability_summary"]) == {AGIS_CAPABILITY.get(name, name) for name in used}


def check_openapi(faces: Faces) -> None:
    for key, _, operation in operations(faces):
        endpoint = next(each for each in faces.listed.values() if (each.method, unquote(each.path)) == key)
        for name, schema in (("x-agtp-input", endpoint.input_schema), ("x-agtp-output", endpoint.output_schema)):
            component = _target(operation[name], (faces.openapi,))
            assert expanded(component, (faces.openapi,)) == alone(schema)
        said = {name.removeprefix("x-agtp-").replace("-", "_"): value for name, value in operation.items()}
        assert _told({**said, "confirm": endpoint.confirm}) == _facts(endpoint)
        assert operation.get("deprecated", False) is (endpoint.deprecated is not None)
        assert said["semantic"] == endpoint.semantic.to_json()
        codes = operation["responses"]["422"]["content"]["application/problem+json"]["schema"]["allOf"][1]
        assert set(endpoint.error_names) <= set(codes["properties"]["code"]["enum"])


def check_ai(faces: Faces) -> None:
    known = {(key, method): operation["operationId"] for key, method, operation in operations(faces)}
    for key, entry in capabilities(faces).items():
        endpoint = next(each for each in faces.listed.values() if (each.method, unquote(each.path)) == key)
        assert known[key, entry["method"].lower()] == entry["id"]
        properties = endpoint.input_schema.get("properties", {})
        params = entry.get("params", {})
        assert params.keys() == properties.keys()
        required = set(endpoint.input_schema.get("required", ()))
        assert {name for name, text in params.items() if re.match(r"\w+, required", text)} == required
        assert ("deprecated" in entry["description"].lower()) is (endpoint.deprecated is not None)
        assert entry["endpoint"] == "/api" + http_route(endpoint).path


def check_llms(faces: Faces) -> None:
    for key, line in lines(faces).items():
        endpoint = next(each for each in faces.listed.values() if (each.method, unquote(each.path)) == key)
        notes = line.rpartition("(")[2] if line.endswith(")") else ""
        assert all(scope.replace("*", "\\*") in notes for scope in endpoint.required_scopes)
        assert ("deprecated" in notes) is (endpoint.deprecated is not None)


def check_jsonld(faces: Faces) -> None:
    nodes = {node["id"]: node for node in faces.jsonld["@graph"]}
    assert len(nodes) == len(faces.jsonld["@graph"])
    capabilities = {node["label"]: node for node in nodes.values() if node["type"] == "ioa:Capability"}
    assert capabilities.keys() == {str(endpoint) for endpoint in faces.listed.values()}
    assert set(nodes["own:agent"]["hasCapability"]) == {node["id"] for node in capabilities.values()}
    intents = {node["requiresCapability"]: node for node in nodes.values() if node["type"] == "ioa:Intent"}
    for endpoint in faces.listed.values():
        node = capabilities[str(endpoint)]
        for name, schema in (("inputs", endpoint.input_schema), ("outputs", endpoint.output_schema)):
            assert alone(node[name][1]["@value"]) == alone(schema)
        assert node.get("subClassOf", []) == list(endpoint.semantic.concepts)
        assert intents[node["id"]]["label"] == (endpoint.semantic.intent or endpoint.description)
    assert {node["versionInfo"] for node in nodes.values() if "versionInfo" in node} == {
        faces.manifest["document_version"]
    }


def check_hidden(faces: Faces) -> None:
    """Check that internal endpoints are not named, unless something listed has the same name."""
    for endpoint in faces.hidden:
        assert (endpoint.method, unquote(endpoint.path)) not in plain(faces.listed)
        assert all((entry["method"], entry["path"]) != endpoint.key for entry in faces.inventory)
        assert all((entry["method"], entry["path"]) != endpoint.key for entry in faces.manifest["endpoints"])


def _facts(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "required_scopes": list(endpoint.required_scopes),
        "errors": list(endpoint.error_names),
        "deprecated": endpoint.deprecated.to_json() if endpoint.deprecated else None,
        "cost": endpoint.cost.to_json() if endpoint.cost else None,
        "confirm": endpoint.confirm,
        "namespace": endpoint.namespace,
        "since": endpoint.since,
    }


def _told(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the same facts from an entry of a document."""
    errors = [error if isinstance(error, str) else error["name"] for error in entry["errors"]]
    optional = {name: entry.get(name) for name in ("deprecated", "cost", "confirm", "namespace", "since")}
    return {"required_scopes": entry.get("required_scopes", []), "errors": errors, **optional}


def check_version(faces: Faces) -> None:
    version = faces.manifest["document_version"]
    told = [faces.web_manifest["document_version"], faces.agis["version"], faces.summary["version"]]
    if faces.listed:
        told.append(faces.openapi["info"]["version"])
    assert set(told) == {version}


CHECKS = [
    *(check_version, check_endpoints, check_manifest, check_agis, check_openapi, check_ai, check_llms, check_jsonld),
    check_hidden,
]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("folder", ["hotel", "restaurant"])
def test_the_faces_of_the_examples_agree(folder: str, check: Any) -> None:
    check(_example(HOTEL.parent / folder))


def _example(folder: Path) -> Faces:
    return open_faces(load_target(str(folder)).service)


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(services())
@example(MANY)
def test_the_faces_of_any_service_agree(service: Service) -> None:
    faces = open_faces(service)
    for check in CHECKS:
        check(faces)
    if faces.listed:
        assert list(OpenAPIV31SpecValidator(faces.openapi).iter_errors()) == []

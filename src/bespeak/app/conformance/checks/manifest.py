"""Items 1, 5, 6, 9 and 13: the manifest, the endpoints that it publishes, and DISCOVER /methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import jsonschema_rs

from bespeak.app.conformance.subject import (
    PROBE_AGENT,
    Check,
    CheckOutcome,
    CheckRun,
    Subject,
    all_of,
    could_not_tell,
    expect,
    failed,
    faults,
    mapping,
    method_names,
    not_applicable,
    objects,
    passed,
    path_parameters,
    properties,
    strings,
    undecided,
    warned,
)
from bespeak.contract.agent import DISCLOSURES
from bespeak.contract.endpoint import CAPABILITIES, IMPACTS
from bespeak.contract.grammar.syntax import check_path, is_method_name
from bespeak.contract.handler import COMPOSITION_FAILED, HANDLER_TYPES, UPSTREAM_ERRORS, Composition, ExternalService
from bespeak.contract.policy import FLOOR_METHODS, LEGACY_VERBS
from bespeak.contract.schema.validation import DIALECT, compile_schema
from bespeak.protocol.exchange.header_values import decode64
from bespeak.protocol.exchange.headers import MEDIA_JSON, MEDIA_MANIFEST, essence
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.reading.json_data import decode_json

_TOGGLES: Final = ("wildcards_accepted", "anonymous_discovery", "synthesis_enabled", "scope_required_for_invocation")
# Fields of a handler binding, which a server might also publish beside it.
_BINDING: Final = (
    *("function", "recipe", "url", "headers", "input_transform", "output_transform", "error_map", "timeout_seconds"),
)


async def _is_retrievable(subject: Subject) -> CheckOutcome:
    seen = subject.manifest_answer
    if seen.status in (262, 401, 403):  # a policy may require an identity even for this (8.7)
        return could_not_tell("the server does not return its manifest to anonymous callers", seen)
    if seen.status == 200:
        return passed(seen) if subject.has_manifest else failed("the response is not a JSON object", seen)
    return failed(f"answered {seen.status}, expected 200 OK", seen) if seen.refuses_caller else expect(seen, 200)


async def _has_versions(subject: Subject) -> CheckOutcome:
    names = ("agtp_version", "agtp_api_version", "document_version", "catalog_version")
    return faults(
        f"{name} is {subject.manifest.get(name)!r}"
        for name in names
        if not isinstance(subject.manifest.get(name), str) or not subject.manifest[name]
    )


async def _supports_one_catalog(subject: Subject) -> CheckOutcome:
    supported = subject.manifest.get("catalog_versions_supported")
    if supported == [subject.manifest.get("catalog_version")]:
        return passed()
    return failed(f"catalog_versions_supported is {supported!r}, not the one catalog_version")


async def _has_its_media_type(subject: Subject) -> CheckOutcome:
    seen = subject.manifest_answer
    media = essence(seen.header("content-type") or "")
    if media == MEDIA_MANIFEST:
        return passed(seen)
    if media == MEDIA_JSON:  # AGTP-API 17.2 lets this pass until the media type is registered
        return warned(f"the content type is {media}, expected {MEDIA_MANIFEST}", seen)
    return failed(f"the content type is {media!r}, expected {MEDIA_MANIFEST}", seen)


def _wrong(at: str, block: Mapping[str, Any], kind: type, *names: str) -> Iterator[str]:
    """Name the members of a block that are not of a type."""
    return (f"{at}{name} is {block.get(name)!r}" for name in names if not isinstance(block.get(name), kind))


def _structure_faults(manifest: Mapping[str, Any]) -> Iterator[str]:
    server = mapping(manifest.get("server"))
    yield from _wrong("server.", server, str, "server_id", "operator", "contact")
    for name in ("issued", "updated"):
        if not _is_time(server.get(name)):
            yield f"server.{name} is {server.get(name)!r}, not an ISO 8601 time"
    lists = ("embedded_methods", "endpoints", "hosted_agents")
    yield from (f"{name} is not an array" for name in lists if not isinstance(manifest.get(name), list))
    if manifest.get("agent_disclosure") not in DISCLOSURES:
        yield f"agent_disclosure is {manifest.get('agent_disclosure')!r}"
    # The manifest was requested without an identity.
    if manifest.get("agent_disclosure") in ("private", "authenticated") and manifest.get("hosted_agents"):
        yield f"hosted_agents is not empty although agent_disclosure is {manifest['agent_disclosure']}"
    # The last two have a default (8.7).
    policies = {"scope_required_for_invocation": True, "max_synthesis_depth": 10, **mapping(manifest.get("policies"))}
    yield from _wrong("policies.", policies, bool, *_TOGGLES)
    depth = policies["max_synthesis_depth"]
    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
        yield f"policies.max_synthesis_depth is {depth!r}"


def _is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value) is not None
    except ValueError:
        return False


async def _embeds_the_floor(subject: Subject) -> CheckOutcome:
    names = method_names(subject.manifest.get("embedded_methods"))
    return faults(f"embedded_methods lacks {name}" for name in FLOOR_METHODS if name not in names)


async def _is_cacheable(subject: Subject) -> CheckOutcome:
    seen = subject.manifest_answer
    return faults((f"no {name}" for name in ("Cache-Control", "ETag") if seen.header(name) is None), seen)


async def _is_signed(subject: Subject) -> CheckOutcome:
    signature = subject.manifest.get("manifest_signature")
    if signature is None:
        return failed("the manifest has no manifest_signature")
    return passed() if _is_jws(signature) else failed(f"manifest_signature is not a JWS: {str(signature)[:40]!r}")


def _is_jws(value: Any) -> bool:
    """Return True for a JWS that claims an algorithm, compact or as JSON (RFC 7515 7)."""
    if isinstance(value, dict):
        signatures = value.get("signatures")
        each = signatures if isinstance(signatures, list) and signatures else [value]
        return all(_has_algorithm(mapping(one).get("protected")) and mapping(one).get("signature") for one in each)
    parts = value.split(".") if isinstance(value, str) else []
    return len(parts) == 3 and _has_algorithm(parts[0]) and bool(parts[2])


def _has_algorithm(header: Any) -> bool:
    try:
        text = decode64(header) if isinstance(header, str) else None
        return mapping(decode_json(text or b"")).get("alg") not in (None, "none")
    except (ValueError, RecursionError):
        return False


async def _is_only_for_the_server(subject: Subject) -> CheckOutcome:
    agent, criteria = subject.agent_id or PROBE_AGENT, {"criteria": "conformance"}
    seen = await subject.send("DISCOVER", "/", criteria, agent_id=agent)
    if seen.status in (400, 415, 422):
        seen = await subject.send("DISCOVER", "/", {"parameters": criteria}, agent_id=agent)
    body = mapping(seen.json)
    if any({"agtp_api_version", "endpoints"} <= each.keys() for each in (body, mapping(body.get("result")))):
        return failed("DISCOVER with an Agent-ID answers the server manifest", seen)
    if seen.is_success or seen.status == 422:
        return passed(seen)
    return undecided(seen) or could_not_tell(f"answered {seen.status}, neither candidates nor the manifest", seen)


def _binding_faults(endpoints: list[Mapping[str, Any]]) -> Iterator[str]:
    for endpoint in endpoints:
        handler = mapping(endpoint.get("handler"))
        if handler.get("type") not in HANDLER_TYPES:
            yield f"{_named(endpoint)}: handler.type is {handler.get('type')!r}"
        yield from (f"{_named(endpoint)} shows handler.{name}" for name in handler if name != "type")
        yield from (f"{_named(endpoint)} shows {name}, a part of its binding" for name in _BINDING if name in endpoint)


_REQUIRED: Final[Mapping[str, type]] = {
    **dict.fromkeys(("method", "path", "description"), str),
    **dict.fromkeys(("semantic", "input_schema", "output_schema"), dict),
    "errors": list,
    "handler": dict,
}
_MANDATORY_ERRORS: Final = {Composition.type: (COMPOSITION_FAILED,), ExternalService.type: UPSTREAM_ERRORS}


def _named(endpoint: Mapping[str, Any]) -> str:
    return f"{endpoint.get('method')} {endpoint.get('path')}"


async def _is_complete(subject: Subject) -> CheckOutcome:
    published = subject.manifest.get("endpoints")
    if not isinstance(published, list):
        return failed("the manifest has no `endpoints` array")
    if not published:
        return not_applicable("the manifest has no endpoints")
    wrong = [f"entry {at} is not an object" for at, entry in enumerate(published) if not isinstance(entry, dict)]
    for endpoint in objects(published):
        wrong += [
            f"{_named(endpoint)} has no {name} of type {kind.__name__}"
            for name, kind in _REQUIRED.items()
            if not isinstance(endpoint.get(name), kind)
        ]
    return faults(wrong)


def _all(find: Callable[[list[Mapping[str, Any]]], Iterable[str]]) -> CheckRun:
    """Make a check of all endpoints of the manifest with a function that finds their faults."""

    async def run(subject: Subject) -> CheckOutcome:
        endpoints = subject.endpoints
        return faults(find(endpoints)) if endpoints else not_applicable("the manifest has no endpoints")

    return run


def _each(find: Callable[[Mapping[str, Any]], Iterable[str]]) -> CheckRun:
    """Make a check of every endpoint of the manifest with a function that finds its faults."""
    return _all(lambda endpoints: (f"{_named(one)}: {fault}" for one in endpoints for fault in find(one)))


def _name_faults(endpoint: Mapping[str, Any]) -> Iterator[str]:
    method = endpoint["method"]
    if not is_method_name(method):
        yield f"{method!r} is not 3 to 32 capital letters"
    # Every catalog has the floor; of its other verbs we cannot be sure.
    fault = check_path(endpoint["path"], FLOOR_METHODS)
    if fault is not None:
        yield fault.message
    counts = Counter(path_parameters(endpoint))
    yield from (f"the parameter {name} occurs twice" for name, count in counts.items() if count > 1)


async def _names_are_well_formed(subject: Subject) -> CheckOutcome:
    legacy = subject.method_policy.get("legacy")
    opted = LEGACY_VERBS if legacy == "*" else strings(legacy)
    found = [await _each(_name_faults)(subject)]
    for endpoint in subject.endpoints:
        if endpoint["method"] in LEGACY_VERBS:
            # 3.6 forbids them in new definitions only, and nothing says which are new.
            judge = warned if endpoint["method"] in opted else failed
            found.append(judge(f"{_named(endpoint)}: {endpoint['method']} is a legacy verb"))
    return all_of(found)


def _input_faults(endpoint: Mapping[str, Any]) -> Iterator[str]:
    schema = mapping(endpoint.get("input_schema"))
    if schema.get("type") != "object":
        yield "input_schema is not of type object"
    if schema.get("additionalProperties") is not False:
        yield "input_schema does not set additionalProperties to false"
    missing = (name for name in path_parameters(endpoint) if name not in properties(endpoint))
    yield from (f"the path parameter {name} is not declared in input_schema" for name in missing)


async def _valid_schemas(subject: Subject) -> CheckOutcome:
    found = [await _each(_input_faults)(subject)]
    for endpoint in subject.endpoints:
        for which in ("input_schema", "output_schema"):
            schema = mapping(endpoint.get(which))
            compiled = compile_schema(schema)
            if isinstance(compiled, Fault):
                # A schema may be valid and still beyond what our validator supports.
                judge = could_not_tell if _is_valid_schema(schema) else failed
                found.append(judge(f"{_named(endpoint)}: {which} is not a valid JSON Schema: {compiled.message}"))
    return all_of(found)


def _is_valid_schema(schema: Mapping[str, Any]) -> bool:
    try:
        is_ours = schema.get("$schema", DIALECT) in (DIALECT, f"{DIALECT}#")
        return jsonschema_rs.meta.is_valid({**schema, "$schema": DIALECT}) and is_ours
    except ValueError:
        return False


def _output_faults(endpoint: Mapping[str, Any]) -> Iterator[str]:
    schema = mapping(endpoint.get("output_schema"))
    further = schema.get("additionalProperties")
    if schema.get("type", "object") == "object" and further is not True and not isinstance(further, dict):
        yield "output_schema does not set additionalProperties to true"


def _error_faults(endpoint: Mapping[str, Any]) -> Iterator[str]:
    declared = strings(endpoint.get("errors"))
    if isinstance(endpoint.get("errors"), list) and len(declared) != len(endpoint["errors"]):
        yield "errors has entries that are not strings"
    needed = _MANDATORY_ERRORS.get(str(mapping(endpoint.get("handler")).get("type")), ())
    yield from (f"errors lacks {name}" for name in needed if name not in declared)


def _semantic_faults(endpoint: Mapping[str, Any]) -> Iterator[str]:
    block = mapping(endpoint.get("semantic"))
    for name in ("intent", "actor", "outcome"):
        if not isinstance(block.get(name), str) or not block[name].strip():
            yield f"semantic.{name} is missing or empty"
    if block.get("capability") not in CAPABILITIES:
        yield f"semantic.capability is {block.get('capability')!r}"
    confidence = block.get("confidence")
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        yield f"semantic.confidence is {confidence!r}"
    if block.get("impact") not in IMPACTS:
        yield f"semantic.impact is {block.get('impact')!r}"
    yield from _wrong("semantic.", block, bool, "is_idempotent")


async def _is_exposed(subject: Subject) -> CheckOutcome:
    return expect(subject.inventory_answer, 200)


async def _is_an_array(subject: Subject) -> CheckOutcome:
    seen = subject.inventory_answer
    if seen.status != 200:
        return could_not_tell("no inventory was returned")
    return passed(seen) if isinstance(seen.json, list) else failed("the body is not a JSON array", seen)


async def _inventory_is_complete(subject: Subject) -> CheckOutcome:
    seen = subject.inventory_answer
    if seen.status != 200:
        return could_not_tell("no inventory was returned")
    # The object form of the reference implementation is reported by the previous check.
    entries = list(objects(seen.json if isinstance(seen.json, list) else mapping(seen.json).get("methods")))
    wrong = [
        f"an entry has no {name}"
        for name in ("method", "path", "description")
        if not all(isinstance(entry.get(name), str) for entry in entries)
    ]
    listed = {(str(entry.get("method")), str(entry.get("path"))) for entry in entries}
    published = {(endpoint["method"], endpoint["path"]) for endpoint in subject.endpoints}
    wrong += [f"{method} {path} is missing" for method, path in sorted({*published, ("DISCOVER", "/methods")} - listed)]
    return faults(wrong, seen)


async def _is_published(subject: Subject) -> CheckOutcome:
    if any((endpoint["method"], endpoint["path"]) == ("DISCOVER", "/methods") for endpoint in subject.endpoints):
        return passed()
    return failed("the manifest does not list DISCOVER /methods among its endpoints")


async def _has_its_structure(subject: Subject) -> CheckOutcome:
    return faults(_structure_faults(subject.manifest))


def _repeated(endpoints: list[Mapping[str, Any]]) -> Iterator[str]:
    counts = Counter(map(_named, endpoints))
    return (f"{name} is published {count} times" for name, count in counts.items() if count > 1)


CHECKS: Final = (
    Check("13.1-01a", "every endpoint has its eight required fields", "6.2", _is_complete),
    Check("13.1-01b", "methods and paths are well formed", "3.2, 3.6, 5.1, 5.2", _names_are_well_formed),
    Check("13.1-01c", "input schemas are closed objects that declare the path parameters", "5.3, 6.3", _valid_schemas),
    Check("13.1-01d", "output schemas are open", "6.3", _each(_output_faults), "SHOULD"),
    Check("13.1-01e", "errors has names, and those required by the handler type", "6.3, 12.3", _each(_error_faults)),
    Check("13.1-01f", "each pair of method and path is published once", "6.1", _all(_repeated)),
    Check("13.1-05a", "DISCOVER without Agent-ID answers the manifest", "8.10", _is_retrievable, needs_manifest=False),
    Check("13.1-05b", "the manifest has its version fields", "8.2", _has_versions),
    Check("13.1-05c", "one catalog version is supported, the one declared", "4.3, 4.8", _supports_one_catalog),
    Check("13.1-05d", "the manifest has its media type", "8.10", _has_its_media_type),
    Check("13.1-05e", "server, agents and policies blocks are complete", "8.2, 8.3, 8.5, 8.7", _has_its_structure),
    Check("13.1-05f", "embedded_methods lists the floor", "8.4", _embeds_the_floor, "SHOULD"),
    Check("13.1-05g", "the manifest can be cached", "8.11", _is_cacheable, "SHOULD"),
    Check("13.1-05h", "the manifest is signed", "8.8", _is_signed, "SHOULD"),
    Check(
        "13.1-05i",
        "DISCOVER with Agent-ID does not return the server manifest",
        "8.10",
        _is_only_for_the_server,
        needs_manifest=False,
    ),
    Check("13.1-06a", "the manifest shows handler.type and nothing else of a handler", "8.9", _all(_binding_faults)),
    Check("13.1-09a", "every semantic block is complete and has valid values", "7.1", _each(_semantic_faults)),
    Check("13.1-13a", "DISCOVER /methods is answered", "5.8", _is_exposed, needs_manifest=False),
    Check("13.1-13b", "the inventory is a JSON array", "5.8", _is_an_array, needs_manifest=False),
    Check("13.1-13c", "the inventory lists every endpoint and itself", "5.8", _inventory_is_complete),
    Check("13.1-13d", "the manifest lists DISCOVER /methods", "5.8", _is_published),
)

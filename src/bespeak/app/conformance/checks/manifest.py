"""Items 5 and 6: the manifest, and what it must not reveal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from bespeak.app.conformance.check import (
    Check,
    Outcome,
    could_not_tell,
    expect,
    failed,
    faults,
    not_applicable,
    passed,
    undecided,
    warned,
)
from bespeak.app.conformance.probe import Exchanged
from bespeak.app.conformance.published import mapping, method_names
from bespeak.app.conformance.subject import PROBE_AGENT, Subject
from bespeak.contract.agent import DISCLOSURES
from bespeak.contract.handler import HANDLER_TYPES
from bespeak.contract.policy import FLOOR_METHODS
from bespeak.protocol.exchange.base64url import decode64
from bespeak.protocol.exchange.headers import MEDIA_JSON, MEDIA_MANIFEST
from bespeak.protocol.exchange.media_type import essence
from bespeak.text.reading.json_data import decode_json

_TOGGLES: Final = ("wildcards_accepted", "anonymous_discovery", "synthesis_enabled")
_BINDING: Final = (
    *("function", "recipe", "url", "headers", "input_transform", "output_transform", "error_map", "timeout_seconds"),
)
"""Fields of a handler binding, which a server might also publish beside it."""


async def _is_retrievable(subject: Subject) -> Outcome:
    seen = subject.manifest_answer
    if seen.status in (262, 401, 403):  # a policy may require an identity even for this (8.7)
        return could_not_tell("the server does not return its manifest to anonymous callers", seen)
    if seen.status == 200:
        return passed(seen) if subject.has_manifest else failed("the response is not a JSON object", seen)
    return failed(f"answered {seen.status}, expected 200 OK", seen) if seen.refuses_caller else expect(seen, 200)


async def _has_versions(subject: Subject) -> Outcome:
    names = ("agtp_version", "agtp_api_version", "document_version", "catalog_version")
    return faults(
        f"{name} is {subject.manifest.get(name)!r}"
        for name in names
        if not isinstance(subject.manifest.get(name), str) or not subject.manifest[name]
    )


async def _supports_one_catalog(subject: Subject) -> Outcome:
    supported = subject.manifest.get("catalog_versions_supported")
    if supported == [subject.manifest.get("catalog_version")]:
        return passed()
    return failed(f"catalog_versions_supported is {supported!r}, not the one catalog_version")


async def _has_its_media_type(subject: Subject) -> Outcome:
    seen = subject.manifest_answer
    media = essence(seen.header("content-type") or "")
    if media == MEDIA_MANIFEST:
        return passed(seen)
    if media == MEDIA_JSON:
        # AGTP-API 17.2 lets this pass until the media type is registered.
        return warned(f"the content type is {media}, expected {MEDIA_MANIFEST}", seen)
    return failed(f"the content type is {media!r}, expected {MEDIA_MANIFEST}", seen)


async def _has_its_structure(subject: Subject) -> Outcome:
    return faults(_structure_faults(subject.manifest))


def _structure_faults(manifest: Mapping[str, Any]) -> Iterator[str]:
    server = mapping(manifest.get("server"))
    for name in ("server_id", "operator", "contact"):
        if not isinstance(server.get(name), str):
            yield f"server.{name} is {server.get(name)!r}"
    for name in ("issued", "updated"):
        if not _is_time(server.get(name)):
            yield f"server.{name} is {server.get(name)!r}, not an ISO 8601 time"
    for name in ("embedded_methods", "endpoints", "hosted_agents"):
        if not isinstance(manifest.get(name), list):
            yield f"{name} is not an array"
    if manifest.get("agent_disclosure") not in DISCLOSURES:
        yield f"agent_disclosure is {manifest.get('agent_disclosure')!r}"
    # The manifest was requested without an identity.
    if manifest.get("agent_disclosure") in ("private", "authenticated") and manifest.get("hosted_agents"):
        yield f"hosted_agents is not empty although agent_disclosure is {manifest['agent_disclosure']}"
    yield from _toggle_faults(mapping(manifest.get("policies")))


def _toggle_faults(policies: Mapping[str, Any]) -> Iterator[str]:
    for name in _TOGGLES:
        if not isinstance(policies.get(name), bool):
            yield f"policies.{name} is {policies.get(name)!r}"
    # These two have a default (8.7).
    if not isinstance(policies.get("scope_required_for_invocation", True), bool):
        yield f"policies.scope_required_for_invocation is {policies['scope_required_for_invocation']!r}"
    depth = policies.get("max_synthesis_depth", 10)
    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
        yield f"policies.max_synthesis_depth is {depth!r}"


def _is_time(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value) is not None
    except ValueError:
        return False


async def _embeds_the_floor(subject: Subject) -> Outcome:
    names = method_names(subject.manifest.get("embedded_methods"))
    return faults(f"embedded_methods lacks {name}" for name in FLOOR_METHODS if name not in names)


async def _is_cacheable(subject: Subject) -> Outcome:
    seen = subject.manifest_answer
    return faults((f"no {name}" for name in ("Cache-Control", "ETag") if seen.header(name) is None), seen)


async def _is_signed(subject: Subject) -> Outcome:
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


async def _is_only_for_the_server(subject: Subject) -> Outcome:
    agent, criteria = subject.agent_id or PROBE_AGENT, {"criteria": "conformance"}
    seen = await subject.send("DISCOVER", "/", criteria, agent_id=agent)
    if seen.status in (400, 415, 422):
        seen = await subject.send("DISCOVER", "/", {"parameters": criteria}, agent_id=agent)
    if _is_manifest(seen):
        return failed("DISCOVER with an Agent-ID answers the server manifest", seen)
    if seen.is_success or seen.status == 422:
        return passed(seen)
    return undecided(seen) or could_not_tell(f"answered {seen.status}, neither candidates nor the manifest", seen)


def _is_manifest(seen: Exchanged) -> bool:
    body = mapping(seen.json)
    return any({"agtp_api_version", "endpoints"} <= each.keys() for each in (body, mapping(body.get("result"))))


async def _shows_no_binding(subject: Subject) -> Outcome:
    if not subject.endpoints:
        return not_applicable("the manifest has no endpoints")
    return faults(fault for endpoint in subject.endpoints for fault in _binding_faults(endpoint))


def _binding_faults(endpoint: Mapping[str, Any]) -> Iterator[str]:
    named = f"{endpoint['method']} {endpoint['path']}"
    handler = mapping(endpoint.get("handler"))
    if handler.get("type") not in HANDLER_TYPES:
        yield f"{named}: handler.type is {handler.get('type')!r}"
    for name in handler:
        if name != "type":
            yield f"{named} shows handler.{name}"
    for name in _BINDING:
        if name in endpoint:
            yield f"{named} shows {name}, a part of its binding"


CHECKS: Final = (
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
    Check("13.1-06a", "the manifest shows handler.type and nothing else of a handler", "8.9", _shows_no_binding),
)

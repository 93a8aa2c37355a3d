"""Items 5 and 6: the manifest, and what it must not reveal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bespeak.app.conformance.check import (
    Check,
    Outcome,
    expect,
    failed,
    faults,
    not_applicable,
    passed,
    skipped,
    warned,
)
from bespeak.app.conformance.subject import PROBE_AGENT, Subject, mapping
from bespeak.contract.agent import DISCLOSURES
from bespeak.contract.handler import HANDLER_TYPES
from bespeak.contract.policy import FLOOR_METHODS
from bespeak.protocol.exchange.headers import MEDIA_JSON, MEDIA_MANIFEST
from bespeak.protocol.exchange.media_type import essence

_TOGGLES: Final = ("wildcards_accepted", "anonymous_discovery", "scope_required_for_invocation", "synthesis_enabled")


async def _is_retrievable(subject: Subject) -> Outcome:
    seen = subject.manifest_answer
    if seen.status == 262 and seen.field("type") == "anonymous-discovery-disabled":
        return skipped("the server does not return its manifest to anonymous callers; other checks are limited", seen)
    if seen.status == 200 and not subject.manifest:
        return failed("the response is not a JSON object", seen)
    return expect(seen, 200)


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
    for name in ("server_id", "operator", "contact", "issued", "updated"):
        if not isinstance(server.get(name), str):
            yield f"server.{name} is {server.get(name)!r}"
    for name in ("embedded_methods", "endpoints", "hosted_agents"):
        if not isinstance(manifest.get(name), list):
            yield f"{name} is not an array"
    if manifest.get("agent_disclosure") not in DISCLOSURES:
        yield f"agent_disclosure is {manifest.get('agent_disclosure')!r}"
    if manifest.get("agent_disclosure") == "private" and manifest.get("hosted_agents"):
        yield "hosted_agents is not empty although agent_disclosure is private"
    policies = mapping(manifest.get("policies"))
    for name in _TOGGLES:
        if not isinstance(policies.get(name), bool):
            yield f"policies.{name} is {policies.get(name)!r}"
    depth = policies.get("max_synthesis_depth")
    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
        yield f"policies.max_synthesis_depth is {depth!r}"


async def _embeds_the_floor(subject: Subject) -> Outcome:
    listed = subject.manifest.get("embedded_methods")
    entries = listed if isinstance(listed, list) else []
    # The draft shows neither names nor objects; both occur.
    names = {entry if isinstance(entry, str) else mapping(entry).get("name") for entry in entries if entry is not None}
    return faults(f"embedded_methods lacks {name}" for name in FLOOR_METHODS if name not in names)


async def _is_cacheable(subject: Subject) -> Outcome:
    seen = subject.manifest_answer
    return faults((f"no {name}" for name in ("Cache-Control", "ETag") if seen.header(name) is None), seen)


async def _is_signed(subject: Subject) -> Outcome:
    signature = subject.manifest.get("manifest_signature")
    if signature is None:
        return failed("the manifest has no manifest_signature")
    return passed() if isinstance(signature, str | dict) else failed(f"manifest_signature is {signature!r}")


async def _is_only_for_the_server(subject: Subject) -> Outcome:
    seen = await subject.send("DISCOVER", "/", {"criteria": "conformance"}, agent_id=subject.agent_id or PROBE_AGENT)
    body = seen.json
    if isinstance(body, dict) and "agtp_api_version" in body and "endpoints" in body:
        return failed("DISCOVER with an Agent-ID answers the server manifest", seen)
    return passed(seen)


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


CHECKS: Final = (
    Check("13.1-05a", "DISCOVER without Agent-ID answers the manifest", "8.10", _is_retrievable),
    Check("13.1-05b", "the manifest has its version fields", "8.2", _has_versions),
    Check("13.1-05c", "one catalog version is supported, the one declared", "4.3, 4.8", _supports_one_catalog),
    Check("13.1-05d", "the manifest has its media type", "8.10", _has_its_media_type),
    Check("13.1-05e", "server, agents and policies blocks are complete", "8.2, 8.3, 8.5, 8.7", _has_its_structure),
    Check("13.1-05f", "embedded_methods lists the floor", "8.4", _embeds_the_floor),
    Check("13.1-05g", "the manifest can be cached", "8.11", _is_cacheable, "SHOULD"),
    Check("13.1-05h", "the manifest is signed", "8.8", _is_signed, "SHOULD"),
    Check("13.1-05i", "DISCOVER with Agent-ID does not return the server manifest", "8.10", _is_only_for_the_server),
    Check("13.1-06a", "the manifest shows handler.type and nothing else of a handler", "8.9", _shows_no_binding),
)

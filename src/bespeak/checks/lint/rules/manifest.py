"""D15x, D17x: a server manifest and a /.well-known/ai document are complete, and disclose nothing (AGTP-API 8)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from bespeak.checks.lint.subject import LintContext, Subject
from bespeak.contract.agent import DISCLOSURES
from bespeak.contract.handler import HANDLER_TYPES
from bespeak.contract.policy import FLOOR_METHODS
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief
from bespeak.text.reading.table import as_list, as_mapping
from bespeak.text.source.pointer import child
from bespeak.text.source.tree import Change

if TYPE_CHECKING:
    from bespeak.documents.ai.document import AiCapability, AiDocument

VERSION: Final = Rule("D150", "manifest-version", "MUST", "AGTP-API 8.2")
CATALOG: Final = Rule("D151", "manifest-catalog-version", "MUST", "AGTP-API 4.3, 8.2", fix="safe")
SERVER: Final = Rule("D152", "manifest-server", "MUST", "AGTP-API 8.3")
TIME: Final = Rule("D153", "manifest-time", "MUST", "AGTP-API 8.3")
FLOOR: Final = Rule("D154", "manifest-floor", "MUST", "AGTP-API 3.1, 8.4")
DISCLOSURE: Final = Rule("D155", "manifest-disclosure", "MUST", "AGTP-API 8.5")
POLICIES: Final = Rule("D156", "manifest-policies", "MUST", "AGTP-API 8.7")
BINDING: Final = Rule("D157", "manifest-shows-binding", "MUST", "AGTP-API 8.9", fix="safe")
UNSIGNED: Final = Rule("D158", "manifest-unsigned", "SHOULD", "AGTP-API 8.8")
HANDLER_TYPE: Final = Rule("D159", "manifest-handler-type", "MUST", "AGTP-API 8.9, 12")

_SWITCHES: Final = ("wildcards_accepted", "anonymous_discovery", "scope_required_for_invocation", "synthesis_enabled")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)")


def check_document(subject: Subject, _: LintContext) -> Iterator[Diagnostic]:
    """Check a manifest except for its endpoints."""
    if subject.kind != "manifest":
        return
    data = subject.data
    yield from _check_versions(data)
    yield from _check_server(as_mapping(data.get("server")))
    yield from _check_floor(data.get("embedded_methods"))
    yield from _check_disclosure(data)
    if isinstance(data.get("policies"), dict):
        yield from _check_policies(data["policies"])
    for index, entry in enumerate(as_list(data.get("endpoints"))):
        if isinstance(entry, dict):
            yield from _check_handler(entry, f"/endpoints/{index}")
    if not data.get("manifest_signature"):
        advice = "Sign it: bespeak keys new, then [signing] key in bespeak.toml."
        yield UNSIGNED.inside("/manifest_signature", "the manifest is not signed", advice)


def _check_versions(data: Mapping[str, Any]) -> Iterator[Diagnostic]:
    for key in ("agtp_version", "agtp_api_version"):
        if isinstance(data.get(key), str) and data[key] != "1.0":
            yield VERSION.inside(f"/{key}", f"{key} is {brief(data[key])}", 'The drafts define only "1.0".')
    version, supported = data.get("catalog_version"), data.get("catalog_versions_supported")
    if isinstance(version, str) and isinstance(supported, list) and version not in supported:
        message = f"catalog_versions_supported does not list the catalog_version, {brief(version)}"
        fix = Fix(f"Add {version}", (Change("append", "/catalog_versions_supported", version),))
        yield CATALOG.inside("/catalog_versions_supported", message, f"Add {brief(version)}.", fix)


def _check_server(server: Mapping[str, Any]) -> Iterator[Diagnostic]:
    for key in ("server_id", "operator", "contact", "issued", "updated"):
        if not isinstance(server.get(key), str) or not server[key].strip():
            advice = _ASKS.get(key, "Say when: 2026-11-15T08:00:00Z.")
            yield SERVER.inside(f"/server/{key}", f"server.{key} is missing", advice)
    times = {key: _time(server.get(key)) for key in ("issued", "updated")}
    for key, time in times.items():
        if time is None and isinstance(server.get(key), str) and server[key].strip():
            message = f"server.{key} is {brief(server[key])}, which is not an ISO 8601 time"
            yield TIME.inside(f"/server/{key}", message, "Write it like 2026-11-15T08:00:00Z.")
    if times["issued"] and times["updated"] and times["updated"] < times["issued"]:
        message = f"the manifest was updated ({server['updated']}) before it was issued ({server['issued']})"
        yield TIME.inside("/server/updated", message, "updated must be the later of the two.")


_ASKS: Final = {
    "server_id": "A host name, an agtp:// address or another permanent name.",
    "operator": "The organisation that runs the server.",
    "contact": "An address for security and operational questions.",
}


def _time(value: object) -> datetime | None:
    if not isinstance(value, str) or _TIME.fullmatch(value) is None:
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:  # the thirtieth of February
        return None


def _check_floor(listed: object) -> Iterator[Diagnostic]:
    if not isinstance(listed, list):
        yield FLOOR.inside("/embedded_methods", "embedded_methods is missing", "List the twelve floor methods.")
        return
    entries = (entry.get("method", entry.get("name")) if isinstance(entry, dict) else entry for entry in listed)
    names = {name for name in entries if isinstance(name, str)}
    missing = [method for method in FLOOR_METHODS if method not in names]
    if missing:
        message = f"embedded_methods lacks {', '.join(missing)}"
        yield FLOOR.inside("/embedded_methods", message, "Every AGTP server supports all twelve.")


def _check_disclosure(data: Mapping[str, Any]) -> Iterator[Diagnostic]:
    disclosure = data.get("agent_disclosure")
    if disclosure not in DISCLOSURES:
        said = f"is {brief(disclosure)}" if disclosure is not None else "is missing"
        yield DISCLOSURE.inside("/agent_disclosure", f"agent_disclosure {said}", f"One of {', '.join(DISCLOSURES)}.")
    if disclosure == "private" and data.get("hosted_agents"):
        message = "hosted_agents is not empty although agent_disclosure is private"
        yield DISCLOSURE.inside("/hosted_agents", message, "Leave the list empty, or disclose the agents.")


def _check_policies(policies: Mapping[str, Any]) -> Iterator[Diagnostic]:
    for key in _SWITCHES:
        if not isinstance(policies.get(key), bool):
            said = f"is {brief(policies[key])}" if policies.get(key) is not None else "is missing"
            yield POLICIES.inside(f"/policies/{key}", f"policies.{key} {said}", "Write true or false.")
    depth = policies.get("max_synthesis_depth")
    if not isinstance(depth, int) or isinstance(depth, bool) or depth < 1:
        said = f"is {brief(depth)}" if depth is not None else "is missing"
        yield POLICIES.inside("/policies/max_synthesis_depth", f"policies.max_synthesis_depth {said}", "Write 10.")


def _check_handler(entry: Mapping[str, Any], at: str) -> Iterator[Diagnostic]:
    handler = as_mapping(entry.get("handler"))
    named = f"{entry.get('method')} {entry.get('path')}"
    if handler.get("type") not in HANDLER_TYPES:
        said = f"is {brief(handler['type'])}" if "type" in handler else "is missing"
        advice = f"One of {', '.join(HANDLER_TYPES)}."
        yield HANDLER_TYPE.inside(f"{at}/handler/type", f"{named}: handler.type {said}", advice)
    for key in handler:
        if key != "type":
            where = child(f"{at}/handler", key)
            fix = Fix(f"Remove {key}", (Change("remove", where),))
            yield BINDING.inside(where, f"{named} shows handler.{key}", "Publish only the type.", fix, on_key=True)


_DRAFT: Final = "AI-Discovery"

AI_VERSION: Final = Rule("D170", "ai-version", "MUST", f"{_DRAFT} 3.1", fix="safe")
LENGTH: Final = Rule("D171", "ai-text-length", "MUST", f"{_DRAFT} 3")
CAPABILITY_ID: Final = Rule("D172", "ai-capability-id", "MUST", f"{_DRAFT} 3.3")
REPEATED_ID: Final = Rule("D173", "ai-repeated-id", "MUST", f"{_DRAFT} 3.3")
ADDRESS: Final = Rule("D174", "ai-endpoint-address", "MUST", f"{_DRAFT} 3.3")
PARAMETER: Final = Rule("D175", "ai-parameter-notation", "SHOULD", f"{_DRAFT} 3.3")
CATEGORY: Final = Rule("D176", "ai-category", "SHOULD", f"{_DRAFT} 3.2")
REPEATED_ENTRY: Final = Rule("D177", "ai-repeated-entry", "MUST", f"{_DRAFT} 3.2")
LANGUAGE: Final = Rule("D178", "ai-language", "MUST", f"{_DRAFT} 3.2")
OPEN_WRITES: Final = Rule("D179", "ai-open-writes", "MUST", f"{_DRAFT} 6.2")
CREDENTIALS: Final = Rule("D180", "ai-credentials", "MUST", f"{_DRAFT} 6.2")
INTERNAL: Final = Rule("D181", "ai-internal-endpoint", "MUST", f"{_DRAFT} 6.1")
SIZE: Final = Rule("D182", "ai-document-size", "SHOULD", f"{_DRAFT} 4.5")
UPDATED: Final = Rule("D183", "ai-last-updated", "MUST", f"{_DRAFT} 3.7")
WORDY: Final = Rule("D184", "ai-wordy-description", "SHOULD", f"{_DRAFT} 3.2")
NO_AUTH: Final = Rule("D185", "ai-auth-unsaid", "SHOULD", f"{_DRAFT} 3.4")
LEAN: Final = Rule("D186", "ai-says-little", "style", f"{_DRAFT} 3")
MEMBER: Final = Rule("D187", "ai-unknown-member", "MUST", f"{_DRAFT} 3.1", fix="unsafe")

CATEGORIES: Final = (
    *("productivity", "ecommerce", "finance", "news", "weather", "maps", "search", "data", "communication"),
    *("calendar", "storage", "media", "health", "education", "travel", "food", "government", "developer"),
)
_MOST_BYTES: Final = 64_000
_ID: Final = re.compile(r"[a-z][a-z0-9_]*")
_TAG: Final = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,4}")
_PARAM: Final = re.compile(r"(?:string|integer|number|boolean|array)\s*,\s*(?:required|optional)\b")
_DATE: Final = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ)?")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")
_SECRET: Final = re.compile(r"(?i)\b(?:bearer|basic|token)\s+\S|[A-Za-z0-9_\-]{32,}")
_HIDDEN: Final = frozenset(  # Segments of endpoints for administrators, for the service itself and in development.
    (
        *("admin", "administration", "internal", "_internal", "private", "debug", "actuator", "metrics"),
        *("dev", "development", "staging", "experimental"),
    )
)
_HTTPS: Final = re.compile(r"https://[^\s/?#]+\S*")


def check_ai(subject: Subject, _: LintContext) -> Iterator[Diagnostic]:
    document = subject.ai
    if document is None:
        return
    from bespeak.documents.ai.document import MEMBERS  # noqa: PLC0415 - a run on other documents starts without

    if document.aiendpoint and document.aiendpoint != "1.0":
        fix = Fix('Write "1.0"', (Change("replace", "/aiendpoint", "1.0"),))
        message = f"aiendpoint is {brief(document.aiendpoint)}; it must be 1.0"
        yield AI_VERSION.inside("/aiendpoint", message, 'Write "1.0".', fix)
    for key in subject.data:
        if key not in MEMBERS:
            fix = Fix(f"Remove {key}", (Change("remove", child("", key)),), safe=False)
            message = f"{brief(key)} is not a member of a /.well-known/ai document"
            yield MEMBER.inside(child("", key), message, f"It has only {', '.join(MEMBERS)}.", fix, on_key=True)
    size = len(subject.tree.text.encode())
    if size > _MOST_BYTES:
        message = f"the document has {size} bytes, more than {_MOST_BYTES}"
        yield SIZE.inside("", message, "Split the service into several, each with its own document.")
    yield from _check_service(document)
    yield from _check_auth(document, subject)
    yield from _check_lists(document, subject.data.get("service"))
    seen: set[str] = set()
    for capability in document.capabilities:
        yield from _check_capability(capability)
        if capability.id and capability.id in seen:
            message = f"the id {brief(capability.id)} is used twice"
            yield REPEATED_ID.inside(f"{capability.at}/id", message, "Rename one.")
        seen.add(capability.id)
    yield from _check_wealth(document)


def _check_service(document: AiDocument) -> Iterator[Diagnostic]:
    yield from _bounded("/service/name", document.name, 100)
    yield from _bounded("/service/description", document.description, 300)
    if 200 <= len(document.description) <= 300:
        message = f"the description has {len(document.description)} characters"
        yield WORDY.inside("/service/description", message, "Describe the service in fewer than 200 characters.")
    updated = document.meta.get("last_updated")
    if updated is not None and _DATE.fullmatch(updated) is None:
        advice = "Write 2026-11-15 or 2026-11-15T08:30:00Z."
        yield UPDATED.inside("/meta/last_updated", f"last_updated is {brief(updated)}", advice)


def _check_lists(document: AiDocument, service: object) -> Iterator[Diagnostic]:
    for key, values in (("category", document.category), ("language", document.language)):
        if len(set(values)) < len(values):
            yield REPEATED_ENTRY.inside(f"/service/{key}", f"{key} lists a value twice", "List each once.")
        elif isinstance(service, dict) and service.get(key) == []:
            yield REPEATED_ENTRY.inside(f"/service/{key}", f"{key} is empty", f"List a value, or remove {key}.")
    for index, category in enumerate(document.category):
        if category not in CATEGORIES:
            message = f"{brief(category)} is not a known category"
            yield CATEGORY.inside(f"/service/category/{index}", message, f"One of {', '.join(CATEGORIES)}.")
    for index, language in enumerate(document.language):
        if _TAG.fullmatch(language) is None:
            message = f"{brief(language)} is not a valid language tag"
            yield LANGUAGE.inside(f"/service/language/{index}", message, "Write a BCP 47 tag, such as en or pt-BR.")


def _check_auth(document: AiDocument, subject: Subject) -> Iterator[Diagnostic]:
    if "auth" not in subject.data:
        yield NO_AUTH.inside("", "the document has no auth", 'Write "auth": {"type": "none"} if there is none.')
    writing = next((capability for capability in document.capabilities if capability.method not in ("GET", "")), None)
    if document.auth_type == "none" and writing is not None:
        message = f"auth.type is `none`, but {brief(writing.id)} writes ({writing.method})"
        yield OPEN_WRITES.inside("/auth/type", message, "Require apikey, bearer or oauth2, or list only what reads.")
    header = document.auth_header
    if header is not None and (_HEADER.fullmatch(header) is None or _SECRET.search(header) is not None):
        # The value is not repeated: a report may be seen by more people than the document.
        message = "auth.header is not the name of a header, and may be a credential"
        yield CREDENTIALS.inside("/auth/header", message, "Write only the name, such as X-API-Key; revoke the key.")


def _check_capability(capability: AiCapability) -> Iterator[Diagnostic]:
    at = capability.at
    yield from _bounded(f"{at}/description", capability.description, 200)
    if capability.id and _ID.fullmatch(capability.id) is None:
        yield CAPABILITY_ID.inside(f"{at}/id", f"the id is {brief(capability.id)}", "Write it like search_flights.")
    elif len(capability.id) > 64:
        yield from _bounded(f"{at}/id", capability.id, 64)
    if capability.returns is not None and len(capability.returns) > 300:
        yield from _bounded(f"{at}/returns", capability.returns, 300)
    endpoint = capability.endpoint
    if endpoint and not endpoint.startswith("/") and _HTTPS.fullmatch(endpoint) is None:
        message = f"endpoint is {brief(endpoint)}"
        yield ADDRESS.inside(f"{at}/endpoint", message, "Write a path from the root, or an https:// address.")
    if _HIDDEN & set(endpoint.lower().split("/")):
        message = f"{brief(endpoint)} looks like an internal endpoint"
        yield INTERNAL.inside(f"{at}/endpoint", message, "Leave it out of the document.")
    for name, notation in capability.params.items():
        if _PARAM.match(notation) is None:
            message = f"the parameter {brief(name)} is written as {brief(notation)}"
            advice = "Write it like `string, required -- where to fly to`."
            yield PARAMETER.inside(child(f"{at}/params", name), message, advice)


def _check_wealth(document: AiDocument) -> Iterator[Diagnostic]:
    """Report all missing optional members in one finding: single ones would hide the errors."""
    members = {
        "service.category": document.category,
        "token_hints": document.token_hints,
        "meta.last_updated": document.meta.get("last_updated"),
        "returns of each capability": all(each.returns for each in document.capabilities),
    }
    unsaid = [name for name, said in members.items() if not said]
    if unsaid:
        yield LEAN.inside("", f"the document lacks {', '.join(unsaid)}", "Agents use these to choose a service.")


def _bounded(at: str, text: str, most: int) -> Iterator[Diagnostic]:
    if len(text) > most:
        yield LENGTH.inside(at, f"the text has {len(text)} characters, more than {most}", f"Shorten it to {most}.")
    elif not text.strip():
        yield LENGTH.inside(at, "the text is empty", "Write a few words.")

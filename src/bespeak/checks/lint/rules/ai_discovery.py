"""D17x: a /.well-known/ai document respects the limits of its draft and discloses nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from bespeak.checks.lint.subject import LintContext, Subject
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief
from bespeak.text.source.pointer import child
from bespeak.text.source.tree import Change

if TYPE_CHECKING:
    from bespeak.documents.ai.document import AiCapability, AiDocument

_DRAFT: Final = "AI-Discovery"

VERSION: Final = Rule("D170", "ai-version", "MUST", f"{_DRAFT} 3.1", fix="safe")
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


def check_document(subject: Subject, _: LintContext) -> Iterator[Diagnostic]:
    document = subject.ai
    if document is None:
        return
    from bespeak.documents.ai.document import MEMBERS  # noqa: PLC0415 - a run on other documents starts without

    if document.aiendpoint and document.aiendpoint != "1.0":
        fix = Fix('Write "1.0"', (Change("replace", "/aiendpoint", "1.0"),))
        message = f"aiendpoint is {brief(document.aiendpoint)}; it must be 1.0"
        yield VERSION.inside("/aiendpoint", message, 'Write "1.0".', fix)
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

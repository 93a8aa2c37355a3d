"""D15x: a server manifest is complete, consistent and contains no bindings (AGTP-API 8, A.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from bespeak.checks.lint.subject import LintContext, Subject
from bespeak.contract.agent import DISCLOSURES
from bespeak.contract.handler import HANDLER_TYPES
from bespeak.contract.policy import FLOOR_METHODS
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief
from bespeak.text.reading.table import as_list, as_mapping
from bespeak.text.source.pointer import child
from bespeak.text.source.tree import Change

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

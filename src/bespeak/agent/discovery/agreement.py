"""Consistency checks between the documents of one live service."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from bespeak.agent.discovery.capability import Capability
from bespeak.agent.discovery.examination import HostExamination, Name
from bespeak.agent.discovery.readers import ai_capabilities, openapi_capabilities
from bespeak.checks.lint import served as rules
from bespeak.contract.http_route import split_verb
from bespeak.documents.ai.rules import CAPABILITY_ELSEWHERE
from bespeak.protocol.address import AUTHORITY
from bespeak.protocol.address_guard import WebAddress, is_loopback, parse_web_address
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, brief
from bespeak.text.reading.table import as_text
from bespeak.text.source.tree import Location

MEMBERS: Final = (  # Required members of agis.json (AGIS 11.1); `mcp_tools_list` is optional.
    *("agis", "service", "agtp", "agis_document", "methods", "domain", "namespace", "negotiable"),
    *("capability_summary", "data_classes", "pre_auth_discovery", "version", "interaction_protocols"),
    "related_services",
)
_MOST: Final = 5  # maximum number of names in a message
_PLACEHOLDER: Final = re.compile(r"\{[^{}]*\}")


def check_agreement(seen: HostExamination) -> Iterator[Diagnostic]:
    """Find contradictions between two documents, or within one."""
    yield from seen.found
    yield from _check_names(seen)
    yield from _check_summary(seen)
    yield from _check_addresses(seen)
    capabilities = _of_ai(seen)
    elsewhere = {str(each.origin) for each in capabilities if each.origin.host != seen.address.origin.host}
    if elsewhere:
        message = f"capabilities are at {_some(elsewhere)}, where agents do not send the credential for this host"
        yield CAPABILITY_ELSEWHERE.found(message, Location(_url(seen, "ai")))
    yield from _check_openapi(seen, capabilities)
    yield from _check_agis(seen, capabilities)


def _at(rule: Rule, seen: HostExamination, name: Name, message: str, advice: str) -> Diagnostic:
    return rule.found(message, Location(_url(seen, name)), advice=advice)


def _url(seen: HostExamination, name: Name) -> str:
    served = seen.documents.get(name)
    return served.fetched.final_url if served is not None else str(seen.address.origin)


def _check_names(seen: HostExamination) -> Iterator[Diagnostic]:
    said: dict[Name, str] = {
        "ai": seen.ai.name if seen.ai else "",
        "summary": as_text((seen.summary or {}).get("service")),
        "agis": seen.agis.service if seen.agis else "",
        "openapi": seen.openapi.title if seen.openapi else "",
    }
    named = [(name, text) for name, text in said.items() if text.strip()]
    for name, text in named[1:]:
        first, other = named[0]
        if text.split() != other.split():
            message = f"the service is named {brief(text)} here but {brief(other)} in {_url(seen, first)}"
            yield _at(rules.NAMES, seen, name, message, "Use one name.")


def _check_summary(seen: HostExamination) -> Iterator[Diagnostic]:
    summary = seen.summary
    if summary is None:
        return
    missing = [name for name in MEMBERS if name not in summary]
    if missing:
        message = f"agis.json lacks {', '.join(missing)}"
        yield _at(rules.INCOMPLETE, seen, "summary", message, "Write every member; use null for an unknown value.")
    if seen.summary_fault:
        message = f"agis.json does not lead to an AGIS document: {seen.summary_fault}"
        yield _at(rules.LEADS_NOWHERE, seen, "summary", message, "Write the address where it is served.")
    methods = summary.get("methods")
    if seen.agis is not None and isinstance(methods, list):
        here = {method.upper() for method in methods if isinstance(method, str)}
        there = {entry.endpoint.method.upper() for entry in seen.agis.endpoints}
        if here != there:
            message = f"agis.json and the AGIS document differ in {_some(here ^ there)}"
            yield _at(rules.METHODS, seen, "summary", message, "List the methods of the document.")


def _check_addresses(seen: HostExamination) -> Iterator[Diagnostic]:
    endpoint = (seen.bootstrap or {}).get("endpoint")
    said: dict[Name, object] = {
        "summary": (seen.summary or {}).get("agtp"),
        "agis": seen.agis.agtp if seen.agis else None,
        "agtp": f"agtp://{endpoint}" if isinstance(endpoint, str) else None,
    }
    found = {name: AUTHORITY.match(str(text)) for name, text in said.items()}
    hosts = [(name, place["host"].lower()) for name, place in found.items() if place and place["host"]]
    for name, host in hosts[1:]:
        first, other = hosts[0]
        if host != other:
            message = f"AGTP is at {brief(host)} in this document but at {brief(other)} in {_url(seen, first)}"
            yield _at(rules.ADDRESSES, seen, name, message, "Use one host.")


def _check_openapi(seen: HostExamination, capabilities: list[Capability]) -> Iterator[Diagnostic]:
    base = _base(seen, "openapi")
    if seen.openapi is None or base is None:
        return
    operations, _ = openapi_capabilities(seen.openapi, base, insecure=True)
    origins = {each.origin for each in operations}
    plain = {str(origin) for origin in origins if origin.scheme == "http" and not is_loopback(origin.host)}
    if plain:
        message = f"operations are at {_some(plain)}"
        yield _at(rules.OVER_HTTP, seen, "openapi", message, "Use https addresses in servers.")
    known = {(each.method, _shape(each.target)): each for each in operations}
    own = [each for each in capabilities if each.origin.host == seen.address.origin.host]
    found = [(each, known.get((each.method, _shape(each.target)))) for each in own]
    missing = [f"{each.method} {each.target}" for each, operation in found if operation is None]
    if missing:
        message = f"{len(missing)} of {len(own)} capabilities are not OpenAPI operations: {_some(missing)}"
        advice = "Describe them in OpenAPI, or remove them from the discovery document."
        yield _at(rules.NOT_IN_OPENAPI, seen, "ai", message, advice)
    yield from _check_auth(seen, [(each, operation) for each, operation in found if operation is not None])


def _check_auth(seen: HostExamination, pairs: list[tuple[Capability, Capability]]) -> Iterator[Diagnostic]:
    """Report differences that break a call: a credential that was not mentioned, or another place for it."""
    for capability, operation in pairs:
        wanted = {place.kind for place in operation.credentials}
        given = {place.kind for place in capability.credentials}
        if not wanted or not given or "none" in wanted or "unknown" in wanted | given or wanted & given:
            continue
        said = "no credential" if given == {"none"} else f"a credential as {_some(given)}"
        message = f"{capability.id} needs {said} in this document but {_some(wanted)} in OpenAPI"
        yield _at(rules.AUTH, seen, "ai", message, "Use the same in both documents.")
        return


def _check_agis(seen: HostExamination, capabilities: list[Capability]) -> Iterator[Diagnostic]:
    if seen.agis is None:
        return
    known = {(entry.endpoint.method.upper(), _shape(entry.endpoint.path)) for entry in seen.agis.endpoints}
    routes = [split_verb(each.target.partition("?")[0]) for each in capabilities]
    named = [(route[1].upper(), route[0] or "/") for route in routes if route is not None]
    missing = [f"{method} {path}" for method, path in named if not _is_declared(method, _shape(path), known)]
    if missing:
        message = f"{len(missing)} of {len(named)} capabilities are not AGIS endpoints: {_some(missing)}"
        yield _at(rules.NOT_IN_AGIS, seen, "ai", message, "Declare them in the AGIS document, or remove them here.")


def _is_declared(method: str, path: str, known: set[tuple[str, str]]) -> bool:
    """Return True if an endpoint is declared, possibly below a path prefix that the contract does not name."""
    return any((method, path[at:]) in known for at, character in enumerate(path) if character == "/")


def _of_ai(seen: HostExamination) -> list[Capability]:
    base = _base(seen, "ai")
    return [] if seen.ai is None or base is None else ai_capabilities(seen.ai, base, insecure=True)[0]


def _base(seen: HostExamination, name: Name) -> WebAddress | None:
    found = parse_web_address(_url(seen, name), insecure=True)
    return found if isinstance(found, WebAddress) else None


def _shape(target: str) -> str:
    """Return a path without its parameter names, which two documents may choose differently."""
    return _PLACEHOLDER.sub("{}", target.partition("?")[0])


def _some(values: Iterable[Any]) -> str:
    listed = [brief(str(value)) for value in sorted(values)]
    more = f" and {len(listed) - _MOST} more" if len(listed) > _MOST else ""
    return f"{', '.join(listed[:_MOST])}{more}"

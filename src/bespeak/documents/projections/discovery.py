"""Documents by which clients on the web find a service: /.well-known/ai, the AI catalog, llms.txt, the MCP server card
(SEP-2127), and /.well-known/agtp with the AGTP address for clients that know only a domain (core 3).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.endpoint_names import capability_ids, group_of
from bespeak.contract.http_route import http_route
from bespeak.contract.limits import SECONDS, RateLimits
from bespeak.contract.policy import Policies
from bespeak.contract.schema.view import Field, SchemaView
from bespeak.contract.service import AGTP_VERSION, UNSPECIFIED, Service
from bespeak.documents.ai.document import MOST_BYTES, MOST_CAPABILITIES, EncodedCapability, Part, divide, fits, size_of
from bespeak.documents.ai.param_notation import cut, write_param, write_returns
from bespeak.documents.deployment.http_settings import HttpSettings
from bespeak.protocol.address import AUTHORITY
from bespeak.text.identifiers import unused

_DOMAIN: Final = re.compile(r"(?=.{4,120}\Z)(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]")
_NO_NAME: Final = re.compile(r"[^a-z0-9]+")


def publisher_of(service: Service, url: str) -> str:
    """Return the domain of the publisher: the one of the identity, the server id if it is one, else the URL's host."""
    host = urlsplit(url).hostname or "localhost"
    for text in (service.identity.domain or "", service.identity.server_id.removeprefix("agtp://"), host):
        found = text.lower().partition(":")[0]
        if _DOMAIN.fullmatch(found):
            return found
    return _NO_NAME.sub("-", host).strip("-") or "localhost"


def short_name(service: Service) -> str:
    """Return the name of a service for identifiers: lowercase letters, digits and hyphens."""
    text = service.identity.name or service.identity.server_id
    return _NO_NAME.sub("-", text.lower())[:60].strip("-") or "service"


def describe_service(service: Service, listed: Iterable[Endpoint], longest: int) -> str:
    """Return the description of a service, or the nouns of its endpoints, which are better than nothing."""
    things = ", ".join(dict.fromkeys(group_of(endpoint) for endpoint in listed))
    return cut(service.description, longest) or cut(f"Operations on {things}", longest)


AI_PATH: Final = "/.well-known/ai"

_LONGEST_AI_NAME: Final = 100
_LONGEST_ABOUT: Final = 199  # maximum length of a service description; 300 are allowed and fewer than 200 advised
_LONGEST_CAPABILITY: Final = 200
_LARGEST: Final = 6_000  # bytes of one capability; a larger one lists the parameters that fit
_TEXTS: Final = (80, 0)  # maximum length of a parameter's description; 0 if the capability would be too large
_LANGUAGE: Final = re.compile(r"[a-z]{2}(?:-[A-Z]{2})?")
_URI: Final = re.compile(r"https?://[!-~]+")
_WITHIN: Final = "capabilities[] {id, description, endpoint, method, params, returns}"
_IMPACTS: Final = {"informational": 0, "reversible": 1}


@dataclass(frozen=True, slots=True)
class AiDocuments:
    """The document, and the parts it links to if one is not enough."""

    main: bytes
    parts: Mapping[str, bytes] = field(default_factory=dict)  # documents by their name below `/.well-known/ai/`


def project_ai(
    service: Service,
    endpoints: Iterable[Endpoint],
    settings: HttpSettings,
    modes: Sequence[str],
    *,
    updated: str,
    policies: Policies | None = None,
) -> AiDocuments | None:
    """Build the documents of the HTTP face; None if no endpoint is listed, because a document needs a capability.

    One document holds up to 64,000 bytes and 100 capabilities. Beyond that, every endpoint is in one of the parts, by
    namespace or first path segment, and the main document links to them. It also lists the capabilities that most
    agents can use at once, in this order: not deprecated, no scope, no cost, informational, reversible, as declared.
    """
    if not (listed := [endpoint for endpoint in endpoints if endpoint.is_listed]):
        return None
    ids = capability_ids(listed)
    listed.sort(key=lambda endpoint: endpoint.deprecated is not None)
    entries = [
        EncodedCapability(group_of(endpoint), _capability(endpoint, ids, settings.prefix), endpoint.method)
        for endpoint in listed
    ]
    pages = {"changelog": settings.changelog, "status": settings.status_page}
    frame = _DocumentFrame(
        _service(service, listed, settings),
        {
            "auth": _auth(service, listed, settings, modes, policies or service.policies),
            "token_hints": _token_hints(listed),
            "rate_limits": _rate_limits(service.rate_limits, settings),
            "meta": {
                "last_updated": updated[:10],
                **{key: text for key, text in pages.items() if text and _URI.fullmatch(text)},
            },
        },
    )
    if fits(entries, frame.room):
        return AiDocuments(frame.encode(entry.encoded for entry in entries))
    parts = divide(entries, frame.room)
    taken = set(ids.values())
    main = [_lead(part, settings.prefix, taken) for part in parts]
    best = sorted(zip(listed, entries, strict=True), key=lambda pair: _rank(pair[0]))
    chosen = _within(frame.room - size_of(main), MOST_CAPABILITIES - len(main), [entry for _, entry in best])
    documents: dict[str, bytes] = {}
    for part in parts:
        for inner in part.parts:
            documents[inner.name] = frame.encode(entry.encoded for entry in inner.entries)
        within = [_lead(inner, settings.prefix, taken) for inner in part.parts] or part.entries
        documents[part.name] = frame.encode(entry.encoded for entry in within)
    return AiDocuments(frame.encode(entry.encoded for entry in (*chosen, *main)), documents)


class _DocumentFrame:
    """The content around the capabilities, the same in every document of the service."""

    def __init__(self, service: Mapping[str, Any], blocks: Mapping[str, Mapping[str, Any]]) -> None:
        """Prepare the frame; `blocks` follow the capabilities, without empty ones."""
        self._head = {"aiendpoint": "1.0", "service": service}
        self._tail = {key: block for key, block in blocks.items() if block}
        self.room = MOST_BYTES - len(self.encode(()))

    def encode(self, capabilities: Iterable[bytes]) -> bytes:
        listed = [msgspec.Raw(encoded) for encoded in capabilities]
        return msgspec.json.encode({**self._head, "capabilities": listed, **self._tail})


def _lead(part: Part, prefix: str, taken: set[str]) -> EncodedCapability:
    """Build the capability that links to a further document, with an id that is not taken."""
    found = unused(f"capabilities_{part.name.replace('-', '_')}"[:56], taken)
    taken.add(found)
    held = [entry for each in (part, *part.parts) for entry in each.entries]
    groups = ", ".join(part.groups[:8]) + (", ..." if len(part.groups) > 8 else "")
    verbs = ", ".join(dict.fromkeys(entry.verb for entry in held))
    about = cut(f"Read this document for the {len(held)} capabilities on {groups}: {verbs}", _LONGEST_CAPABILITY)
    capability = {"id": found, "description": about, "endpoint": f"{prefix}{AI_PATH}/{part.name}", "method": "GET"}
    return EncodedCapability("", msgspec.json.encode({**capability, "returns": _WITHIN}))


def _within(room: int, most: int, entries: Iterable[EncodedCapability]) -> list[EncodedCapability]:
    chosen: list[EncodedCapability] = []
    for entry in entries:
        room -= len(entry.encoded) + 1
        if room < 0 or len(chosen) >= most:
            break
        chosen.append(entry)
    return chosen


def _rank(endpoint: Endpoint) -> tuple[bool, bool, bool, int]:
    return (
        endpoint.deprecated is not None,
        bool(endpoint.required_scopes),
        endpoint.cost is not None,
        _IMPACTS.get(endpoint.semantic.impact, 2),
    )


def _capability(endpoint: Endpoint, ids: Mapping[tuple[str, str], str], prefix: str) -> bytes:
    route = http_route(endpoint)
    capability: dict[str, Any] = {
        "id": ids[endpoint.key],
        "description": _about(endpoint, ids),
        "endpoint": prefix + route.path,
        "method": route.preferred,
    }
    returns = write_returns(endpoint.output_schema)
    fields = _parameters(endpoint)
    encoded = b""
    for longest in _TEXTS:
        params = _params(fields, endpoint.input_schema, longest)
        encoded = msgspec.json.encode({**capability, **({"params": params} if params else {}), "returns": returns})
        if len(encoded) <= _LARGEST:
            return encoded
    # As many as fit; required ones come first.
    fields.sort(key=lambda each: not each.required)
    kept: dict[str, str] = {}
    left = _LARGEST - len(msgspec.json.encode({**capability, "params": kept, "returns": returns}))
    for name, line in _params(fields, endpoint.input_schema, 0).items():
        left -= len(msgspec.json.encode({name: line}))
        if left < 0:
            break
        kept[name] = line
    return msgspec.json.encode({**capability, "params": kept, "returns": returns})


def _about(endpoint: Endpoint, ids: Mapping[tuple[str, str], str]) -> str:
    said = " ".join((endpoint.semantic.intent or endpoint.description or str(endpoint)).split())
    if not endpoint.reviewed:
        said = f"Unreviewed: {said}"
    if endpoint.deprecated is not None:
        method, path = endpoint.deprecated.successor_method, endpoint.deprecated.successor_path
        successor = ids.get((method or endpoint.method, path or endpoint.path))
        use = f", use {successor}" if successor and (method or path) else ""
        said = f"Deprecated{use}: {said}"
    return cut(said, _LONGEST_CAPABILITY) or endpoint.method


def _parameters(endpoint: Endpoint) -> list[Field]:
    """Return the fields of the input; path parameters are always required."""
    schema = endpoint.input_schema
    found = {each.name: each for each in SchemaView(schema, schema).fields}
    for segment in endpoint.path.split("/"):
        if segment.startswith("{"):
            name = segment[1:-1]
            known = found.get(name)
            found[name] = known._replace(required=True) if known else Field(name, {"type": "string"}, True)
    return list(found.values())


def _params(fields: Iterable[Field], root: Mapping[str, Any], longest: int) -> dict[str, str]:
    return {each.name: write_param(each.schema, required=each.required, root=root, longest=longest) for each in fields}


def _service(service: Service, listed: Sequence[Endpoint], settings: HttpSettings) -> dict[str, Any]:
    identity = service.identity
    name = cut(identity.name, _LONGEST_AI_NAME) or cut(identity.server_id, _LONGEST_AI_NAME)
    block: dict[str, Any] = {"name": name, "description": describe_service(service, listed, _LONGEST_ABOUT)}
    languages = [tag for tag in settings.language if _LANGUAGE.fullmatch(tag)]
    block |= {"category": list(settings.category), "language": languages}
    return {key: value for key, value in block.items() if value}


def _auth(
    service: Service, listed: Sequence[Endpoint], settings: HttpSettings, modes: Sequence[str], policies: Policies
) -> dict[str, str]:
    """Build the authentication block of the strictest endpoint; empty for certificates, which it cannot express."""
    if "token" in modes:
        block = {"type": "bearer"}
    elif "key" in modes:
        block = {"type": "apikey", "header": "X-API-Key"}
    elif "signed" in modes:
        block = {"type": "apikey", "header": "Agent-Signature"}
    elif "open" not in modes:
        return {}
    elif _is_free(service, listed, policies):
        block = {"type": "none"}
    else:
        block = {"type": "apikey", "header": "Agent-ID"}
    return {**block, "docs": settings.auth_docs} if settings.auth_docs and _URI.fullmatch(settings.auth_docs) else block


def _is_free(service: Service, listed: Iterable[Endpoint], policies: Policies) -> bool:
    """Return True if every listed endpoint is a GET without scopes, identity or cost."""
    known = bool(service.agents) if service.require_known_agents is None else service.require_known_agents
    asked = policies.scope_required_for_invocation or known
    return not asked and all(
        http_route(endpoint).preferred == "GET" and not endpoint.required_scopes and endpoint.cost is None
        for endpoint in listed
    )


def _rate_limits(rates: RateLimits, settings: HttpSettings) -> dict[str, Any]:
    """Return the rate limits that hold for every endpoint: the tightest one, in calls per minute."""
    found = [rate.count * 60 // SECONDS[rate.unit] for rate in (rates.agent, rates.address) if rate is not None]
    block = {"requests_per_minute": max(1, min(found)) if found else None, "agent_tier_available": settings.agent_tier}
    return {key: value for key, value in block.items() if value is not None}


def _token_hints(listed: Iterable[Endpoint]) -> dict[str, bool]:
    """Return the hints: all endpoints support the first two; `delta_support` needs `since` on all reading endpoints."""
    hints = {"compact_mode": True, "field_filtering": True}
    reading = [endpoint for endpoint in listed if endpoint.semantic.impact == "informational"]
    return {**hints, "delta_support": True} if reading and all(endpoint.since for endpoint in reading) else hints


CATALOG_PATH: Final = "/.well-known/ai-catalog.json"
CATALOG_TYPE: Final = "application/ai-catalog+json"
MCP_CATALOG_PATH: Final = "/.well-known/mcp/catalog.json"  # path of the older catalog, which lists MCP servers alone


@dataclass(frozen=True, slots=True)
class Artifact:
    kind: str  # short name of its protocol or format, a part of its identifier: `mcp`, `openapi`
    type: str  # the media type with which it is served
    url: str
    about: str


def project_catalog(service: Service, url: str, artifacts: Iterable[Artifact], *, updated: str) -> dict[str, Any]:
    """Build the catalog of a service at `url`. `updated` is the time of its last change."""
    identity = service.identity
    operator = identity.operator if identity.operator not in ("", UNSPECIFIED) else identity.name or identity.server_id
    return {
        "specVersion": "1.0",
        "host": {"displayName": operator, "identifier": publisher_of(service, url)},
        "entries": [
            _entry(service, url, each) | {"description": each.about, "tags": [each.kind], "updatedAt": updated}
            for each in artifacts
        ],
    }


def project_mcp_catalog(service: Service, url: str, card: Artifact) -> dict[str, Any]:
    """Build the older catalog, with the one MCP server."""
    return {"specVersion": "draft", "entries": [_entry(service, url, card)]}


def _entry(service: Service, url: str, artifact: Artifact) -> dict[str, Any]:
    return {
        "identifier": f"urn:air:{publisher_of(service, url)}:{artifact.kind}:{short_name(service)}",
        "displayName": service.identity.name or service.identity.server_id,
        "type": artifact.type,
        "url": artifact.url,
    }


LLMS_PATH: Final = "/llms.txt"
MOST_ENDPOINTS: Final = 200  # maximum number of listed endpoints; the documents have all

_HOW: Final = (
    "Call an endpoint by POST with a JSON object; those marked GET also take it as a query. `compact=true` and "
    "`fields=a,b.c` make answers smaller. Errors are problem+json."
)
_MARKUP: Final = re.compile(r"[\\`*\[\]<>]")
_UNSAFE: Final = str.maketrans({" ": "%20", "(": "%28", ")": "%29", "<": "%3C", ">": "%3E"})


def project_llms(service: Service, endpoints: Iterable[Endpoint], web: HttpSettings, pages: Mapping[str, str]) -> str:
    """Write the page; `pages` describes the other served documents by path."""
    base = web.url or web.prefix
    identity = service.identity
    listed = [endpoint for endpoint in endpoints if endpoint.is_listed]
    listed.sort(key=lambda endpoint: endpoint.deprecated is not None)
    lines = [f"# {_plain(identity.name or identity.server_id)}", ""]
    if service.description.strip():
        lines += [f"> {_plain(service.description, 300)}", ""]
    lines += [_HOW, "", "## Endpoints", ""]
    lines += [_line(endpoint, base) for endpoint in listed[:MOST_ENDPOINTS]]
    if len(listed) > MOST_ENDPOINTS:
        lines.append(f"- {len(listed) - MOST_ENDPOINTS} more: see the documents below.")
    lines += ["", "## Documents", ""]
    lines += [f"- [{path}]({base}{path.translate(_UNSAFE)}): {about}" for path, about in pages.items()]
    return "\n".join(lines) + "\n"


def _line(endpoint: Endpoint, base: str) -> str:
    route = http_route(endpoint)
    about = _plain(endpoint.semantic.intent or endpoint.description)
    notes = ["GET"] if route.preferred == "GET" else []
    if endpoint.required_scopes:
        notes.append(f"needs {_plain(', '.join(endpoint.required_scopes))}")
    if endpoint.deprecated is not None:
        notes.append("deprecated")
    remarks = f" ({'; '.join(notes)})" if notes else ""
    return f"- [{endpoint.method} {_plain(endpoint.path)}]({base}{route.path.translate(_UNSAFE)}): {about}{remarks}"


def _plain(text: str, most: int = 160) -> str:
    return _MARKUP.sub(lambda found: f"\\{found[0]}", cut(text, most))


MCP_INTERFACE: Final = "/mcp"  # path of the MCP server
SERVER_CARD_PATH: Final = f"{MCP_INTERFACE}/server-card"
SERVER_CARD_TYPE: Final = "application/mcp-server-card+json"
SERVER_CARD_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
"""Schema that cards name. Stored copies of the extension disagree about the version, so it is stated here alone."""
MCP_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")  # those of the SDK

_LONGEST_CARD: Final = 100  # maximum length of title and description


def project_server_card(
    service: Service,
    endpoints: Iterable[Endpoint],
    settings: HttpSettings,
    modes: Sequence[str],
    *,
    version: str,
    issuer: str | None = None,
) -> dict[str, Any]:
    """Build the card of a service whose URL is known. It lists no tools: clients ask the server for them."""
    assert settings.url is not None, "there is a card only if its URL is known"
    identity = service.identity
    remote: dict[str, Any] = {
        "type": "streamable-http",
        "url": f"{settings.url}{MCP_INTERFACE}",
        "supportedProtocolVersions": list(MCP_VERSIONS),
    }
    if headers := list(_headers(modes, issuer)):
        remote["headers"] = headers
    publisher = ".".join(reversed(publisher_of(service, settings.url).split(".")))
    listed = (endpoint for endpoint in endpoints if endpoint.is_listed)
    return {
        "$schema": SERVER_CARD_SCHEMA,
        "name": f"{publisher}/{short_name(service)}",
        "title": cut(identity.name or identity.server_id, _LONGEST_CARD),
        "description": describe_service(service, listed, _LONGEST_CARD),
        "version": version[:255],
        "remotes": [remote],
    }


def _headers(modes: Sequence[str], issuer: str | None) -> Iterator[dict[str, Any]]:
    """Yield the headers that a user has to supply. Clients get the tokens of an issuer on the web by themselves."""
    user_token = "token" in modes and not (issuer or "").startswith("https://")
    if user_token or "key" in modes:
        given = ["a token that names the agent and its scopes"] if user_token else []
        given += ["an API key"] if "key" in modes else []
        yield {
            "name": "Authorization",
            "description": f"Bearer, a space and {' or '.join(given)}.",
            "isRequired": not {"open", "mtls"} & set(modes),
            "isSecret": True,
        }
    if "open" in modes:
        yield {"name": "Agent-ID", "description": "The id of the agent: 64 hexadecimal digits.", "isRequired": False}
        yield {"name": "Authority-Scope", "description": "The scopes of the calls, with commas.", "isRequired": False}


BOOTSTRAP_PATH: Final = "/.well-known/agtp"


def project_bootstrap(service: Service, *, port: int, updated: str) -> dict[str, Any]:
    """Build the document of a server with AGTP on `port`, unless its address has one. It has no records to verify."""
    found = AUTHORITY.match(service.address)
    host = found["host"] if found else service.identity.server_id
    named = found["port"] if found else None
    # An address without a port means the default port, even if this process listens on another.
    authority = f"{host}:{named or (4480 if service.agtp else port)}"
    root = f"agtp://{authority}/agents"
    return {
        "agtp_version": AGTP_VERSION,
        "endpoint": authority,
        "namespace_root": root,
        "issuer": f"agtp://{host}",
        "discovery": {"namespace_document": root, "well_known_updated_at": updated},
    }

"""Client for a web address: its manifest is built from discovery documents, as if it were an AGTP service."""

from __future__ import annotations

import asyncio
import math
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from bespeak.agent.client import http_transport
from bespeak.agent.client.a2a_messages import AgentAnswer, Requests
from bespeak.agent.client.errors import (
    CallTimeoutError,
    InventoryEntry,
    NothingDiscoveredError,
    Reply,
    UnreachableError,
    error_of,
)
from bespeak.agent.client.sender import BearerCredential, RetryPolicy, Sender, Signer
from bespeak.agent.client.service import GivenRequest, ServiceClient, encode_json, merge_headers
from bespeak.agent.client.web_options import WebOptions
from bespeak.agent.discovery.agent_card import MESSAGE
from bespeak.agent.discovery.fetcher import Fetcher, open_cache
from bespeak.agent.discovery.lookup import Discovered, Lookup
from bespeak.agent.discovery.readers import PLACEHOLDER, Capability, CredentialPlace, in_braces
from bespeak.contract.endpoint import Endpoint, Semantic
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.http_route import split_verb
from bespeak.contract.schema.validation import compile_schema, refuse_input
from bespeak.contract.service import DEFAULT_CATALOG, ServerIdentity
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.errors import ConfigError
from bespeak.protocol import address_guard as web
from bespeak.protocol import status
from bespeak.protocol.address import Locator
from bespeak.protocol.exchange.headers import essence
from bespeak.protocol.exchange.refusal import Fault, Refused


def described_manifest(discovered: Discovered) -> ManifestDocument:
    """Build a manifest with the capabilities as endpoints. Members that the documents do not give are empty."""
    if discovered.agis is not None and discovered.kind == "agis":
        endpoints = tuple(entry.endpoint for entry in discovered.agis.endpoints)
    elif discovered.card is not None and discovered.kind == "a2a":
        endpoints = tuple(skill.endpoint for skill in discovered.card.skills)
    else:
        endpoints = tuple(_endpoint(capability) for capability in discovered.capabilities)
    host, shown = discovered.address.origin.host, ("method", "path", "description", "input_schema")
    server = ServerIdentity(server_id=host, operator="", contact="", name=discovered.name, domain=None)
    listed = [{name: getattr(endpoint, name) for name in shown} for endpoint in endpoints]
    raw = {"server": {"server_id": host, "name": discovered.name}, "endpoints": listed}
    return ManifestDocument(server=server, endpoints=endpoints, raw=raw)


def _endpoint(capability: Capability) -> Endpoint:
    """Convert a capability into an endpoint. Methods other than GET and HEAD count as irreversible."""
    reads = capability.method in ("GET", "HEAD")
    return Endpoint(
        method=capability.method,
        path=capability.path,
        description=capability.description,
        semantic=Semantic(
            intent=capability.description,
            actor="agent",
            outcome=capability.returns or "",
            capability="retrieval" if reads else "transaction",
            confidence=0.0,
            impact="informational" if reads else "irreversible",
            is_idempotent=capability.is_idempotent,
            mcp_tool_name=capability.id,
        ),
        input_schema=capability.input_schema,
        output_schema=capability.output_schema or {"type": "object"},
        handler=OpaqueHandler(type="external_service"),
    )


_FIRST_PAUSE: Final = 0.1  # seconds before the first question about a task; each further pause is twice as long
_LONGEST_PAUSE: Final = 5.0
_ABSENT: Final = CredentialPlace("bearer")  # default place of a credential if the service does not name one


class DescribedClient(ServiceClient):
    """Client whose manifest is built from documents on the web instead of being requested by AGTP."""

    def __init__(self, sender: Sender, locator: Locator, discovered: Discovered, **options: Any) -> None:
        super().__init__(sender, locator, **options)
        self.discovered: Discovered = discovered
        self._adopt(described_manifest(discovered))
        self.catalog_version = DEFAULT_CATALOG  # web services have no catalog

    async def discover(self, *, refresh: bool = False) -> ManifestDocument:
        """Return the manifest built when the client was opened. Open a new client to read the documents again."""
        assert self.manifest is not None
        return self.manifest

    async def methods(self) -> list[InventoryEntry]:
        return [InventoryEntry(each.method, each.path, each.description) for each in (await self.discover()).endpoints]

    def for_agent(self, as_: str | None = None, **options: Any) -> ServiceClient:
        """Raise ConfigError: the credential of such a client is part of how it was opened."""
        raise ConfigError(f"Open another client of {self.locator} with bespeak.connect for another agent.")

    async def identify(self) -> dict[str, Any]:
        """Raise ConfigError: services on the web have no identity documents."""
        raise ConfigError(f"{self.locator} does not name an agent; use agtp://<agent-id>@host.")


class WebServiceClient(DescribedClient):
    """Client for a service with HTTP capabilities. Each is called by its id, or by its method and path.

    No AGTP headers are sent. The credential is sent only to the host that the user named and to trusted hosts. The
    client refuses, without sending anything, an input that violates the schema and a call that would have to wait
    longer than the timeout to respect the service's rate limit.
    """

    def __init__(
        self,
        sender: Sender,
        locator: Locator,
        discovered: Discovered,
        *,
        credential: BearerCredential | None = None,
        trusted_hosts: Iterable[str] = (),
        pace: http_transport.RequestPace | None = None,
        longest_wait: float = 0.0,
        **options: Any,
    ) -> None:
        """Create a client. A call that must wait for `pace` more than `longest_wait` seconds is refused."""
        super().__init__(sender, locator, discovered, **options)
        self._credential = credential
        self._pace = pace
        self._longest_wait = longest_wait
        self._trusted = frozenset(host.lower() for host in trusted_hosts)
        self._by_id = {each.id: each for each in discovered.capabilities}
        self._by_place = {(each.method, each.path): each for each in reversed(discovered.capabilities)}

    async def _request(self, asked: GivenRequest) -> Reply:
        """Carry out a request without scopes and task id; an idempotency key alone makes nothing repeatable."""
        found = self._find(asked.method, asked.path)
        if found is None:
            return _refusal(self._unknown(asked.method, asked.path))
        capability, inside = found
        given = msgspec.json.decode(encode_json({**inside, **(asked.input or {}), **asked.query}, "input"))
        if (refused := _check(capability, given)) is not None:
            return _refusal(refused)
        return await self._carry_out(capability, given, asked)

    async def _carry_out(self, capability: Capability, given: Mapping[str, Any], asked: GivenRequest) -> Reply:
        """Send the request of a capability with a valid input."""
        credentials = self._credentials(capability)
        built = http_transport.build_request(capability, given, credentials.get("query"))
        if not isinstance(built, http_transport.CapabilityRequest):
            return _refusal(refuse_input(capability.method, capability.path, built))
        own = {**built.headers, **credentials.get("header", {})}
        if (key := asked.own["Idempotency-Key"]) is not None:
            own["Idempotency-Key"] = key
        for name, token in credentials.get("cookie", {}).items():
            own["Cookie"] = "; ".join(filter(None, (own.get("Cookie"), f"{name}={token}")))
        if (early := await self._keep_pace()) is not None:
            return _refusal(early)
        headers, repeatable = merge_headers(own, asked.headers), capability.is_idempotent
        message = await self._sender.send(built.method, str(built.address), headers, built.body, repeatable=repeatable)
        answer = http_transport.in_agtp_terms(message)
        return Reply(answer.status, answer.reason, answer.headers, answer.body)

    async def _replies(self, asked: GivenRequest) -> AsyncGenerator[Reply]:
        """Yield the whole answer: no document of such a service says how it streams."""
        yield await self._request(asked)

    def _output(self, reply: Reply) -> Any:
        """Return JSON as data and text as it is."""
        if reply.body and essence(reply.headers.get("content-type", "")).startswith("text/"):
            return reply.body.decode(errors="replace")
        return reply.output

    async def _keep_pace(self) -> Refused | None:
        """Wait until the rate limit allows a request, or return the refusal if that takes too long."""
        if self._pace is None or not (wait := await self._pace.turn(self._longest_wait)):
            return None
        seconds = math.ceil(wait)
        many = f"{self._pace.per_minute} request{'s' if self._pace.per_minute > 1 else ''} per minute"
        message = f"{self.locator} allows {many}, and the limit is reached; retry in {seconds} s. Nothing was sent."
        return Refused(status.RATE_LIMITED, "rate-limited", message, {}, (("Retry-After", str(seconds)),))

    def _find(self, method: str, path: str) -> tuple[Capability, dict[str, str]] | None:
        if not path:
            found = self._by_id.get(method)
            return (found, {}) if found else None
        verb = method.upper()
        found = self._by_place.get((verb, path)) or self._by_place.get((verb, in_braces(path)))
        if found is not None:
            return found, {}
        for capability in self.discovered.capabilities:
            if capability.method == verb and (inside := _inside(capability.path, path)) is not None:
                return capability, inside
        return None

    def _unknown(self, method: str, path: str) -> Refused:
        wanted = f"{method[:40]} {path[:120]}".strip()
        known = ", ".join(list(self._by_id)[:10]) + (", ..." if len(self._by_id) > 10 else "")
        message = f"{self.locator} does not offer {wanted!r}; it offers {known}."
        return Refused(status.NOT_FOUND, "endpoint-not-found", message)

    def _credentials(self, capability: Capability) -> dict[str, dict[str, str]]:
        """Return the credential at the place where the service expects it; empty if the origin is not trusted."""
        if self._credential is None or not self._is_trusted(capability.origin):
            return {}
        place = next((each for each in capability.credentials or (_ABSENT,) if each.kind != "unknown"), None)
        if place is None or place.kind == "none":
            return {}
        token = self._credential.present()
        if place.kind in ("query", "header", "cookie"):
            return {place.kind: {place.name: token}}
        return {"header": {"Authorization": f"{place.kind.capitalize()} {token}"}}

    def _is_trusted(self, origin: web.Origin) -> bool:
        return (
            origin == self.discovered.address.origin
            or f"{origin.host}:{origin.port}" in self._trusted
            or (origin.host in self._trusted and (origin.scheme, origin.port) == ("https", 443))
        )


class MessagingClient(WebServiceClient):
    """Client for an A2A agent that has only a card: each skill is called by a message, and answers with its task."""

    async def _carry_out(self, capability: Capability, given: Mapping[str, Any], asked: GivenRequest) -> Reply:
        """Send a message, and ask for its task until that has ended or the timeout of the client has passed."""
        interface = self.discovered.card.interface if self.discovered.card is not None else None
        assert interface is not None, "it has capabilities"
        requests = Requests(interface, asked.own["Idempotency-Key"])
        # The key is the id of the message. As a header it would be that of the questions about the task too.
        own = {**asked.own, "Idempotency-Key": None}
        asked = asked._replace(own=own, headers={**requests.headers, **asked.headers})
        exchange = partial(super()._carry_out, replace(capability, method="POST"), asked=asked)
        until = asyncio.get_running_loop().time() + self._longest_wait
        found = requests.read(await exchange(requests.send(given[MESSAGE], capability.id)))
        if isinstance(found, AgentAnswer) and found.is_working:
            task = f"task {found.task_id}"
            try:
                async with asyncio.timeout_at(until):
                    found = await self._follow(requests, found.task_id, exchange)
            except (TimeoutError, CallTimeoutError) as error:
                late = f"{self.locator} is still working on {task} after {self._longest_wait:g} seconds."
                raise CallTimeoutError(late) from error
            except UnreachableError as error:
                raise UnreachableError(f"{self.locator} was working on {task}: {error}") from error
        if isinstance(found, Reply):
            return found
        outcome = found.outcome() if isinstance(found, AgentAnswer) else found
        if isinstance(outcome, Refused):
            return _refusal(outcome)
        return Reply(status.OK, "OK", {"content-type": "application/json"}, msgspec.json.encode(outcome))

    async def _follow(
        self, requests: Requests, task_id: str, exchange: Callable[[Mapping[str, Any]], Awaitable[Reply]]
    ) -> AgentAnswer:
        """Ask for a task until the agent no longer works on it. Raises UnreachableError if the agent does not tell."""
        pause = _FIRST_PAUSE
        while True:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            found = requests.read(await exchange(requests.look(task_id)))
            if isinstance(found, AgentAnswer):
                if not found.is_working:
                    return found
            elif found.status not in (status.RATE_LIMITED, status.UNAVAILABLE):
                refused = found if isinstance(found, Reply) else _refusal(found)
                raise UnreachableError(f"it refuses to tell of it: {error_of(refused)}")


def _check(capability: Capability, given: Mapping[str, Any]) -> Refused | None:
    """Validate an input against the schema; return the refusal. A schema that does not compile allows everything."""
    validator = compile_schema(capability.input_schema)
    if isinstance(validator, Fault) or validator.is_valid(given):
        return None
    return refuse_input(capability.method, capability.path, validator.violations(given))


def _refusal(refused: Refused) -> Reply:
    error = {"code": refused.code, "message": refused.message, **refused.details}
    reason = status.REASONS.get(refused.status, "")
    headers = {"content-type": "application/json", **{name.lower(): text for name, text in refused.headers}}
    return Reply(refused.status, reason, headers, msgspec.json.encode({"error": error}))


def _inside(template: str, path: str) -> dict[str, str] | None:
    names = PLACEHOLDER.findall(template)
    if not names or len(set(names)) < len(names):
        return None
    pieces = PLACEHOLDER.split(template)[::2]
    match = re.fullmatch("([^/?]+)".join(re.escape(piece) for piece in pieces), path)
    return dict(zip(names, map(unquote, match.groups()), strict=True)) if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConnection:
    """Connection settings and credentials for a service on the web."""

    timeout: float = 30.0
    retry: RetryPolicy | None = None
    ca_file: str | Path | None = None
    client_cert: str | Path | None = None
    client_key: str | Path | None = None
    insecure: bool = False
    pool_size: int = 8
    credential: BearerCredential | None = None
    signer: Signer | None = None

    def tls(self) -> ssl.SSLContext | None:
        """Return the trusted authorities; None for those of the system."""
        if self.client_key is not None and self.client_cert is None:
            raise ConfigError("client_key (--client-key) requires client_cert (--client-cert).")
        if self.ca_file is None and self.client_cert is None:
            return None
        return web.trust(self.ca_file, cert=self.client_cert, key=self.client_key)


async def look_up(uri: str, connection: WebConnection, options: WebOptions) -> Discovered:
    """Discover the service at an address. Raises ConfigError if the address is not valid."""
    fetcher = Fetcher(
        _guard(uri, options),
        tls=connection.tls(),
        cache=open_cache(options.cache),
        insecure=connection.insecure,
        refresh=options.refresh,
    )
    try:
        found = await Lookup(fetcher, most=options.most_capabilities).find(uri)
    finally:
        await fetcher.close()
    if isinstance(found, web.AddressFault):
        raise ConfigError(str(found))
    return found


@asynccontextmanager
async def open_web(
    uri: str, connection: WebConnection, options: WebOptions, **caller: Any
) -> AsyncIterator[ServiceClient]:
    """Open a client for a service on the web. Raises NothingDiscoveredError or UnreachableError if there is none."""
    discovered = await look_up(uri, connection, options)
    transport = web.PinnedTransport(_guard(uri, options), connection.tls(), keep=connection.pool_size)
    http = http_transport.HttpExchanger(transport, insecure=connection.insecure)
    try:
        yield _choose(discovered, http, connection, options, caller)
    finally:
        await http.close()


def _choose(
    discovered: Discovered,
    http: http_transport.HttpExchanger,
    connection: WebConnection,
    options: WebOptions,
    caller: dict[str, Any],
) -> ServiceClient:
    address = discovered.address
    if discovered.kind == "none" or (discovered.kind == "a2a" and not discovered.capabilities):
        raise _nothing(discovered)
    if discovered.kind in ("agtp", "agis"):
        if discovered.base.origin != address.origin:
            message = f"{address} is at {discovered.base.origin}; connect to that address."
            raise NothingDiscoveredError(message, discovered)
        prefix = address.path.rstrip("/") if discovered.kind == "agtp" else ""
        locator = _locator(address, prefix)
        face = http_transport.FaceExchanger(http, address.origin, prefix, by_header=discovered.kind == "agis")
        sender = _sender(face, locator, connection, signer=connection.signer, credential=connection.credential)
        if discovered.kind == "agis":
            return DescribedClient(sender, locator, discovered, **caller)
        service = ServiceClient(sender, locator, ids=_ids(discovered, prefix), **caller)
        service.discovered = discovered
        return service
    locator = _locator(address, "")
    asked = discovered.ai.requests_per_minute if discovered.ai is not None else None
    client = MessagingClient if discovered.kind == "a2a" else WebServiceClient
    return client(
        _sender(http, locator, connection),
        locator,
        discovered,
        credential=connection.credential,
        trusted_hosts=options.trusted_hosts,
        pace=http_transport.RequestPace(asked) if asked else None,
        longest_wait=connection.timeout,
        **caller,
    )


def _sender(
    exchanger: http_transport.FaceExchanger | http_transport.HttpExchanger,
    locator: Locator,
    connection: WebConnection,
    **proofs: Any,
) -> Sender:
    secure = locator.web is not None and locator.web.startswith("https")
    return Sender(exchanger, locator, timeout=connection.timeout, retry=connection.retry, secure=secure, **proofs)


def _locator(address: web.WebAddress, prefix: str) -> Locator:
    return Locator(address.origin.host, address.origin.port, web=f"{address.origin}{prefix}")


def _guard(uri: str, options: WebOptions) -> web.AddressGuard:
    """Create a guard that allows a private address if the user named it, and others only on request."""
    address = web.parse_web_address(uri, insecure=True)
    typed = () if isinstance(address, web.AddressFault) else web.typed_host(address.origin.host, address.origin.port)
    return web.AddressGuard(typed, allow_private=options.allow_private, resolve=options.resolve)


def _ids(discovered: Discovered, prefix: str) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for capability in discovered.capabilities:
        named = split_verb(capability.target.removeprefix(prefix))
        if named is not None and capability.origin == discovered.address.origin:
            found[capability.id] = (named[1], named[0] or "/")
    return found


def _nothing(discovered: Discovered) -> NothingDiscoveredError | UnreachableError:
    faults = [step.fault for step in discovered.steps if step.fault is not None and not step.is_missing]
    if faults and not any(step.status for step in discovered.steps):
        return UnreachableError(f"{discovered.address}: {faults[0].message}.")
    if discovered.card is not None:
        places = ", ".join(dict.fromkeys(each.url for each in discovered.card.interfaces)) or "no usable address"
        spoken = "bespeak sends them by JSON-RPC of A2A 1.0 and 0.3"
        message = f"is an A2A agent, which takes messages at {places}; {spoken}, and the card has no such interface."
    elif discovered.agtp is not None:
        message = f"is an AGTP service: connect to {discovered.agtp}."
    else:
        said = [finding.message for finding in discovered.findings if finding.severity != "info"]
        reason = f" {said[0][:1].upper()}{said[0][1:]}." if said else ""
        looked = ", ".join(dict.fromkeys(step.url for step in discovered.steps))
        address = discovered.address
        is_mcp = str(address).rstrip("/").endswith(("/mcp", "/sse"))
        advice = f" For an MCP server run `bespeak import mcp {address} -o tools` and use `tools`." if is_mcp else ""
        message = f"has no callable service.{reason} Checked {looked}.{advice}"
    return NothingDiscoveredError(f"{discovered.address} {message}", discovered)

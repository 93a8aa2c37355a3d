"""Opens a client for a web address: discover the service, then choose the transport."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from joserfc.jwk import OKPKey

from bespeak.agent.client.bearer_token import BearerCredential
from bespeak.agent.client.errors import NothingDiscoveredError, UnreachableError
from bespeak.agent.client.http_exchanger import FaceExchanger, HttpExchanger
from bespeak.agent.client.http_service import DescribedClient, WebServiceClient
from bespeak.agent.client.pace import Pace
from bespeak.agent.client.retry import RetryPolicy
from bespeak.agent.client.sender import Sender
from bespeak.agent.client.service import ServiceClient
from bespeak.agent.client.signer import Signer
from bespeak.agent.client.web_options import WebOptions
from bespeak.agent.discovery.discovered import Discovered
from bespeak.agent.discovery.document_cache import open_cache
from bespeak.agent.discovery.fetcher import Fetcher
from bespeak.agent.discovery.lookup import Lookup
from bespeak.contract.http_route import split_verb
from bespeak.errors import ConfigError
from bespeak.protocol.address_guard import AddressGuard, typed_host
from bespeak.protocol.locator import Locator
from bespeak.protocol.pinned_transport import PinnedTransport, trust
from bespeak.protocol.web_address import AddressFault, WebAddress, parse_address


@dataclass(frozen=True, slots=True, kw_only=True)
class WebConnection:
    """Connection settings and credentials for a service on the web."""

    timeout: float = 30.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
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
        return trust(self.ca_file, cert=self.client_cert, key=self.client_key)


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
    if isinstance(found, AddressFault):
        raise ConfigError(str(found))
    return found


@asynccontextmanager
async def open_web(
    uri: str,
    connection: WebConnection,
    options: WebOptions,
    *,
    agent_id: str | None = None,
    scopes: Iterable[str] = (),
    key: OKPKey | None = None,
) -> AsyncIterator[ServiceClient]:
    """Open a client for a service on the web. Raises NothingDiscoveredError or UnreachableError if there is none."""
    discovered = await look_up(uri, connection, options)
    transport = PinnedTransport(_guard(uri, options), connection.tls(), keep=connection.pool_size)
    http = HttpExchanger(transport, insecure=connection.insecure)
    try:
        caller: dict[str, Any] = {"agent_id": agent_id, "scopes": scopes, "signing_key": key}
        yield _choose(discovered, http, connection, options, caller)
    finally:
        await http.close()


def _choose(
    discovered: Discovered, http: HttpExchanger, connection: WebConnection, options: WebOptions, caller: dict[str, Any]
) -> ServiceClient:
    """Choose the client for a discovered service."""
    address = discovered.address
    if discovered.kind in ("none", "a2a"):
        raise _nothing(discovered)
    if discovered.kind in ("agtp", "agis"):
        if discovered.base.origin != address.origin:
            message = f"{address} is at {discovered.base.origin}; connect to that address."
            raise NothingDiscoveredError(message, discovered)
        prefix = address.path.rstrip("/") if discovered.kind == "agtp" else ""
        locator = _locator(address, prefix)
        face = FaceExchanger(http, address.origin, prefix, by_header=discovered.kind == "agis")
        sender = _sender(face, locator, connection, signer=connection.signer, credential=connection.credential)
        if discovered.kind == "agis":
            return DescribedClient(sender, locator, discovered, **caller)
        service = ServiceClient(sender, locator, ids=_ids(discovered, prefix), **caller)
        service.discovered = discovered
        return service
    locator = _locator(address, "")
    asked = discovered.ai.requests_per_minute if discovered.ai is not None else None
    return WebServiceClient(
        _sender(http, locator, connection),
        locator,
        discovered,
        credential=connection.credential,
        trusted_hosts=options.trusted_hosts,
        pace=Pace(asked) if asked else None,
        longest_wait=connection.timeout,
        **caller,
    )


def _sender(
    exchanger: FaceExchanger | HttpExchanger, locator: Locator, connection: WebConnection, **proofs: Any
) -> Sender:
    secure = locator.web is not None and locator.web.startswith("https")
    return Sender(exchanger, locator, timeout=connection.timeout, retry=connection.retry, secure=secure, **proofs)


def _locator(address: WebAddress, prefix: str) -> Locator:
    return Locator(address.origin.host, address.origin.port, web=f"{address.origin}{prefix}")


def _guard(uri: str, options: WebOptions) -> AddressGuard:
    """Create a guard that allows a private address if the user named it, and others only on request."""
    address = parse_address(uri, insecure=True)
    typed = () if isinstance(address, AddressFault) else typed_host(address.origin.host, address.origin.port)
    return AddressGuard(typed, allow_private=options.allow_private, resolve=options.resolve)


def _ids(discovered: Discovered, prefix: str) -> dict[str, tuple[str, str]]:
    """Map the capability ids of the discovery document to endpoints."""
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
        message = (
            f"{discovered.address} is an A2A agent, which takes messages at {places}. Its skills have no schemas, so "
            "they cannot be called as endpoints. Use an A2A client."
        )
        return NothingDiscoveredError(message, discovered)
    if discovered.agtp is not None:
        message = f"{discovered.address} is an AGTP service: connect to {discovered.agtp}."
        return NothingDiscoveredError(message, discovered)
    said = [finding.message for finding in discovered.findings if finding.severity != "info"]
    reason = f" {said[0][:1].upper()}{said[0][1:]}." if said else ""
    looked = ", ".join(dict.fromkeys(step.url for step in discovered.steps))
    message = f"{discovered.address} has no callable service.{reason} Checked {looked}."
    return NothingDiscoveredError(message, discovered)

"""Client for a service that is described by documents on the web."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from bespeak.agent.client.bearer_token import BearerCredential
from bespeak.agent.client.capability_request import CapabilityRequest, build_request
from bespeak.agent.client.described_service import described_manifest
from bespeak.agent.client.http_exchanger import in_agtp_terms
from bespeak.agent.client.inventory import InventoryEntry
from bespeak.agent.client.pace import Pace
from bespeak.agent.client.reply import Reply
from bespeak.agent.client.sender import Sender
from bespeak.agent.client.service import ServiceClient, encode_json, merge_headers
from bespeak.agent.discovery.capability import PLACEHOLDER, Capability, CredentialPlace, in_braces
from bespeak.agent.discovery.discovered import Discovered
from bespeak.contract.schema.compile import compile_schema
from bespeak.contract.schema.report import refuse_input
from bespeak.contract.service import DEFAULT_CATALOG
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.errors import ConfigError
from bespeak.protocol import status
from bespeak.protocol.exchange.media_type import essence
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.fault import Fault
from bespeak.protocol.locator import Locator
from bespeak.protocol.web_address import Origin

_ABSENT: Final = CredentialPlace("bearer")
"""Default place of a credential if the service does not name one: it may be needed."""


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
        """Return the short inventory of endpoints."""
        manifest = await self.discover()
        return [InventoryEntry(each.method, each.path, each.description) for each in manifest.endpoints]

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
        pace: Pace | None = None,
        longest_wait: float = 0.0,
        **options: Any,
    ) -> None:
        """Create a client. `pace` is the rate limit of the service; a call that must wait more than `longest_wait`
        is refused.
        """
        super().__init__(sender, locator, discovered, **options)
        self._credential = credential
        self._pace = pace
        self._longest_wait = longest_wait
        self._trusted = frozenset(host.lower() for host in trusted_hosts)
        self._by_id = {each.id: each for each in discovered.capabilities}
        self._by_place = {(each.method, each.path): each for each in reversed(discovered.capabilities)}

    async def _request(
        self,
        method: str,
        path: str,
        given: Mapping[str, Any] | None,
        *,
        query: Mapping[str, Any],
        standard: Mapping[str, str | None],
        special: Mapping[str, str],
    ) -> Reply:
        """Carry out a request over HTTP.

        Services on the web have no scopes or task ids. They receive the idempotency key, but the key alone does not
        make a method that changes something repeatable.
        """
        found = self._find(method, path)
        if found is None:
            return _refusal(self._unknown(method, path))
        capability, inside = found
        given = msgspec.json.decode(encode_json({**inside, **(given or {}), **query}, "input"))
        refused = _check(capability, given)
        if refused is not None:
            return _refusal(refused)
        credentials = self._credentials(capability)
        built = build_request(capability, given, credentials.get("query"))
        if not isinstance(built, CapabilityRequest):
            return _refusal(refuse_input(capability.method, capability.path, built))
        own = {**built.headers, **credentials.get("header", {})}
        if standard["Idempotency-Key"] is not None:
            own["Idempotency-Key"] = standard["Idempotency-Key"]
        for name, token in credentials.get("cookie", {}).items():
            own["Cookie"] = "; ".join(filter(None, (own.get("Cookie"), f"{name}={token}")))
        early = await self._keep_pace()
        if early is not None:
            return _refusal(early)
        message = await self._sender.send(
            built.method,
            str(built.address),
            merge_headers(own, special),
            built.body,
            repeatable=capability.is_idempotent,
        )
        answer = in_agtp_terms(message)
        return Reply(answer.status, answer.reason, answer.headers, answer.body)

    def _output(self, reply: Reply) -> Any:
        """Return JSON as data and text as it is."""
        if reply.body and essence(reply.headers.get("content-type", "")).startswith("text/"):
            return reply.body.decode(errors="replace")
        return reply.output

    async def _keep_pace(self) -> Refused | None:
        """Wait until the rate limit allows a request, or return the refusal if that takes too long."""
        wait = 0.0 if self._pace is None else await self._pace.turn(self._longest_wait)
        if self._pace is None or not wait:
            return None
        seconds = math.ceil(wait)
        many = f"{self._pace.per_minute} request{'s' if self._pace.per_minute > 1 else ''}"
        message = (
            f"{self.locator} allows {many} per minute, and the limit is reached; "
            f"retry in {seconds} s. Nothing was sent."
        )
        return Refused(status.RATE_LIMITED, "rate-limited", message, {}, (("Retry-After", str(seconds)),))

    def _find(self, method: str, path: str) -> tuple[Capability, dict[str, str]] | None:
        """Find the capability and the parameters that the path contains."""
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
        wanted = capability.credentials or (_ABSENT,)
        place = next((each for each in wanted if each.kind != "unknown"), None)
        if place is None or place.kind == "none":
            return {}
        token = self._credential.present()
        if place.kind in ("query", "header"):
            return {place.kind: {place.name: token}}
        if place.kind == "cookie":
            return {"cookie": {place.name: token}}
        return {"header": {"Authorization": f"{place.kind.capitalize()} {token}"}}

    def _is_trusted(self, origin: Origin) -> bool:
        return (
            origin == self.discovered.address.origin
            or f"{origin.host}:{origin.port}" in self._trusted
            or (origin.host in self._trusted and (origin.scheme, origin.port) == ("https", 443))
        )


def _check(capability: Capability, given: Mapping[str, Any]) -> Refused | None:
    """Validate an input against the schema; return the refusal. A schema that does not compile allows everything."""
    validator = compile_schema(capability.input_schema)
    if isinstance(validator, Fault) or validator.is_valid(given):
        return None
    return refuse_input(capability.method, capability.path, validator.violations(given))


def _refusal(refused: Refused) -> Reply:
    """Convert a refusal of this client into a reply, as if the service had sent it."""
    error = {"code": refused.code, "message": refused.message, **refused.details}
    reason = status.REASONS.get(refused.status, "")
    headers = {"content-type": "application/json", **{name.lower(): text for name, text in refused.headers}}
    return Reply(refused.status, reason, headers, msgspec.json.encode({"error": error}))


def _inside(template: str, path: str) -> dict[str, str] | None:
    """Extract the parameters of a template from a path; return None if the path does not match."""
    names = PLACEHOLDER.findall(template)
    if not names or len(set(names)) < len(names):
        return None
    pieces = PLACEHOLDER.split(template)[::2]
    match = re.fullmatch("([^/?]+)".join(re.escape(piece) for piece in pieces), path)
    return dict(zip(names, map(unquote, match.groups()), strict=True)) if match else None

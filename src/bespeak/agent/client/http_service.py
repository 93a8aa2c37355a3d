"""A service that documents on the web describe, called like any other: checked first, credentials kept at home."""

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
from bespeak.agent.client.locator import Locator
from bespeak.agent.client.pace import Pace
from bespeak.agent.client.reply import Reply
from bespeak.agent.client.sender import Sender
from bespeak.agent.client.service import ServiceClient, encode_json, merge_headers
from bespeak.agent.discovery.capability import PLACEHOLDER, Capability, CredentialPlace, in_braces
from bespeak.agent.discovery.discovered import Discovered
from bespeak.agent.discovery.web_address import Origin
from bespeak.contract.schema.compile import compile_schema
from bespeak.contract.schema.report import refuse_input
from bespeak.contract.service import DEFAULT_CATALOG
from bespeak.documents.manifest_json import ManifestDocument
from bespeak.errors import ConfigError
from bespeak.protocol import status
from bespeak.protocol.exchange.media_type import essence
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.fault import Fault

_ABSENT: Final = CredentialPlace("bearer")
"""Where a credential goes if the service says nothing: an agent assumes that it may be needed."""


class DescribedClient(ServiceClient):
    """A service whose contract is known from a document, and not asked for by AGTP."""

    def __init__(self, sender: Sender, locator: Locator, discovered: Discovered, **options: Any) -> None:
        super().__init__(sender, locator, **options)
        self.discovered: Discovered = discovered
        self._adopt(described_manifest(discovered))
        self.catalog_version = DEFAULT_CATALOG  # nobody there judges verbs by one

    async def discover(self, *, refresh: bool = False) -> ManifestDocument:
        """What the documents said when the client was opened; open another one to look again."""
        assert self.manifest is not None
        return self.manifest

    async def methods(self) -> list[InventoryEntry]:
        """What the service offers, in short."""
        manifest = await self.discover()
        return [InventoryEntry(each.method, each.path, each.description) for each in manifest.endpoints]

    async def identify(self) -> dict[str, Any]:
        """Services of the web have no identity documents. Raises ConfigError."""
        raise ConfigError(f"{self.locator} names no agent; agents are found by agtp://<agent-id>@host.")


class WebServiceClient(DescribedClient):
    """A service with capabilities of HTTP. Each is called by its id, or by its method and path.

    No AGTP headers are sent to it, and a credential only to the host that the user named, or to trusted ones. An input
    that breaks the schema is refused here, and nothing is sent; so is a call that would have to wait longer than the
    timeout for the pace that the service asks for.
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
        """`pace` is what the service asks for; a call for which its turn is too far away is refused here."""
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

        A service of the web knows no scopes and no task ids; it gets the idempotency key, but what changes something is
        not sent twice for that alone.
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
        """Wait for the turn of one request, or say why it is not sent."""
        wait = 0.0 if self._pace is None else await self._pace.turn(self._longest_wait)
        if self._pace is None or not wait:
            return None
        seconds = math.ceil(wait)
        many = f"{self._pace.per_minute} request{'s' if self._pace.per_minute > 1 else ''}"
        message = (
            f"{self.locator} asks for at most {many} a minute, and so many were made; "
            f"call again in {seconds} s. Nothing was sent."
        )
        return Refused(status.RATE_LIMITED, "rate-limited", message, {}, (("Retry-After", str(seconds)),))

    def _find(self, method: str, path: str) -> tuple[Capability, dict[str, str]] | None:
        """The capability that is meant, and what the path says of the input."""
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
        message = f"{self.locator} offers no {wanted!r}; it has {known}."
        return Refused(status.NOT_FOUND, "endpoint-not-found", message)

    def _credentials(self, capability: Capability) -> dict[str, dict[str, str]]:
        """The credential where the service wants it, if it may go there at all."""
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
            or (origin.host in self._trusted and origin.scheme == "https")
        )


def _check(capability: Capability, given: Mapping[str, Any]) -> Refused | None:
    """The refusal of an input that breaks the schema. A schema that cannot be used forbids nothing."""
    validator = compile_schema(capability.input_schema)
    if isinstance(validator, Fault) or validator.is_valid(given):
        return None
    return refuse_input(capability.method, capability.path, validator.violations(given))


def _refusal(refused: Refused) -> Reply:
    """A refusal of this side, in the form in which a service refuses."""
    error = {"code": refused.code, "message": refused.message, **refused.details}
    reason = status.REASONS.get(refused.status, "")
    headers = {"content-type": "application/json", **{name.lower(): text for name, text in refused.headers}}
    return Reply(refused.status, reason, headers, msgspec.json.encode({"error": error}))


def _inside(template: str, path: str) -> dict[str, str] | None:
    """What a path says of the parameters of a template, or None if it is another path."""
    names = PLACEHOLDER.findall(template)
    if not names or len(set(names)) < len(names):
        return None
    pieces = PLACEHOLDER.split(template)[::2]
    match = re.fullmatch("([^/?]+)".join(re.escape(piece) for piece in pieces), path)
    return dict(zip(names, map(unquote, match.groups()), strict=True)) if match else None

"""AUTHORIZE: grants part of the caller's own authority to an agent (Tier 2 5.4, 10.2)."""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Refused
from bespeak.protocol.exchange.scope import parse_scopes
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.authority import Authority
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.grants import EVERYTHING, GRANTED, KIND, Grant
from bespeak.runtime.methods.needs import invalid, refuse_without_needs
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.records import PutRecord

_logger = logging.getLogger(__name__)

HOUR: Final = 3600.0
"""Seconds for which a grant without a ttl holds."""
MOST_GRANTS: Final = 10_000
_RESOURCE: Final = re.compile(r"(?:[A-Z][A-Z0-9_-]* )?/\S*")
_AUTHORIZE: Final = STANDARD["AUTHORIZE"]


def authorize(call: RoutedCall) -> Effects | Refused:
    """Answer AUTHORIZE /. Nobody can grant more than it holds itself, or pass on what was granted to it.

    A grant ends with the credential of its granter, whatever its ttl.
    """
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    given, granter = call.input, call.agent_id or ""
    wanted = given["scope"] if isinstance(given["scope"], str) else ",".join(given["scope"])
    scopes = parse_scopes(wanted)
    if isinstance(scopes, str):
        return invalid("scope", f"has {scopes[:80]!r}, which is not a valid scope; write DOMAIN:ACTION.")
    refused = _judge(call, tuple(scopes))
    if refused is not None:
        return refused
    authority = Authority.of(call.principal, call.request)
    lifetime = authority.within(call.server.principals, given.get("ttl", HOUR))
    if lifetime <= 0:
        return _AUTHORIZE.refuse("scope-violation", "The credential of the granter has ended; get a new one.")
    conditions = given.get("conditions", {})
    grant = Grant(
        subject=given["subject"],
        resource=given["resource"],
        scope=tuple(scopes),
        granted_by=granter,
        expires=call.server.principals.clock() + lifetime,
        methods=tuple(conditions.get("methods", ())),
        paths=tuple(conditions.get("paths", ())),
        authority=authority,
    )
    parts = [granter, grant.subject, grant.resource, *grant.scope, "", *grant.methods, "", *grant.paths]
    command = PutRecord(
        f"grant-{secrets.token_hex(16)}",
        KIND,
        granter,
        GRANTED,
        msgspec.json.encode(grant).decode(),
        key=hashlib.sha256("\n".join(parts).encode(errors="surrogatepass")).hexdigest(),
        lifetime=lifetime,
        most=MOST_GRANTS,
    )

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            known = {"grant_id": results.details["record_id"]} if "record_id" in results.details else {}
            message = "The subject holds this grant already; CANCEL it first to change it."
            if results.reason == "too-many":
                message = f"The agent has given {results.details['most']} grants, the maximum."
            return _AUTHORIZE.refuse("already-granted", message, **known)
        return Envelope(
            {
                "grant_id": results[0].record_id,
                "subject": grant.subject,
                "resource": grant.resource,
                "scope": list(grant.scope),
                "granted_by": granter,
                "expires_at": write_instant(grant.expires),
            }
        )

    return Effects((command,), tell, call.server.grants.refresh)


def _judge(call: RoutedCall, scopes: tuple[str, ...]) -> Refused | None:
    subject, resource = call.input["subject"], call.input["resource"]
    if not is_canonical_id(subject):
        return _AUTHORIZE.refuse("unknown-subject", "A grant is for an agent: name it by its Agent-ID, 64 digits.")
    if call.server.principals.requires_known and call.server.agents.get(subject) is None:
        return _AUTHORIZE.refuse("unknown-subject", "The subject is not registered with this server.")
    if resource != EVERYTHING and _RESOURCE.fullmatch(resource) is None:
        return invalid("resource", f"is {resource[:80]!r}; write a path, METHOD /path, or * for everything.")
    # What was delegated is passed on by DELEGATE, which keeps its depth and its end.
    beyond = list(scopes) if call.principal.delegators else call.principal.scopes.missing(scopes)
    if beyond:
        # Tier 2 10.2: an attempt to launder authority is logged.
        _logger.warning("%s tried to grant %s, which it does not hold, to %s", call.agent_id, beyond, subject)
        message = f"The agent does not hold {', '.join(beyond)} itself, so it cannot grant that."
        return _AUTHORIZE.refuse("scope-violation", message, missing_scopes=beyond)
    return None

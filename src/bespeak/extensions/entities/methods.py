"""AUTHORIZE, SIGN and LOG: grants, signatures and events of agents (Tier 2 5)."""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Sequence
from typing import Any, Final

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id, parse_scopes
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, not_available
from bespeak.runtime.handling import (
    RefusedError,
    check_size,
    effects,
    invalid,
    new_id,
    refusal,
    stateful,
    to_json,
)
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.identity.grants import EVERYTHING, GRANT, GRANTED, Grant
from bespeak.state.store.commands.events import PutEvent
from bespeak.state.store.commands.records import PutRecord, Record
from bespeak.text.diagnostics.diagnostic import unquoted

_logger = logging.getLogger(__name__)

HOUR: Final = 3600.0  # seconds for which a grant without a ttl holds
MOST_GRANTS: Final = 10_000
_RESOURCE: Final = re.compile(r"(?:[A-Z][A-Z0-9_-]* )?/\S*")
_AUTHORIZE: Final = STANDARD["AUTHORIZE"]


@stateful
def authorize(call: RoutedCall) -> Effects:
    """Answer AUTHORIZE /. Nobody grants more than it holds, passes a grant on, or grants beyond its credential."""
    given, granter = call.input, call.agent_id or ""
    scopes = parse_scopes(given["scope"] if isinstance(given["scope"], str) else ",".join(given["scope"]))
    if isinstance(scopes, str):
        raise invalid("scope", f"has {scopes[:80]!r}, which is not a valid scope; write DOMAIN:ACTION.")
    _judge_grant(call, tuple(scopes))
    authority = Authority.of(call.principal, call.request)
    lifetime = authority.within(call.server.principals, given.get("ttl", HOUR))
    if lifetime <= 0:
        raise refusal(_AUTHORIZE, "scope-violation", "The credential of the granter has ended; get a new one.")
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
    key = hashlib.sha256("\n".join(parts).encode(errors="surrogatepass")).hexdigest()
    record = (new_id("grant"), GRANT, granter, GRANTED, to_json(grant), key)
    held = "The subject holds this grant already; CANCEL it first to change it."
    return effects(
        [PutRecord(*record, lifetime=lifetime, most=MOST_GRANTS)],
        lambda results: {
            "grant_id": results[0].record_id,
            "subject": grant.subject,
            "resource": grant.resource,
            "scope": list(grant.scope),
            "granted_by": granter,
            "expires_at": write_instant(grant.expires),
        },
        {
            "too-many": _AUTHORIZE.refuse("already-granted", f"The agent has given {MOST_GRANTS} grants, the maximum."),
            "": lambda found: _AUTHORIZE.refuse(
                "already-granted", held, **({"grant_id": found["record_id"]} if found else {})
            ),
        },
        call.server.grants.refresh,
    )


def _judge_grant(call: RoutedCall, scopes: tuple[str, ...]) -> None:
    subject, resource = call.input["subject"], call.input["resource"]
    if not is_canonical_id(subject):
        message = "A grant is for an agent: name it by its Agent-ID, 64 digits."
        raise refusal(_AUTHORIZE, "unknown-subject", message)
    if call.server.principals.requires_known and call.server.agents.get(subject) is None:
        raise refusal(_AUTHORIZE, "unknown-subject", "The subject is not registered with this server.")
    if resource != EVERYTHING and _RESOURCE.fullmatch(resource) is None:
        raise invalid("resource", f"is {resource[:80]!r}; write a path, METHOD /path, or * for everything.")
    # What was delegated is passed on by DELEGATE, which keeps its depth and its end.
    beyond = list(scopes) if call.principal.delegators else call.principal.scopes.missing(scopes)
    if beyond:
        # Tier 2 10.2: an attempt to launder authority is logged.
        _logger.warning("%s tried to grant %s, which it does not hold, to %s", call.agent_id, beyond, subject)
        message = f"The agent does not hold {', '.join(beyond)} itself, so it cannot grant that."
        raise refusal(_AUTHORIZE, "scope-violation", message, missing_scopes=beyond)


MOST_SIGNED: Final = 256 * 1024  # maximum bytes of what is signed
ALGORITHMS: Final = ("EdDSA", "Ed25519")
SIGNING_KEY: Final = "a signing key: [server] signing_key"
_SIGN: Final = STANDARD["SIGN"]


@stateful
def sign(call: RoutedCall) -> Envelope:
    signer, given = call.server.signer, call.input
    if signer is None:
        raise RefusedError(not_available("SIGN", SIGNING_KEY))
    if given.get("key_id", signer.key_id) != signer.key_id:
        message = f"This server signs with the key {signer.key_id} only."
        raise refusal(_SIGN, "key-refused", message, key_id=signer.key_id)
    algorithm = given.get("algorithm", ALGORITHMS[0])
    if algorithm not in ALGORITHMS:
        message = f"{algorithm[:40]!r} is not an algorithm of this key; it has {' and '.join(ALGORITHMS)}."
        raise refusal(_SIGN, "unknown-algorithm", message, algorithms=list(ALGORITHMS))
    # They load cryptography, which most servers do without.
    from bespeak.state.identity.signed_document import SignedDocument, canonical, write_signed  # noqa: PLC0415

    payload, now = canonical(given["payload"]), write_instant(time.time())
    check_size("payload", len(payload), MOST_SIGNED)
    document = SignedDocument(given["payload"], call.agent_id or "", call.routes.service.identity.server_id, now)
    return Envelope(
        {
            "signature": write_signed(document, signer.private_key, signer.key_id, algorithm),
            "key_id": signer.key_id,
            "algorithm": algorithm,
            "signed_at": now,
            "digest": f"sha256:{hashlib.sha256(payload).hexdigest()}",
        }
    )


MOST_EVENTS: Final = 10_000  # events of one agent that are kept; the oldest make room
MOST_EVENTS_SIZE: Final = 16 * 1024 * 1024  # characters of their content together
MOST_EVENT_DATA: Final = 64 * 1024  # maximum bytes of the data of a record
_LOG: Final = STANDARD["LOG"]


@stateful
def log(call: RoutedCall) -> Effects:
    """Answer LOG /. The record and the audit record of the call are one transaction."""
    given, severity = call.input, call.input.get("severity", "info")
    content = {name: given[name] for name in ("event_type", "data", "correlation_id") if name in given}
    data = to_json({**content, "severity": severity})
    if len(data) > MOST_EVENT_DATA:
        message = f"A record may have {MOST_EVENT_DATA // 1024} KiB; this one has {len(data)} bytes."
        raise refusal(_LOG, "invalid-data", message)

    def result(results: Sequence[Record]) -> dict[str, Any]:
        made, level = results[0], logging.getLevelNamesMapping()[severity.upper()]
        # The content may hold what operators must not read.
        _logger.log(level, "%s reported %s: %s", made.owner, unquoted(given["event_type"]), made.record_id)
        told = {"record_id": made.record_id, "event_type": given["event_type"], "severity": severity}
        return {**told, "logged_at": write_instant(made.created)}

    return effects([PutEvent(new_id("log"), call.agent_id or "", data, MOST_EVENTS, MOST_EVENTS_SIZE)], result, {})

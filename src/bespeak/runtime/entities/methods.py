"""REGISTER, TRANSFER, AUTHORIZE, SIGN and LOG: entities and owners, grants, signatures, events (Tier 2 5)."""

from __future__ import annotations

import hashlib
import logging
import math
import re
import secrets
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id, parse_scopes
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, invalid, not_available, refuse_without_needs, too_large
from bespeak.runtime.identity.authority import Authority
from bespeak.runtime.identity.grants import EVERYTHING, GRANT, GRANTED, Grant
from bespeak.runtime.messages.recipients import verify_callback
from bespeak.runtime.workflows.procedures import PROCEDURE, register_procedure
from bespeak.state.store.commands.events import PutEvent
from bespeak.state.store.commands.messages import SUBSCRIPTION, channel_key, channel_mark
from bespeak.state.store.commands.records import NEVER, ChangeRecord, FindRecord, PutRecord, Record
from bespeak.state.store.store import Conflict
from bespeak.text.diagnostics.diagnostic import unquoted

ENTITY: Final = "entity"
LIVE: Final = "live"
MOST_ENTITY_DATA: Final = 64 * 1024
"""Maximum bytes of the data of an entity."""
MOST_OWNED: Final = 10_000
"""Entities of one owner."""


class Handover(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change of ownership."""

    transfer_id: str
    from_principal: str
    to_principal: str
    by: str
    """Agent that asked for it."""
    at: float
    reason: str | None = None


class Entity(msgspec.Struct, frozen=True, omit_defaults=True):
    """Content of the record of an entity."""

    entity_type: str
    data: Any
    owners: tuple[Handover, ...] = ()
    """All changes of ownership, the first one first."""

    def text(self) -> str:
        """Return the content as JSON."""
        return msgspec.json.encode(self).decode()


_decode = msgspec.json.Decoder(Entity).decode


def entity_of(record: Record) -> Entity:
    """Read the content of a record."""
    return _decode(record.data)


CHANNEL: Final = "channel"
"""Entity type of a channel, which only its owner may use from then on."""
_REGISTER: Final = STANDARD["REGISTER"]
_LONGEST_CHANNEL: Final = 256
_LONGEST_CALLBACK: Final = 1000
_MOST_SUBSCRIPTION: Final = 4096
"""Maximum bytes of a subscription; many are read at once."""


def register(call: RoutedCall) -> Effects | Refused | Coroutine[Any, Any, Effects | Refused]:
    """Answer REGISTER /."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    if call.input["entity_type"] == PROCEDURE:
        return register_procedure(call, MOST_ENTITY_DATA)
    entity = Entity(call.input["entity_type"], call.input["data"])
    text, owner = entity.text(), call.agent_id or ""
    if len(text) > MOST_ENTITY_DATA:
        message = f"An entity may have {MOST_ENTITY_DATA // 1024} KiB; this one has {len(text)} bytes."
        return _REGISTER.refuse("invalid-data", message)
    command = PutRecord(f"ent-{secrets.token_hex(16)}", ENTITY, owner, LIVE, text, most=MOST_OWNED)
    callback, authority = None, Authority.of(call.principal, call.request)
    if entity.entity_type in (SUBSCRIPTION, CHANNEL):
        channel = _channel(entity.data)
        if isinstance(channel, Refused):
            return channel
        command = msgspec.structs.replace(command, key=channel_key(channel))
        if entity.entity_type == SUBSCRIPTION:
            if len(text) > _MOST_SUBSCRIPTION:
                return _REGISTER.refuse("invalid-data", f"A subscription may have {_MOST_SUBSCRIPTION} bytes.")
            callback = entity.data.get("callback")
            # One subscription of an agent to a channel; the channel is its state, by which publishing finds it.
            command = PutRecord(
                f"sub-{secrets.token_hex(16)}",
                SUBSCRIPTION,
                owner,
                channel_mark(channel),
                text,
                key=f"{owner} {channel}",
                lifetime=None if authority.expires is None else authority.within(call.server.principals, math.inf),
                most=MOST_OWNED,
            )

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _refuse(results)
        record: Record = results[0]
        result = {
            "entity_id": record.record_id,
            "entity_type": entity.entity_type,
            "owner": record.owner,
            "version": record.version,
            "created_at": write_instant(record.created),
        }
        # A subscription ends with the credential that made it; an entity is property, which has no end.
        return Envelope(result if record.expires >= NEVER else {**result, "expires_at": write_instant(record.expires)})

    effects = Effects((command,), tell)
    return effects if callback is None else _verify(call, callback, effects)


async def _verify(call: RoutedCall, callback: Any, effects: Effects) -> Effects | Refused:
    """Return the effects if the address to which messages are pushed has agreed to that (Tier 2 10.5)."""
    if not isinstance(callback, str) or not 0 < len(callback) <= _LONGEST_CALLBACK or not callback.isprintable():
        return _REGISTER.refuse("invalid-data", "The callback of a subscription is an address.", field="/data/callback")
    return await verify_callback(call, callback) or effects


def _channel(data: Any) -> str | Refused:
    channel = data.get("channel") if isinstance(data, Mapping) else None
    if not isinstance(channel, str) or not 0 < len(channel) <= _LONGEST_CHANNEL or not channel.isprintable():
        message = 'The data of a subscription or a channel name it: {"channel": "news"}.'
        return _REGISTER.refuse("invalid-data", message, field="/data/channel")
    return channel


def _refuse(conflict: Conflict) -> Refused:
    if conflict.reason == "too-many":
        return _REGISTER.refuse("too-many-entities", f"The agent has {conflict.details['most']} entities, the maximum.")
    message = "The channel is registered already, or the agent is subscribed to it already."
    return _REGISTER.refuse("already-registered", message, entity_id=conflict.details.get("record_id"))


_TRANSFER: Final = STANDARD["TRANSFER"]
_MOST_OWNERS: Final = 1_000
"""Changes of ownership of one entity."""


async def transfer(call: RoutedCall) -> Effects | Refused:
    """Answer TRANSFER /. The caller is the owner, and holds `TYPE:transfer` for the type of the entity."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    assert call.server.store is not None
    given, who = call.input, call.principal
    record: Record | None = await call.server.store.read(FindRecord((ENTITY,), given["resource_id"]))
    if record is None or record.owner not in (who.agent_id, who.principal_id):
        return _TRANSFER.refuse("resource-not-found", f"This agent owns no resource {given['resource_id'][:80]!r}.")
    entity = entity_of(record)
    refused = _judge(call, record, entity)
    if refused is not None:
        return refused
    handover = Handover(
        transfer_id=f"tr-{secrets.token_hex(16)}",
        from_principal=given["from_principal"],
        to_principal=given["to_principal"],
        by=who.agent_id or "",
        at=time.time(),
        reason=given.get("reason"),
    )
    command = ChangeRecord(
        record.record_id,
        (ENTITY,),
        (LIVE,),
        LIVE,
        owner=record.owner,
        version=record.version,
        data=msgspec.structs.replace(entity, owners=(*entity.owners, handover)).text(),
        new_owner=handover.to_principal,
    )

    def tell(results: Sequence[Any] | Conflict) -> Envelope | Refused:
        if isinstance(results, Conflict):
            return _TRANSFER.refuse("already-owned", "The resource was changed by another call; look at it again.")
        return Envelope(
            {
                "transfer_id": handover.transfer_id,
                "resource_id": record.record_id,
                "from_principal": handover.from_principal,
                "to_principal": handover.to_principal,
                "version": results[0].version,
                "transferred_at": write_instant(handover.at),
            }
        )

    # Tier 2 10.6: the record of a transfer has the complete chain of owners.
    owners = [*(one.from_principal for one in entity.owners), handover.from_principal, handover.to_principal]
    return Effects((command,), tell, recorded={"owners": owners})


def _judge(call: RoutedCall, record: Record, entity: Entity) -> Refused | None:
    needed = f"{entity.entity_type}:transfer"
    if not call.principal.scopes.covers(needed):
        message = f"Transferring an entity of the type {entity.entity_type} needs the scope {needed}."
        return _TRANSFER.refuse("scope-violation", message, missing_scopes=[needed], required_scopes=[needed])
    if call.input["from_principal"] != record.owner:
        return _TRANSFER.refuse("not-the-owner", f"The owner is {record.owner}.", owner=record.owner)
    if call.input["to_principal"] == record.owner:
        return _TRANSFER.refuse("already-owned", "to_principal owns the resource already.")
    if len(entity.owners) >= _MOST_OWNERS:
        return _TRANSFER.refuse("already-owned", f"The resource has changed hands {_MOST_OWNERS} times, the maximum.")
    return None


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
    refused = _judge_grant(call, tuple(scopes))
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
        GRANT,
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


def _judge_grant(call: RoutedCall, scopes: tuple[str, ...]) -> Refused | None:
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


MOST_SIGNED: Final = 256 * 1024
"""Maximum bytes of what is signed."""
ALGORITHMS: Final = ("EdDSA", "Ed25519")
SIGNING_KEY: Final = "a signing key: [server] signing_key"
_SIGN: Final = STANDARD["SIGN"]


def sign(call: RoutedCall) -> Envelope | Refused:
    """Answer SIGN /."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    signer, given = call.server.signer, call.input
    if signer is None:
        return not_available("SIGN", SIGNING_KEY)
    if given.get("key_id", signer.key_id) != signer.key_id:
        message = f"This server signs with the key {signer.key_id} only."
        return _SIGN.refuse("key-refused", message, key_id=signer.key_id)
    algorithm = given.get("algorithm", ALGORITHMS[0])
    if algorithm not in ALGORITHMS:
        message = f"{algorithm[:40]!r} is not an algorithm of this key; it has {' and '.join(ALGORITHMS)}."
        return _SIGN.refuse("unknown-algorithm", message, algorithms=list(ALGORITHMS))
    # They load cryptography, which most servers do without.
    from bespeak.state.identity.signed_document import SignedDocument, canonical, write_signed  # noqa: PLC0415

    payload, now = canonical(given["payload"]), write_instant(time.time())
    if len(payload) > MOST_SIGNED:
        return too_large("payload", MOST_SIGNED)
    server_id = call.routes.service.identity.server_id
    document = SignedDocument(given["payload"], call.agent_id or "", server_id, now)
    return Envelope(
        {
            "signature": write_signed(document, signer.private_key, signer.key_id, algorithm),
            "key_id": signer.key_id,
            "algorithm": algorithm,
            "signed_at": now,
            "digest": f"sha256:{hashlib.sha256(payload).hexdigest()}",
        }
    )


MOST_EVENTS: Final = 10_000
"""Events of one agent that are kept; the oldest make room."""
MOST_EVENTS_SIZE: Final = 16 * 1024 * 1024
"""Characters of their content together."""
MOST_EVENT_DATA: Final = 64 * 1024
"""Maximum bytes of the data of a record."""
_LOG: Final = STANDARD["LOG"]
_LEVELS: Final = {
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}


def log(call: RoutedCall) -> Effects | Refused:
    """Answer LOG /. The record and the audit record of the call are one transaction."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    given = call.input
    severity = given.get("severity", "info")
    content = {name: given[name] for name in ("event_type", "data", "correlation_id") if name in given}
    data = msgspec.json.encode({**content, "severity": severity}).decode()
    if len(data) > MOST_EVENT_DATA:
        return _LOG.refuse(
            "invalid-data", f"A record may have {MOST_EVENT_DATA // 1024} KiB; this one has {len(data)} bytes."
        )
    command = PutEvent(f"log-{secrets.token_hex(16)}", call.agent_id or "", data, MOST_EVENTS, MOST_EVENTS_SIZE)

    def tell(results: Sequence[Any] | Conflict) -> Envelope:
        assert not isinstance(results, Conflict), "a new id is not taken"
        record: Record = results[0]
        # The content may hold what operators must not read.
        _logger.log(
            _LEVELS[severity], "%s reported %s: %s", record.owner, unquoted(given["event_type"]), record.record_id
        )
        return Envelope(
            {
                "record_id": record.record_id,
                "event_type": given["event_type"],
                "severity": severity,
                "logged_at": write_instant(record.created),
            }
        )

    return Effects((command,), tell)

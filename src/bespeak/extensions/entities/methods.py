"""REGISTER, TRANSFER, QUERY /entities, AUTHORIZE, SIGN and LOG: what agents own, grant and report (Tier 2 5)."""

from __future__ import annotations

import hashlib
import logging
import math
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.participant import ENTITY as ENTITY_TYPE
from bespeak.contract.participant import OWN_TYPES
from bespeak.contract.service import Service
from bespeak.contract.standard.definition import OBJECT, MethodError, StandardMethod, members
from bespeak.contract.standard.methods import STANDARD
from bespeak.contract.standard.transact import TYPE
from bespeak.extensions.messages.recipients import verify_callback
from bespeak.extensions.messages.store import SUBSCRIBED, SUBSCRIPTION, PutInChannel, channel_key
from bespeak.extensions.workflows.procedures import PROCEDURE, register_procedure
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id, parse_scopes
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.call import RoutedCall, not_available
from bespeak.runtime.extension import BuiltIn
from bespeak.runtime.handling import (
    Conflicts,
    RefusedError,
    check_size,
    effects,
    find_own,
    invalid,
    new_id,
    read_checked,
    refusal,
    run_function,
    stateful,
    to_json,
)
from bespeak.runtime.identity.authority import EVERYTHING, GRANT, GRANTED, Authority, Grant
from bespeak.runtime.server import Server
from bespeak.state.store.commands.records import ChangeRecord, FindRecord, ListRecords, PutEvent, PutRecord, Record
from bespeak.text.diagnostics.diagnostic import unquoted

ENTITY: Final = "entity"
LIVE: Final = "live"
MOST_ENTITY_DATA: Final = 64 * 1024  # maximum bytes of the data of an entity
MOST_OWNED: Final = 10_000  # entities of one owner


class Handover(msgspec.Struct, frozen=True, omit_defaults=True):
    transfer_id: str
    from_principal: str
    to_principal: str
    by: str  # Agent that asked for it
    at: float
    reason: str | None = None


class Entity(msgspec.Struct, frozen=True, omit_defaults=True):
    entity_type: str
    data: Any
    owners: tuple[Handover, ...] = ()  # all changes of ownership, the first one first
    api_key: str | None = None  # id of the key that made a subscription, which ends with it


decode_entity: Final = msgspec.json.Decoder(Entity).decode
CHANNEL: Final = "channel"  # entity type of a channel, which only its owner may use from then on
_REGISTER: Final = STANDARD["REGISTER"]
_LONGEST: Final = {"channel": 256, "callback": 1000}
_MOST_SUBSCRIPTION: Final = 4096  # maximum bytes of a subscription; many are read at once


@stateful
async def register(call: RoutedCall) -> Effects:
    """Answer REGISTER /: an entity of a declared type, a channel, the subscription to a channel, or a procedure."""
    named, owner = call.input["entity_type"], call.agent_id or ""
    if named == PROCEDURE:
        return await register_procedure(call, MOST_ENTITY_DATA)
    joined = None if named in OWN_TYPES else _find_type(call, named)
    entity = Entity(
        named, call.input["data"] if joined is None else await read_checked(call, joined, _REGISTER, "data")
    )
    text = to_json(entity)
    if len(text) > MOST_ENTITY_DATA:
        message = f"An entity may have {MOST_ENTITY_DATA // 1024} KiB; this one has {len(text)} bytes."
        raise refusal(_REGISTER, "invalid-data", message, field="/data")
    record = PutRecord(new_id("ent"), ENTITY, owner, LIVE, text, most=MOST_OWNED)
    if named == CHANNEL:
        record = msgspec.structs.replace(record, key=channel_key(_line(entity.data, "channel")))
    command = await _subscribe(call, entity) if named == SUBSCRIPTION else PutInChannel(record, named)
    await _tell_hook(call, record.record_id, entity, owner)

    def result(results: Sequence[Record]) -> dict[str, Any]:
        made = results[0]
        told = {
            "entity_id": made.record_id,
            "entity_type": entity.entity_type,
            "owner": made.owner,
            "version": made.version,
            "created_at": write_instant(made.created),
        }
        # A subscription ends with the credential that made it; an entity is property, which has no end.
        return told if command.record.lifetime is None else {**told, "expires_at": write_instant(made.expires)}

    taken = "The channel is registered already, or the agent is subscribed to it already."
    conflicts: Conflicts = {
        "too-many": _REGISTER.refuse("too-many-entities", f"The agent has {MOST_OWNED} entities, the maximum."),
        "": lambda found: _REGISTER.refuse("already-registered", taken, entity_id=found.get("record_id")),
    }
    return effects([command], result, conflicts)


def _find_type(call: RoutedCall, named: str) -> Joined:
    """Find a declared type that the caller may register; those that it may not register do not exist for it."""
    declared: Mapping[str, Joined] = call.server.registrar.participants.get(ENTITY_TYPE, {})
    scopes = call.principal.scopes
    usable = {name: one for name, one in declared.items() if not scopes.missing(one.participant.options.scopes)}
    if named not in usable:
        known = sorted((*usable, *OWN_TYPES))
        message = f"There is no entity type {named[:80]!r} that this agent may register; there are: {', '.join(known)}."
        raise refusal(_REGISTER, "unknown-entity-type", message, field="/entity_type", entity_types=known)
    return usable[named]


async def _tell_hook(call: RoutedCall, entity_id: str, entity: Entity, owner: str, **more: Any) -> None:
    """Run the hook of a type before a change, which it may refuse. The name of the method is the action."""
    joined = call.server.registrar.participants.get(ENTITY_TYPE, {}).get(entity.entity_type)
    hook = None if joined is None else joined.routes.get("changed")
    if hook is None:
        return
    change = {"action": call.method.lower(), "entity_id": entity_id, "entity_type": entity.entity_type, "owner": owner}
    change |= {"data": entity.data, **{name: value for name, value in more.items() if value is not None}}
    (parameter,) = hook.endpoint.input_schema["properties"]
    await run_function(call, hook, {parameter: change}, method=call.method)


async def before_cancel(call: RoutedCall, record: Record) -> None:
    """Run the hook of an entity that is cancelled."""
    entity = decode_entity(record.data)
    await _tell_hook(call, record.record_id, entity, record.owner, reason=call.input.get("reason"))


async def _subscribe(call: RoutedCall, entity: Entity) -> PutInChannel:
    """Return the command for a subscription, whose callback has agreed to receive (Tier 2 10.5)."""
    data, text = entity.data, to_json(msgspec.structs.replace(entity, api_key=call.principal.key_id))
    channel, owner = _line(data, "channel"), call.agent_id or ""
    if len(text) > _MOST_SUBSCRIPTION:
        raise refusal(_REGISTER, "invalid-data", f"A subscription may have {_MOST_SUBSCRIPTION} bytes.")
    authority = Authority.of(call.principal, call.request)
    if data.get("callback") is not None:
        await verify_callback(call, _line(data, "callback"))
    record = PutRecord(
        *(new_id("sub"), SUBSCRIPTION, owner, SUBSCRIBED, text),
        # One subscription of an agent to a channel.
        key=f"{owner} {channel}",
        lifetime=None if authority.expires is None else authority.within(call.server.principals, math.inf),
        most=MOST_OWNED,
    )
    return PutInChannel(record, channel)


def _line(data: Any, name: str) -> str:
    text = data.get(name) if isinstance(data, Mapping) else None
    if isinstance(text, str) and 0 < len(text) <= _LONGEST[name] and text.isprintable():
        return text
    named = 'The data of a subscription or a channel name it: {"channel": "news"}.'
    message = named if name == "channel" else "The callback of a subscription is an address."
    raise refusal(_REGISTER, "invalid-data", message, field=f"/data/{name}")


_TRANSFER: Final = STANDARD["TRANSFER"]
_MOST_OWNERS: Final = 1_000  # changes of ownership of one entity


@stateful
async def transfer(call: RoutedCall) -> Effects:
    """Answer TRANSFER /. The caller is the owner, and holds `TYPE:transfer` for the type of the entity."""
    given, to = call.input, call.input["to_principal"]
    record = await find_own(call, (ENTITY,), given["resource_id"])
    if record is None:
        raise refusal(_TRANSFER, "resource-not-found", f"This agent owns no resource {given['resource_id'][:80]!r}.")
    entity = decode_entity(record.data)
    needed = f"{entity.entity_type}:transfer"
    if not call.principal.scopes.covers(needed):
        message = f"Transferring an entity of the type {entity.entity_type} needs the scope {needed}."
        raise refusal(_TRANSFER, "scope-violation", message, missing_scopes=[needed], required_scopes=[needed])
    if given["from_principal"] != record.owner:
        raise refusal(_TRANSFER, "not-the-owner", f"The owner is {record.owner}.", owner=record.owner)
    if to == record.owner:
        raise refusal(_TRANSFER, "already-owned", "to_principal owns the resource already.")
    if not _is_known(call, to):
        message = f"This server knows no agent or principal {to[:80]!r}; name an agent by its Agent-ID, 64 digits."
        raise refusal(_TRANSFER, "unknown-principal", message, field="/to_principal")
    if len(entity.owners) >= _MOST_OWNERS:
        raise refusal(_TRANSFER, "already-owned", f"The resource has changed hands {_MOST_OWNERS} times, the maximum.")
    reason = given.get("reason")
    await _tell_hook(call, record.record_id, entity, record.owner, new_owner=to, reason=reason)
    handover = Handover(new_id("tr"), record.owner, to, call.agent_id or "", time.time(), reason)
    data = to_json(msgspec.structs.replace(entity, owners=(*entity.owners, handover)))
    change = (record.record_id, (ENTITY,), (LIVE,), LIVE, record.owner, record.version)
    return effects(
        [ChangeRecord(*change, data=data, new_owner=to)],
        lambda results: {
            "transfer_id": handover.transfer_id,
            "resource_id": record.record_id,
            "from_principal": handover.from_principal,
            "to_principal": to,
            "version": results[0].version,
            "transferred_at": write_instant(handover.at),
        },
        _TRANSFER.refuse("already-owned", "The resource was changed by another call; look at it again."),
        # Tier 2 10.6: the record of a transfer has the complete chain of owners.
        recorded={"owners": [*(one.from_principal for one in entity.owners), record.owner, to]},
    )


def _is_known(call: RoutedCall, name: str) -> bool:
    """Return True for a registered agent or its principal. Where none is registered, every Agent-ID is known."""
    agents = call.server.agents
    if not len(agents) and not call.server.principals.requires_known:
        return is_canonical_id(name) or name == call.principal.principal_id
    agent = agents.get(name)
    return agent.is_active if agent is not None else any(one.principal_id == name and one.is_active for one in agents)


_PATH: Final = "/entities"
_MOST_LISTED: Final = 100
_MOST_READ: Final = 200  # entities that are read for one answer; the cursor goes on behind them
_MOST_BYTES: Final = 1024 * 1024  # size of the entities of one answer, from which on the cursor goes on
_CURSOR: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?) ([!-~]{1,80})")
_FIRST: Final = "0 -"  # cursor of the first page
QUERY_ENTITIES: Final = StandardMethod(
    name="QUERY",
    description="Reads entities that the caller owns, or whose type it may read, oldest first.",
    intent="Read registered entities.",
    outcome="Entities with their data and owners are returned, and a cursor if there may be more.",
    takes=members(
        f"entity_id?: NAME, entity_type?: TYPE, owner?: NAME, where?: WHERE, limit?: 1..{_MOST_LISTED}, cursor?: NAME",
        TYPE=TYPE,
        WHERE={**OBJECT, "maxProperties": 16, "description": "Members of the data and the value that each has."},
    ),
    returns=members("entities: [OBJECT], cursor?: NAME"),
    errors=(
        MethodError("entity-not-found", status.NOT_FOUND, "There is no such entity that the caller may read."),
        MethodError("invalid-cursor", status.BAD_REQUEST, "The cursor is not one of this server."),
    ),
)


def list_endpoints(service: Service) -> list[BuiltIn]:
    """Return the endpoint that reads entities, for a service that has some."""
    own = any(endpoint.key == ("QUERY", _PATH) for endpoint in service.endpoints)
    return [BuiltIn(QUERY_ENTITIES, _PATH, query_entities)] if "REGISTER" in service.methods and not own else []


@stateful
async def query_entities(call: RoutedCall) -> Envelope:
    """Answer QUERY /entities. The owner reads an entity, and whoever holds `TYPE:read`; for others there is none."""
    given, store, scopes = call.input, call.store, call.principal.scopes
    own = tuple(filter(None, (call.agent_id, call.principal.principal_id)))
    if "entity_id" in given:
        found: Record | None = await store.read(FindRecord((ENTITY,), given["entity_id"]))
        records = [] if found is None or found.state != LIVE else [found]
    else:
        named, place = given.get("entity_type"), _CURSOR.fullmatch(given.get("cursor", _FIRST))
        if place is None:
            raise refusal(QUERY_ENTITIES, "invalid-cursor", "Repeat the `cursor` of the last answer as it was.")
        reads_all = named is not None and scopes.covers(f"{named}:read")
        owners = (given["owner"],) if "owner" in given and (reads_all or given["owner"] in own) else own
        owners = () if reads_all and "owner" not in given else owners
        after = (float(place[1]), place[2])
        records = await store.read(ListRecords(ENTITY, None, (LIVE,), after, _MOST_READ, named, owners))
    listed: list[dict[str, Any]] = []
    size, last = 0, None
    for last in records:
        entity = decode_entity(last.data)
        readable = last.owner in own or scopes.covers(f"{entity.entity_type}:read")
        if readable and _meets(last, entity, given):
            told = {"entity_id": last.record_id, "version": last.version, "created_at": write_instant(last.created)}
            told |= {"updated_at": write_instant(last.updated), "data": entity.data}
            listed.append(told | _owners(last, entity))
            size += len(last.data)
        if len(listed) == given.get("limit", _MOST_LISTED) or size >= _MOST_BYTES:
            break
    if "entity_id" in given and not listed:
        message = f"There is no entity {given['entity_id'][:80]!r} that this agent may read."
        raise refusal(QUERY_ENTITIES, "entity-not-found", message)
    more = len(records) == _MOST_READ or (last is not None and last is not records[-1])
    cursor = {"cursor": f"{last.created!r} {last.record_id}"} if more and last is not None else {}
    return Envelope({"entities": listed, **cursor})


def _meets(record: Record, entity: Entity, given: Mapping[str, Any]) -> bool:
    wanted = (given.get("entity_type", entity.entity_type), given.get("owner", record.owner))
    if wanted != (entity.entity_type, record.owner):
        return False
    data = entity.data if isinstance(entity.data, Mapping) else {}
    # In Python, but not in JSON, true equals 1.
    return all(
        name in data and data[name] == value and isinstance(data[name], bool) == isinstance(value, bool)
        for name, value in given.get("where", {}).items()
    )


def _owners(record: Record, entity: Entity) -> dict[str, Any]:
    """Return the type of an entity, its owner and how it came to it."""
    chain = [{**msgspec.to_builtins(one), "at": write_instant(one.at)} for one in entity.owners]
    return {"entity_type": entity.entity_type, "owner": record.owner, "owners": chain}


async def describe_entity(_: Server, record: Record) -> Mapping[str, Any]:
    """Return what CHECK tells of an entity."""
    return _owners(record, decode_entity(record.data))


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
    guest = is_canonical_id(subject) and not call.server.principals.requires_known
    if not (guest or call.server.agents.get(subject) is not None or _is_known(call, subject)):
        message = f"This server knows no agent or principal {subject[:80]!r}; name an agent by its Agent-ID, 64 digits."
        raise refusal(_AUTHORIZE, "unknown-subject", message, field="/subject")
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

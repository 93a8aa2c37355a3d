"""LINK and EMBED, and what FETCH shows of them, in the authority of whoever reads (Tier 2 6.2, 6.7)."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Collection as Container
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bespeak.contract.participant import CHECKS
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.acquire.methods import read_thing
from bespeak.extensions.acquire.resources import own_ids
from bespeak.extensions.acquire.store import ListResources
from bespeak.extensions.data.collection import list_collections
from bespeak.extensions.integrate.store import LINK, LINKED, Link, ListLinks, PutLink, decode_link, inside
from bespeak.protocol import status
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Effects
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.call import RoutedCall, find_visible
from bespeak.runtime.handling import (
    RefusedError,
    ask_service,
    effects,
    finish_step,
    invalid,
    new_id,
    refusal,
    run_function,
    stateful,
    to_json,
    usable_functions,
)
from bespeak.runtime.methods.discovery import may_see
from bespeak.runtime.route import Route
from bespeak.state.store.commands.records import PutRecord, Record

MOST_LINKS: Final = 10_000  # links of one owner
_MOST_OF_THING: Final = 1000
_MOST_DATA: Final = 16 * 1024  # bytes of a link
_SHOWN: Final = 50  # links of one answer
_MOST_EMBEDDED: Final = 16  # components of one target
_MOST_FOLLOWED: Final = 16
_MOST_ROWS: Final = 100  # rows of an embedded collection
_MOST_SIZE: Final = 256 * 1024  # bytes of one component
_MOST_WALKED: Final = 64  # components that are looked at for a cycle
_SECONDS: Final = 10.0  # for one component
_ROUTE: Final = re.compile("[A-Z][A-Z0-9_-]* /")  # the beginning of METHOD /path
_COLLECTION: Final = "collection:"  # before the name of a collection that is an end
_LINK, _EMBED = STANDARD["LINK"], STANDARD["EMBED"]
_OFFERED: Final = {"LINK", "EMBED"}  # methods without which FETCH looks for no links
Found = dict[str, Any]  # a thing as `read_thing` finds it


@stateful
async def link(call: RoutedCall) -> Effects:
    """Answer LINK /. The caller may read both ends, and owns the source or holds `COLLECTION:link`."""
    given = call.input
    ends = {name: await _find(call, given[name]) for name in ("source", "target")}
    for name, found in ends.items():
        if found is None:
            message = f"There is nothing with the id {given[name][:80]!r} that this agent may read."
            raise refusal(_LINK, "thing-not-found", message, field=f"/{name}")
    source, target = (found or {} for found in ends.values())
    scope = f"{source['collection']}:link"
    if source.get("owner") not in own_ids(call) and not call.principal.scopes.covers(scope):
        message = f"Only the owner of the source may link it, or who holds {scope}."
        raise refusal(_LINK, "thing-not-found", message, field="/source", missing_scopes=[scope])
    if source["resource_id"] == target["resource_id"]:
        raise invalid("target", "must be another thing than the source.")
    made = Link(source["resource_id"], target["resource_id"], given["relationship"], given.get("metadata", {}))
    return _put(made, call.agent_id or "")


def _put(made: Link, owner: str) -> Effects:
    method, prefix, taken = (_EMBED, "emb", "binding-taken") if made.binding else (_LINK, "link", "already-linked")
    key = to_json((made.target, made.binding, owner) if made.binding else (made.source, made.relationship, made.target))
    text, digest = to_json(made), f"{prefix} {hashlib.sha256(key.encode()).hexdigest()}"
    if len(text) > _MOST_DATA:
        raise invalid("metadata", f"must have at most {_MOST_DATA // 1024} KiB.")
    record = PutRecord(new_id(prefix), LINK, owner, LINKED, text, digest, most=MOST_LINKS)

    id_name, (source, target) = "embed_id" if made.binding else "link_id", map(_shown, (made.source, made.target))

    def result(results: Sequence[Record]) -> dict[str, Any]:
        at = write_instant(results[0].created)
        told: dict[str, Any] = {id_name: results[0].record_id, "source": source, "target": target}
        if not made.binding:
            return {**told, "relationship": made.relationship, "metadata": made.metadata, "created_at": at}
        told |= {"version": made.version} if made.version else {}
        return {**told, "binding": made.binding, "reference": f"{target}#/{made.binding}", "embedded_at": at}

    def exists(found: Mapping[str, Any]) -> Refused:
        message = "There is the same one already; CANCEL it first to change it."
        return method.refuse(taken, message, **({id_name: found["record_id"]} if found else {}))

    numbers = f"{MOST_LINKS:,} links, a thing {_MOST_OF_THING:,}, and a target {_MOST_EMBEDDED} components"
    full = method.refuse("too-many-links", f"An agent may have {numbers}.")
    most = (_MOST_OF_THING, _MOST_EMBEDDED if made.binding else _MOST_OF_THING)
    return effects([PutLink(record, made.ends, most)], result, {"too-many": full, "": exists})


def _shown(thing: str) -> str:
    """Return the name of a thing as callers write it: a collection without its owner."""
    return thing.removeprefix(_COLLECTION).partition("@")[0]


async def _find(call: RoutedCall, text: str) -> Found | None:
    """Find an agent, a resource, an entity, a row or a thing of the service that the caller may read."""
    agent = call.server.agents.get(text)
    if text == call.agent_id or (agent is not None and may_see(call, agent)):
        told = {"agent_id": text, **({} if agent is None else {"name": agent.name})}
        return {"resource_id": text, "collection": "agents", "owner": text, "content": told}
    if found := await read_thing(call, text):
        return found
    thing = await ask_service(call, CHECKS, text, {})
    if thing is None:
        return None
    known = f"{thing.kind}:{text.removeprefix(f'{thing.kind}:')}"
    return {"resource_id": known, "collection": thing.kind, "content": dict(thing.output)}


@stateful
async def embed(call: RoutedCall) -> Effects:
    """Answer EMBED /. Everybody who reads the target reads the component in an authority of their own."""
    given, store = call.input, call.store
    target, owners, version = given["target"], own_ids(call), given.get("version")
    owner = owners[0]
    there = await read_thing(call, target)
    if there is None and await store.read(ListResources(target, owners[:1], 0, 1)):
        target = f"{_COLLECTION}{target}@{owner}"
    elif there is not None and there.get("owner") in owners:
        target, owner = there["resource_id"], there["owner"]
    else:
        message = f"This agent owns no resource, entity or collection of resources {target[:80]!r}."
        raise refusal(_EMBED, "target-not-found", message, field="/target")
    binding = given.get("binding") or re.sub(r"\W+", "_", f"_{given['source'].rpartition(' ')[2]}").lstrip("_")[:64]
    if there is not None and isinstance(there["content"], Mapping) and binding in there["content"]:
        raise refusal(_EMBED, "binding-taken", f"The target has a member {binding!r} of its own.", field="/binding")
    source: str = given["source"]
    places: tuple[str, ...] = ()
    if found := await read_thing(call, source, version):
        source, places = found["resource_id"], _places(found)
    elif version is not None:
        raise refusal(_EMBED, "version-not-found", "Only imported resources have versions.", field="/version")
    elif await list_collections(call, source):
        places = tuple(f"{_COLLECTION}{source}@{owner}" for owner in owners)
        source = f"{_COLLECTION}{source}"
    elif _find_model(call, source) is None and _find_route(call, source) is None:
        message = f"There is no component {source[:80]!r} that this agent may read."
        raise refusal(_EMBED, "source-not-found", message, field="/source")
    await _refuse_cycle(call, places, target)
    made = Link(source, target, "embeds", binding=binding, version=int(version) if version else None)
    return _put(made, owner)


def _places(found: Found) -> tuple[str, ...]:
    """Return the things whose components a resource shows: itself, and its collection."""
    return found["resource_id"], f"{_COLLECTION}{found['collection']}@{found.get('owner', '')}"


async def _refuse_cycle(call: RoutedCall, waiting: tuple[str, ...], target: str) -> None:
    walked: set[str] = set()
    while waiting and len(walked) < _MOST_WALKED:
        if target in waiting:
            raise refusal(_EMBED, "embed-cycle", "The target would be embedded in itself.", field="/source")
        walked |= set(waiting)
        [parts] = await _list(call, (tuple(map(inside, waiting)), _MOST_WALKED))
        waiting = tuple({one.source for _, one in parts} - walked)


async def _list(call: RoutedCall, *groups: tuple[tuple[str, ...], int]) -> list[list[tuple[Record, Link]]]:
    found: list[list[Record]] = await call.store.read(ListLinks(call.agent_id or "", groups))
    return [[(record, decode_link(record.data)) for record in records] for records in found]


async def show_links(call: RoutedCall, found: Found, follow: str | Container[str]) -> dict[str, Any]:
    """Return the links of what FETCH has found, and put its components into its content.

    A link is shown to whoever may read both ends. Its owner sees, too, that one cannot be read any more.
    """
    if call.server.store is None or _OFFERED.isdisjoint(call.server.registrar.service.methods):
        return {}
    wanted = (follow,) if isinstance(follow, str) else follow
    within = tuple(map(inside, _places(found)))
    listed, parts = await _list(call, ((found["resource_id"],), _SHOWN + 1), (within, 2 * _MOST_EMBEDDED))
    links: list[dict[str, Any]] = []
    for record, one in listed[:_SHOWN]:
        outward = one.source == found["resource_id"]
        other = one.target if outward else one.source
        try:
            there = await _find(call, other)
        except RefusedError:  # a source of data that cannot be read now
            there = None
        if there is None and record.owner not in own_ids(call):
            continue
        told: dict[str, Any] = {"link_id": record.record_id, "relationship": one.relationship, "metadata": one.metadata}
        told |= {"direction": "outgoing" if outward else "incoming", "other": other, "readable": there is not None}
        if there is not None and one.relationship in wanted and sum("content" in one for one in links) < _MOST_FOLLOWED:
            told["content"] = _bounded(there["content"])
        links.append(told)
    shown = {"links": links, "more_links": len(listed) > _SHOWN, "embedded": await _show_parts(call, found, parts)}
    return {name: value for name, value in shown.items() if value}


async def _show_parts(call: RoutedCall, found: Found, parts: Sequence[tuple[Record, Link]]) -> list[dict[str, Any]]:
    """Put the components of a resource into its content, and return what became of each. A failure is shown, too."""
    own = found["content"] if isinstance(found["content"], Mapping) else {"value": found["content"]}
    content, told = dict(own), []
    # What a former owner has embedded is not shown any more.
    kept = [pair for pair in parts if pair[0].owner == found.get("owner")]
    # What is embedded in a resource comes before what is embedded in all of its collection.
    for record, one in sorted(kept, key=lambda pair: pair[1].target.startswith(_COLLECTION)):
        state, value = "shown", None
        if one.binding in content:
            state = "hidden"  # behind a member of the resource, or a component of its own
        else:
            try:
                async with asyncio.timeout(_SECONDS):
                    state, value = await _read_part(call, one, own)
            except TimeoutError:
                state, value = "failed", _failure("timeout", f"It was not read within {_SECONDS:g} s.")
            except RefusedError as error:
                state, value = "failed", _failure(error.refused.code, error.refused.message)
        content |= {one.binding: value} if state in {"shown", "failed"} else {}
        more = {"source": _shown(one.source), "version": one.version} if state == "shown" else {}
        named = {"embed_id": record.record_id, "binding": one.binding, "status": state, **more}
        told.append({name: value for name, value in named.items() if value is not None})
    if told:
        found["content"] = content
    return told


async def _read_part(call: RoutedCall, one: Link, row: Mapping[str, Any]) -> tuple[str, Any]:
    """Read a component in the authority of the caller. Return the status and the value."""
    value: Any = None
    if _ROUTE.match(one.source) is None:
        if one.source.startswith(_COLLECTION):
            collections = await list_collections(call, _shown(one.source))
            value = await collections[0].search((), (), _MOST_ROWS, 0) if collections else None
        elif model := _find_model(call, one.source):
            given = {name: row[name] for name in model.participant.options.members if name in row}
            output = await run_function(call, model.routes["run"], {"rows": [given]}, method="PREDICT")
            value = output["predictions"][0]
        else:
            value = (await read_thing(call, one.source, one.version) or {}).get("content")
        return ("withheld", None) if value is None else ("shown", _bounded(value))
    found = _find_route(call, one.source)
    if found is None:
        return "withheld", None
    route, captured = found
    named = route.endpoint.input_schema.get("properties", {})
    given = route.fill_captures({name: value for name, value in row.items() if name in named}, captured)
    path, number = one.source.partition(" ")[2], f"embed {one.binding}"
    step, response = await finish_step(call.server.dispatcher.run_step(call, route, given, path, number))
    if status.is_success(response.status):
        return "shown", _bounded(msgspec.to_builtins(step.output))
    error = msgspec.json.decode(response.body or b"{}").get("error", {})
    return "failed", _failure(response.code or "failed", error.get("message", ""))


def _find_model(call: RoutedCall, text: str) -> Joined | None:
    kind, _, name = text.partition(":")
    return usable_functions(call, "model").get(name) if kind == "model" else None


def _find_route(call: RoutedCall, text: str) -> tuple[Route, dict[str, str] | None] | None:
    method, _, path = text.partition(" ")
    found = find_visible(call, method, path) if path.startswith("/") else None
    if found is None or found[0].endpoint.internal:
        return None
    endpoint = found[0].endpoint
    if found[0].builtin or endpoint.semantic.impact != "informational" or endpoint.passes_on:
        message = f"{text} is not an informational endpoint of the service."
        raise refusal(_EMBED, "not-embeddable", message, field="/source")
    return None if call.principal.scopes.missing(endpoint.required_scopes) else found


def _failure(code: str, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def _bounded(content: Any) -> Any:
    if len(to_json(content)) <= _MOST_SIZE:
        return content
    return _failure("too-large", f"It has more than {_MOST_SIZE // 1024} KiB; FETCH it alone.")

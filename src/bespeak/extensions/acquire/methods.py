"""FETCH, SEARCH, SCAN and FIND: reading of collections, and of what agents look for (Tier 2 3)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.agent import Agent
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.validation import Validator
from bespeak.contract.standard.acquire import NAMESPACES
from bespeak.contract.standard.floor import FILTER_SCHEMA, read_filter
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.acquire.resources import ResourceCollection, own_ids, readable_owners
from bespeak.extensions.acquire.store import FindResource, FindVersion, StoredResource, split_words
from bespeak.extensions.data.collection import (
    Collection,
    DataCollection,
    Row,
    choose_fitting,
    find_collection,
    list_collections,
    meets,
    read_cursor,
    read_filters,
    read_order,
    sort_rows,
    value_of,
    write_cursor,
)
from bespeak.extensions.data.query import DataFilter, as_value
from bespeak.protocol.exchange.instant import write_instant
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.concurrency import compute_in_thread, run_in_thread
from bespeak.runtime.extension import SHOW_LINKS
from bespeak.runtime.handling import handler, invalid, read_time, refusal
from bespeak.runtime.methods.discovery import may_see

_PAGE: Final = 100
_RESULTS: Final = 20
_FETCH, _SEARCH, _SCAN, _FIND = (STANDARD[name] for name in ("FETCH", "SEARCH", "SCAN", "FIND"))
_RESOURCE: Final = re.compile(r"res-([1-9][0-9]{0,17})")
_FILTER: Final = Validator(msgspec.json.encode(FILTER_SCHEMA))  # constraints that DISCOVER knows
_FILTERED: Final = tuple(FILTER_SCHEMA["properties"])
_AROUND: Final = 60  # characters around a word in a highlight
_MOST_HIGHLIGHTS: Final = 3
_MOST_BYTES: Final = 1 << 20  # bytes of the rows of one answer that has more than one


@handler
async def fetch(call: RoutedCall) -> Envelope:
    """Answer FETCH /. A resource that the caller may not read does not exist for it."""
    given = call.input
    since = read_time(given, "if_modified_since")
    found = await read_thing(call, given["resource_id"], given.get("version"))
    if found is None:
        message = f"There is no resource {given['resource_id'][:80]!r} that this agent may read."
        raise refusal(_FETCH, "resource-not-found", message, field="/resource_id")
    if SHOW_LINKS in call.server.hooks:
        found |= await call.server.hooks[SHOW_LINKS](call, found, given.get("follow", ()))
    updated = found.pop("updated", None)
    if updated is not None:
        found["updated_at"] = write_instant(updated)
        # What is embedded may have changed although the resource has not.
        if since is not None and updated <= since and "embedded" not in found:
            return Envelope({name: value for name, value in found.items() if name != "content"} | {"modified": False})
    if given.get("format") == "yaml":
        import yaml  # noqa: PLC0415 - few ask for it

        text = yaml.safe_dump(found["content"], allow_unicode=True, sort_keys=False)
        found |= {"content": text, "media_type": "application/yaml"}
    return Envelope({"media_type": "application/json", **found, "modified": True})


async def read_thing(call: RoutedCall, wanted: str, version: int | str | None = None) -> dict[str, Any] | None:
    """Return a resource, an entity or a row that the caller may read, with its content; None if there is none."""
    if "\0" in wanted:  # no id has it, and not every store can look for it
        return None
    given = None if version is None else int(version)
    return await _fetch_resource(call, wanted, given) or await _fetch_row(call, wanted, given)


async def _fetch_resource(call: RoutedCall, wanted: str, given: int | None) -> dict[str, Any] | None:
    """Return an imported resource, by its id or its key, in the version asked for."""
    store = call.server.store
    by_id, (collection, _, key) = _RESOURCE.fullmatch(wanted), wanted.partition("/")
    if store is None or (by_id is None and not key):
        return None
    resource: StoredResource | None = None
    if by_id is not None:
        resource = await store.read(FindResource(position=int(by_id[1])))
    else:
        for owner in own_ids(call):
            found = await store.read(FindResource(owner=owner, collection=collection, key=key))
            resource = resource or found
    if resource is None or resource.owner not in (readable_owners(call, resource.collection) or (resource.owner,)):
        return None
    version, data, updated = given or resource.version, resource.data, resource.updated
    if version != resource.version:
        earlier = await store.read(FindVersion(resource.position, version))
        if earlier is None:
            message = f"{resource.resource_id} has the versions 1 to {resource.version}; got {version}."
            raise refusal(_FETCH, "version-not-found", message, field="/version")
        data, updated = earlier.data, earlier.updated
    told: dict[str, Any] = {"resource_id": resource.resource_id, "collection": resource.collection}
    told |= {"content": msgspec.json.decode(data), "version": version, "owner": resource.owner}
    return {**told, "created_at": write_instant(resource.created), "updated": updated}


async def _fetch_row(call: RoutedCall, wanted: str, version: int | None) -> dict[str, Any] | None:
    """Return an entity by its id, or the row of a data set by COLLECTION/KEY."""
    name, _, key = wanted.partition("/")
    for collection in await list_collections(call, name if key else None):
        if isinstance(collection, ResourceCollection):
            continue
        if isinstance(collection, DataCollection):
            filters = _key_filters(collection, key) if key else None
        else:
            filters = (DataFilter("entity_id", "eq", key or wanted),)
        rows = [] if filters is None else await collection.search(filters, (), 1, 0)
        if rows:
            return _describe(collection, rows[0], version)
    return None


def _describe(collection: Collection, row: Row, version: int | None) -> dict[str, Any]:
    content = dict(row)
    told: dict[str, Any] = {"resource_id": _id_of(collection, row), "collection": collection.name}
    if not isinstance(collection, DataCollection):
        told |= {"updated": read_time(content, "updated_at"), "resource_id": content.pop("entity_id")}
        told |= {name: content.pop(name) for name in ("version", "owner")}
        del content["updated_at"]
    if version not in (None, told.get("version")):
        message = "Only imported resources keep earlier versions."
        raise refusal(_FETCH, "version-not-found", message, field="/version")
    return {**told, "content": content}


def _key_filters(collection: DataCollection, key: str) -> tuple[DataFilter, ...] | None:
    """Return the filters for a row whose key is a text of an id; None if it cannot be one."""
    names = collection.key
    if len(names) != 1:
        return None
    value = as_value(collection.columns[names[0]], key)
    return None if value is None else (DataFilter(names[0], "eq", value),)


@handler
async def search(call: RoutedCall) -> Envelope:
    """Answer SEARCH /. Words are looked up in the index of resources, and in the texts of other rows."""
    given, query = call.input, call.input["query"]
    if isinstance(query, Mapping) and "filter" in given:
        raise invalid("filter", "must not be given beside a `query` that is a filter itself.")
    member = "query" if isinstance(query, Mapping) else "filter"
    filters = read_filters(query if isinstance(query, Mapping) else given.get("filter", {}), member)
    words = split_words(query) if isinstance(query, str) else ()
    if isinstance(query, str) and not words:
        raise invalid("query", f"must have a word; got {query[:80]!r}.")
    order = read_order(given["sort"], "sort") if "sort" in given else ()
    limit, offset = given.get("limit", _RESULTS), given.get("offset", 0)
    scope = given.get("scope", ())
    names = [scope] if isinstance(scope, str) else dict.fromkeys(scope)
    found = [await find_collection(call, _SEARCH, name, "scope") for name in names]
    found = found if "scope" in given else await list_collections(call)
    collections = choose_fitting(found, filters, order, member)
    several = len(collections) != 1
    wanted = _Wanted(words, filters, order, limit + 1, 0 if several else offset, call.agent_id)
    parts = [await _search_one(collection, wanted) for collection in collections]
    results = [one for part in parts for one in part.results]
    if several:
        # Each part has only as many results as the first page needs.
        results = (await compute_in_thread(call.agent_id, _merge, results, order))[offset:]
    sizes = accumulate(await run_in_thread(lambda: [len(msgspec.json.encode(one)) for one in results[:limit]]))
    shown = results[: max(sum(size <= _MOST_BYTES for size in sizes), 1)]
    told: dict[str, Any] = {"results": shown, "count": len(shown), "offset": offset}
    told |= {"next_offset": offset + len(shown)} if len(results) > len(shown) else {}
    if all(part.total is not None for part in parts):
        told |= {"total": sum(part.total or 0 for part in parts)}
        told |= {"total_is_estimate": any(part.estimated for part in parts)}
    return Envelope(told)


class _Wanted(NamedTuple):
    words: Sequence[str]
    filters: Sequence[DataFilter]
    order: Sequence[tuple[str, bool]]
    limit: int
    offset: int
    owner: str | None  # agent that asks


class _Part(NamedTuple):
    """What one collection gives to an answer."""

    results: list[dict[str, Any]]
    total: int | None = None  # None if nobody has counted
    estimated: bool = False  # True if there may be more than `total`


async def _search_one(collection: Collection, wanted: _Wanted) -> _Part:
    words, filters, order, limit, offset, owner = wanted
    if not words:
        rows = await collection.search(filters, order, limit, offset)
        return _Part([{"collection": collection.name, "item": row} for row in rows])
    if isinstance(collection, ResourceCollection) and not order:
        scored, total, complete = await collection.match(words, filters, limit, offset)
    else:
        # Rows whose words nobody has indexed are read, up to the limit of what a method reads.
        scored = await compute_in_thread(owner, _score, await collection.gather(filters), words, order)
        total, complete, scored = len(scored), True, scored[offset : offset + limit]
    marks = await run_in_thread(lambda: [_highlight(row, words) for row, _ in scored])
    results = [
        {"collection": collection.name, "item": row, "score": score, "highlights": shown}
        for (row, score), shown in zip(scored, marks, strict=True)
    ]
    return _Part(results, total, not complete)


def _score(rows: list[Row], words: Sequence[str], order: Sequence[tuple[str, bool]]) -> list[tuple[Row, float]]:
    """Return the rows that have all words, in an order or the best first."""
    scored = [(row, float(_count(row, words))) for row in (sort_rows(rows, order) if order else rows)]
    found = [pair for pair in scored if pair[1]]
    return found if order else sorted(found, key=lambda pair: -pair[1])


def _merge(results: list[dict[str, Any]], order: Sequence[tuple[str, bool]]) -> list[dict[str, Any]]:
    """Merge results of several collections: by the order, else by turns, since their scores cannot be compared."""
    if order:
        rows = sort_rows([{**one["item"], "\0result": one} for one in results], order)
        return [row["\0result"] for row in rows]
    places: dict[str, int] = {}
    ranked = []
    for one in results:
        places[one["collection"]] = places.get(one["collection"], 0) + 1
        ranked.append((places[one["collection"]], one))
    return [one for _, one in sorted(ranked, key=lambda pair: pair[0])]


def texts_of(row: Row) -> list[tuple[str, str]]:
    """Return the texts in a row with the names of their members."""
    found: list[tuple[str, str]] = []
    waiting: list[tuple[str, Any]] = [("", row)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, str):
            found.append((name, value))
        elif isinstance(value, Mapping | list):
            members = list(value.items() if isinstance(value, Mapping) else enumerate(value))
            waiting += [(f"{name}.{key}" if name else str(key), member) for key, member in reversed(members)]
    return found


def _count(row: Row, words: Sequence[str]) -> int:
    """Return how often the words are in the texts of a row; 0 if one of them is not."""
    found = split_words(" ".join(text for _, text in texts_of(row)), most=100_000)
    counts = [found.count(word) for word in words]
    return sum(counts) if all(counts) else 0


def _highlight(row: Row, words: Sequence[str]) -> dict[str, str]:
    """Return parts of texts in which words are marked with asterisks, by their members."""
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)", re.IGNORECASE)
    shown: dict[str, str] = {}
    for name, text in texts_of(row):
        place = pattern.search(text)
        if place is not None and len(shown) < _MOST_HIGHLIGHTS:
            part = text[max(place.start() - _AROUND, 0) : place.end() + _AROUND]
            shown[name] = pattern.sub(lambda found: f"**{found[0]}**", part)
    return shown


@handler
async def scan(call: RoutedCall) -> Envelope:
    """Answer SCAN /. The position of the last row is in the cursor, so that no state is kept between pages."""
    given = call.input
    collection = await find_collection(call, _SCAN, given["collection"], "collection")
    filters = read_filters(given.get("filter", {}), "filter")
    collection.check(filters, (), "filter")
    about = [collection.kind, collection.name, given.get("filter")]
    after = read_cursor(call, _SCAN, about, given["cursor"], collection.accepts) if "cursor" in given else None
    size = given.get("page_size", _PAGE)
    rows, position = await collection.scan(after, size, filters)
    while len(rows) > 1 and (length := len(await run_in_thread(msgspec.json.encode, rows))) > _MOST_BYTES:
        size = max(size * _MOST_BYTES // (length + length // 4), 1)  # only the collection knows positions
        rows, position = await collection.scan(after, size, filters)
    page = {"collection": collection.name, "items": rows, "count": len(rows)}
    return Envelope(page if position is None else {**page, "cursor": write_cursor(call, about, position)})


@handler
async def find(call: RoutedCall) -> Envelope:
    """Answer FIND /. The namespace is a registry of the server, or one of its collections."""
    given, limit = call.input, call.input.get("limit", _RESULTS)
    namespace, criteria = given.get("namespace", "agents"), given["criteria"]
    if namespace == "agents":
        found = _find_agents(call, criteria)
    elif namespace == "endpoints":
        found = _find_endpoints(call, criteria)
    else:
        found = await _find_rows(call, namespace, criteria, limit + 1)
    listed = found[:limit]
    return Envelope({"namespace": namespace, "found": listed, "count": len(listed), "more": len(found) > limit})


def _find_agents(call: RoutedCall, criteria: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Find agents by what DISCOVER filters by, and by their name, the methods they take and their state."""
    known = ("name", "methods", "status", *_FILTERED)
    unknown = next((name for name in criteria if name not in known), None)
    if unknown is not None:
        raise invalid("criteria", f"names {unknown[:80]!r}; agents are found by {', '.join(known)}.")
    named = criteria.get("methods", [])
    methods = [named] if isinstance(named, str) else named
    if not isinstance(methods, list) or not all(
        isinstance(one, str) for one in (*methods, criteria.get("name", ""), criteria.get("status", ""))
    ):
        raise invalid("criteria", "has a name or a status that is not a text, or methods that are not a list of texts.")
    fault = next(iter(_FILTER.violations({name: criteria[name] for name in _FILTERED if name in criteria})), None)
    if fault is not None:
        raise invalid("criteria", f"is not valid at {fault.pointer}: {fault.message}.")
    wanted = read_filter(
        {name: criteria[name] for name in _FILTERED if name in criteria},
        call.server.agents.get(call.agent_id),
    )

    def meets_all(agent: Agent) -> bool:
        return (
            may_see(call, agent)
            and wanted.admits_agent(agent)
            and criteria.get("name", agent.name) == agent.name
            and criteria.get("status", agent.status) == agent.status
            and {one.upper() for one in methods} <= set(agent.methods)
        )

    shown = ("name", "description", "status", "methods", "trust_tier", "governance_zone")
    found = [agent for agent in call.server.agents if meets_all(agent)]
    return [
        {"kind": "agent", "id": agent.agent_id, **{name: getattr(agent, name) for name in shown}} for agent in found
    ]


def _find_endpoints(call: RoutedCall, criteria: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = [_endpoint_row(endpoint) for endpoint in call.table.endpoints.values() if endpoint.is_listed]
    filters = read_filters(criteria, "criteria")
    known = list(_endpoint_row(call.route.endpoint))
    unknown = next((one.column for one in filters if one.column not in known), None)
    if unknown is not None:
        raise invalid("criteria", f"names {unknown[:80]!r}; endpoints are found by {', '.join(known)}.")
    return [{**row, "id": f"{row['method']} {row['path']}"} for row in rows if meets(row, filters)]


def _endpoint_row(endpoint: Endpoint) -> dict[str, Any]:
    semantic = endpoint.semantic
    return {
        "kind": "endpoint",
        "method": endpoint.method,
        "path": endpoint.path,
        "namespace": endpoint.namespace,
        "intent": semantic.intent,
        "impact": semantic.impact,
        "capability": semantic.capability,
        "idempotent": semantic.is_idempotent,
        "confidence": semantic.confidence,
    }


async def _find_rows(call: RoutedCall, namespace: str, criteria: Mapping[str, Any], limit: int) -> list[dict[str, Any]]:
    filters = read_filters(criteria, "criteria")
    if namespace in NAMESPACES:
        collections = [one for one in await list_collections(call) if one.kind == namespace]
    else:
        collections = await list_collections(call, namespace)
        if not collections:
            known = [*NAMESPACES, *sorted(one.name for one in await list_collections(call))]
            message = (
                f"There is no namespace {namespace[:80]!r} that this agent may read; there are: {', '.join(known)}."
            )
            raise refusal(_FIND, "unknown-namespace", message, field="/namespace", namespaces=known)
    found: list[dict[str, Any]] = []
    for collection in choose_fitting(collections, filters, (), "criteria"):
        rows = await collection.search(filters, (), limit - len(found), 0) if len(found) < limit else []
        found += [
            {"kind": collection.kind, "namespace": collection.name, "id": _id_of(collection, row), "item": row}
            for row in rows
        ]
    return found


def _id_of(collection: Collection, row: Row) -> str:
    """Return the id by which FETCH returns a row."""
    if isinstance(collection, DataCollection):
        return f"{collection.name}/{value_of(row, collection.key[0])}" if len(collection.key) == 1 else ""
    return str(row.get("entity_id") or row.get("resource_id"))

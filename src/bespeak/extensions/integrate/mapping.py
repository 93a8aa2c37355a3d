"""MAP: which field of one schema corresponds to which of another, as a document that TRANSFORM applies (Tier 2 6.5)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from bespeak.contract.core_ontology import XSD
from bespeak.contract.participant import ENTITY
from bespeak.contract.schema.validation import compile_schema
from bespeak.contract.schema.view import SchemaView, json_type
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.acquire.store import FindResource, NewRow, PutResources
from bespeak.extensions.data.collection import list_collections
from bespeak.extensions.integrate.methods import check_room, check_target
from bespeak.extensions.semantics.alignment.aligner import align, calibrate
from bespeak.extensions.semantics.alignment.policy import Policy
from bespeak.extensions.semantics.terms import Ontology, Synonym, Term
from bespeak.protocol.exchange.refusal import Fault
from bespeak.runtime.answer import Effects, Envelope
from bespeak.runtime.call import RoutedCall, find_visible
from bespeak.runtime.concurrency import compute_in_thread, run_in_thread
from bespeak.runtime.handling import effects, handler, invalid, refusal, to_json
from bespeak.text.language.embedding import embed

MAPS: Final = "maps"  # collection in which the documents of an agent are
_MAP = STANDARD["MAP"]
_MOST_FIELDS: Final = 1000
_DEEPEST: Final = 8
_SAMPLE: Final = 100  # rows that show the fields of a collection without columns
_SURE: Final = 0.75  # confidence below which a pair is doubtful, as it is for mappings between ontologies
_TYPES: Final = {"integer": "integer", "number": "decimal", "boolean": "boolean", "string": "string"}
_ROOT: Final = "urn:bespeak:map"
_METHODS: Final = {
    "exact": "equal names",
    "semantic": "aligner of names and types, calibrated on benchmarks of ontologies",
    "custom": "pairs of the caller, then the aligner",
}


class _Field(NamedTuple):
    kind: str  # JSON type; empty if it is not known
    texts: tuple[str, ...] = ()  # title and description


_Fields = dict[str, _Field]  # by their paths


@handler
async def map_schemas(call: RoutedCall) -> Effects | Envelope:
    """Answer MAP /. Equal schemas and choices have the same document, which is stored once."""
    given, store = call.input, call.server.store
    strategy, policy = given.get("strategy", "semantic"), given.get("unmapped_policy", "flag")
    pairs: Mapping[str, str] = given.get("pairs", {})
    if bool(pairs) != (strategy == "custom"):
        raise invalid("pairs", "are the pairs of the strategy custom, which needs them, and which alone takes them.")
    source, target = [await _read_fields(call, given[name], name) for name in ("source_schema", "target_schema")]
    for side, paths in ((target, pairs.keys()), (source, pairs.values())):
        unknown = next((path for path in paths if path not in side), None)
        if unknown is not None:
            raise invalid("pairs", f"names {unknown[:80]!r}, which is not a field; there are: {', '.join(side)[:500]}.")
    made = await compute_in_thread(call.agent_id, _make, source, target, strategy, policy, pairs)
    if store is None or call.agent_id is None:
        return Envelope(made)
    there = await store.read(FindResource(owner=call.agent_id, collection=MAPS, key=made["map_id"]))
    if there is not None:
        return Envelope(msgspec.json.decode(there.data))
    await check_target(call, _MAP, MAPS, "target_schema")
    await check_room(call, _MAP, 1)
    put = PutResources(MAPS, call.agent_id, (NewRow(made["map_id"], to_json(made)),), "skip")
    return effects([put], lambda _: made, {})


async def _read_fields(call: RoutedCall, given: Any, member: str) -> _Fields:
    schema = await _find_schema(call, given, member) if isinstance(given, str) else given
    fields = await run_in_thread(_flatten, schema)
    if isinstance(fields, Fault):
        raise refusal(_MAP, "invalid-schema", f"`{member}` is not valid: {fields.message}.", field=f"/{member}")
    if not 0 < len(fields) <= _MOST_FIELDS:
        raise refusal(_MAP, "no-fields", f"`{member}` must have 1 to {_MOST_FIELDS} fields.", field=f"/{member}")
    return fields


def _flatten(schema: Any) -> _Fields | Fault:
    """Return the fields of a list of them, or of a schema: those of objects in objects by their paths."""
    fields: _Fields = {}
    if isinstance(schema, list):
        for one in schema:
            plain = {"name": one} if isinstance(one, str) else one
            if not isinstance(plain, Mapping) or not isinstance(plain.get("name"), str):
                return Fault('a field is a name, or {"name": ..., "type": ..., "description": ...}')
            _add(fields, plain["name"], plain)
        return fields
    compiled = compile_schema(schema)
    if isinstance(compiled, Fault):
        return compiled
    waiting = [("", SchemaView(schema, schema), 0)]
    while waiting and len(fields) <= _MOST_FIELDS:
        above, view, depth = waiting.pop()
        for field in view.fields:
            path, inner = f"{above}{field.name}", SchemaView(field.schema, view)
            if depth < _DEEPEST and inner.fields:
                waiting.append((f"{path}.", inner, depth + 1))
            else:
                _add(fields, path, {**inner.keywords, "type": inner.kind})
    return fields


def _add(fields: _Fields, path: str, told: Mapping[str, Any]) -> None:
    texts = (told[name] for name in ("title", "description") if isinstance(told.get(name), str))
    if 0 < len(path) <= 256 and path.isprintable():
        fields[path] = _Field(str(told.get("type", "")), tuple(text[:1000] for text in texts))


async def _find_schema(call: RoutedCall, named: str, member: str) -> Mapping[str, Any]:
    """Return the schema of the input of an endpoint, of an entity type, or of the rows of a collection."""
    method, _, path = named.partition(" ")
    declared = call.server.registrar.participants.get(ENTITY, {})
    if path.startswith("/"):
        found = find_visible(call, method, path)
        if found is not None and not found[0].endpoint.internal:
            return found[0].endpoint.input_schema
    elif named in declared:
        schema: Mapping[str, Any] = declared[named].routes["read"].endpoint.output_schema
        return schema
    elif collections := await list_collections(call, named):
        if collections[0].columns:
            return {"properties": {column.name: column.schema for column in collections[0].columns.values()}}
        rows = await collections[0].search((), (), _SAMPLE, 0)
        kinds = {name: {"type": json_type(value)} for row in rows for name, value in row.items() if value is not None}
        return {"properties": {name: kind for name, kind in kinds.items() if name != "resource_id"}}
    message = f"{named[:80]!r} is not a collection, an entity type or an endpoint that this agent may see."
    raise refusal(_MAP, "unknown-schema", message, field=f"/{member}")


def _make(source: _Fields, target: _Fields, strategy: str, policy: str, pairs: Mapping[str, str]) -> dict[str, Any]:
    """Return the document. Its id is the digest of everything that it depends on."""
    asked = msgspec.json.encode([source, target, strategy, policy, pairs])
    describe = partial(_describe, source, target)
    found = [describe(one, other, 1.0, "given") for other, one in pairs.items()]
    free = {name: field for name, field in source.items() if name not in pairs.values()}
    rest = {name: field for name, field in target.items() if name not in pairs}
    if strategy == "exact":
        found += [describe(name, name, 1.0, "equal names") for name in free if name in rest]
    else:
        found += _align(free, rest, describe)
    used = {one["source"] for one in found}, {one["target"] for one in found}
    order = list(target)
    return {
        "map_id": f"map-{hashlib.sha256(asked).hexdigest()[:32]}",
        "strategy": strategy,
        "method": _METHODS[strategy],
        "unmapped_policy": policy,
        "fields": sorted(found, key=lambda one: order.index(one["target"])),
        "unmapped_source": [] if policy == "ignore" else [name for name in source if name not in used[0]],
        "unmapped_target": [name for name in target if name not in used[1]],
        "doubtful": sum(one["status"] == "doubtful" for one in found),
    }


def _align(source: _Fields, target: _Fields, describe: Callable[..., dict[str, Any]]) -> list[dict[str, Any]]:
    ontologies = [
        Ontology(
            id=f"{_ROOT}:{side}",
            version="1",
            terms={
                f"{_ROOT}:{side}#{path}": Term(
                    iri=f"{_ROOT}:{side}#{path}",
                    kind="data_property",
                    labels=(path.replace(".", " "),),
                    synonyms=tuple(Synonym(text, "related") for text in field.texts),
                    domains=(_ROOT,),
                    ranges=(XSD + _TYPES[field.kind],) if field.kind in _TYPES else (),
                )
                for path, field in fields.items()
            },
        )
        for side, fields in (("source", source), ("target", target))
    ]
    policy = Policy(threshold=0.25)  # what is below is not worth a question
    aligned = align(*ontologies, policy=policy, embed=None if embed(["a"]) is None else embed)
    assert not isinstance(aligned, Fault), "there are fewer fields than terms may be"
    found = []
    for rule in aligned.alignment.rules:
        one, other = (iri.partition("#")[2] for iri in (rule.source, rule.target))
        # The records are the same, which two properties of ontologies need not be about.
        made = describe(one, other, calibrate(rule.score or 0.0, supported=True), "aligned")
        rivals = [lost.rule for lost in aligned.lost if lost.winner is rule and lost.rule.score == rule.score]
        if rivals:  # nothing but the order of names has decided
            made |= {"status": "doubtful", "rivals": [f"{one.source}>{one.target}" for one in rivals[:8]]}
        found.append({**made, "signals": rule.signals})
    return found


def _describe(source: _Fields, target: _Fields, *pair: Any) -> dict[str, Any]:
    one, other, confidence, method = pair
    given, wanted = source[one].kind, target[other].kind
    told: dict[str, Any] = {"target": other, "source": one, "confidence": confidence, "method": method}
    told["status"] = "matched" if confidence >= _SURE else "doubtful"
    scalar = given in _TYPES and wanted in _TYPES and (given, wanted) not in (("integer", "number"), (wanted, given))
    return {**told, "convert": wanted, "source_type": given} if scalar else told

"""The parts of an AGIS document in the contract model, read without findings, which the validation passes report.

An unusable value counts as missing, and missing fields get the cautious default: irreversible, not idempotent, no
confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote, unquote

from bespeak.contract.endpoint import CAPABILITIES, DeclaredError, Deprecation, Endpoint, Semantic
from bespeak.contract.handler import OpaqueHandler
from bespeak.contract.limits import read_cost
from bespeak.contract.schema.subschemas import closing_keyword, rewrite
from bespeak.contract.schema.validation import DIALECT
from bespeak.contract.service import DataManifest, Vocabulary
from bespeak.text.identifiers import reached
from bespeak.text.reading.settings import read_settings
from bespeak.text.reading.table import Findings, Table, as_list, as_mapping, as_optional_text, as_text, as_texts
from bespeak.text.source.pointer import child, unescaped
from bespeak.text.source.tree import Location

_SHARED: Final = "#/schemas/"
_OWN: Final = "#/$defs/"
_MOVED: Final = "schemas."  # prefix for a shared schema whose name is already taken in the schema that uses it

MOST_BROUGHT: Final = 100_000  # limit of copies, counted for each use: later steps walk through every copy

_Names = Mapping[str, str]  # names in `$defs` by the names of the shared schemas


@dataclass(slots=True)
class SharedSchemas:
    """The shared schemas of one document, with caches for schemas that many others use."""

    schemas: Mapping[str, Any]
    _used_times: int = 0
    _needs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _moved: dict[tuple[str, frozenset[tuple[str, str]]], Any] = field(default_factory=dict)
    _brought: dict[tuple[str, ...], tuple[_Names, Mapping[str, Any]]] = field(default_factory=dict)
    _alone: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def spent(self) -> bool:
        """True if the limit of copies is reached; further schemas with references become empty."""
        return self._used_times > MOST_BROUGHT

    def bundle(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a self-contained schema. A reference to anything else stays and dangles."""
        named = self._named_in(schema) if self.schemas else ()
        if not named:
            return schema
        if self.spent:
            return {}
        own = schema.get("$defs")
        if isinstance(own, dict) and own:
            names, definitions = self._bring(named, own)
        else:
            if named not in self._brought:
                self._brought[named] = self._bring(named, {})
            names, definitions = self._brought[named]
        self._used_times += len(definitions)
        changed: dict[str, Any] = rewrite(schema, _renaming(_SHARED, _OWN, names))
        mine = changed.get("$defs")
        changed["$defs"] = {**mine, **definitions} if isinstance(mine, dict) and mine else definitions
        return changed

    def alone(self, name: str) -> Mapping[str, Any]:
        """Return a shared schema as a self-contained one."""
        if name not in self._alone:
            self._alone[name] = self.bundle(self.schemas[name])
        return self._alone[name]

    def _bring(self, named: tuple[str, ...], own: Mapping[str, Any]) -> tuple[_Names, Mapping[str, Any]]:
        """Return the definitions that these references need, under names that are free in the schema's own `$defs`."""
        names: dict[str, str] = {}
        for name in reached(named, self._needed):
            key = name
            while key in own:
                key = _MOVED + key
            names[name] = key
        changed = frozenset((name, key) for name, key in names.items() if name != key)
        for name, key in names.items():
            if (name, changed) not in self._moved:
                self._moved[name, changed] = _moved(self.schemas[name], key, names)
        return names, {key: self._moved[name, changed] for name, key in names.items()}

    def _needed(self, name: str) -> tuple[str, ...]:
        if name not in self._needs:
            self._needs[name] = self._named_in(self.schemas[name])
        return self._needs[name]

    def _named_in(self, schema: Any) -> tuple[str, ...]:
        found: dict[str, None] = {}

        def note(reference: str) -> str:
            if reference.startswith(_SHARED):
                name = _name(reference.removeprefix(_SHARED).partition("/")[0])
                if name in self.schemas:
                    found[name] = None
            return reference

        rewrite(schema, note)
        return tuple(found)


def unbundle(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replace copies in `$defs` by references to the shared schemas of the document."""
    own = schema.get("$defs")
    if not shared or not isinstance(own, dict):
        return schema
    names = {name: key for key in own if (name := _shared_name(key, shared)) is not None}
    while True:
        same = {name: key for name, key in names.items() if own[key] == _moved(shared[name], key, names)}
        if len(same) == len(names):
            break
        names = same
    if not names:
        return schema
    keys = {key: name for name, key in names.items()}
    rest = {key: value for key, value in own.items() if key not in keys}
    plain = {key: value for key, value in schema.items() if key != "$defs"}
    if rest:
        plain["$defs"] = rest
    changed: dict[str, Any] = rewrite(plain, _renaming(_OWN, _SHARED, keys))
    return changed


def target(reference: object, shared: Mapping[str, Any]) -> str | None:
    """Return the name of the shared schema that a reference names as a whole; None for any other reference."""
    if not isinstance(reference, str) or not reference.startswith(_SHARED):
        return None
    token = reference.removeprefix(_SHARED)
    name = _name(token)
    return name if "/" not in token and name in shared else None


def _shared_name(key: str, shared: Mapping[str, Any]) -> str | None:
    while key not in shared:
        if not key.startswith(_MOVED):
            return None
        key = key.removeprefix(_MOVED)
    return key


def _moved(schema: Any, key: str, names: _Names) -> Any:
    """Copy a shared schema for `$defs`, with its references adjusted to the new place."""
    inward = _renaming(_SHARED, _OWN, names)
    base = _OWN + _token(key)

    def change(reference: str) -> str:
        if reference.startswith(_SHARED):
            return inward(reference)
        return base + reference[1:] if reference == "#" or reference.startswith("#/") else reference

    return rewrite(schema, change)


def _renaming(before: str, after: str, names: _Names) -> Callable[[str], str]:
    """Make the function that moves references below one place to another, with new names."""

    def change(reference: str) -> str:
        token, slash, rest = reference.removeprefix(before).partition("/")
        name = names.get(_name(token)) if reference.startswith(before) else None
        return reference if name is None else after + (token if _name(token) == name else _token(name)) + slash + rest

    return change


def _name(token: str) -> str:
    return unescaped(unquote(token))


def _token(name: str) -> str:
    return quote(name.replace("~", "~0").replace("/", "~1"), safe="~")


UNBOUND: Final = OpaqueHandler(type="")  # handler of an endpoint that is declared but not bound
AGIS_VERSION: Final = "1.0"  # version of AGIS that documents name
AGTP_CAPABILITY: Final = "x-agtp-capability"  # key in a semantic block for a category of AGTP-API that AGIS lacks

AGIS_CAPABILITY: Final = {"creation": "transaction", "mechanics": "transaction", "domain_spanning": "modification"}
"""Categories of AGTP-API that AGIS lacks, each with the AGIS capability that calls for the same caution."""

_ANNOTATIONS: Final = frozenset({"$ref", "title", "description"})


def declared_endpoints(value: object) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every declaration with its pointer. Keys like `BOOK /room` are read too, though they do not conform."""
    if isinstance(value, list):
        yield from ((f"/endpoints/{index}", entry) for index, entry in enumerate(value) if isinstance(entry, dict))
    elif isinstance(value, dict):
        for key, entry in value.items():
            if isinstance(entry, dict):
                method, _, path = key.partition(" ")
                yield child("/endpoints", key), {"method": method, "path": path.strip(), **entry}


def read_endpoint(declared: Mapping[str, Any], shared: SharedSchemas, location: Location | None) -> Endpoint:
    """Read one entry of `endpoints` and copy the shared schemas it uses into its own."""
    semantic = read_semantic(as_mapping(declared.get("semantic")))
    return Endpoint(
        method=as_text(declared.get("method")).upper(),
        path=as_text(declared.get("path")),
        description=as_text(declared.get("description")) or semantic.intent,
        semantic=semantic,
        input_schema=_closed(as_mapping(declared.get("input")), shared),
        output_schema={"$schema": DIALECT, **shared.bundle(as_mapping(declared.get("output")))},
        errors=_read_errors(declared.get("errors")),
        handler=UNBOUND,
        namespace=as_optional_text(declared.get("namespace")),
        required_scopes=as_texts(declared.get("required_scopes")),
        deprecated=_read_deprecation(as_mapping(declared.get("deprecated"))),
        cost=read_cost(as_mapping(declared.get("cost")))[0],
        confirm=confirm if isinstance(confirm := declared.get("confirm"), bool) else None,
        internal=declared.get("internal") is True,
        since=as_optional_text(declared.get("since")),
        streams=declared.get("streams") is True,
        location=location,
    )


def read_semantic(block: Mapping[str, Any]) -> Semantic:
    """Read the semantic block. `confidence_guidance` is advice to agents, not the server's confidence."""
    capability = block.get(AGTP_CAPABILITY)
    if capability not in CAPABILITIES:
        capability = as_text(block.get("capability"))
    transitions = as_mapping(block.get("state_transition"))
    return Semantic(
        intent=as_text(block.get("intent")),
        actor=as_text(block.get("actor")),
        outcome=as_text(block.get("outcome")),
        capability=capability,
        confidence=_number(block, "confidence") or 0.0,
        impact=as_text(block.get("impact_tier")) or "irreversible",
        is_idempotent=block.get("is_idempotent") is True,
        confidence_guidance=_number(block, "confidence_guidance"),
        parameter_hints=as_mapping(block.get("parameter_hints")),
        state_transition={name: change for name, change in transitions.items() if isinstance(change, str)},
        mcp_tool_name=as_optional_text(block.get("mcp_tool_name")),
        concepts=as_texts(block.get("concepts")),
    )


def read_vocabulary(block: object) -> Vocabulary:
    """Read the vocabulary block; return an empty one if it is missing."""
    verbs = tuple(verb.upper() for verb in as_texts(as_mapping(block).get("declared_verbs")))
    return replace(read_settings(Vocabulary, _silent(block)), declared_verbs=verbs)


def read_data_manifest(block: object) -> DataManifest | None:
    return read_settings(DataManifest, _silent(block)) if isinstance(block, dict) else None


def _silent(block: object) -> Table:
    """Return a table whose findings nobody reads."""
    return Table(as_mapping(block), "", Findings(lambda _: Location(""), tolerant=True))


def _closed(schema: Mapping[str, Any], shared: SharedSchemas) -> Mapping[str, Any]:
    """Close an input schema against undeclared fields, unless it declares otherwise."""
    name = target(schema.get("$ref"), shared.schemas)
    if name is not None and isinstance(shared.schemas[name], dict) and schema.keys() <= _ANNOTATIONS:
        # A schema with a reference cannot be closed, but its target can.
        own = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**shared.alone(name), **own}
    else:
        schema = shared.bundle(schema)
    closed = {"$schema": DIALECT, "type": "object", **schema}
    closed.setdefault(closing_keyword(schema), False)
    return closed


def _read_errors(value: object) -> tuple[DeclaredError, ...]:
    if isinstance(value, dict):  # names with their descriptions, as endpoint files write them
        value = [{"name": name, "description": about} for name, about in value.items()]
    errors: list[DeclaredError] = []
    for entry in as_list(value):
        if isinstance(entry, str):
            errors.append(DeclaredError(entry))
        elif isinstance(entry, dict) and isinstance(entry.get("name"), str):
            errors.append(DeclaredError(entry["name"], as_text(entry.get("description"))))
    return tuple(errors)


def _read_deprecation(block: Mapping[str, Any]) -> Deprecation | None:
    if not (deprecated_in := as_text(block.get("deprecated_in"))):
        return None
    successor = as_mapping(block.get("successor"))
    return Deprecation(
        deprecated_in=deprecated_in,
        removed_in=as_optional_text(block.get("removed_in")),
        successor_method=as_optional_text(successor.get("method")),
        successor_path=as_optional_text(successor.get("path")),
    )


def _number(block: Mapping[str, Any], key: str) -> float | None:
    value = block.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None

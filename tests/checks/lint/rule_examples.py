"""The examples on the pages of rules, each put into a document of its kind that is complete but for it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from datetime import date
from typing import Any, Final, NamedTuple

import yaml
from tests.checks.lint import agis_text
from tests.documents.ai.test_document import FLIGHTS

from bespeak.contract.policy import FLOOR_METHODS
from bespeak.text.diagnostics.diagnostic import Rule
from bespeak.text.diagnostics.report import page_of

_TOP: Final = frozenset({"agis", "service", "agtp", "version", "endpoints", "vocabulary", "schemas", "data_manifest"})
_WHOLE: Final = frozenset({"input", "output", "input_schema", "output_schema", "handler"})
"""What an example says anew instead of adding to it: two half schemas are no schema."""
_COMMENTED: Final = re.compile(r"^(\w+):.*# bespeak:.*$", re.MULTILINE)

_INPUT: Final = {
    "type": "object",
    "properties": {"room_id": {"type": "string"}},
    "required": ["room_id"],
    "additionalProperties": False,
}
_OUTPUT: Final = {
    "type": "object",
    "properties": {"reservation_id": {"type": "string"}},
    "required": ["reservation_id"],
    "additionalProperties": True,
}
ENDPOINT: Final[dict[str, Any]] = {
    "method": "BOOK",
    "path": "/room",
    "description": "Books a room.",
    "errors": ["room_unavailable"],
    "semantic": {
        "intent": "Books a room for the guest",
        "actor": "agent",
        "outcome": "A reservation with status CONFIRMED exists",
        "capability": "transaction",
        "confidence": 0.85,
        "impact": "irreversible",
        "is_idempotent": False,
    },
    "input_schema": _INPUT,
    "output_schema": _OUTPUT,
    "handler": {"type": "registered_function", "function": "rooms.handlers.book_room"},
}
"""BOOK /room as an endpoint file declares it."""
SERVER: Final[dict[str, Any]] = {
    "server": {"server_id": "rooms.example", "operator": "Acme Rooms", "contact": "mailto:ops@rooms.example"}
}
STEP: Final[dict[str, Any]] = {"method": "QUERY", "path": "/orders"}
MANIFEST: Final[dict[str, Any]] = {
    "agtp_version": "1.0",
    "agtp_api_version": "1.0",
    "document_version": "1.2.0",
    "catalog_version": "1.1.0",
    "catalog_versions_supported": ["1.1.0"],
    "server": {**SERVER["server"], "issued": "2026-11-15T08:00:00Z", "updated": "2026-11-15T08:00:00Z"},
    "embedded_methods": list(FLOOR_METHODS),
    "agent_disclosure": "public",
    "hosted_agents": [],
    "policies": {
        "wildcards_accepted": False,
        "anonymous_discovery": True,
        "scope_required_for_invocation": False,
        "synthesis_enabled": False,
        "max_synthesis_depth": 10,
    },
    "endpoints": [{**ENDPOINT, "handler": {"type": "registered_function"}}],
    "manifest_signature": {"algorithm": "ed25519", "value": "c2lnbmVk"},
}


class Placed(NamedTuple):
    """A document, and the name of a file it may stand in."""

    text: str
    file: str


def example_document(rule: Rule, *, good: bool = False) -> Placed:
    """Return a document with the bad example of a rule, and nothing in its place that only the good one has.

    With `good`, it has the good example instead.
    """
    page = page_of(rule)
    piece, other = (page.good, page.bad) if good else (page.bad, page.good)
    if page.notation == "yaml":
        return Placed(_agis(piece, other), "rooms.agis")
    if page.notation == "toml":
        if rule.id == "D102":
            return Placed(piece, "room.toml")
        data = _toml(tomllib.loads(piece), tomllib.loads(other))
        name = "room.toml" if "endpoint" in data else "agtp-recipes.toml" if "recipe" in data else "bespeak.toml"
        return Placed(toml_text(data), name)
    base, name = (FLIGHTS, "ai.json") if rule.id.startswith(("D17", "D18")) else (MANIFEST, "manifest.json")
    return Placed(json.dumps(_merged(base, json.loads(piece), json.loads(other)), indent=2), name)


def _agis(piece: str, other: str) -> str:
    part, counterpart = yaml.safe_load(piece), yaml.safe_load(other)
    if not isinstance(part, dict):
        return piece
    if not isinstance(counterpart, dict):
        counterpart = {}
    if not _TOP & part.keys():
        entry = _merged(agis_text.endpoint(), part, counterpart)
        return _with_comments(agis_text.document(entry), piece)
    clean = agis_text.document()
    entries = part.get("endpoints")
    if isinstance(entries, list):
        beside = counterpart.get("endpoints")
        merged = _merged_items([agis_text.endpoint()], entries, beside if isinstance(beside, list) else [])
        clean = agis_text.document(*merged) if merged else clean
    whole = _merged(clean, part, counterpart)
    if isinstance(entries, list) and entries:
        whole["endpoints"] = clean["endpoints"]
    return yaml.safe_dump(whole, sort_keys=False, width=100_000)


def _with_comments(whole: dict[str, Any], piece: str) -> str:
    text: str = yaml.safe_dump(whole, sort_keys=False, width=100_000)
    for line in _COMMENTED.finditer(piece):
        text = re.sub(rf"(?m)^( +){line[1]}: .*$", lambda found, line=line: found[1] + line[0], text, count=1)
    return text


def _toml(part: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    if "endpoint" in part:
        return _merged({"endpoint": ENDPOINT}, part, other)
    if "recipe" in part:
        return part
    return _merged(SERVER, part, other)


def _merged(base: Mapping[str, Any], part: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The base as the part says it, without what only the counterpart says."""
    made = {key: value for key, value in base.items() if key in part or key not in other}
    for key, value in part.items():
        below, beside = made.get(key), other.get(key)
        if isinstance(value, dict) and isinstance(below, dict) and key not in _WHOLE:
            made[key] = _merged(below, value, beside if isinstance(beside, dict) else {})
        elif key in ("endpoints", "capabilities") and isinstance(value, list) and isinstance(below, list):
            made[key] = _merged_items(below, value, beside if isinstance(beside, list) else [])
        else:
            made[key] = value
    return made


def _merged_items(base: list[Any], items: list[Any], other: list[Any]) -> list[Any]:
    """Each item on top of the first of the base."""
    beside = [*other, *([{}] * len(items))]
    return [_merged(base[0], item, beside[index]) for index, item in enumerate(items)]


def toml_text(data: Mapping[str, Any]) -> str:
    """A document in TOML: tables of the first two levels with headings, all else inline."""
    lines: list[str] = []
    for name, table in data.items():
        if isinstance(table, list):
            for item in table:
                lines += [f"[[{name}]]", *(f"{_key(key)} = {_inline(value)}" for key, value in item.items()), ""]
            continue
        inner = {key: value for key, value in table.items() if isinstance(value, dict)}
        lines += [f"[{name}]", *(f"{_key(key)} = {_inline(table[key])}" for key in table if key not in inner), ""]
        for heading, block in inner.items():
            lines += [f"[{name}.{_key(heading)}]", *(f"{_key(key)} = {_inline(block[key])}" for key in block), ""]
    return "\n".join(lines)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_inline(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return value.isoformat() if isinstance(value, date) else json.dumps(value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)

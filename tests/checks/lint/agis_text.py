"""AGIS documents without fault, to be spoilt in one place by each test, and what all passes say of them."""

from __future__ import annotations

import json
from typing import Any

from bespeak.checks.lint.document import check_text
from bespeak.checks.lint.subject import LintContext
from bespeak.contract.catalog.document import load_bundled
from bespeak.text.diagnostics.diagnostic import Diagnostic

GONE: Any = object()
"""Put in the place of a field that is to be left out."""

_CATALOG = load_bundled()


def endpoint(*, semantic: Any = None, **fields: Any) -> dict[str, Any]:
    """BOOK /room with some of its fields, or fields of its semantic block, changed."""
    block = {
        "intent": "Books a room for the guest",
        "actor": "agent",
        "outcome": "A reservation with status CONFIRMED exists",
        "capability": "transaction",
        "confidence_guidance": 0.9,
        "impact_tier": "irreversible",
        "is_idempotent": False,
    }
    if isinstance(semantic, dict):
        block = _without_gone({**block, **semantic})
    declared = {
        "method": "BOOK",
        "path": "/room",
        "semantic": block if semantic is None or isinstance(semantic, dict) else semantic,
        "input": {"type": "object", "properties": {"room_id": {"type": "string"}}, "required": ["room_id"]},
        "output": {"type": "object", "properties": {"reservation_id": {"type": "string"}}},
        "errors": [{"name": "room_unavailable", "description": "The room is taken."}],
    }
    return _without_gone({**declared, **fields})


def document(*endpoints: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A document with these endpoints, and its vocabulary to match."""
    declared = list(endpoints) or [endpoint()]
    verbs = sorted({entry["method"] for entry in declared})
    whole = {
        "agis": "1.0",
        "service": "Acme Rooms",
        "agtp": "agtp://rooms.acme.example",
        "description": "Rooms for a night or a year.",
        "version": "1.2.0",
        "endpoints": declared,
        "vocabulary": {"declared_verbs": verbs, "domain": "hospitality"},
    }
    return _without_gone({**whole, **fields})


def findings(whole: dict[str, Any], *, level: int = 1) -> list[Diagnostic]:
    """Everything the passes say of a document."""
    context = LintContext(catalog=_CATALOG, level=level)
    return list(check_text(json.dumps(whole), "rooms.agis", context).findings)


def rules(whole: dict[str, Any], *, level: int = 1) -> list[str]:
    """The ids of the findings, sorted."""
    return sorted(finding.rule for finding in findings(whole, level=level))


def of_endpoint(*, level: int = 1, semantic: Any = None, **fields: Any) -> list[str]:
    """The ids of what is found in a document with one endpoint, changed as said."""
    return rules(document(endpoint(semantic=semantic, **fields)), level=level)


def advice(rule: str, whole: dict[str, Any], *, level: int = 1) -> Diagnostic:
    """The one finding of a rule."""
    (finding,) = [found for found in findings(whole, level=level) if found.rule == rule]
    return finding


def _without_gone(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not GONE}

"""AGIS documents for tests: one written by hand, and generated ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

AWKWARD = (
    *("yes", "No", "on", "OFF", "y", "n", "true", "True", "null", "~", "Null", "NaN", ".inf", "-.INF", "=", "<<"),
    *("1", "1.0", "1e3", "0x10", "0o17", "1_000", "-5", "+1", "12:30:45", "2026-01-01", "1.2.0", "", " ", "  a", "a "),
    *("- a", "-", "? a", ": ", "a: b", "a:", ":a", "a #b", "#", "a#b", "&a", "*a", "!a", "|", ">", "%a", "@a", "`a`"),
    *("[a]", "{a}", "a, b", "'", '"', "''", "it's", '"quoted"', "\\", "\\n", "---", "...", "--- a", "/room/{id}"),
    *("a\nb", "a\nb\n", "\n", "a\n\n", "\na", "a \nb", "  a\nb", "a\n  b\n", "a\r\nb", "a\tb", "\ta", "a\n\tb"),
    *("\x00", "\x07", "\x1b[31m", "\x7f", "\x85", "\xa0", "\u2028", "\u200c", "\u202e", "\ufeff", "é", "日本", "🛏"),
    *("NONE -> CONFIRMED", "a  b", "word " * 60 + "end", "x" * 300, "long: " * 40, "# " * 80 + "x"),
)

texts = st.sampled_from(AWKWARD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
"""Any JSON value."""

sentences = st.sampled_from(("Books a room for the agent.", "Finds rooms: all of them", "yes", "Ändert das Zimmer #7."))
names = st.sampled_from(("Room", "Bed", "House-2"))
verbs = st.sampled_from(("BOOK", "FIND", "CANCEL", "TRIAGE"))
_scalars = st.sampled_from(({"type": "string"}, {"type": "integer", "minimum": 1}, {"enum": ["yes", "no"]}, {}))


def _references(shared: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    if not shared:
        return _scalars
    return _scalars | st.sampled_from(shared).map(lambda name: {"$ref": f"#/schemas/{name}"})


def _objects(shared: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    parts = st.dictionaries(st.sampled_from(("room_id", "beds", "on", "1")), _references(shared), max_size=3)
    return parts.map(lambda properties: {"type": "object", "properties": properties, "required": []})


def _optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


def _joined(*parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(*parts).map(lambda found: {key: value for part in found for key, value in part.items()})


_capabilities = st.sampled_from(
    (
        {},
        {"capability": "discovery"},
        {"capability": "transaction", "x-agtp-capability": "creation"},
        {"capability": "modification", "x-agtp-capability": "domain_spanning"},
    )
)
_semantics = _joined(
    st.fixed_dictionaries(
        {
            "intent": sentences,
            "actor": st.sampled_from(("agent", "user", "system")),
            "outcome": sentences,
            "impact_tier": st.sampled_from(("informational", "reversible", "irreversible")),
            "is_idempotent": st.booleans(),
        }
    ),
    _capabilities,
    _optional(
        confidence_guidance=st.sampled_from((0.0, 0.6, 0.85, 1)),
        confidence=st.sampled_from((0.5, 1)),
        state_transition=st.just({"room.status": "FREE -> TAKEN", "room.id": "NULL -> [assigned]"}),
        parameter_hints=st.just({"beds": ["for N people", "yes"]}),
        mcp_tool_name=st.just("make_it"),
    ),
)
_errors = st.lists(
    st.sampled_from(("room_taken", "no_such_room")) | st.just({"name": "too_late", "description": "It is: too late."}),
    max_size=2,
)


def _endpoints(shared: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    return _joined(
        st.fixed_dictionaries(
            {
                "method": verbs,
                "path": st.sampled_from(("/room", "/room/{id}", "/bed")),
                "semantic": _semantics,
                "input": _objects(shared).map(lambda schema: {**schema, "additionalProperties": False}),
                "output": _objects(shared),
                "errors": _errors,
            }
        ),
        _optional(
            description=st.just("What people read."),
            namespace=st.just("rooms"),
            required_scopes=st.just(["booking:room"]),
            deprecated=st.just({"deprecated_in": "1.1", "successor": {"method": "BOOK"}}),
        ),
    )


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Generate canonical documents: every default is explicit, and the vocabulary is the verbs in use."""
    shared = tuple(draw(st.lists(names, unique=True, max_size=3)))
    endpoints = draw(st.lists(_endpoints(shared), min_size=1, max_size=3, unique_by=lambda e: (e["method"], e["path"])))
    used = list(dict.fromkeys(entry["method"] for entry in endpoints))
    manifest = {
        "available_data": [
            {"class": "room", "description": "Rooms: all.", "formats": ["json"], "sensitivity": "low"},
            {"class": "guest", "sensitivity": "irreversible", "requires_authorization": True},
        ],
        "pre_auth_discovery": True,
    }
    vocabulary = {
        "declared_verbs": draw(st.permutations(used)),
        **draw(_optional(domain=st.just("hospitality"), namespace=st.just("acme"), version=st.just("1.0"))),
        **draw(st.sampled_from(({}, {"negotiable": True}))),
    }
    return {
        "agis": "1.0",
        "service": draw(sentences),
        "agtp": draw(st.sampled_from(("agtp://rooms.acme.example", "agtp://[::1]:4480"))),
        **draw(_optional(description=sentences, version=st.just("1.2"), operator=st.just("Acme"), contact=sentences)),
        "vocabulary": vocabulary,
        **({"data_manifest": manifest} if "negotiable" in vocabulary else {}),
        "endpoints": endpoints,
        **({"schemas": {name: draw(_objects(shared)) for name in shared}} if shared else {}),
    }


def booking() -> dict[str, Any]:
    """Return a small conforming document, new for each test to break."""
    return {
        "agis": "1.0",
        "service": "Acme Rooms",
        "agtp": "agtp://rooms.acme.example",
        "description": "Rooms for a night.",
        "version": "1.0.0",
        "vocabulary": {"declared_verbs": ["BOOK"], "domain": "hospitality"},
        "endpoints": [
            {
                "method": "BOOK",
                "path": "/room",
                "semantic": {
                    "intent": "Books a room for the guest.",
                    "actor": "agent",
                    "outcome": "A reservation exists.",
                    "capability": "transaction",
                    "confidence_guidance": 0.85,
                },
                "input": {"type": "object", "properties": {"room_id": {"type": "string"}}, "required": ["room_id"]},
                "output": {"type": "object", "properties": {"reservation_id": {"type": "string"}}},
                "errors": ["room_unavailable"],
            }
        ],
    }

"""Files of other kinds than AGIS documents, each with one fault that a repair takes away."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

ENDPOINT = """\
# note on the endpoint
[endpoint]
method = "BOOK"
path = "/room/{room_id}"
description = "Books a room."
# note on errors
errors = ["room_unavailable"]

[endpoint.semantic]
intent = "Books a room for the guest."
actor = "agent"
outcome = "A reservation exists."
confidence = 0.9
impact = "reversible"
is_idempotent = false

# note on the input
[endpoint.input_schema]
type = "object"
required = ["room_id"]
additionalProperties = false

[endpoint.input_schema.properties.room_id]
type = "string"

[endpoint.output_schema]
type = "object"

# note on the handler
[endpoint.handler]
type = "registered_function"
function = "rooms.book"
"""
_FUNCTION = 'type = "registered_function"\nfunction = "rooms.book"\n'
_UPSTREAM = 'type = "external_service"\nurl = "https://rooms.example/book"\nmethod = "POST"\n'
_ERRORS = ", ".join(
    f'"upstream_{name}"'
    for name in ("timeout", "connection_error", "malformed_response", "authentication_failed", "error")
)
_MANIFEST: dict[str, Any] = {
    "agtp_version": "1.0",
    "agtp_api_version": "1.0",
    "catalog_version": "1.0.0",
    "catalog_versions_supported": ["1.0.0"],
    "endpoints": [{"method": "BOOK", "path": "/room", "handler": {"type": "registered_function"}}],
}
_AI: dict[str, Any] = {
    "aiendpoint": "1.0",
    "service": {"name": "Rooms", "description": "Rooms for a night."},
    "capabilities": [{"id": "find", "description": "Finds rooms.", "endpoint": "/rooms", "method": "GET"}],
}


class Broken(NamedTuple):
    """A file, the rule it breaks, and what stands in it when it is mended."""

    rule: str
    name: str
    text: str
    wanted: str


def _toml(rule: str, old: str, new: str, wanted: str) -> Broken:
    assert old in ENDPOINT
    return Broken(rule, "book.toml", ENDPOINT.replace(old, new), wanted)


def _upstream(rule: str, handler: str, errors: str, wanted: str) -> Broken:
    text = ENDPOINT.replace(_FUNCTION, handler).replace('["room_unavailable"]', errors)
    return Broken(rule, "book.toml", text, wanted)


def _json(rule: str, name: str, whole: dict[str, Any], wanted: str) -> Broken:
    return Broken(rule, name, json.dumps(whole, indent=2), wanted)


FILES = (
    _toml("D105", 'description = "', 'descripton = "', 'description = "Books'),
    _toml("D106", 'impact = "reversible"', 'impact = "reversable"', 'impact = "reversible"'),
    _toml("D107", "confidence = 0.9", "confidence_guidance = 0.9", "confidence = 0.9"),
    _toml("D117", 'method = "BOOK"', 'method = "book"', 'method = "BOOK"'),
    _toml("M202", 'method = "BOOK"', 'method = "CANCLE"', 'method = "CANCEL"'),
    _toml("M203", 'method = "BOOK"', 'method = "DELETE"', 'method = "'),
    _toml("P301", 'path = "/room/{room_id}"', 'path = "/room/{room_id}/"', 'path = "/room/{room_id}"'),
    _toml("P301", 'path = "/room/{room_id}"', 'path = "room/{room_id}"', 'path = "/room/{room_id}"'),
    _toml("P308", 'path = "/room/{room_id}"', "path = '/room/:room_id'", "path = '/room/{room_id}'"),
    _toml("J603", "additionalProperties = false\n", "", "additionalProperties = false\n"),
    _toml("J603", "additionalProperties = false", "additionalProperties = true", "additionalProperties = false"),
    _toml("J604", 'type = "object"\n\n# note', 'type = "object"\nadditionalProperties = false\n\n# note', "= true\n"),
    _toml("J606", '["room_unavailable"]', '["taken", "taken"]', '["taken"]'),
    _upstream("H712", _UPSTREAM.replace("https:", "http:"), f"[{_ERRORS}]", 'url = "https://rooms'),
    _upstream("H714", _UPSTREAM, '["room_unavailable"]', f'["room_unavailable", {_ERRORS}]'),
    _upstream("H714", _UPSTREAM, "[]", f"[{_ERRORS}]"),
    _upstream("H714", _UPSTREAM, '{ taken = "It is taken." }', "upstream_timeout = "),
    _upstream("H715", f'{_UPSTREAM}error_map = {{ 404 = "no_room" }}\n', f"[{_ERRORS}]", '"no_room"]'),
    _upstream("H718", 'type = "composition"\nrecipe = "book"\n', '["taken"]', '["taken", "composition_failed"]'),
    _json("D151", "manifest.json", {**_MANIFEST, "catalog_version": "0.9.0"}, '"0.9.0"\n  ]'),
    _json(
        "D157",
        "manifest.json",
        {**_MANIFEST, "endpoints": [{**_MANIFEST["endpoints"][0], "handler": {"type": "composition", "recipe": "r"}}]},
        '"type": "composition"\n',
    ),
    _json("D170", "ai.json", {**_AI, "aiendpoint": "1"}, '"aiendpoint": "1.0"'),
    _json("D187", "ai.json", {**_AI, "secret": {"a": [1, 2]}}, '"method": "GET"'),
)

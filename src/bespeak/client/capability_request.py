"""The input of a capability as an HTTP request: each member at its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import msgspec

from bespeak.discovery.capability import PLACEHOLDER, Capability, Placement
from bespeak.discovery.web_address import WebAddress
from bespeak.exchange.headers import is_header_name, is_header_value
from bespeak.schema.violation import Violation
from bespeak.source.pointer import pointer

_FORM: Final = "application/x-www-form-urlencoded"
_COOKIE: Final = re.compile(r"[!#-+\--:<-\[\]-~]*")
"""RFC 6265 4.1.1: what the value of a cookie is made of."""


@dataclass(slots=True)
class CapabilityRequest:
    """What is sent."""

    method: str
    address: WebAddress
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(slots=True)
class _Parts:
    path: dict[str, str] = field(default_factory=dict)
    query: list[tuple[str, str]] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    cookies: list[str] = field(default_factory=list)
    body: dict[str, Any] = field(default_factory=dict)
    whole: Any = None
    has_whole: bool = False


def build_request(
    capability: Capability, given: Mapping[str, Any], more_query: Mapping[str, str] | None = None
) -> CapabilityRequest | Violation:
    """The request for an input that keeps its schema, or which member cannot be sent. `more_query` goes behind."""
    parts = _Parts()
    for name, value in given.items():
        if value is None and name not in capability.placeholders:
            continue
        wrong = _put(parts, capability.place_of(name), value)
        if wrong is not None:
            return Violation(pointer((name,)), "", "request", wrong)
    missing = next((name for name in capability.placeholders if name not in parts.path), None)
    if missing is not None:
        return Violation("", "", "required", f'"{missing}" is a required property')
    parts.query += list((more_query or {}).items())
    target = PLACEHOLDER.sub(lambda match: parts.path[match[1]], capability.target)
    if parts.query:
        target += ("&" if "?" in target else "?") + _encode(parts.query)
    request = CapabilityRequest(capability.method, WebAddress(capability.origin, target), parts.headers)
    if parts.cookies:
        request.headers["Cookie"] = "; ".join(parts.cookies)
    return _with_body(request, parts, capability.media_type)


def _put(parts: _Parts, placement: Placement, value: Any) -> str | None:
    """Put a member at its place, or say why it cannot stand there."""
    name = placement.name
    if placement.place == "body":
        parts.body[name] = value
    elif placement.place == "whole-body":
        parts.whole, parts.has_whole = value, True
    elif placement.place == "query":
        if isinstance(value, list) and placement.explode and not placement.is_json:
            parts.query += [(name, _text(item)) for item in value]
        else:
            parts.query.append((name, _joined(value, placement)))
    elif placement.place == "path":
        text = _joined(value, placement)
        # Servers resolve dot segments, also encoded ones: such a value would choose another resource.
        if text in ("", ".", ".."):
            return f"{text!r} cannot stand in a path"
        parts.path[name] = quote(text, safe="")
    else:
        text = _joined(value, placement)
        if placement.place == "cookie":
            if not is_header_name(name) or _COOKIE.fullmatch(text) is None:
                return "the value cannot stand in a cookie"
            parts.cookies.append(f"{name}={text}")
        elif not (is_header_name(name) and is_header_value(text) and text.isascii()):
            return "the value cannot stand in a header"
        else:
            parts.headers[name] = text
    return None


def _with_body(request: CapabilityRequest, parts: _Parts, media_type: str) -> CapabilityRequest | Violation:
    if not (parts.has_whole or parts.body):
        return request
    content = parts.whole if parts.has_whole else parts.body
    plain = media_type.partition(";")[0].strip().lower()
    if plain == _FORM and isinstance(content, dict):
        items = [
            (name, item) for name, value in content.items() for item in (value if isinstance(value, list) else [value])
        ]
        request.body = _encode([(name, _text(item)) for name, item in items]).encode()
    elif plain == "application/json" or plain.endswith("+json") or plain in ("", "*/*"):
        request.body = msgspec.json.encode(content)
        media_type = media_type if plain not in ("", "*/*") else "application/json"
    elif isinstance(content, str) and plain.startswith("text/"):
        request.body = content.encode()
    else:
        return Violation("", "", "mediaType", f"a body of the type {media_type[:80]!r} cannot be sent from here")
    request.headers["Content-Type"] = media_type
    return request


def _joined(value: Any, placement: Placement) -> str:
    if placement.is_json or not isinstance(value, list):
        return _text(value)
    return placement.separator.join(_text(item) for item in value)


def _text(value: Any) -> str:
    """A value as text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _encode(pairs: list[tuple[str, str]]) -> str:
    return "&".join(f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in pairs)

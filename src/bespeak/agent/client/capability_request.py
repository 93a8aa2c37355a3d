"""HTTP request that calls a capability: each member of the input at its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any
from urllib.parse import quote

import msgspec

from bespeak.agent.discovery.capability import PLACEHOLDER, Capability, Placement, may_name_header
from bespeak.contract.http_value import encode_pairs, in_cookie, in_header, in_path, pairs, unusable
from bespeak.contract.schema.violation import Violation
from bespeak.protocol.exchange.headers import MEDIA_JSON, is_header_name
from bespeak.protocol.exchange.media_type import FORM, essence, is_json
from bespeak.protocol.web_address import WebAddress
from bespeak.text.diagnostics.brief import brief
from bespeak.text.source.pointer import child


@dataclass(slots=True)
class CapabilityRequest:
    """HTTP request to send."""

    method: str
    address: WebAddress
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(slots=True)
class _Parts:
    path: dict[str, str] = field(default_factory=dict)
    query: list[tuple[str, str]] = field(default_factory=list)
    """Names and encoded values."""
    headers: dict[str, str] = field(default_factory=dict)
    cookies: list[str] = field(default_factory=list)
    body: dict[str, Any] = field(default_factory=dict)
    whole: Any = None
    has_whole: bool = False
    faults: list[Violation] = field(default_factory=list)


def build_request(
    capability: Capability, given: Mapping[str, Any], more_query: Mapping[str, str] | None = None
) -> CapabilityRequest | list[Violation]:
    """Build the request for a valid input, or return why it cannot be sent. `more_query` is appended to the query."""
    parts = _Parts()
    for name, value in given.items():
        if value is not None or name in capability.placeholders:
            _put(parts, capability.place_of(name), value, child("", name))
    parts.faults += [
        Violation("", "", "required", f'"{name}" is a required property')
        for name in capability.placeholders
        if name not in parts.path
    ]
    headers = dict(parts.headers)
    if parts.cookies:
        headers["Cookie"] = "; ".join(parts.cookies)
    body, media_type = _body(parts, capability.media_type, capability.form_styles)
    if media_type is not None:
        headers["Content-Type"] = media_type
    if parts.faults:
        return parts.faults
    parts.query += [(name, quote(text, safe="")) for name, text in (more_query or {}).items()]
    target = PLACEHOLDER.sub(lambda match: parts.path[match[1]], capability.target)
    if parts.query:
        target += ("&" if "?" in target else "?") + encode_pairs(parts.query)
    return CapabilityRequest(capability.method, WebAddress(capability.origin, target), headers, body)


def _put(parts: _Parts, placement: Placement, value: Any, at: str) -> None:
    """Add one member of the input at its place."""
    name = placement.name
    match placement.place:
        case "body":
            parts.body[name] = value
        case "whole-body":
            parts.whole, parts.has_whole = value, True
        case "query":
            parts.query += pairs(name, value, placement.style, at, parts.faults)
        case "path":
            parts.path[name] = in_path(value, at, parts.faults)
        case "header":
            if may_name_header(name):
                parts.headers[name] = in_header(value, at, parts.faults)
            else:
                parts.faults.append(
                    unusable(at, f"the document sends it as header {brief(name)}, which is not allowed")
                )
        case "cookie":
            if is_header_name(name):
                parts.cookies.append(f"{name}={in_cookie(value, at, parts.faults)}")
            else:
                parts.faults.append(unusable(at, f"the document sends it as cookie {brief(name)}, which is not valid"))


def _body(parts: _Parts, media_type: str, styles: Mapping[str, str]) -> tuple[bytes, str | None]:
    """Return the body and its media type, or None if there is no body."""
    if not (parts.has_whole or parts.body):
        return b"", None
    content = parts.whole if parts.has_whole else parts.body
    kind = essence(media_type)
    if kind == FORM and isinstance(content, dict):
        fields = (
            pairs(name, value, styles.get(name, "repeat"), child("", name), parts.faults)
            for name, value in content.items()
        )
        return encode_pairs(chain.from_iterable(fields)).encode(), media_type
    if is_json(kind):
        return msgspec.json.encode(content), media_type
    if kind in ("", "*/*"):
        return msgspec.json.encode(content), MEDIA_JSON
    if isinstance(content, str) and kind.startswith("text/"):
        return content.encode(), media_type
    parts.faults.append(unusable("", f"the client cannot send a body of type {brief(media_type)}"))
    return b"", None

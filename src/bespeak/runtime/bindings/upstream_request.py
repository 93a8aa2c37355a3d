"""Upstream requests, built from the input alone: each field goes to exactly one place (AGTP-API 12.3)."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as member
from typing import Any, NamedTuple
from urllib.parse import quote, unquote_plus

import httpx
import msgspec

from bespeak.contract.handler import ExternalService, fill_placeholders, placeholders
from bespeak.contract.http_value import (
    MAX_HEADER,
    as_text,
    encode_pairs,
    in_cookie,
    in_header,
    in_path,
    in_url_query,
    pairs,
    texts,
    unusable,
)
from bespeak.contract.schema.validation import Violation
from bespeak.protocol.exchange.headers import FORM
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.source.pointer import child

Part = tuple[str, tuple[str | None, bytes, str | None]]  # of a multipart body: name; file name, content, media type


class UpstreamField(NamedTuple):
    name: str  # name in the contract
    value: Any
    style: str  # format of several values, one of LIST_STYLES
    reserved: bool = False  # True if reserved characters are not percent-encoded
    part_type: str | None = None  # media type of its part in a multipart body; None for the usual one

    @property
    def pointer(self) -> str:
        return child("", self.name)


def form_body(fields: Mapping[str, UpstreamField], faults: list[Violation]) -> bytes:
    return encode_pairs(form_pairs(fields, faults)).encode("ascii")


def form_pairs(fields: Mapping[str, UpstreamField], faults: list[Violation]) -> list[tuple[str, str]]:
    """Return the names and encoded values of fields for a query or a form."""
    return [
        pair
        for name, field in fields.items()
        for pair in pairs(name, field.value, field.style, field.pointer, faults, reserved=field.reserved)
    ]


def multipart_body(fields: Mapping[str, UpstreamField], files: Collection[str], faults: list[Violation]) -> list[Part]:
    """Encode fields, by upstream name, as parts; `files` lists, by contract name, those to be decoded as files."""
    parts: list[Part] = []
    for name, field in fields.items():
        parts += _file_parts(name, field, faults) if field.name in files else _text_parts(name, field, faults)
    return parts


def _text_parts(name: str, field: UpstreamField, faults: list[Violation]) -> Iterator[Part]:
    value = field.value
    if isinstance(value, list | dict) and field.style not in ("repeat", "json"):
        for key, text in texts(name, value, field.style, field.pointer, faults):
            yield key, (None, text.encode(), field.part_type)
        return
    for item in value if isinstance(value, list) and field.style != "json" else (value,):
        if item is not None:
            kind = "application/json" if isinstance(item, list | dict) else None
            yield name, (None, as_text(item).encode(), field.part_type or kind)


def _file_parts(name: str, field: UpstreamField, faults: list[Violation]) -> Iterator[Part]:
    several = isinstance(field.value, list)
    for index, item in enumerate(field.value if several else (field.value,)):
        if item is None:
            continue
        try:
            content = b64decode(item, validate=True) if isinstance(item, str) else None
        except (binascii.Error, ValueError):
            content = None
        if content is None:
            at = child(field.pointer, index) if several else field.pointer
            faults.append(unusable(at, f"{brief(item)} is not valid base64; send the content of a file as base64"))
        else:
            yield name, (name, content, field.part_type or "application/octet-stream")


def json_body(fields: Mapping[str, UpstreamField]) -> bytes:
    return msgspec.json.encode({name: field.value for name, field in fields.items()})


Encode = Callable[[Any, str, list[Violation]], str]  # encodes a value; takes its pointer and adds what is wrong


@dataclass(frozen=True, slots=True)
class UpstreamCredentials:
    """Resolved credentials for an upstream; excluded from repr."""

    headers: Mapping[str, str] = member(default_factory=dict, repr=False)
    query: Mapping[str, str] = member(default_factory=dict, repr=False)
    cookies: Mapping[str, str] = member(default_factory=dict, repr=False)


class RequestPlan:
    """How an input becomes a request; computed once from the handler."""

    def __init__(self, handler: ExternalService, credentials: UpstreamCredentials) -> None:
        self._handler = handler
        self._form = handler.body_form
        self._query = frozenset(handler.query)
        self._reserved_fields = frozenset(handler.reserved)
        self._part_types = handler.part_types
        address, _, own = handler.url.partition("#")[0].partition("?")
        self._address, self._own = address, own
        configured = {name.lower(): value for name, value in credentials.headers.items()}
        self._cookies = [configured.pop("cookie")] if "cookie" in configured else []
        self._cookies += [f"{name}={value}" for name, value in credentials.cookies.items()]
        self._configured = configured
        self._standard = {
            "accept": "application/json" if handler.answer == "json" else "*/*",
            # An encoded body could be a decompression bomb; only identity is requested and read.
            "accept-encoding": "identity",
            "connection": "keep-alive",
            "user-agent": "bespeak",
        }
        self._reserved = frozenset(credentials.query)
        self._secret = encode_pairs([(name, quote(value, safe="")) for name, value in credentials.query.items()])

    def build(self, given: Mapping[str, Any]) -> httpx.Request | list[Violation]:
        """Build the request, or return why this input cannot be sent."""
        faults: list[Violation] = []
        remaining = dict(given)
        try:
            address, own = self._fill_url(remaining, faults)
            headers = self._fill_headers(remaining, faults)
            body = self._fill_body(remaining, headers, faults)
            query = self._fill_query(remaining, own, faults)
            url = f"{address}?{query}" if query else address
            lines = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
            return faults or httpx.Request(self._handler.method, url, headers=lines, **body)
        except UnicodeEncodeError:
            return [unusable("", "a string contains a lone surrogate, which UTF-8 cannot encode")]
        except httpx.InvalidURL as error:
            return [unusable("", f"the input does not fit into a URL: {error}")]

    def _fill_url(self, remaining: dict[str, Any], faults: list[Violation]) -> tuple[str, str]:
        """Return the URL without its query, and its own query, with input fields filled in."""
        given = {name: remaining.pop(name, None) for name in self._handler.path_fields}

        def fill(template: str, encode: Encode) -> str:
            encoded = {name: encode(given[name], child("", name), faults) for name in placeholders(template)}
            return fill_placeholders(template, encoded.__getitem__)

        return fill(self._address, in_path), fill(self._own, in_url_query)

    def _fill_headers(self, remaining: dict[str, Any], faults: list[Violation]) -> dict[str, str]:
        """Build all headers except those of the body. Input never replaces configured headers."""
        headers: dict[str, str] = dict(self._standard)
        for name, header in self._handler.header_fields.items():
            value = remaining.pop(name, None)
            if value is not None:
                headers[header.lower()] = in_header(value, child("", name), faults)
        headers.update(self._configured)
        cookies = list(self._cookies)
        for name, cookie in self._handler.cookie_fields.items():
            value = remaining.pop(name, None)
            if value is not None:
                cookies.append(f"{cookie}={in_cookie(value, child('', name), faults)}")
        if cookies:
            headers["cookie"] = "; ".join(cookies)
            if len(headers["cookie"]) > MAX_HEADER:
                faults.append(unusable("", "the input does not fit into the cookies of the upstream"))
        return headers

    def _fill_body(self, remaining: dict[str, Any], headers: dict[str, str], faults: list[Violation]) -> dict[str, Any]:
        """Build the body arguments for httpx; remove the fields used from `remaining`."""
        whole = self._handler.body_field
        if whole is not None:
            if whole not in remaining:
                return {}
            headers.setdefault("content-type", "application/json")
            return {"content": msgspec.json.encode(remaining.pop(whole))}
        if self._form == "none":
            return {}
        fields = self._named({name: remaining.pop(name) for name in list(remaining) if name not in self._query})
        if self._form == "multipart":
            # httpx sets the media type: only it knows the boundary.
            headers.pop("content-type", None)
            return {"files": multipart_body(fields, self._handler.files, faults)}
        if self._form == "form":
            headers["content-type"] = FORM
            return {"content": form_body(fields, faults)}
        headers.setdefault("content-type", "application/json")
        return {"content": json_body(fields)}

    def _fill_query(self, remaining: Mapping[str, Any], own: str, faults: list[Violation]) -> str:
        """Append the remaining fields to the URL's own query, replacing parameters of the same name."""
        fields = self._named(remaining)
        pairs = form_pairs(fields, faults)
        names = {name for name, _ in pairs}
        faults += [
            unusable(fields[name].pointer if name in fields else "", f"{name!r} is set by this server; omit it")
            for name in sorted(names & self._reserved)
        ]
        names |= self._reserved
        kept = [part for part in own.split("&") if part and unquote_plus(part.partition("=")[0]) not in names]
        return "&".join(filter(None, (*kept, encode_pairs(pairs), self._secret)))

    def _named(self, fields: Mapping[str, Any]) -> dict[str, UpstreamField]:
        """Map upstream names to fields; if two collide, the renamed one wins."""
        names = self._handler.input_transform
        styled = {
            name: UpstreamField(
                name, value, self._style(name), name in self._reserved_fields, self._part_types.get(name)
            )
            for name, value in fields.items()
        }
        found = {name: field for name, field in styled.items() if name not in names}
        found.update((names[name], field) for name, field in styled.items() if name in names)
        return found

    def _style(self, name: str) -> str:
        # Fields in the query for want of a body were JSON before handlers could choose a style.
        implied = name not in self._query and self._form in ("json", "none")
        return self._handler.lists.get(name, "json" if implied else "repeat")

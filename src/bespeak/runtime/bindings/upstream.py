"""What every upstream needs: requests built from the input alone (AGTP-API 12.3), outcomes, and one pool of clients."""

from __future__ import annotations

import asyncio
import binascii
import logging
import ssl
import sys
from base64 import b64decode
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as member
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote_plus

import httpx
import msgspec

from bespeak.contract import http_route
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService, fill_placeholders, placeholders
from bespeak.contract.http_route import MAX_HEADER, as_text, encode_pairs, in_cookie, pairs, texts, unusable
from bespeak.contract.schema.validation import Validator, Violation
from bespeak.protocol import status
from bespeak.protocol.address_guard import describe_failure, system_trust
from bespeak.protocol.exchange.headers import FORM
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Answer
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

        return fill(self._address, http_route.in_path), fill(self._own, http_route.in_url_query)

    def _fill_headers(self, remaining: dict[str, Any], faults: list[Violation]) -> dict[str, str]:
        """Build all headers except those of the body. Input never replaces configured headers."""
        headers: dict[str, str] = dict(self._standard)
        for name, header in self._handler.header_fields.items():
            value = remaining.pop(name, None)
            if value is not None:
                headers[header.lower()] = http_route.in_header(value, child("", name), faults)
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
        reserved, types = self._handler.reserved, self._handler.part_types
        styled = {
            name: UpstreamField(name, value, self._style(name), name in reserved, types.get(name))
            for name, value in fields.items()
        }
        found = {name: field for name, field in styled.items() if name not in names}
        found.update((names[name], field) for name, field in styled.items() if name in names)
        return found

    def _style(self, name: str) -> str:
        # Fields in the query for want of a body were JSON before handlers could choose a style.
        implied = name not in self._query and self._form in ("json", "none")
        return self._handler.lists.get(name, "json" if implied else "repeat")


_logger = logging.getLogger(__name__)

OUTPUT_INVALID: Final = "upstream-output-invalid"
"""Code for an upstream's answer that breaks the output schema. The upstream has carried the call out."""

MAX_RESPONSE_BYTES: Final = 8 * 1024 * 1024  # maximum size of an upstream response; the draft sets no limit
_SHOWN: Final = 5  # places of violations in the log


class UpstreamOutcome:
    def __init__(self, endpoint: Endpoint, output: Validator | None, *, trusts: bool) -> None:
        """Judge the answers by `output`; with `trusts`, invalid ones are logged and passed on."""
        self.endpoint = endpoint
        self._output = output
        self._trusts = trusts
        self._aftermath = _aftermath(endpoint)

    def check(self, output: Any, answered: str, upstream_status: int | None = None) -> Any:
        """Return a valid output. Refuse an invalid one as final: a server error would invite a second call."""
        if self._output is None or self._output.is_valid(output):
            return output
        violations = self._output.violations(output)
        places = ", ".join(dict.fromkeys(one.schema_pointer or f"/{one.keyword}" for one in violations[:_SHOWN]))
        if self._trusts:
            _logger.warning("%s: the answer of the upstream breaks the output schema at %s", self.endpoint, places)
            return Answer(msgspec.json.encode(output))
        message = f"{answered}, but its answer breaks the output schema of {self.endpoint}."
        return self.failed(OUTPUT_INVALID, message, upstream_status, cause=f"at {places}", took_effect=True)

    def failed(
        self,
        name: str,
        message: str,
        upstream_status: int | None = None,
        *,
        cause: BaseException | str | None = None,
        took_effect: bool = False,
    ) -> Refused:
        """Build the refusal for a failed call. `took_effect` is True if the upstream may have carried it out."""
        # The cause may name the upstream's host, which must not be disclosed (core 10.1, item 12).
        why = describe_failure(cause) if isinstance(cause, BaseException) else cause or message
        _logger.warning("%s: %s: %s", self.endpoint, name, why)
        details: dict[str, Any] = {} if upstream_status is None else {"upstream_status": upstream_status}
        if took_effect and self._aftermath:
            details["effect"] = "possible"
            message += self._aftermath
        return Refused(status.UNPROCESSABLE, name, message, {"details": details} if details else {})


def _aftermath(endpoint: Endpoint) -> str:
    """Return what a caller must know after a call whose result is unclear."""
    if endpoint.semantic.impact == "informational":
        return ""
    if endpoint.semantic.is_idempotent:
        return " The call may have taken effect; it is idempotent and may be repeated."
    return " The call may have taken effect: do not repeat it without the same Idempotency-Key."


_UNLIMITED: Final = 10_000
_LIMITS: Final = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=30.0)


class UpstreamPool:
    """One transport for each host and port."""

    # Transports rather than clients: a client stores the cookies an upstream sets, which would share one caller's
    # session with another, and logs every URL with its query.

    def __init__(self, tls: ssl.SSLContext | None = None, most: int | None = None) -> None:
        """Create a pool for `most` calls at one time; by default an eighth of the files that this process may open."""
        self._tls = tls
        self.places = asyncio.Semaphore(_most_calls() if most is None else most)
        """Places for calls to all hosts: upstreams must not use up the descriptors that handlers need for files."""
        self._transports: dict[tuple[str, str, int | None], httpx.AsyncHTTPTransport] = {}

    def transport(self, url: httpx.URL) -> httpx.AsyncHTTPTransport:
        """Return the connections to the host of a URL; none is opened before the first call."""
        key = (url.scheme, url.host, url.port)
        found = self._transports.get(key)
        if found is None:
            tls = self._tls or system_trust()
            found = self._transports[key] = httpx.AsyncHTTPTransport(verify=tls, trust_env=False, limits=_LIMITS)
        return found

    async def aclose(self) -> None:
        """Close the pooled connections. A later call opens new ones."""
        transports = list(self._transports.values())
        self._transports.clear()
        for transport in transports:
            await transport.aclose()


def _most_calls() -> int:
    if sys.platform == "win32":
        return _UNLIMITED
    import resource  # noqa: PLC0415 - not on Windows

    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _UNLIMITED if files == resource.RLIM_INFINITY else max(1, files // 8)

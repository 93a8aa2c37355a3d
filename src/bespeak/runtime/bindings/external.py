"""Upstream HTTPS services: the external_service binding and its five upstream errors (AGTP-API 12.3)."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx
import msgspec

from bespeak.checks.lint.rules.handler import UPSTREAM_SETUP
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import UPSTREAM_ERRORS, ExternalService, fill_placeholders
from bespeak.contract.schema.validation import Validator
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import is_header_name, is_header_value
from bespeak.protocol.exchange.messages import Context
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.bindings.upstream import (
    MAX_RESPONSE_BYTES,
    RequestPlan,
    UpstreamCredentials,
    UpstreamOutcome,
    UpstreamPool,
)
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.json_data import RepeatedKeyError, decode_json
from bespeak.text.source.pointer import child

LONGEST_WAIT: Final = 24 * 3600  # maximum Retry-After in seconds; a longer wait is shortened to one day
_RETRY_STATUSES: Final = frozenset({httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE})
# Text encodings. Python has others, some of which take quadratic time or are not text encodings.
_CHARSET: Final = re.compile(
    r"(?:utf-?(?:8|16|32)(?:-?[lb]e)?|(?:us-)?ascii|iso-?8859-?\d\d?|latin-?1|(?:windows-|cp)125\d"
    r"|shift[_-]jis|euc-(?:jp|kr)|gb(?:k|2312|18030)|big5|koi8-[ru])",
    re.IGNORECASE,
)


def decode_answer(body: bytes | bytearray) -> Any:
    """Decode a JSON body; raise ValueError with the reason if it is not valid."""
    try:
        return decode_json(body)
    except RepeatedKeyError:
        raise ValueError("has a repeated key") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ValueError("is not JSON") from None


def decode_text(body: bytes | bytearray, charset: str | None, encoding: str | None) -> str:
    """Decode a text body by its declared charset, else UTF-8; raise ValueError if it is not valid."""
    if encoding is not None and encoding.strip().lower() not in ("", "identity"):
        # Identity was requested. Some charsets would decode compressed bytes without an error.
        raise ValueError("is compressed, although no compression was requested")
    if charset is not None and _CHARSET.fullmatch(charset) is None:
        raise ValueError("has an unknown charset")
    try:
        return body.decode(charset or "utf-8")
    except (UnicodeDecodeError, LookupError):
        raise ValueError("is not valid text in its charset") from None


def retry_after(code: int, headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the Retry-After header of the upstream, to pass it on (RFC 9110 10.2.3)."""
    value = headers.get("retry-after", "").strip() if code in _RETRY_STATUSES else ""
    seconds = _seconds(value)
    return () if seconds is None else (("Retry-After", str(min(max(seconds, 1), LONGEST_WAIT))),)


def _seconds(value: str) -> int | None:
    if value.isascii() and value.isdigit():
        return int(value[:10])
    try:
        when = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return int((when - datetime.now(UTC)).total_seconds())


def rename(fields: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Rename upstream fields to the names of the contract; if two collide, the renamed one wins."""
    renamed = {name: value for name, value in fields.items() if name not in names}
    renamed.update((names[name], value) for name, value in fields.items() if name in names)
    return renamed


_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
# RFC 3986 appendix B: everything before the path.
_AUTHORITY: Final = re.compile(r"[^:/?#]+://[^/?#]*")


def check_setup(endpoint: Endpoint, handler: ExternalService) -> list[Diagnostic]:
    return [*_check_url(endpoint, handler), *_check_transforms(endpoint, handler)]


def upstream_url(handler: ExternalService) -> httpx.URL | None:
    """Parse the URL with a sample value for each field; return None if it is not valid."""
    try:
        url = httpx.URL(fill_placeholders(handler.url, lambda _: "1"))
    except httpx.InvalidURL:
        return None
    return url if url.host else None


def resolve_credentials(
    endpoint: Endpoint, handler: ExternalService, environment: Mapping[str, str]
) -> UpstreamCredentials | list[Diagnostic]:
    """Resolve the configured headers, parameters and cookies from the environment, or return the findings."""
    findings: list[Diagnostic] = []

    def resolve(member: str, what: str, templates: Mapping[str, str]) -> dict[str, str]:
        values: dict[str, str] = {}
        for name, template in templates.items():
            missing = [variable for variable in _VARIABLE.findall(template) if variable not in environment]
            value = _VARIABLE.sub(lambda match: environment.get(match.group(1), ""), template)
            fault, advice = f"the {what} {name!r} cannot be sent", _ADVICE[what]
            if missing:
                fault = f"the {what} {name!r} needs the environment variable {missing[0]!r}, which is not set"
                advice = "Set it before the server starts."
            if missing or not _is_sendable(what, name, value):
                findings.append(UPSTREAM_SETUP.at(endpoint, child(f"/handler/{member}", name), fault, advice))
            values[name] = value
        return values

    credentials = UpstreamCredentials(
        headers=resolve("headers", "header", handler.headers),
        query=resolve("query_credentials", "parameter", handler.query_credentials),
        cookies=resolve("cookie_credentials", "cookie", handler.cookie_credentials),
    )
    return findings or credentials


_ADVICE: Final = {
    "header": "Use printable ASCII on one line.",
    "parameter": "Use printable characters on one line, and a name.",
    "cookie": "Use printable ASCII without blanks, quotes, commas and semicolons.",
}
_COOKIE_VALUE: Final = re.compile(r"[!#-+\--:<-\[\]-~]*")  # RFC 6265 4.1.1: cookie-octets


def _is_sendable(what: str, name: str, value: str) -> bool:
    if what == "parameter":
        return bool(name) and is_header_value(value)
    if what == "cookie":
        return is_header_name(name) and _COOKIE_VALUE.fullmatch(value) is not None
    return is_header_name(name) and is_header_value(value) and value.isascii()


def _check_url(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    at = "/handler/url"
    shown = handler.url[:200]
    authority = _AUTHORITY.match(handler.url)
    if authority is None or upstream_url(handler) is None:
        yield UPSTREAM_SETUP.at(endpoint, at, f"{shown!r} is not a usable URL", "Write https://host/path.")
        return
    if fill_placeholders(authority.group(), lambda _: "") != authority.group():
        advice = "Put placeholders into the path: a caller must not choose the host."
        yield UPSTREAM_SETUP.at(endpoint, at, f"the host of {shown!r} depends on the input", advice)
        return
    properties = endpoint.input_schema.get("properties", {})
    for name in handler.path_fields:
        if name not in properties:
            message = f"the URL needs {name!r}, which the input schema does not declare"
            yield UPSTREAM_SETUP.at(endpoint, at, message, "Declare it.")


def _check_transforms(endpoint: Endpoint, handler: ExternalService) -> Iterator[Diagnostic]:
    # A name may be in the query and in the body, but not twice in one of them.
    with_body = handler.body_form != "none" and handler.body_field is None
    places = [(with_body and name not in handler.query, theirs) for name, theirs in handler.input_transform.items()]
    returned = list(handler.output_transform.values())
    for member, names in (("input_transform", places), ("output_transform", returned)):
        if len(set(names)) < len(names):
            message = f"{member} gives two fields the same upstream name, so one of them would be lost"
            yield UPSTREAM_SETUP.at(endpoint, f"/handler/{member}", message, "Give each its own.")


_LATER: Final = (("Retry-After", "5"),)
_EMPTY: Final = frozenset({httpx.codes.NO_CONTENT, httpx.codes.RESET_CONTENT})
_REJECTED: Final = frozenset({httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN})


def bind_external(
    endpoint: Endpoint,
    handler: ExternalService,
    environment: Mapping[str, str],
    *,
    pool: UpstreamPool,
    output: Validator | None = None,
    trusts: bool = False,
) -> ExternalBinding | list[Diagnostic]:
    """Build the binding of an external_service endpoint, or return the findings that prevent its registration.

    `environment` resolves `${VAR}` in credentials. `pool` holds the connections shared with other endpoints. `output`
    checks the answers; with `trusts`, invalid ones are logged and passed on.
    """
    findings = check_setup(endpoint, handler)
    credentials = resolve_credentials(endpoint, handler, environment)
    url = upstream_url(handler)
    if findings or isinstance(credentials, list) or url is None:
        return [*findings, *(credentials if isinstance(credentials, list) else ())]
    outcome = UpstreamOutcome(endpoint, output, trusts=trusts)
    return ExternalBinding(handler, RequestPlan(handler, credentials), pool, url, outcome)


class ExternalBinding:
    """Calls one upstream. Upstream failures are returned as declared errors, never raised."""

    def __init__(
        self, handler: ExternalService, plan: RequestPlan, pool: UpstreamPool, url: httpx.URL, outcome: UpstreamOutcome
    ) -> None:
        endpoint = self._endpoint = outcome.endpoint
        self._outcome = outcome
        # The five errors of every upstream are described here, with the particulars.
        declared = (error for error in endpoint.errors if error.name not in UPSTREAM_ERRORS)
        self._meanings = {error.name: error.description for error in declared}
        self._handler = handler
        self._plan = plan
        self._pool = pool
        self._url = url
        # The draft writes output_transform as AGTP name -> upstream name and inverts it at response time.
        self._incoming = {theirs: ours for ours, theirs in handler.output_transform.items()}

    async def call(self, input: Mapping[str, Any], context: Context) -> Any:  # noqa: A002 - the draft's word
        """Forward the input and return the output. The context is not sent: an upstream cannot verify it."""
        request = self._plan.build(input)
        if isinstance(request, list):
            message = f"The input of {self._endpoint} cannot be passed on: {request[0].message}."
            violations = msgspec.to_builtins(request[:100])
            return Refused(status.UNPROCESSABLE, "input-validation-failed", message, {"violations": violations})
        try:
            async with asyncio.timeout(self._handler.timeout_seconds), self._pool.places:
                return await self._exchange(request)
        except TimeoutError:
            message = f"The upstream took longer than {self._handler.timeout_seconds:g} s."
            return self._outcome.failed("upstream_timeout", message, took_effect=True)
        except (httpx.TransportError, UnicodeError) as error:
            unsent = isinstance(error, httpx.ConnectError)
            message = "The upstream cannot be reached." if unsent else "The connection to the upstream failed."
            failed = self._outcome.failed("upstream_connection_error", message, cause=error, took_effect=not unsent)
            # Nothing was sent, so the same request may be repeated, even with the same key.
            return msgspec.structs.replace(failed, headers=_LATER) if unsent else failed

    async def aclose(self) -> None:
        """Close the pooled connections, including those of other endpoints with the same pool."""
        await self._pool.aclose()

    async def _exchange(self, request: httpx.Request) -> Any:
        # Redirects are not followed: configured credentials go only to the configured upstream.
        response = await self._pool.transport(self._url).handle_async_request(request)
        try:
            refused = self._judge(response)
            unread = request.method == "HEAD" or response.status_code in _EMPTY or self._handler.answer == "none"
            if refused is not None or unread:
                await _drain(response)
                return self._check({}, response) if refused is None else refused
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > MAX_RESPONSE_BYTES:
                    return self._malformed(f"is larger than {MAX_RESPONSE_BYTES} bytes", response)
        finally:
            await response.aclose()
        return self._read(body, response)

    def _read(self, body: bytearray, response: httpx.Response) -> Any:
        try:
            if self._handler.answer == "json":
                payload = decode_answer(body)
            else:
                payload = decode_text(body, response.charset_encoding, response.headers.get("content-encoding"))
        except ValueError as error:
            return self._malformed(str(error), response)
        if isinstance(payload, dict):
            return self._check(rename(payload, self._incoming), response)
        # Only an object has fields to rename; the output schema decides whether anything else is valid.
        field = self._handler.output_field
        return self._check(payload if field is None else {field: payload}, response)

    def _check(self, output: Any, response: httpx.Response) -> Any:
        code = response.status_code
        return self._outcome.check(output, f"The upstream answered {code}", code)

    def _judge(self, response: httpx.Response) -> Refused | None:
        code = response.status_code
        errors = self._handler.error_map
        mapped = errors.get(str(code))
        if mapped is None and code not in _REJECTED:
            # A range excludes statuses that reject this server rather than the input: callers cannot fix those.
            mapped = errors.get(f"{code // 100}XX")
        if mapped is None:
            if 200 <= code < 300:
                return None
            mapped = "upstream_authentication_failed" if code in _REJECTED else "upstream_error"
        message = self._meanings.get(mapped) or f"The upstream answered {code}."
        if mapped == "upstream_authentication_failed":
            message = "The upstream does not accept this server's credentials."
        refused = self._outcome.failed(mapped, message, code)
        return msgspec.structs.replace(refused, headers=retry_after(code, response.headers))

    def _malformed(self, fault: str, response: httpx.Response) -> Refused:
        message = f"The upstream's response {fault}."
        return self._outcome.failed("upstream_malformed_response", message, response.status_code, took_effect=True)


async def _drain(response: httpx.Response) -> None:
    """Read and discard a short response: only a drained connection can be reused."""
    left = 64 * 1024
    with contextlib.suppress(TimeoutError, httpx.TransportError):
        async with asyncio.timeout(0.5):
            async for chunk in response.aiter_raw():
                left -= len(chunk)
                if left < 0:
                    break

"""An HTTPS upstream behind a contract: the external_service binding and its five upstream errors (AGTP-API 12.3)."""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import quote

import httpx
import msgspec

from bespeak import status
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import ExternalService
from bespeak.diagnostics.diagnostic import Diagnostic
from bespeak.exchange.context import Context
from bespeak.exchange.headers import is_header_name, is_header_value
from bespeak.exchange.refusal import Refused
from bespeak.lint.rules.handler import UPSTREAM_SETUP
from bespeak.schema.violation import Violation
from bespeak.source.pointer import child, pointer

_logger = logging.getLogger(__name__)

MAX_RESPONSE_BYTES: Final = 8 * 1024 * 1024
"""A larger upstream response is refused, whatever it holds; the draft sets no limit."""

_QUERY_METHODS: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
"""These carry the input in the query: HTTP gives a body no meaning there (RFC 9110 9.3)."""

_LIMITS: Final = httpx.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=30.0)
_LATER: Final = (("Retry-After", "5"),)
_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z0-9_]+)\}")
# RFC 3986 appendix B: everything before the path.
_AUTHORITY: Final = re.compile(r"[^:/?#]+://[^/?#]*")


def bind_external(
    endpoint: Endpoint,
    handler: ExternalService,
    environment: Mapping[str, str],
    *,
    tls: ssl.SSLContext | None = None,
) -> ExternalBinding | list[Diagnostic]:
    """The binding of an external_service endpoint, or what keeps it from being registered.

    `environment` resolves `${VAR}` in header values. `tls` replaces the system's trust store.
    """
    findings = [*_check_url(endpoint, handler), *_check_transforms(endpoint, handler)]
    headers: dict[str, str] = {}
    for name, template in handler.headers.items():
        resolved = _resolve(endpoint, name, template, environment)
        if isinstance(resolved, Diagnostic):
            findings.append(resolved)
        else:
            headers[name] = resolved
    return findings or ExternalBinding(endpoint, handler, headers, tls or _system_trust())


class ExternalBinding:
    """Calls one upstream. What the upstream does wrong comes back as a declared error, never as an exception."""

    def __init__(
        self, endpoint: Endpoint, handler: ExternalService, headers: Mapping[str, str], tls: ssl.SSLContext
    ) -> None:
        self._endpoint = endpoint
        self._handler = handler
        self._outgoing = dict(handler.input_transform)
        # The draft writes output_transform as AGTP name -> upstream name and inverts it at response time.
        self._incoming = {theirs: ours for ours, theirs in handler.output_transform.items()}
        # An encoded body could be a bomb; identity is all that is asked for and all that is read.
        standard = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "bespeak"}
        self._client = httpx.AsyncClient(
            headers={**standard, **{name.lower(): value for name, value in headers.items()}},
            verify=tls,
            trust_env=False,
            follow_redirects=False,
            limits=_LIMITS,
            timeout=None,  # noqa: S113 - one deadline holds for the whole call
        )

    async def call(self, input: Mapping[str, Any], context: Context) -> Any:  # noqa: A002 - the draft's word
        """Pass the input on and give the output back. Nothing of the context is sent: an upstream cannot judge it."""
        request = self._build(input)
        if isinstance(request, Refused):
            return request
        try:
            async with asyncio.timeout(self._handler.timeout_seconds):
                return await self._exchange(request)
        except TimeoutError:
            return self._failed(
                "upstream_timeout", f"The upstream took longer than {self._handler.timeout_seconds:g} s."
            )
        except (httpx.TransportError, UnicodeError) as error:
            failed = self._failed("upstream_connection_error", "The upstream cannot be reached.", cause=error)
            # Nothing was sent, so that the same request may be sent again, under the same key too.
            return msgspec.structs.replace(failed, headers=_LATER) if isinstance(error, httpx.ConnectError) else failed

    async def aclose(self) -> None:
        """Close the kept connections."""
        await self._client.aclose()

    def _build(self, given: Mapping[str, Any]) -> httpx.Request | Refused:
        remaining = dict(given)
        url = self._handler.url
        for name in dict.fromkeys(_PLACEHOLDER.findall(url)):
            value = remaining.pop(name, None)
            text = _as_text(value)
            # Upstreams resolve dot segments, also encoded ones: such a value would choose another resource.
            if value is None or text in ("", ".", ".."):
                return self._unusable(name, f"{text!r} cannot stand in the upstream's path")
            url = url.replace(f"{{{name}}}", quote(text, safe=""))
        fields = _rename(remaining, self._outgoing)
        try:
            if self._handler.method not in _QUERY_METHODS:
                body = msgspec.json.encode(fields)
                headers = {"content-type": self._client.headers.get("content-type", "application/json")}
                return self._client.build_request(self._handler.method, url, content=body, headers=headers)
            query = {name: _as_text(value) for name, value in fields.items()}
            return self._client.build_request(self._handler.method, httpx.URL(url).copy_merge_params(query))
        except httpx.InvalidURL as error:
            return self._unusable("", f"the input does not fit into a URL: {error}")

    async def _exchange(self, request: httpx.Request) -> Any:
        response = await self._client.send(request, stream=True)
        try:
            refused = self._judge(response.status_code)
            if refused is not None:
                return refused
            if request.method == "HEAD" or response.status_code == httpx.codes.NO_CONTENT:
                return {}
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > MAX_RESPONSE_BYTES:
                    return self._malformed(f"is larger than {MAX_RESPONSE_BYTES} bytes")
        finally:
            await response.aclose()
        try:
            payload = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._malformed("is not JSON")
        # What is no object has no fields to rename; whether it is the output, the output schema says.
        return _rename(payload, self._incoming) if isinstance(payload, dict) else payload

    def _judge(self, code: int) -> Refused | None:
        mapped = self._handler.error_map.get(str(code))
        if mapped is not None:
            return self._failed(mapped, f"The upstream answered {code}.", code)
        if code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            return self._failed(
                "upstream_authentication_failed", "The upstream does not accept this server's credentials.", code
            )
        # Redirects are not followed: configured credentials go to the configured upstream and nowhere else.
        return None if 200 <= code < 300 else self._failed("upstream_error", f"The upstream answered {code}.", code)

    def _malformed(self, fault: str) -> Refused:
        return self._failed("upstream_malformed_response", f"The upstream's response {fault}.")

    def _failed(
        self, name: str, message: str, upstream_status: int | None = None, *, cause: Exception | None = None
    ) -> Refused:
        # The cause may name the upstream's host, which is nobody's business outside (core 10.1, item 12).
        _logger.warning("%s: %s: %s", self._endpoint, name, cause or message)
        details = {} if upstream_status is None else {"details": {"upstream_status": upstream_status}}
        return Refused(status.UNPROCESSABLE, name, message, details)

    def _unusable(self, name: str, fault: str) -> Refused:
        violation = Violation(pointer((name,) if name else ()), "", "upstream", fault)
        return Refused(
            status.UNPROCESSABLE,
            "input-validation-failed",
            f"The input of {self._endpoint} cannot be passed on: {fault}.",
            {"violations": [msgspec.to_builtins(violation)]},
        )


@cache
def _system_trust() -> ssl.SSLContext:
    """The operating system's trust store, where an operator adds a CA of their own; loading it is slow, so once."""
    return ssl.create_default_context()


def _rename(fields: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The fields under their names on the other side; where two would meet, the renamed one counts."""
    renamed = {name: value for name, value in fields.items() if name not in names}
    renamed.update((names[name], value) for name, value in fields.items() if name in names)
    return renamed


def _as_text(value: object) -> str:
    """A value in a URL: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _resolve(endpoint: Endpoint, name: str, template: str, environment: Mapping[str, str]) -> str | Diagnostic:
    missing = [variable for variable in _VARIABLE.findall(template) if variable not in environment]
    if missing:
        return UPSTREAM_SETUP.at(
            endpoint,
            child("/handler/headers", name),
            f"the header {name!r} needs the environment variable {missing[0]!r}, which is not set",
            "Set it before the server starts.",
        )
    value = _VARIABLE.sub(lambda match: environment[match.group(1)], template)
    if not (is_header_name(name) and is_header_value(value) and value.isascii()):
        return UPSTREAM_SETUP.at(
            endpoint,
            child("/handler/headers", name),
            f"the header {name!r} cannot be sent",
            "Use printable ASCII on one line.",
        )
    return value


def _check_url(endpoint: Endpoint, handler: ExternalService) -> list[Diagnostic]:
    at = "/handler/url"
    shown = handler.url[:200]
    authority = _AUTHORITY.match(handler.url)
    try:
        usable = authority is not None and bool(httpx.URL(_PLACEHOLDER.sub("1", handler.url)).host)
    except httpx.InvalidURL:
        usable = False
    if authority is None or not usable:
        return [UPSTREAM_SETUP.at(endpoint, at, f"{shown!r} is not a usable URL", "Write https://host/path.")]
    if _PLACEHOLDER.search(authority.group()):
        return [
            UPSTREAM_SETUP.at(
                endpoint,
                at,
                f"the host of {shown!r} depends on the input",
                "Placeholders belong into the path: a caller must not choose the host.",
            )
        ]
    properties = endpoint.input_schema.get("properties", {})
    return [
        UPSTREAM_SETUP.at(
            endpoint, at, f"the URL needs {name!r}, which the input schema does not declare", "Declare it."
        )
        for name in _PLACEHOLDER.findall(handler.url)
        if name not in properties
    ]


def _check_transforms(endpoint: Endpoint, handler: ExternalService) -> list[Diagnostic]:
    return [
        UPSTREAM_SETUP.at(
            endpoint,
            f"/handler/{member}",
            f"{member} gives two fields the same upstream name, so one of them would be lost",
            "Give each its own.",
        )
        for member, names in (
            ("input_transform", handler.input_transform),
            ("output_transform", handler.output_transform),
        )
        if len(set(names.values())) < len(names)
    ]

"""Upstream HTTPS services: the external_service binding and its five upstream errors (AGTP-API 12.3)."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from typing import Any, Final

import httpx
import msgspec

from bespeak.contract.endpoint import Endpoint
from bespeak.contract.handler import UPSTREAM_ERRORS, ExternalService
from bespeak.contract.schema.compile import Validator
from bespeak.contract.schema.violation import Violation
from bespeak.protocol import status
from bespeak.protocol.exchange.context import Context
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.bindings.upstream_answer import decode_answer, decode_text, rename, retry_after
from bespeak.runtime.bindings.upstream_outcome import MAX_RESPONSE_BYTES, UpstreamOutcome
from bespeak.runtime.bindings.upstream_pool import UpstreamPool
from bespeak.runtime.bindings.upstream_request import RequestPlan
from bespeak.runtime.bindings.upstream_setup import check_setup, resolve_credentials, upstream_url
from bespeak.text.diagnostics.diagnostic import Diagnostic

_MOST_VIOLATIONS: Final = 100
_DRAINED_BYTES: Final = 64 * 1024
_DRAINED_SECONDS: Final = 0.5
_LATER: Final = (("Retry-After", "5"),)
_EMPTY: Final = frozenset({httpx.codes.NO_CONTENT, httpx.codes.RESET_CONTENT})
_REJECTED: Final = frozenset({httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN})


def bind_external(
    endpoint: Endpoint,
    handler: ExternalService,
    environment: Mapping[str, str],
    *,
    pool: UpstreamPool | None = None,
    tls: ssl.SSLContext | None = None,
    output: Validator | None = None,
    trusts: bool = False,
) -> ExternalBinding | list[Diagnostic]:
    """Build the binding of an external_service endpoint, or return the findings that prevent its registration.

    `environment` resolves `${VAR}` in credentials. `pool` holds the connections shared with other endpoints. Without a
    pool the binding has its own connections, for which `tls` replaces the system's trust store. `output` checks the
    answers; with `trusts`, invalid ones are logged and passed on.
    """
    findings = check_setup(endpoint, handler)
    credentials = resolve_credentials(endpoint, handler, environment)
    url = upstream_url(handler)
    if findings or isinstance(credentials, list) or url is None:
        return [*findings, *(credentials if isinstance(credentials, list) else ())]
    return ExternalBinding(
        endpoint,
        handler,
        RequestPlan(handler, credentials),
        UpstreamPool(tls) if pool is None else pool,
        url,
        output=output,
        trusts=trusts,
    )


class ExternalBinding:
    """Calls one upstream. Upstream failures are returned as declared errors, never raised."""

    def __init__(
        self,
        endpoint: Endpoint,
        handler: ExternalService,
        plan: RequestPlan,
        pool: UpstreamPool,
        url: httpx.URL,
        *,
        output: Validator | None = None,
        trusts: bool = False,
    ) -> None:
        self._endpoint = endpoint
        self._outcome = UpstreamOutcome(endpoint, output, trusts=trusts)
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
            return self._unusable(request)
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
            if refused is not None or self._is_unread(request, response):
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

    def _is_unread(self, request: httpx.Request, response: httpx.Response) -> bool:
        return request.method == "HEAD" or response.status_code in _EMPTY or self._handler.answer == "none"

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

    def _unusable(self, violations: list[Violation]) -> Refused:
        return Refused(
            status.UNPROCESSABLE,
            "input-validation-failed",
            f"The input of {self._endpoint} cannot be passed on: {violations[0].message}.",
            {"violations": [msgspec.to_builtins(violation) for violation in violations[:_MOST_VIOLATIONS]]},
        )


async def _drain(response: httpx.Response) -> None:
    """Read and discard a short response: only a drained connection can be reused."""
    left = _DRAINED_BYTES
    with contextlib.suppress(TimeoutError, httpx.TransportError):
        async with asyncio.timeout(_DRAINED_SECONDS):
            async for chunk in response.aiter_raw():
                left -= len(chunk)
                if left < 0:
                    break

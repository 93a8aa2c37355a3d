"""A payment provider that is asked over HTTPS.

An order is a POST of JSON to `ADDRESS/hold`, `/settle`, `/release` or `/refund`, with its key as Idempotency-Key.
The answer counts only if it repeats the key: `{"key": ..., "status": "done", "reference": ...}`, or the status
`declined` with a `code` and a `message`. Everything else, and every silence, leaves open what has happened; the
order is repeated with the same key until the answer is clear.
"""

from __future__ import annotations

import asyncio
from typing import Final, Literal

import httpx
import msgspec

from bespeak.extensions.payments.store import CarriedOut, Declined, Order, Outcome, Phase, Unclear
from bespeak.runtime.bindings.upstream import UpstreamPool

MOST_ANSWER: Final = 64 * 1024  # maximum bytes of an answer
_LONGEST: Final = 256
_AT_ONCE: Final = 16  # orders under way at the same time


class _ProviderAnswer(msgspec.Struct, frozen=True):
    key: str
    status: Literal["done", "declined"]
    reference: str | None = None
    code: str = "payment-refused"
    message: str = ""


_decode = msgspec.json.Decoder(_ProviderAnswer).decode


class HttpProvider:
    in_store = False

    def __init__(self, address: str, token: str, timeout: float) -> None:
        self._address = httpx.URL(address.rstrip("/") + "/")
        self._headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        self._timeout = timeout
        self._pool = UpstreamPool(most=_AT_ONCE)

    async def close(self) -> None:
        await self._pool.aclose()

    async def carry_out(self, phase: Phase, order: Order) -> Outcome:
        told = {
            "purchase_id": order.purchase_id,
            "phase": phase,
            "principal_id": order.principal_id,
            "amount": order.money.document(),
            "payment_method": order.payment_method,
            "reference": order.reference,
        }
        url = self._address.join(phase)
        headers = {"host": url.netloc.decode(), **self._headers, "idempotency-key": order.key}
        request = httpx.Request("POST", url, headers=headers, content=msgspec.json.encode(told))
        try:
            async with asyncio.timeout(self._timeout), self._pool.places:
                return await self._exchange(request, order.key)
        except TimeoutError:
            return Unclear(f"the provider did not answer within {self._timeout:g} s")
        except (httpx.TransportError, OSError) as error:
            return Unclear(f"the provider cannot be reached: {type(error).__name__}")

    async def _exchange(self, request: httpx.Request, key: str) -> Outcome:
        response = await self._pool.transport(self._address).handle_async_request(request)
        try:
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > MOST_ANSWER:
                    return Unclear(f"the answer of the provider is larger than {MOST_ANSWER} bytes")
        finally:
            await response.aclose()
        code = response.status_code
        try:
            answer = _decode(body)
        except (msgspec.MsgspecError, ValueError):
            return Unclear(f"the provider answered {code} with something that is not an answer to an order")
        if answer.key != key:
            return Unclear(f"the provider answered {code} for another order")
        if answer.status == "declined":
            return Declined(answer.code[:_LONGEST], answer.message[:_LONGEST])
        if answer.reference is not None and not (len(answer.reference) <= _LONGEST and answer.reference.isprintable()):
            return Unclear("the provider answered with a reference that is not valid")
        return CarriedOut(answer.reference)

"""A provider outside is believed only if it answers the order that was sent."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.payments import PaymentServer, payment_server

from bespeak.contract.payments import Money
from bespeak.extensions.payments.http_provider import HttpProvider
from bespeak.extensions.payments.provider import Declined, Done, Order, Unclear

pytestmark = pytest.mark.anyio

ORDER = Order("pur-1", "pur-1/hold", "acme", Money(1000, "EUR"))


@pytest.fixture
async def server() -> AsyncIterator[PaymentServer]:
    with payment_server() as running:
        yield running


async def ask(server: PaymentServer, token: str = "secret", timeout: float = 5.0) -> Done | Declined | Unclear:
    provider = HttpProvider(f"{server.address}/v1/", token, timeout)
    try:
        return await provider.hold(ORDER)
    finally:
        await provider.close()


async def test_an_order_is_sent_with_its_key_and_repeated_without_effect(server: PaymentServer) -> None:
    assert [await ask(server), await ask(server)] == [Done("ref-0")] * 2
    assert server.requests == [("hold", "pur-1/hold")] * 2
    assert server.orders["pur-1/hold"]["amount"] == {"value": "10.00", "currency": "EUR"}


async def test_a_refusal_is_clear(server: PaymentServer) -> None:
    assert await ask(server, token="stolen") == Declined("insufficient-funds", "no money")


@pytest.mark.parametrize("fault", ["500", "wrong", "other", "large"])
async def test_any_other_answer_is_unclear(server: PaymentServer, fault: str) -> None:
    server.faults["hold"] = [fault]
    assert isinstance(await ask(server), Unclear)


async def test_silence_is_unclear(server: PaymentServer) -> None:
    server.faults["hold"] = ["silent"]
    assert await ask(server, timeout=0.1) == Unclear("the provider did not answer within 0.1 s")


async def test_a_provider_that_is_gone_is_unclear() -> None:
    with payment_server() as server:
        pass
    outcome = await ask(server)
    assert isinstance(outcome, Unclear)
    assert "cannot be reached" in outcome.message

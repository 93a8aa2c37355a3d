"""A channel of the operator is a function; what it returns or raises decides what follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.runtime.delivery.parts import SERVER, posting

from bespeak.contract.handler import Refusal
from bespeak.runtime.messages.delivery import FunctionChannel
from bespeak.runtime.messages.transports import Delivered, Outcome, Retry, Undeliverable

pytestmark = pytest.mark.anyio


async def outcome_of(function: Callable[..., Any]) -> Outcome:
    return await FunctionChannel("sms", function, SERVER).deliver("sms:+4930123456", posting())


async def test_a_function_gets_the_recipient_and_the_letter_and_may_be_async() -> None:
    async def text(recipient: str, letter: dict[str, Any]) -> dict[str, Any]:
        return {"to": recipient, "id": letter["posting_id"]}

    assert await outcome_of(text) == Delivered({"to": "+4930123456", "id": "posting-1"})
    assert await outcome_of(lambda *_: None) == Delivered({})
    assert await outcome_of(lambda *_: {"client": object()}) == Delivered({})


async def test_a_refusal_is_final_and_any_other_exception_is_not(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(*_: Any) -> None:
        raise Refusal("blocked", "The number is blocked.")

    def fail(*_: Any) -> None:
        raise KeyError("secret")

    assert isinstance(await outcome_of(refuse), Undeliverable)
    failed = await outcome_of(fail)
    assert isinstance(failed, Retry)
    assert "secret" not in failed.message
    assert "secret" in caplog.text
    assert await outcome_of(lambda *_: Retry("busy", after=3.0)) == Retry("busy", after=3.0)


@pytest.mark.parametrize("address", ["sms:", "sms:a\nb", "sms:" + "1" * 2000])
def test_an_address_must_be_printable_and_not_too_long(address: str) -> None:
    assert isinstance(FunctionChannel("sms", print, SERVER).locate(address), Undeliverable)

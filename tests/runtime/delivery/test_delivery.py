"""A server delivers through its channels, and only to whom its operator lists."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.agent.discovery.web import HOST
from tests.runtime.delivery.parts import SERVER, delivering, posting

from bespeak.contract.delivery import DeliverySettings, SmtpSettings
from bespeak.errors import ConfigError
from bespeak.runtime.messages.delivery import Delivery
from bespeak.runtime.messages.transports import Delivered, Retry, Undeliverable

pytestmark = pytest.mark.anyio

SMTP = SmtpSettings(host="127.0.0.1", sender="desk@acme.example")


def text(recipient: str, letter: dict[str, Any]) -> dict[str, Any]:
    if recipient == "bug":
        raise SystemError
    return {"to": recipient}


async def hang(*_: Any) -> None:
    await asyncio.Event().wait()


CHANNELS = {"sms": f"{__name__}.text", "pager": f"{__name__}.hang"}


@pytest.mark.parametrize(
    ("recipients", "address", "permitted"),
    [
        ((), "mailto:ann@acme.example", False),
        (("*",), "mailto:ann@acme.example", True),
        (("acme.example",), "mailto:ann@ACME.example", True),
        (("acme.example",), "https://acme.example/hook", True),
        (("acme.example",), "agtp://acme.example", True),
        (("acme.example",), "mailto:ann@evil-acme.example", False),
        (("acme.example",), "https://acme.example.evil.example/acme.example", False),
        (("*.acme.example",), "https://hooks.acme.example/", True),
        (("*.acme.example",), "https://acme.example/", False),
        (("*.acme.example",), "https://evilacme.example/", False),
        (("ann@acme.example",), "mailto:Ann@acme.example", True),
        (("ann@acme.example",), "mailto:bob@acme.example", False),
        (("+4930123456",), "sms:+4930123456", True),
        (("+4930123456",), "sms:+4930999999", False),
        (("*",), "fax:1", False),
        (("*",), "mailto:nobody", False),
    ],
)
def test_agents_send_only_to_whom_the_operator_lists(
    recipients: tuple[str, ...], address: str, *, permitted: bool
) -> None:
    delivery = delivering(recipients=recipients, smtp=SMTP, channels={"sms": CHANNELS["sms"]})
    assert delivery.takes(address) is permitted


async def test_channels_of_the_operator_deliver() -> None:
    delivery = delivering(channels=CHANNELS)
    assert await delivery.deliver("sms:1", posting()) == Delivered({"to": "1"})
    assert isinstance(await delivery.deliver("fax:1", posting()), Undeliverable)
    assert (delivery.has("sms"), delivery.has("mailto")) == (True, False)


async def test_an_attempt_ends_in_time_whatever_the_channel_does() -> None:
    delivery = delivering(channels=CHANNELS, timeout=0.1)
    assert isinstance(await delivery.deliver("pager:1", posting()), Retry)
    patient = delivering(channels=CHANNELS)
    assert isinstance(await patient.try_now("pager:1", posting(), 0.1), Retry)


def test_a_channel_that_cannot_work_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        delivering(channels={"sms": "nowhere.send"})
    smtp = SmtpSettings(host="127.0.0.1", sender="a@acme.example", user="a", password="MISSING")
    with pytest.raises(ConfigError, match="MISSING is not set"):
        Delivery(DeliverySettings(smtp=smtp), server_id=SERVER, environment={})


def test_without_settings_nobody_is_listed() -> None:
    delivery = Delivery(None, server_id=SERVER)
    assert not delivery.is_configured
    assert not delivery.takes(f"https://{HOST}/")

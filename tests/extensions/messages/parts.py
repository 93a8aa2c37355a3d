"""Deliveries to servers of a test: made-up names lead to loopback, and nothing else is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from tests.agent.discovery.web import HOST, Asked

from bespeak.extensions.messages.delivery import Delivery
from bespeak.extensions.messages.posting import Posting
from bespeak.extensions.messages.settings import DeliverySettings
from bespeak.runtime.identity.signer import Signer

SERVER = "desk.example"


async def resolve(host: str, _: int) -> list[str]:
    """Resolve every name to loopback."""
    if host == "nowhere.test":
        raise OSError("unknown")
    return ["127.0.0.1"]


def delivering(signer: Signer | None = None, *, ca_file: Path | None = None, **settings: Any) -> Delivery:
    """Open the channels of a server that may connect to HOST."""
    settings.setdefault("allow", (HOST,))
    return Delivery(
        DeliverySettings(ca_file=ca_file, **settings), server_id=SERVER, signer=signer, environment={}, resolve=resolve
    )


def posting(number: str = "1", **fields: Any) -> Posting:
    """Build a posting with a made-up content."""
    given = {"kind": "notification", "sender": "a" * 64, "content": {"text": "hello"}, **fields}
    return Posting(f"posting-{number}", **given)


def letter_of(asked: Asked) -> Any:
    """Return what a webhook has received."""
    return msgspec.json.decode(asked.body)

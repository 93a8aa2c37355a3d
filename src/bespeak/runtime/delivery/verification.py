"""Verification of callbacks: an address agrees to receive before anything is sent there (Tier 2 10.5)."""

from __future__ import annotations

import secrets
from typing import Any, Final

import msgspec

from bespeak.contract.standard.methods import STANDARD
from bespeak.protocol import status
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.delivery.channel import Delivered, Undeliverable
from bespeak.runtime.delivery.posting import VERIFICATION, Posting, new_posting_id

REFUSED: Final = "callback-refused"
_WITHIN: Final = 5.0
"""Seconds for the answer."""


async def verify_callback(call: RoutedCall, address: str) -> Refused | None:
    """Ask an address whether it receives for the calling agent; return why it must not be used, else None.

    The address gets a posting of kind `verification` with `{"challenge": ..., "agent_id": ...}` as its content: a POST
    for a web address, a NOTIFY for an AGTP address. It is reachable if it answers with success. The agent has authority
    over it if the answer is an object that repeats both members (or has a `result` that does), or if the operator lists
    it in `[delivery] recipients`. A bespeak server answers for the agents that are registered with it. Addresses that
    cannot answer, such as mailboxes, must be listed. Private addresses are refused as for every delivery.
    """
    delivery = call.server.delivery
    if delivery is None:
        return _refuse(call, "This server does not call back.")
    domain = delivery.locate(address)
    if isinstance(domain, Undeliverable):
        return _refuse(call, domain.message)
    listed = delivery.permits(address)
    if not address.lower().startswith(("https:", "http:", "agtp:")):
        return None if listed else _refuse(call, "Nobody can answer there, and the operator does not list the address.")
    asked = {"challenge": secrets.token_urlsafe(24), "agent_id": call.agent_id or ""}
    sender = call.server.registrar.service.identity.server_id
    posting = Posting(new_posting_id(), VERIFICATION, sender, asked, recipient=call.agent_id)
    outcome = await delivery.try_now(address, posting, _WITHIN)
    if not isinstance(outcome, Delivered):
        return _refuse(call, f"The callback could not be verified: {outcome.message}")
    if listed or _repeats(outcome.answer, asked):
        return None
    return _refuse(call, "The callback did not repeat `challenge` and `agent_id`, so it has not agreed to receive.")


def answer_challenge(call: RoutedCall, recipient: Any, content: Any) -> Envelope | None:
    """Answer a NOTIFY that asks whether an agent receives here; return None for any other NOTIFY, or agent.

    Only agents that are registered with this server, and active, receive here.
    """
    if not isinstance(content, dict) or content.get("kind") != VERIFICATION:
        return None
    asked = content.get("content")
    if not isinstance(asked, dict) or asked.get("agent_id") != recipient or not isinstance(recipient, str):
        return None
    known = call.server.agents.get(recipient)
    challenge = asked.get("challenge")
    if known is None or not known.is_active or not isinstance(challenge, str):
        return None
    return Envelope({"challenge": challenge[:256], "agent_id": recipient})


def _repeats(answer: bytes, asked: dict[str, str]) -> bool:
    try:
        body = msgspec.json.decode(answer)
    except (ValueError, RecursionError):
        return False
    body = body.get("result", body) if isinstance(body, dict) else None
    if not isinstance(body, dict):
        return False
    return all(body.get(key) == value for key, value in asked.items())


def _refuse(call: RoutedCall, message: str) -> Refused:
    declared = STANDARD[call.method].errors if call.method in STANDARD else ()
    number = next((error.status for error in declared if error.name == REFUSED), status.UNPROCESSABLE)
    return Refused(number, REFUSED, message, {"field": "/callback"})

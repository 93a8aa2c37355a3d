"""Recipients of messages by their names: agents, addresses that have agreed (Tier 2 10.5), subscribers of channels."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from bespeak.contract.standard.definition import NOT_LISTED, NOT_OWN_CHANNEL, MethodError, StandardMethod
from bespeak.contract.standard.methods import STANDARD
from bespeak.extensions.messages.posting import VERIFICATION, Posting, is_deliverable, new_posting_id
from bespeak.extensions.messages.store import Channel, FindChannels
from bespeak.extensions.messages.transports import Delivered, Undeliverable
from bespeak.protocol import status
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.handling import RefusedError, refusal

if TYPE_CHECKING:
    from bespeak.runtime.server import Server

_MOST_CHANNELS: Final = 16  # channels that one message may be for
_ADDRESS: Final = re.compile(r"([a-z][a-z0-9]{0,31}):\S+")
_SCHEMES: Final = frozenset({"mailto", "https", "http", "agtp"})
_MAILBOX: Final = re.compile(r"[^@\s:/]+@[^@\s:/]+")


class Unreachable(NamedTuple):
    fault: str
    error: MethodError | None = None  # refusal that is the same for all methods; None if each method has its own

    def refuse(self, method: StandardMethod, error: str, name: str, **details: Any) -> RefusedError:
        """Return the exception for the name; `error` is that of the method."""
        message, details = f"{name[:80]!r} {self.fault}.", details or {"recipient": name[:256]}
        return RefusedError((self.error or method.find(error)).refuse(message, **details))


_UNLISTED: Final = Unreachable("is an address that the operator does not list", NOT_LISTED)
_NOT_DELIVERED: Final = Unreachable("is an address to which this server does not deliver")


class Recipients(msgspec.Struct, frozen=True):
    """Recipients, sorted by how they are reached."""

    agents: tuple[str, ...]
    addresses: tuple[str, ...]
    channels: tuple[str, ...]
    subscribers: int  # subscribers of the channels
    faults: Mapping[str, Unreachable]  # what is wrong with each name that cannot be reached, by name

    @property
    def count(self) -> int:
        return len(self.agents) + len(self.addresses) + self.subscribers

    def of(self, names: Iterable[str]) -> Recipients:
        """Return the recipients that some of the names mean, without a count of subscribers."""
        wanted = {as_address(name) for name in names}

        def choose(part: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(one for one in part if one in wanted)

        return Recipients(choose(self.agents), choose(self.addresses), choose(self.channels), 0, {})


def as_address(name: str) -> str:
    """Return the address that a mailbox means, or the name unchanged."""
    return f"mailto:{name}" if _MAILBOX.fullmatch(name) else name


def _is_address(name: str, call: RoutedCall) -> bool:
    """Return True for an address of a usual scheme, or of a channel that the operator has added."""
    found, delivery = _ADDRESS.fullmatch(name), call.server.part("delivery")
    return found is not None and (found[1] in _SCHEMES or (delivery is not None and delivery.has(found[1])))


def is_unlisted(address: str, server: Server) -> bool:
    """Return True if a channel takes the address, but the operator does not list it as a recipient."""
    delivery = server.part("delivery")
    if delivery is None or isinstance(delivery.locate(address), Undeliverable):
        return False
    return not delivery.permits(address)


async def find_recipients(call: RoutedCall, names: Iterable[str]) -> Recipients:
    assert call.server.store is not None
    agents: list[str] = []
    addresses: list[str] = []
    channels: list[str] = []
    faults: dict[str, Unreachable] = {}
    for name in dict.fromkeys(as_address(name) for name in names):
        if is_canonical_id(name):
            agents.append(name)
            if call.server.principals.requires_known and call.server.agents.get(name) is None:
                faults[name] = Unreachable("is not registered with this server")
        elif _is_address(name, call):
            addresses.append(name)
            if not is_deliverable(name, call.server):
                faults[name] = _UNLISTED if is_unlisted(name, call.server) else _NOT_DELIVERED
        elif not name.isprintable():
            faults[name] = Unreachable("has control characters")
        elif len(channels) == _MOST_CHANNELS:
            fault = f"is one channel more than the {_MOST_CHANNELS} that a message can be for"
            faults[name] = Unreachable(fault)
        else:
            channels.append(name)
    known: Mapping[str, Channel] = {}
    if channels:
        known = await call.server.store.read(FindChannels(tuple(channels)))
    own = (call.agent_id, call.principal.principal_id)
    for name, channel in known.items():
        if channel.owner is not None and channel.owner not in own:
            faults[name] = Unreachable("is a channel that only its owner may use", NOT_OWN_CHANNEL)
        elif not channel.subscribers:
            faults[name] = Unreachable("is neither an agent nor an address nor a channel with subscribers")
    subscribers = sum(channel.subscribers for channel in known.values())
    return Recipients(tuple(agents), tuple(addresses), tuple(channels), subscribers, faults)


REFUSED: Final = "callback-refused"
_WITHIN: Final = 5.0  # seconds for the answer


async def verify_callback(call: RoutedCall, address: str) -> None:
    """Ask an address whether it receives for the calling agent, and refuse it if it must not be used.

    The address gets a posting of kind `verification` with `{"challenge": ..., "agent_id": ...}` as its content: a POST
    for a web address, a NOTIFY for an AGTP address. It is reachable if it answers with success. The agent has authority
    over it if the answer is an object that repeats both members (or has a `result` that does), or if the operator lists
    it in `[delivery] recipients`. A bespeak server answers for the agents that are registered with it. Addresses that
    cannot answer, such as mailboxes, must be listed. Private addresses are refused as for every delivery.
    """
    delivery = call.server.part("delivery")
    if delivery is None:
        raise _refusal(call, "This server does not call back.")
    domain = delivery.locate(address)
    if isinstance(domain, Undeliverable):
        raise _refusal(call, domain.message)
    listed = delivery.permits(address)
    if not address.lower().startswith(("https:", "http:", "agtp:")):
        if listed:
            return
        message = "Nobody can answer there, and the operator does not list the address."
        raise RefusedError(NOT_LISTED.refuse(message, field="/callback"))
    asked = {"challenge": secrets.token_urlsafe(24), "agent_id": call.agent_id or ""}
    sender = call.server.registrar.service.identity.server_id
    posting = Posting(new_posting_id(), VERIFICATION, sender, asked, recipient=call.agent_id)
    outcome = await delivery.try_now(address, posting, _WITHIN)
    if not isinstance(outcome, Delivered):
        raise _refusal(call, f"The callback could not be verified: {outcome.message}")
    if not (listed or _repeats(outcome.answer, asked)):
        message = "The callback did not repeat `challenge` and `agent_id`, so it has not agreed to receive."
        raise _refusal(call, message)


def answer_challenge(call: RoutedCall, recipient: Any, content: Any) -> Envelope | None:
    """Answer a NOTIFY that asks whether an active agent of this server receives here; return None for any other."""
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


def _refusal(call: RoutedCall, message: str) -> RefusedError:
    declared = STANDARD[call.method].errors if call.method in STANDARD else ()
    number = next((error.status for error in declared if error.name == REFUSED), status.UNPROCESSABLE)
    return refusal(number, REFUSED, message, field="/callback")

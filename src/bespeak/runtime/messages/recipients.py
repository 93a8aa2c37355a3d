"""Recipients of messages by their names: agents, addresses outside, and the subscribers of channels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.delivery.posting import is_deliverable
from bespeak.state.store.commands.messages import Channel, FindChannels

_MOST_CHANNELS: Final = 16
"""Channels that one message may be for."""
_ADDRESS: Final = re.compile(r"([a-z][a-z0-9]{0,31}):\S+")
_SCHEMES: Final = frozenset({"mailto", "https", "http", "agtp"})
_MAILBOX: Final = re.compile(r"[^@\s:/]+@[^@\s:/]+")


class Recipients(msgspec.Struct, frozen=True):
    """Recipients, sorted by how they are reached."""

    agents: tuple[str, ...]
    addresses: tuple[str, ...]
    channels: tuple[str, ...]
    subscribers: int
    """Subscribers of the channels."""
    faults: Mapping[str, str]
    """What is wrong with each name that cannot be reached, by name."""

    @property
    def count(self) -> int:
        """Number of recipients."""
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
    found, delivery = _ADDRESS.fullmatch(name), call.server.delivery
    return found is not None and (found[1] in _SCHEMES or (delivery is not None and delivery.has(found[1])))


async def find_recipients(call: RoutedCall, names: Iterable[str]) -> Recipients:
    """Find out how each of some names is reached."""
    assert call.server.store is not None
    agents: list[str] = []
    addresses: list[str] = []
    channels: list[str] = []
    faults: dict[str, str] = {}
    for name in dict.fromkeys(as_address(name) for name in names):
        if is_canonical_id(name):
            agents.append(name)
            if call.server.principals.requires_known and call.server.agents.get(name) is None:
                faults[name] = "is not registered with this server"
        elif _is_address(name, call):
            addresses.append(name)
            if not is_deliverable(name, call.server):
                faults[name] = "is an address to which this server does not deliver"
        elif not name.isprintable():
            faults[name] = "has control characters"
        elif len(channels) == _MOST_CHANNELS:
            faults[name] = f"is one channel more than the {_MOST_CHANNELS} that a message can be for"
        else:
            channels.append(name)
    known: Mapping[str, Channel] = {}
    if channels:
        known = await call.server.store.read(FindChannels(tuple(channels)))
    own = (call.agent_id, call.principal.principal_id)
    for name, channel in known.items():
        if channel.owner is not None and channel.owner not in own:
            faults[name] = "is a channel that only its owner may use"
        elif not channel.subscribers:
            faults[name] = "is neither an agent nor an address nor a channel with subscribers"
    subscribers = sum(channel.subscribers for channel in known.values())
    return Recipients(tuple(agents), tuple(addresses), tuple(channels), subscribers, faults)

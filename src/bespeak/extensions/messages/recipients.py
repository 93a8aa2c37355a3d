"""Recipients of messages by their names: agents, people, addresses that have agreed (Tier 2 10.5), channels."""

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
from bespeak.runtime.bindings.participant import Joined
from bespeak.runtime.call import JoinedCall, RoutedCall
from bespeak.runtime.handling import RefusedError, refusal
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.settings import OPERATOR

if TYPE_CHECKING:
    from bespeak.runtime.server import Server

_MOST_CHANNELS: Final = 16  # channels that one message may be for
_ADDRESS: Final = re.compile(r"([a-z][a-z0-9]{0,31}):\S+")
_SCHEMES: Final = frozenset({"mailto", "https", "http", "agtp"})
_MAILBOX: Final = re.compile(r"[^@\s:/]+@[^@\s:/]+")


PERSON: Final = "person"  # scheme of the inboxes of people, and of their addresses in the outbox


class Person(NamedTuple):
    """A person or a desk. Whatever is sent to it is in its inbox; mail and function tell of that."""

    name: str
    mail: str | None = None
    joined: Joined | None = None  # function of the service that takes what is sent
    scopes: tuple[str, ...] = ()  # scopes that an agent needs to send to it

    @property
    def inbox(self) -> str:
        """Owner of its messages, and its address in the outbox. No agent can have such an id."""
        return f"{PERSON}:{self.name}"

    @property
    def addresses(self) -> tuple[str, ...]:
        return () if self.mail is None and self.joined is None else (self.inbox,)


class People:
    """The people of a server. The operator is always one of them."""

    def __init__(self, people: Iterable[Person] = ()) -> None:
        self._people = {person.name: person for person in (Person(OPERATOR), *people)}

    def find(self, name: str, call: RoutedCall | None = None) -> Person | None:
        """Return the person with a name, if a caller may send to it."""
        person = self._people.get(name)
        # The code of the service decides itself whom it tells.
        if person is None or call is None or isinstance(call, JoinedCall):
            return person
        return None if call.principal.scopes.missing(person.scopes) else person

    def require(
        self, name: str, call: RoutedCall, error: str = "unknown-recipient", field: str = "/recipient"
    ) -> Person:
        """Return the person with a name, or refuse with 404 and the names that the caller may send to."""
        person = self.find(name, call)
        if person is not None:
            return person
        known = self.names(call)
        message = f"{name[:80]!r} is neither an agent, nor an address, nor a person that this agent may address"
        raise refusal(status.NOT_FOUND, error, f"{message}; people: {', '.join(known)}.", field=field, people=known)

    def names(self, call: RoutedCall) -> list[str]:
        return sorted(name for name in self._people if self.find(name, call) is not None)


_OPERATOR_ONLY: Final = People()


def people_of(server: Server) -> People:
    people: People | None = server.part("people")
    return people or _OPERATOR_ONLY


class Unreachable(NamedTuple):
    fault: str
    error: MethodError | None = None  # refusal that is the same for all methods; None if each method has its own
    people: list[str] | None = None  # names that the caller could have meant

    def refuse(self, method: StandardMethod, error: str, name: str, **details: Any) -> RefusedError:
        """Return the exception for the name; `error` is that of the method."""
        message, details = f"{name[:80]!r} {self.fault}.", details or {"recipient": name[:256]}
        if self.people is not None:
            details, message = {**details, "people": self.people}, f"{message} People: {', '.join(self.people)}."
        return RefusedError((self.error or method.find(error)).refuse(message, **details))


_UNLISTED: Final = Unreachable("is an address that the operator does not list", NOT_LISTED)
_NOT_DELIVERED: Final = Unreachable(
    "is an address to which this server does not deliver", STANDARD["BROADCAST"].find("delivery-unavailable")
)


class Recipients(msgspec.Struct, frozen=True):
    """Recipients, sorted by how they are reached."""

    agents: tuple[str, ...]
    addresses: tuple[str, ...]
    channels: tuple[str, ...]
    subscribers: int  # subscribers of the channels
    faults: Mapping[str, Unreachable]  # what is wrong with each name that cannot be reached, by name
    people: Mapping[str, Person] = {}  # those of the recipients that are people, by name; they are in the other fields
    authority: Authority | None = None  # authority of the sender, for functions that people have

    @property
    def count(self) -> int:
        told = sum(not address.startswith(PERSON) for address in self.addresses)  # people count by their inboxes
        return len(self.agents) + told + self.subscribers

    def of(self, names: Iterable[str]) -> Recipients:
        """Return the recipients that some of the names mean, without a count of subscribers."""
        wanted = {self.people[name].inbox if name in self.people else as_address(name) for name in names}

        def choose(part: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(one for one in part if one in wanted)

        chosen = (choose(self.agents), choose(self.addresses), choose(self.channels))
        return Recipients(*chosen, 0, {}, self.people, self.authority)


def as_address(name: str) -> str:
    """Return the address that a mailbox means, or the name unchanged."""
    return f"mailto:{name}" if _MAILBOX.fullmatch(name) else name


def _is_address(name: str, call: RoutedCall) -> bool:
    """Return True for an address of a usual scheme, or of a channel that the operator has added."""
    found, delivery = _ADDRESS.fullmatch(name), call.server.part("delivery")
    return found is not None and (found[1] in _SCHEMES or (delivery is not None and delivery.has(found[1])))


def is_unlisted(address: str, server: Server) -> bool:
    """Return True if a channel takes the address, but the operator does not list it as a recipient."""
    taken = server.part("delivery") is not None and isinstance(server.part("delivery").locate(address), str)
    return taken and not is_deliverable(address, server)


async def find_recipients(call: RoutedCall, names: Iterable[str]) -> Recipients:
    agents: list[str] = []
    addresses: list[str] = []
    channels: list[str] = []
    faults: dict[str, Unreachable] = {}
    known_people, people = people_of(call.server), dict[str, Person]()
    for name in dict.fromkeys(as_address(name) for name in names):
        if (person := known_people.find(name, call)) is not None:
            people[name] = person
            agents.append(person.inbox)
            addresses += person.addresses
        elif is_canonical_id(name):
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
            faults[name] = Unreachable(f"is one channel more than the {_MOST_CHANNELS} that a message can be for")
        else:
            channels.append(name)
    known: Mapping[str, Channel] = await call.store.read(FindChannels(tuple(channels))) if channels else {}
    for name, channel in known.items():
        if channel.owner not in (None, call.agent_id, call.principal.principal_id):
            faults[name] = Unreachable("is a channel that only its owner may use", NOT_OWN_CHANNEL)
        elif not channel.subscribers:
            fault = "is neither an agent nor an address nor a channel with subscribers"
            faults[name] = Unreachable(fault, people=known_people.names(call))
    subscribers = sum(channel.subscribers for channel in known.values())
    authority = Authority.of(call.principal, call.request) if people else None
    return Recipients(tuple(agents), tuple(addresses), tuple(channels), subscribers, faults, people, authority)


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


def answer_challenge(call: RoutedCall, recipient: str, content: Any) -> Envelope | None:
    """Answer a NOTIFY that asks whether an active agent of this server receives here; return None for any other."""
    match content:
        case {"kind": str(kind), "content": {"agent_id": agent_id, "challenge": str(challenge)}}:
            known = call.server.agents.get(recipient)
            if kind == VERIFICATION and agent_id == recipient and known is not None and known.is_active:
                return Envelope({"challenge": challenge[:256], "agent_id": recipient})
    return None


def _repeats(answer: bytes, asked: dict[str, str]) -> bool:
    try:
        body = msgspec.json.decode(answer)
    except (ValueError, RecursionError):
        return False
    body = body.get("result", body) if isinstance(body, dict) else None
    return isinstance(body, dict) and asked.items() <= body.items()


def _refusal(call: RoutedCall, message: str) -> RefusedError:
    declared = STANDARD[call.method].errors if call.method in STANDARD else ()
    number = next((error.status for error in declared if error.name == REFUSED), status.UNPROCESSABLE)
    return refusal(number, REFUSED, message, field="/callback")

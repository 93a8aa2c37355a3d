"""Delegations that are handed over: offered in the inbox of the delegate, accepted or declined there, and ended.

A delegation is a record of the delegator. It ends when the delegate replies, declines or misses the deadline, or when
the delegator cancels it. Its token ends with it, whatever the token itself says.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bespeak.extensions.messages.message import KEPT, MOST_SENT, Message, Origin, message_id, put_messages, thread_of
from bespeak.extensions.messages.posting import Posting, post
from bespeak.extensions.messages.recipients import people_of, verify_callback
from bespeak.extensions.messages.store import ListDue
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import TASK_ID
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.runtime.answer import Effects
from bespeak.runtime.background import DueHandler, Follower
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.handling import effects, new_id, refusal, to_json
from bespeak.runtime.identity.authority import Authority
from bespeak.state.store.commands.records import ChangeRecord, ChangeWith, FindRecord, PutRecord, Record, topic_of
from bespeak.state.store.store import Command, Store

if TYPE_CHECKING:
    from bespeak.runtime.server import Server

DELEGATION: Final = "delegation"
OFFERED: Final = "offered"
ACCEPTED: Final = "accepted"
DECLINED: Final = "declined"
DONE: Final = "done"
FAILED: Final = "failed"
EXPIRED: Final = "expired"
CANCELLED: Final = "cancelled"
OPEN: Final = (OFFERED, ACCEPTED)
_ENDED: Final = (DECLINED, DONE, FAILED, EXPIRED, CANCELLED)
_MOST_PER_DELEGATE: Final = 100  # offers of one delegator that one delegate has not answered


class Delegation(msgspec.Struct, frozen=True, omit_defaults=True):
    delegation_id: str
    delegate: str  # Agent-ID, or inbox of a person
    expires: float
    callback: str | None = None
    result: Any = None
    error: dict[str, Any] | None = None

    def tell(self, state: str) -> dict[str, Any]:
        told = {"delegation_id": self.delegation_id, "delegate": self.delegate, "status": state}
        told |= {"result": self.result} if self.result is not None else {}
        return told if self.error is None else {**told, "error": self.error}


_decode = msgspec.json.Decoder(Delegation).decode


async def hand_over(call: RoutedCall, told: dict[str, Any], expires: float) -> Sequence[Command]:
    """Return the commands that offer a task to an agent or a person. `told` is the answer, which gets its status."""
    target, given, agent_id = call.input["target_agent_id"], call.input, call.agent_id or ""
    person = None
    if not is_canonical_id(target):
        person = people_of(call.server).require(target, call, "agent-not-found", "/target_agent_id")
    if "callback" in given:
        await verify_callback(call, given["callback"])
    record_id, inbox = new_id("dlg"), target if person is None else person.inbox
    told |= {"delegation_id": told.get("delegation_id", record_id), "status": OFFERED}
    record = Delegation(told["delegation_id"], inbox, expires, given.get("callback"))
    offer = Message(sender=agent_id, kind=DELEGATION, content={**told, "task": given["task"]}, expires=expires)
    commands: list[Command] = [
        PutRecord(
            *(record_id, DELEGATION, agent_id, OFFERED, to_json(record), told["delegation_id"]),
            due=expires,
            lifetime=expires - time.time() + KEPT,
            most=MOST_SENT,
            target=call.request.headers.get(TASK_ID),
        ),
        put_messages(record_id, offer, (inbox,), kept_until=expires + KEPT, share=_MOST_PER_DELEGATE),
    ]
    if person is not None and person.addresses:
        authority = Authority.of(call.principal, call.request)
        origin = Origin(agent_id, DELEGATION, given["task"], expires=expires, authority=authority)
        commands.append(origin.posting(record_id, person.inbox))
    return commands


def find_offered(message: Record) -> FindRecord:
    """Return the command that finds the delegation which a message offers. What tells of its end offers nothing."""
    record_id = f"dlg-{thread_of(message.record_id)}"
    return FindRecord((DELEGATION,), record_id if message_id(record_id, message.owner) == message.record_id else "")


def answer_offer(record: Record, server_id: str, accepted: bool) -> Command:
    """Return the command that notes that the delegate has accepted the task, or declined it."""
    if not accepted:
        return end(record, server_id, DECLINED)
    return ChangeRecord(record.record_id, (DELEGATION,), (OFFERED,), ACCEPTED, due=_decode(record.data).expires)


def end(record: Record, server_id: str, state: str, *, tells: str | None = None, **outcome: Any) -> ChangeWith:
    """Return the command that ends a delegation. It tells the callback, and the inbox that `tells` names."""
    ended = msgspec.structs.replace(_decode(record.data), **outcome)
    # It stays due until its token ends: EndedDelegations knows it by that.
    due = None if state == EXPIRED else ended.expires
    change = ChangeRecord(record.record_id, (DELEGATION,), OPEN, state, data=to_json(ended), due=due, lifetime=KEPT)
    told: list[Command] = []
    if tells is not None:
        message = Message(sender=record.owner, kind=DELEGATION, content=ended.tell(state))
        told.append(put_messages(f"{record.record_id}-end", message, (tells,), share=None, required=False))
    if ended.callback is not None:
        # One delegation ends once, so that its callback can recognise a posting that comes twice.
        posting_id, content = f"posting-{record.record_id}", ended.tell(state)
        told.append(post(ended.callback, Posting(posting_id, "callback", server_id, content, recipient=record.owner)))
    return ChangeWith(change, tuple(told))


def end_by_reply(record: Record, server_id: str, content: Any) -> ChangeWith:
    """Return the command that ends a delegation with its result, or with the error that a reply says."""
    if isinstance(content, dict) and content.keys() == {"error"}:
        return end(record, server_id, FAILED, error=_failure("The delegate failed.", content["error"]))
    return end(record, server_id, DONE, result=content)


def _failure(message: str, cause: Any = None) -> dict[str, Any]:
    # Core 4.8: the failure of a delegate has the status 550 and should have its error.
    failure = {"status": status.DELEGATION_FAILURE, "code": "delegation-failed", "message": message}
    return failure if cause is None else {**failure, "cause": cause}


def expire_with(server: Server) -> DueHandler:
    """Return the handler of delegations whose deadline, or whose token after an earlier end, has passed."""

    async def expire(records: Sequence[Record]) -> None:
        assert server.store is not None
        for record in records:
            if record.state not in OPEN:  # its token has ended
                await server.store.do(ChangeRecord(record.record_id, (DELEGATION,), _ENDED, record.state))
                continue
            at = write_instant(_decode(record.data).expires)
            failure = _failure(f"The delegate was not done at the deadline, {at}.")
            server_id = server.registrar.service.identity.server_id
            await server.store.do(end(record, server_id, EXPIRED, tells=record.owner, error=failure))

    return expire


async def cancel(call: RoutedCall, record: Record) -> Effects:
    """Cancel a delegation, and tell the delegate. Its token is void when this is answered."""
    delegation = _decode(record.data)
    command = end(record, call.routes.service.identity.server_id, CANCELLED, tells=delegation.delegate)
    told = {"target_id": record.record_id, "kind": DELEGATION, "status": CANCELLED, "notified": [delegation.delegate]}

    def result(results: Sequence[Any]) -> dict[str, Any]:
        return {**told, "cancelled_at": write_instant(results[0].updated)}

    gone = refusal(status.CONFLICT, "not-cancellable", "The delegation has ended meanwhile.").refused
    return effects([command], result, gone, call.server.part("ended delegations").refresh)


async def describe(_: Server, record: Record) -> Mapping[str, Any]:
    """Return what CHECK tells of a delegation. One that failed is answered with 550, with the delegate's error."""
    found = _decode(record.data)
    if record.state in (FAILED, EXPIRED) and found.error is not None:
        details = {**found.tell(record.state), "error": found.error.get("cause")}
        raise refusal(status.DELEGATION_FAILURE, "delegation-failed", found.error["message"], delegation=details)
    return found.tell(record.state) | {"expires_at": write_instant(found.expires)}


class EndedDelegations(Follower):
    """Ids of delegations that have ended before their tokens do; a copy in memory that follows the store."""

    def __init__(self) -> None:
        super().__init__(topic_of(DELEGATION), self._take_in)
        self._ended: frozenset[str] = frozenset()

    def __contains__(self, token_id: object) -> bool:
        return token_id in self._ended

    async def _take_in(self, store: Store) -> None:
        found: list[Record] = await store.read(ListDue(DELEGATION, _ENDED))
        self._ended = frozenset(_decode(record.data).delegation_id for record in found)

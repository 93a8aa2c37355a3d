"""QUERY /messages: the inbox of the caller, or what was published on a channel."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from bespeak.contract.standard.method import NAME, StandardMethod, list_of, object_of, one_of
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Refused
from bespeak.runtime.answer import Envelope
from bespeak.runtime.call import RoutedCall
from bespeak.runtime.messages.message import DECLINED, READ, decode_message, is_thread, thread_of
from bespeak.runtime.messages.origin import decode_origin
from bespeak.runtime.methods.needs import invalid, refuse_without_needs
from bespeak.state.store.commands.messages import ACKNOWLEDGED, UNREAD, ListMessages, channel_mark
from bespeak.state.store.commands.records import Record

STATES: Final = (UNREAD, READ, ACKNOWLEDGED, DECLINED)
_USUAL: Final = 20
_MOST: Final = 100
_MOST_BYTES: Final = 1024 * 1024
"""Bytes of a page that has more than one message."""
_CURSOR: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,9})?)~([!-~]{1,128})")

MESSAGES: Final = StandardMethod(
    name="QUERY",
    description="Lists the messages of the caller, or those that were published on a channel, oldest first.",
    intent="Query the messages that the calling agent has received.",
    outcome="A page of messages is returned, and the cursor of the next page if there are more; nothing is changed.",
    parameters={
        "state": one_of(*STATES),
        "thread_id": NAME,
        "channel": NAME,
        "after": NAME,
        "limit": {"type": "integer", "minimum": 1, "maximum": _MOST},
    },
    result={
        "messages": list_of(object_of({"message_id": NAME}, "message_id", "thread_id", "sender", "kind", "state")),
        "next": NAME,
    },
    returned=("messages",),
)


async def messages(call: RoutedCall) -> Envelope | Refused:
    """Answer QUERY /messages. Reading changes nothing, so that an answer that is lost loses no message."""
    refused = refuse_without_needs(call)
    if refused is not None:
        return refused
    assert call.server.store is not None
    given = call.input
    after = _read_cursor(given.get("after"))
    if after is None:
        return invalid("after", "is not a cursor; send what `next` of the previous page says.")
    thread = given.get("thread_id")
    if thread is not None and not is_thread(thread):
        return Envelope({"messages": []})
    owner = channel_mark(given["channel"]) if "channel" in given else call.agent_id or ""
    limit = given.get("limit", _USUAL)
    prefix = "" if thread is None else f"msg-{thread}-"
    # One more than asked for tells whether there is another page.
    query = ListMessages(owner, given.get("state"), prefix, after, limit + 1)
    found: list[tuple[Record, str | None]] = await call.server.store.read(query)
    page: list[dict[str, Any]] = []
    size = 0
    for record, origin in found[:limit]:
        size += len(origin or record.data)
        if page and size > _MOST_BYTES:
            break
        page.append(_show(record, origin))
    result: dict[str, Any] = {"messages": page}
    if len(page) < len(found):
        last = found[len(page) - 1][0]
        result["next"] = f"{last.created!r}~{last.record_id}"
    return Envelope(result)


def _read_cursor(text: str | None) -> tuple[float, str] | None:
    if text is None:
        return (0.0, "")
    found = _CURSOR.fullmatch(text)
    return None if found is None else (float(found[1]), found[2])


def _show(record: Record, origin: str | None) -> dict[str, Any]:
    message = decode_message(record.data)
    shown: dict[str, Any] = {
        "message_id": record.record_id,
        "thread_id": thread_of(record.record_id),
        "kind": message.kind,
        "sender": message.sender,
        "urgency": message.urgency,
        "state": record.state,
        "sent_at": write_instant(record.created),
        "content": message.content if origin is None else decode_origin(origin).content,
    }
    if origin is not None:
        form = decode_origin(origin).format
        shown |= {"origin_id": message.ref} | ({} if form is None else {"format": form})
    if message.expires is not None:
        shown["expires_at"] = write_instant(message.expires)
    if message.confirmed is not None:
        shown["confirmed"] = msgspec.to_builtins(message.confirmed)
    for name in ("in_reply_to", "channel"):
        if getattr(message, name) is not None:
            shown[name] = getattr(message, name)
    return shown

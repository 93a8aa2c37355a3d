"""COMMUNICATE: methods that deliver something to somebody (Tier 2 7)."""

from __future__ import annotations

from functools import partial
from typing import Final

from bespeak.contract.standard import definition as d
from bespeak.contract.standard.definition import MethodError, Schema, StandardMethod
from bespeak.protocol import status

_RECIPIENT: Final[Schema] = {
    "type": ["string", "array"],
    "items": d.NAME,
    "minLength": 1,
    "maxLength": 256,
    "minItems": 1,
    "maxItems": 1000,
}
_UNDELIVERABLE: Final = MethodError("unknown-recipient", status.NOT_FOUND, "Nothing is known of this recipient.")
_LATER: Final = MethodError("delivery-unavailable", status.UNAVAILABLE, "The channel cannot deliver now.")
SENDS: Final = "messages:send"  # the draft names no scope, but SEND speaks in the operator's name
_members = partial(
    d.members,
    RECIPIENT=_RECIPIENT,
    PATH={**_RECIPIENT, "maxItems": 16},
    SCOPE={"type": ["string", "object"], "minLength": 1, "maxLength": 4000},
)
_method = partial(StandardMethod, category="communicate", impact="irreversible", idempotent=False)
COMMUNICATE: Final[tuple[StandardMethod, ...]] = (
    _method(
        name="ALERT",
        description="Sends an urgent message that has to be acknowledged, and escalates it if it is not.",
        intent="Alert a recipient to something urgent.",
        outcome="The alert is on its way, and escalates at its deadline unless it is acknowledged.",
        takes=_members(
            "recipient: RECIPIENT, message: ANYTHING, severity: critical | high | warning, acknowledge_by?: TIME, "
            "escalation_path?: PATH"
        ),
        returns=_members(
            "alert_id: NAME, status: sent, recipients: COUNT, acknowledge_by?: TIME, escalates_to?: [NAME]"
        ),
        errors=(d.INVALID_TIME, d.NOT_LISTED, d.NOT_OWN_CHANNEL, _UNDELIVERABLE, _LATER),
    ),
    _method(
        name="BROADCAST",
        description="Sends one message to every member of an audience.",
        intent="Broadcast information to an audience.",
        outcome="A message is on its way to every recipient, and their number is returned.",
        takes=_members("audience: RECIPIENT, content: ANYTHING, channel?: agtp | email | webhook | sms, expiry?: TIME"),
        returns=_members("message_id: NAME, channel: NAME, deliveries: COUNT, channels: OBJECT, expires_at?: TIME"),
        errors=(
            MethodError("empty-audience", status.BAD_REQUEST, "The audience has no members."),
            MethodError("audience-refused", status.FORBIDDEN, "The caller may not address this audience."),
            d.NOT_LISTED,
            d.NOT_OWN_CHANNEL,
            d.INVALID_TIME,
            _LATER,
        ),
    ),
    _method(
        name="REPLY",
        description="Answers a message, an escalation or a question, in its thread.",
        intent="Reply to a message that asked for an answer.",
        outcome="The reply is part of the thread and on its way to its author.",
        takes=_members("in_reply_to: NAME, content: ANYTHING, urgency?: critical | informational | background"),
        returns=_members("reply_id: NAME, in_reply_to: NAME, thread_id: NAME, recipient?: NAME, sent_at: TIME"),
        errors=(
            MethodError("message-not-found", status.NOT_FOUND, "The caller has received no such message."),
            MethodError("reply-not-expected", status.BAD_REQUEST, "The message expects no reply, or has one."),
            _LATER,
        ),
    ),
    _method(
        name="SEND",
        description="Delivers a message outside AGTP: by e-mail or to a webhook.",
        intent="Send a message through an external channel.",
        outcome="The channel has taken the message, and its confirmation is returned.",
        takes=_members("recipient: LINE, channel: email | webhook | sms | push, content: ANYTHING, template_id?: NAME"),
        returns=_members(
            "delivery_id: NAME, channel: NAME, status: delivered | queued, confirmation?: OBJECT, sent_at: TIME"
        ),
        errors=(
            MethodError("recipient-refused", status.BAD_REQUEST, "The address must not be used."),
            d.NOT_LISTED,
            MethodError("unknown-template", status.NOT_FOUND, "No template has this id."),
            MethodError("channel-not-available", status.UNAVAILABLE, "This server has no such channel."),
            _LATER,
        ),
        scopes=(SENDS,),
        # Without the recipient: the address of a webhook may be a secret.
        recorded=("channel", "template_id"),
    ),
    _method(
        name="REPORT",
        description="Makes a report of recorded data and delivers it.",
        intent="Report on a scope to a principal.",
        outcome="The report is stored and on its way to its recipient.",
        takes=_members("report_type: NAME, scope: SCOPE, recipient: LINE, format?: pdf | json | html | markdown"),
        # An agent has it in its inbox (delivered), an address outside will get it, and a principal fetches it (stored).
        returns=_members(
            "document_id: NAME, report_type: NAME, format: NAME, bytes: COUNT, digest: NAME, recipient: LINE, "
            "status: delivered | queued | stored"
        ),
        errors=(
            MethodError("unknown-report-type", status.UNPROCESSABLE, "This server has no such report."),
            MethodError("invalid-scope", status.BAD_REQUEST, "The scope is not one that this report takes."),
            MethodError("format-not-available", status.UNAVAILABLE, "This server cannot write the format."),
            d.NOT_LISTED,
            d.NOT_OWN_CHANNEL,
            _LATER,
        ),
    ),
)
MOST_LISTED: Final = 100  # messages in one page
_MESSAGE: Final = ["message_id", "thread_id", "sender", "kind", "state"]
MESSAGES: Final = StandardMethod(
    name="QUERY",
    description="Lists the messages of the caller, or those that were published on a channel, oldest first.",
    intent="Query the messages that the calling agent has received.",
    outcome="A page of messages is returned, and the cursor of the next page if there are more; nothing is changed.",
    takes=_members(
        "state?: unread | read | acknowledged | declined, thread_id?: NAME, channel?: NAME, after?: NAME, "
        f"limit?: 1..{MOST_LISTED}"
    ),
    returns={"messages": d.list_of({**d.object_of({"message_id": d.NAME}), "required": _MESSAGE}), "next?": d.NAME},
)  # QUERY /messages of every server with a store

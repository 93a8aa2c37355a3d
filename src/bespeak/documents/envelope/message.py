"""Messages that carry an envelope: where it is in them, and the validation that comes with it (IoA 11)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from bespeak.documents.envelope.envelope import Envelope, Validation
from bespeak.documents.envelope.nlip import read_nlip
from bespeak.documents.envelope.reader import EnvelopeReader

MEMBER: Final = "semantic"
"""Member of a message that holds the envelope (Figure 8)."""


class Carried(msgspec.Struct, frozen=True):
    """An envelope or registration inside of a message."""

    payload: Any
    path: str = ""
    """JSON Pointer of the payload; empty if it is the whole message, or a part of an NLIP message."""


def find_payload(message: Any) -> Carried:
    """Return the semantic payload of a message: its member, a part of an NLIP message, or the message itself."""
    if isinstance(message, dict) and "@context" not in message:
        if MEMBER in message:
            return Carried(message[MEMBER], f"/{MEMBER}")
        nlip = read_nlip(message)
        if nlip is not None and nlip.envelope is not None:
            return Carried(nlip.envelope)
    return Carried(message)


def read_message(message: Any, reader: EnvelopeReader) -> Envelope:
    """Read the envelope of a message. A validation beside it counts too: the draft's braces allow both readings."""
    envelope = reader.parse(find_payload(message).payload)
    if envelope.validation is not None or not isinstance(message, dict):
        return envelope
    beside = message.get("validation")
    if not isinstance(beside, dict) or not isinstance(beside.get("status"), str):
        return envelope
    reason = beside.get("reason")
    validation = Validation(beside["status"], reason if isinstance(reason, str) else "")
    return msgspec.structs.replace(envelope, validation=validation)

"""Messages that carry a semantic envelope, NLIP messages among them (IoA 11): where it is, and its validation."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec

from bespeak.extensions.semantics.envelope.reader import ClaimedValidation, EnvelopeReader, SemanticEnvelope

LABEL: Final = "semprofile"  # label of the submessage that holds the envelope
_MOST_PARTS: Final = 100


class Submessage(msgspec.Struct, frozen=True):
    label: str
    format: str
    subformat: str
    content: Any


class NlipMessage(msgspec.Struct, frozen=True):
    content: Any = ""
    format: str = "text"
    subformat: str = "en"
    message_type: str = "Request"
    parts: tuple[Submessage, ...] = ()

    @property
    def envelope(self) -> Any:
        """Content of the part with the envelope: the labelled one, else the only structured one that is JSON-LD."""
        structured = (one.content for one in self.parts if one.format.lower() == "structured")
        others = [one for one in structured if isinstance(one, dict) and "@context" in one]
        found = [one.content for one in self.parts if one.label.lower() == LABEL] or others
        return found[0] if len(found) == 1 else None


def read_nlip(message: Any) -> NlipMessage | None:
    """Read an NLIP message, its names in capitals (draft) or small letters (standard); None for other values."""
    members = _members(message)
    parts = members.get("submessages", [])
    if not {"format", "content"} <= set(members) or not isinstance(parts, list) or len(parts) > _MOST_PARTS:
        return None
    return NlipMessage(
        content=members["content"],
        format=str(members["format"])[:100],
        subformat=str(members.get("subformat", ""))[:100],
        message_type=str(members.get("messagetype", ""))[:100],
        parts=tuple(_part(one) for one in parts if isinstance(one, dict)),
    )


def _part(value: dict[str, Any]) -> Submessage:
    members = _members(value)
    label, kind, subformat = (str(members.get(name, ""))[:100] for name in ("label", "format", "subformat"))
    content = members.get("content")
    if isinstance(content, str) and kind.lower() == "structured" and subformat.lower() == "json":
        with suppress(ValueError, RecursionError):  # some senders write the JSON as a text
            content = msgspec.json.decode(content)
    return Submessage(label, kind, subformat, content)


def _members(value: Any) -> dict[str, Any]:
    return {str(name).lower(): one for name, one in value.items()} if isinstance(value, dict) else {}


MEMBER: Final = "semantic"  # member of a message that holds the envelope (Figure 8)


class Carried(msgspec.Struct, frozen=True):
    """An envelope or registration inside of a message."""

    payload: Any
    path: str = ""  # JSON Pointer of the payload; empty if it is the whole message, or a part of an NLIP message


def find_payload(message: Any) -> Carried:
    """Return the semantic payload of a message: its member, a part of an NLIP message, or the message itself."""
    if isinstance(message, dict) and "@context" not in message:
        if MEMBER in message:
            return Carried(message[MEMBER], f"/{MEMBER}")
        nlip = read_nlip(message)
        if nlip is not None and nlip.envelope is not None:
            return Carried(nlip.envelope)
    return Carried(message)


def read_message(message: Any, reader: EnvelopeReader) -> SemanticEnvelope:
    """Read the envelope of a message. A validation beside it counts too: the draft's braces allow both readings."""
    envelope = reader.parse(find_payload(message).payload)
    if envelope.validation is not None or not isinstance(message, dict):
        return envelope
    beside = message.get("validation")
    if not isinstance(beside, dict) or not isinstance(beside.get("status"), str):
        return envelope
    reason = beside.get("reason")
    validation = ClaimedValidation(beside["status"], reason if isinstance(reason, str) else "")
    return msgspec.structs.replace(envelope, validation=validation)

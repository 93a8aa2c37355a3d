"""Writer of semantic envelopes (IoA 6.2)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from bespeak.contract.core_ontology import DEFAULT, Namespace
from bespeak.extensions.semantics.profile import SemanticProfile


def write_envelope(profile: SemanticProfile, namespace: Namespace = DEFAULT) -> dict[str, Any]:
    """Write a profile as an envelope, with full IRIs."""
    context, refs, inner = profile.context, profile.alignment_refs, None
    if context is not None:
        bindings = [{"term": one.term, "sense": one.sense} for one in context.term_bindings]
        languages = {"sourceLang": context.source_lang, "targetLang": context.target_lang}
        inner = _present({"domain": context.domain, **languages, "termBindings": bindings})
    return _present(
        {
            "@context": namespace.context,
            "type": "ioa:SemanticProfile",
            "id": profile.id,
            "ontologyId": profile.ontology_id,
            "ontologyVersion": profile.ontology_version,
            "profileVersion": profile.profile_version,
            "capabilityRefs": list(profile.capability_refs),
            "intentRef": profile.intent_ref,
            "alignmentRef": refs[0] if len(refs) == 1 else list(refs),
            "profileContext": inner,
        }
    )


def _present(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None and value != []}


_MOST_NLIP: Final = 20  # most members of an NLIP message
LABEL: Final = "semprofile"  # label of the submessage that holds the envelope


def _find_nlip_envelope(message: dict[str, Any]) -> Any:
    """Return the envelope of an NLIP message, its names in capitals (draft) or small letters (standard).

    It is in the labelled part, else in the only structured one that is JSON-LD; None without one.
    """
    members = _members(message)
    parts = members.get("submessages", [])
    if not {"format", "content"} <= set(members) or not isinstance(parts, list) or len(parts) > 100:
        return None
    labelled, others = [], []
    for part in (_members(one) for one in parts if isinstance(one, dict)):
        label, kind, subformat = (str(part.get(name, ""))[:100].lower() for name in ("label", "format", "subformat"))
        content = part.get("content")
        if isinstance(content, str) and kind == "structured" and subformat == "json":
            with suppress(ValueError, RecursionError):  # some senders write the JSON as a text
                content = msgspec.json.decode(content)
        if label == LABEL:
            labelled.append(content)
        elif kind == "structured" and isinstance(content, dict) and "@context" in content:
            others.append(content)
    found = labelled or others
    return found[0] if len(found) == 1 else None


class OpenedMessage(msgspec.Struct, frozen=True):
    envelope: Any
    input: dict[str, Any]
    task_id: str | None = None


def open_message(message: dict[str, Any], schema: Mapping[str, Any]) -> OpenedMessage | None:
    """Return what a message of Figure 8, or of NLIP, carries for an endpoint with this input; None for any other body.

    Labelled parts of an NLIP message are members of the input. Its content is the input, or the required member left.
    """
    declared, payload, header = schema.get("properties", {}), message.get("payload"), message.get("header")
    if MEMBER in message and type(payload) is dict and declared.keys().isdisjoint(("payload", MEMBER)):
        return OpenedMessage(message[MEMBER], payload, header.get("task_id") if type(header) is dict else None)
    members = _members(message) if "@context" not in message and len(message) <= _MOST_NLIP else {}
    envelope = _find_nlip_envelope(message) if not declared.keys() & members.keys() and "content" in members else None
    if envelope is None:
        return None
    parts = (_members(one) for one in members["submessages"] if isinstance(one, dict))
    labelled = {str(one["label"]): one.get("content") for one in parts if "label" in one}
    given = {label: content for label, content in labelled.items() if label.lower() != LABEL}
    content = members["content"]
    if isinstance(content, dict):
        return OpenedMessage(envelope, {**content, **given})
    left = [name for name in schema.get("required", ()) if name not in given]
    return OpenedMessage(envelope, {**given, left[0]: content} if len(left) == 1 else given)


def _members(value: dict[str, Any]) -> dict[str, Any]:
    return {str(name).lower(): one for name, one in value.items()}


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
        envelope = _find_nlip_envelope(message)
        if envelope is not None:
            return Carried(envelope)
    return Carried(message)

"""Writer of semantic envelopes (IoA 6.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from bespeak.contract.core_ontology import DEFAULT, Namespace
from bespeak.extensions.semantics.envelope.reader import ClaimedValidation, EnvelopeReader, SemanticEnvelope
from bespeak.extensions.semantics.ontology.contexts import core_context
from bespeak.extensions.semantics.profile import ProfileContext, SemanticProfile

_DELIMITERS: Final = frozenset(":/?#[]@")  # last characters of a namespace that JSON-LD accepts as a prefix


def write_envelope(
    profile: SemanticProfile, prefixes: Mapping[str, str] | None = None, namespace: Namespace = DEFAULT
) -> dict[str, Any]:
    """Write a profile as an envelope; `prefixes` shorten its IRIs where that keeps their meaning."""
    bindings = profile.context.term_bindings if profile.context is not None else ()
    shorten = _Shortener(
        prefixes or {},
        [
            *(profile.ontology_id, *profile.capability_refs, profile.intent_ref, *profile.alignment_refs),
            *(profile.id or "", (profile.context and profile.context.domain) or ""),
            *(binding.sense for binding in bindings),
        ],
        namespace,
    )
    members = {
        "@context": shorten.context,
        "type": "ioa:SemanticProfile",
        "id": shorten(profile.id),
        "ontologyId": shorten(profile.ontology_id),
        "ontologyVersion": profile.ontology_version,
        "profileVersion": profile.profile_version,
        "capabilityRefs": [shorten(one) for one in profile.capability_refs],
        "intentRef": shorten(profile.intent_ref),
        "alignmentRef": _few([shorten(one) for one in profile.alignment_refs]),
        "profileContext": _write_context(profile.context, shorten) if profile.context is not None else None,
    }
    return _present(members)


class _Shortener:
    """Prefixes of one document. A prefix that equals the scheme of an IRI in it would change that IRI."""

    def __init__(self, prefixes: Mapping[str, str], iris: Iterable[str], namespace: Namespace) -> None:
        used = [one for one in iris if one]
        schemes = {one.partition(":")[0] for one in used}
        reserved = core_context(namespace)
        usable = {name: space for name, space in prefixes.items() if name not in schemes and name not in reserved}
        self._prefixes = {
            name: space
            for name, space in usable.items()
            if space[-1:] in _DELIMITERS and any(_fits(one, space) for one in used)
        }
        self.context: Any = [namespace.context, dict(self._prefixes)] if self._prefixes else namespace.context

    def __call__(self, iri: str | None) -> str | None:
        """Shorten an IRI with the longest namespace."""
        if not iri:
            return iri
        spaces = [one for one in self._prefixes.items() if _fits(iri, one[1])]
        if not spaces:
            return iri
        prefix, space = max(spaces, key=lambda one: len(one[1]))
        return f"{prefix}:{iri[len(space) :]}"


def _fits(iri: str, space: str) -> bool:
    return len(iri) > len(space) and iri.startswith(space) and not iri.startswith("//", len(space))


def _write_context(context: ProfileContext, shorten: _Shortener) -> dict[str, Any]:
    return _present(
        {
            "domain": shorten(context.domain),
            "sourceLang": context.source_lang,
            "targetLang": context.target_lang,
            "termBindings": [{"term": one.term, "sense": shorten(one.sense)} for one in context.term_bindings],
        }
    )


def _few(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _present(members: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None and value != []}


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

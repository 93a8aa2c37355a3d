"""Schemas of a contract as components of an OpenAPI document: each under its own name, shared ones only once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from bespeak.contract.schema.subschemas import Parts, references, transplant
from bespeak.text.source.pointer import child

_NO_COMPONENT: Final = re.compile(r"[^A-Za-z0-9._-]+")


def component_name(text: str) -> str:
    """Convert a text to a component key, which holds only letters, digits, `.`, `-` and `_`."""
    return _NO_COMPONENT.sub("_", text).strip("_") or "schema"


def type_name(operation_id: str) -> str:
    """Convert an operation id to the first part of a type name: `BookRoom`."""
    return "".join(word[0].upper() + word[1:] for word in operation_id.split("_") if word)


def unique_in(taken: Mapping[str, object], name: str) -> str:
    """Return the name, with a number appended if it is taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}{number}"
    return free


PLACE: Final = "#/components/schemas/"

_DEFINITIONS: Final = "$defs"
_SORTED: Final = msgspec.json.Encoder(order="sorted")

_NAMED: Final = b'nchor":'  # bytes that occur in the text of every schema with an anchor
_Identity = bytes  # identity of a definition: equal ones have the same meaning, including everything they refer to


class SchemaComponents:
    """Collects `components.schemas`. In OpenAPI `#` is the whole document, so every reference is rewritten."""

    def __init__(self, reserved: Mapping[str, Any]) -> None:
        """Start with `reserved`: schemas outside the contract, whose names stay theirs."""
        self.schemas: dict[str, Any] = dict(reserved)
        self._defined: dict[tuple[str, _Identity], str] = {}
        self._leads: dict[bytes, frozenset[str | None]] = {}  # what a definition refers to, by its text

    def reserve(self, name: str) -> str:
        """Reserve a name for the schema of an endpoint, before definitions take theirs."""
        free = unique_in(self.schemas, name)
        self.schemas[free] = {}
        return free

    def add(self, name: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Store a schema under a reserved name; return it as stored."""
        definitions = schema.get(_DEFINITIONS)
        definitions = definitions if isinstance(definitions, Mapping) else {}
        new: dict[str, str] = {}
        places: dict[str, str] = {}
        text = _SORTED.encode(schema) if definitions else b""
        for key, identity in self._identities(text, definitions):
            known = self._defined.get((key, identity))
            if known is None:
                known = new[key] = self._defined[key, identity] = self._name(name, key)
            places[key] = known

        def refer(parts: Parts) -> str:
            if len(parts) > 1 and parts[0] == _DEFINITIONS and parts[1] in places:
                return _reference(places[parts[1]], parts[2:])
            return _reference(name, parts)

        if definitions and _NAMED not in text:
            # Definitions that are already stored are not copied again; only an anchor could refer into them.
            schema = {**schema, _DEFINITIONS: {key: definitions[key] for key in new}}
        moved = transplant(schema, refer)
        definitions = moved.pop(_DEFINITIONS, {})
        for key, known in new.items():
            self.schemas[known] = definitions[key]
        self.schemas[name] = moved
        return moved

    def _identities(self, text: bytes, definitions: Mapping[str, Any]) -> Iterable[tuple[str, _Identity]]:
        """Yield each definition of a schema with its identity; `text` is the whole schema."""
        texts = {key: _SORTED.encode(inner) for key, inner in definitions.items()}
        digests = {key: hashlib.sha256(text).digest() for key, text in texts.items()}
        leads = {key: self._lead(texts[key], definitions[key]).intersection((*definitions, None)) for key in texts}
        for key in definitions:
            reached = _reached(key, leads)
            if None in reached or _NAMED in text:
                # It may refer to any place in the schema, so it has the same meaning only in the same schema.
                yield key, hashlib.sha256(text).digest()
            else:
                yield key, b"".join(name.encode() + digests[name] for name in sorted(filter(None, reached)))

    def _lead(self, text: bytes, definition: Any) -> frozenset[str | None]:
        """Return the definitions that one refers to; None for any other place in the schema."""
        known = self._leads.get(text)
        if known is None:
            known = self._leads[text] = frozenset(
                parts[1] if len(parts) > 1 and parts[0] == _DEFINITIONS else None
                for parts in references({_DEFINITIONS: {"": definition}})
            )
        return known

    def _name(self, owner: str, key: str) -> str:
        plain = component_name(key)
        name = plain if plain not in self.schemas else unique_in(self.schemas, f"{owner}.{plain}")
        self.schemas[name] = {}
        return name


def reference(name: str) -> dict[str, str]:
    return {"$ref": PLACE + name}


def _reference(name: str, parts: Parts) -> str:
    at = PLACE + name
    for part in parts:
        at = child(at, quote(part, safe="/~!$&'()*+,;=:@-._"))
    return at


def _reached(key: str, leads: Mapping[str, frozenset[str | None]]) -> set[str | None]:
    reached: set[str | None] = {key}
    waiting = [key]
    while waiting:
        for target in leads[waiting.pop()] - reached:
            reached.add(target)
            if target is not None:
                waiting.append(target)
    return reached

"""Bodies of upstream requests: JSON, a form, or a form with files."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from bespeak.contract.http_value import as_text, encode_pairs, pairs, texts, unusable
from bespeak.contract.schema.violation import Violation
from bespeak.text.diagnostics.brief import brief
from bespeak.text.source.pointer import child

Part = tuple[str, tuple[str | None, bytes, str | None]]
"""A part of a multipart body for httpx: its name, then file name, content and media type."""


class Field(NamedTuple):
    """An input field to be written into a query or a body."""

    name: str
    """Name in the contract."""
    value: Any
    style: str
    """Format of several values, one of LIST_STYLES."""
    reserved: bool = False
    """True if reserved characters are not percent-encoded."""
    part_type: str | None = None
    """Media type of its part in a multipart body; None for the usual one."""

    @property
    def pointer(self) -> str:
        """JSON Pointer of the field in the input."""
        return child("", self.name)


def form_body(fields: Mapping[str, Field], faults: list[Violation]) -> bytes:
    """Encode fields, by upstream name, as a form."""
    return encode_pairs(form_pairs(fields, faults)).encode("ascii")


def form_pairs(fields: Mapping[str, Field], faults: list[Violation]) -> list[tuple[str, str]]:
    """Return the names and encoded values of fields for a query or a form."""
    return [
        pair
        for name, field in fields.items()
        for pair in pairs(name, field.value, field.style, field.pointer, faults, reserved=field.reserved)
    ]


def multipart_body(fields: Mapping[str, Field], files: Collection[str], faults: list[Violation]) -> list[Part]:
    """Encode fields, by upstream name, as parts; `files` lists, by contract name, those to be decoded as files."""
    parts: list[Part] = []
    for name, field in fields.items():
        parts += _file_parts(name, field, faults) if field.name in files else _text_parts(name, field, faults)
    return parts


def _text_parts(name: str, field: Field, faults: list[Violation]) -> Iterator[Part]:
    value = field.value
    if isinstance(value, list | dict) and field.style not in ("repeat", "json"):
        for key, text in texts(name, value, field.style, field.pointer, faults):
            yield key, (None, text.encode(), field.part_type)
        return
    for item in value if isinstance(value, list) and field.style != "json" else (value,):
        if item is not None:
            kind = "application/json" if isinstance(item, list | dict) else None
            yield name, (None, as_text(item).encode(), field.part_type or kind)


def _file_parts(name: str, field: Field, faults: list[Violation]) -> Iterator[Part]:
    several = isinstance(field.value, list)
    for index, item in enumerate(field.value if several else (field.value,)):
        if item is None:
            continue
        try:
            content = b64decode(item, validate=True) if isinstance(item, str) else None
        except (binascii.Error, ValueError):
            content = None
        if content is None:
            at = child(field.pointer, index) if several else field.pointer
            faults.append(unusable(at, f"{brief(item)} is not valid base64; send the content of a file as base64"))
        else:
            yield name, (name, content, field.part_type or "application/octet-stream")


def json_body(fields: Mapping[str, Field]) -> bytes:
    """Encode fields, by upstream name, as a JSON object."""
    return msgspec.json.encode({name: field.value for name, field in fields.items()})

"""Media types in headers and descriptions."""

from __future__ import annotations

import re
from typing import Final

FORM: Final = "application/x-www-form-urlencoded"

_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_MEDIA_TYPE: Final = re.compile(
    rf'{_NAME}/{_NAME}(?:[ \t]*;[ \t]*{_NAME}=(?:{_NAME}|"[^"\\\x00-\x1f\x7f-\U0010ffff]*"))*'
)
"""RFC 9110 8.3.1, without backslashes in parameters."""


def is_media_type(text: str) -> bool:
    """Return True if a text is one media type, with or without parameters."""
    return len(text) <= 200 and _MEDIA_TYPE.fullmatch(text) is not None and "*" not in essence(text)


def essence(media_type: str) -> str:
    """Return a media type without parameters, in lower case (RFC 9110 8.3.1)."""
    return media_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """Return True if a media type is JSON: application/json or with the suffix +json."""
    kind, _, name = essence(media_type).partition("/")
    return kind == "application" and (name == "json" or name.endswith("+json"))


def foreign_charset(media_type: str) -> str | None:
    """Return the first charset of a media type that is not read as UTF-8; None if there is none."""
    for parameter in media_type.split(";")[1:]:
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"')
        if name.strip().lower() == "charset" and charset.lower() not in ("utf-8", "utf8", "us-ascii"):
            return charset
    return None

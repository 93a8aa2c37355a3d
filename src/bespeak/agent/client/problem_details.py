"""Problem details (RFC 9457) of an HTTP response converted into an AGTP `error` object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bespeak.protocol import status as codes
from bespeak.protocol.exchange.media_type import essence
from bespeak.text.reading.json_data import decode_json

_MEDIA: Final = "application/problem+json"
_OWN: Final = frozenset({"type", "title", "status", "detail"})
_TOLD: Final = _OWN | {"code", "agtp_status", "task_id", "instance"}
_AGTP_STATUS: Final = "agtp-status"


def agtp_status(status: int, headers: Mapping[str, str]) -> int:
    """Return the AGTP status of a response: the one in its header, else the HTTP status."""
    said = headers.get(_AGTP_STATUS, "")
    number = int(said) if len(said) == 3 and said.isascii() and said.isdigit() else 0
    return number if number in codes.REASONS else status


def error_body(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    """Convert the body of a refusal into AGTP's form. Other bodies are returned unchanged."""
    if essence(headers.get("content-type", "")) != _MEDIA:
        return body
    try:
        told = decode_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body
    if not isinstance(told, dict):
        return body
    return msgspec.json.encode(_error(status, told))


def _error(status: int, told: Mapping[str, Any]) -> dict[str, Any]:
    code, detail = told.get("code"), told.get("detail")
    message = detail if isinstance(detail, str) else told.get("title")
    kind = told.get("type")
    if not isinstance(code, str) or not code:
        # Other services identify a problem by its type, `https://api.example/problems/out-of-credit`.
        named = kind.rstrip("/").rpartition("/")[2] if isinstance(kind, str) and kind != "about:blank" else ""
        code = named or codes.CODES.get(status, f"status-{status}")
    error: dict[str, Any] = {"code": code, "message": message if isinstance(message, str) else ""}
    for name, value in told.items():
        plain = name.removeprefix("error_")
        if name not in _TOLD:
            error[plain if plain in _OWN else name] = value
    task_id = told.get("task_id")
    return {"error": error} if task_id is None else {"error": error, "task_id": task_id}

"""A refusal as problem details (RFC 9457): what AGTP says in `error`, where HTTP clients look for it."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import msgspec

from bespeak.protocol import status

_OWN: Final = frozenset({"type", "title", "status", "detail"})
"""Members that RFC 9457 gives a meaning; details of the same name are told under another."""

_RENAMED: Final = {413: "Content Too Large", 422: "Unprocessable Content"}
"""RFC 9110 has new names for these, which not every version of Python knows."""


def condition_of(error: Mapping[str, Any]) -> str | None:
    """Which condition of core 6.2 a 262 names, if the error is one."""
    found = error.get("type")
    return found if isinstance(found, str) else None


def problem(agtp_status: int, body: bytes) -> tuple[int, bytes]:
    """The HTTP status and the body of a refusal that AGTP would send as `body`."""
    answer = msgspec.json.decode(body) if body else {}
    error = answer.get("error", {}) if isinstance(answer, dict) else {}
    number = status.to_http(agtp_status, condition_of(error))
    return number, problem_body(number, agtp_status, error, task_id=answer.get("task_id"))


def problem_body(number: int, agtp_status: int, error: Mapping[str, Any], *, task_id: str | None = None) -> bytes:
    """The body of a problem; `code` is what to rely on, `type` says nothing beyond the status.

    A number that AGTP does not have is one of HTTP alone, and not told as AGTP's.
    """
    told: dict[str, Any] = {
        "type": "about:blank",
        "title": _phrase(number),
        "status": number,
        "detail": error.get("message", ""),
        "code": error.get("code", ""),
    }
    if agtp_status in status.REASONS:
        told["agtp_status"] = agtp_status
    for name, value in error.items():
        if name not in ("code", "message"):
            told[f"error_{name}" if name in _OWN else name] = value
    if task_id is not None:
        told["task_id"] = task_id
    return msgspec.json.encode(told)


def _phrase(number: int) -> str:
    if number in _RENAMED:
        return _RENAMED[number]
    try:
        return HTTPStatus(number).phrase
    except ValueError:
        return ""

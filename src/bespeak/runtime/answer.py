"""An answer a built-in method has already put into bytes: a document, a cached manifest, a status of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bespeak import status
from bespeak.exchange.headers import MEDIA_AGTP


class Answer(msgspec.Struct, frozen=True):
    """What to send in place of an endpoint's output object."""

    body: bytes
    status: int = status.OK
    content_type: str = MEDIA_AGTP
    headers: tuple[tuple[str, str], ...] = ()


class Envelope(msgspec.Struct, frozen=True):
    """A result that floor methods answer inside the AGTP envelope `{status, task_id, result}` (core 5.3)."""

    result: Mapping[str, Any]
    status: int = status.OK

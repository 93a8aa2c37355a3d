"""What a built-in method answers in place of an output object: bytes, an envelope, or a change of state first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.headers import MEDIA_AGTP
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.store.command import Command, Conflict


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


class Effects(msgspec.Struct, frozen=True):
    """Changes of state that an answer depends on.

    They are committed in one transaction with the audit record and the idempotency answer of the request, and the
    response leaves after that. `answer` makes the response of what the commands returned, or of their conflict; it
    runs inside the transaction, so it only computes.
    """

    commands: tuple[Command, ...]
    answer: Callable[[Sequence[Any] | Conflict], Answer | Envelope | Refused]

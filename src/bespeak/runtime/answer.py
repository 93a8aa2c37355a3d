"""Results of built-in methods other than an output object: bytes, an envelope, or effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from bespeak.protocol import status
from bespeak.protocol.exchange.headers import MEDIA_AGTP
from bespeak.protocol.exchange.refusal import Refused
from bespeak.state.store.store import Command, Conflict


class Answer(msgspec.Struct, frozen=True):
    """A response body in place of an output object."""

    body: bytes
    status: int = status.OK
    content_type: str = MEDIA_AGTP
    headers: tuple[tuple[str, str], ...] = ()
    code: str | None = None  # the machine-readable name of a refusal that the body tells; None for any other answer


class Envelope(msgspec.Struct, frozen=True):
    """A result that a floor method returns inside the AGTP envelope `{status, task_id, result}` (core 5.3)."""

    result: Mapping[str, Any]
    status: int = status.OK
    headers: tuple[tuple[str, str], ...] = ()


class Effects(msgspec.Struct, frozen=True):
    """Changes of state that an answer depends on.

    They are committed in one transaction with the audit record and the idempotency answer of the request; the response
    is sent after the commit. `answer` builds the response from the results of the commands, or from their conflict. It
    runs inside the transaction, so it must only compute.
    """

    commands: tuple[Command, ...]
    answer: Callable[[Sequence[Any] | Conflict], Answer | Envelope | Refused]
    committed: Callable[[], Awaitable[None]] | None = None  # awaited between commit and response; must not raise
    recorded: Mapping[str, Any] | None = None  # what the audit record has of the changes, beside the input

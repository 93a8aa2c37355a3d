"""Forms in which servers take input: flat or in the envelope, under one of two media types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bespeak.protocol.exchange.headers import MEDIA_AGTP, MEDIA_JSON


@dataclass(frozen=True, slots=True)
class Form:
    """How input is written: AGTP-API validates the body itself, the base protocol has an envelope (core 5.2)."""

    wrapped: bool = False
    media: str = MEDIA_AGTP

    def write(self, input: Any) -> Any:  # noqa: A002 - the draft's word
        """Return the body for an input. Only an object has an envelope."""
        return {"parameters": input} if self.wrapped and isinstance(input, dict) else input


FORMS: Final = (Form(), Form(media=MEDIA_JSON), Form(wrapped=True), Form(wrapped=True, media=MEDIA_JSON))
"""Forms in the order in which they are tried."""

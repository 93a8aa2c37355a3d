"""Refusal: a handler raises it to answer with an error that its endpoint declares."""

from __future__ import annotations

from typing import Any

from bespeak.errors import BespeakError


class Refusal(BespeakError):
    """Raised by a handler to answer 422 with a declared error. Keyword arguments become `error.details`."""

    def __init__(self, name: str, message: str = "", /, **details: Any) -> None:
        self.name = name
        self.message = message
        self.details = details
        super().__init__(f"{name}: {message}" if message else name)

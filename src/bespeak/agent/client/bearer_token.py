"""Bearer token that authenticates a client."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from bespeak.errors import ConfigError
from bespeak.protocol.exchange.headers import AUTHORIZATION
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text

TokenSource = str | Callable[[], str]
"""Token, or a function that returns the current one; it is called for each request."""

_LONGEST: Final = 65536
_FORM: Final = re.compile(r"[A-Za-z0-9._~+/=-]+")
"""Token syntax of RFC 6750 2.1."""


class BearerCredential:
    """Token that is sent with every request and never appears in logs or messages."""

    __slots__ = ("_source",)

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        if isinstance(source, str):
            _checked(source)

    def __repr__(self) -> str:
        return "BearerCredential(...)"

    def add_to(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        """Add the token to the headers, unless the caller has set another credential."""
        if any(name.lower() == AUTHORIZATION for name in headers):
            return headers
        return {**headers, "Authorization": f"Bearer {self.present()}"}

    def present(self) -> str:
        """Return the current token."""
        return self._source if isinstance(self._source, str) else _checked(self._source())


def read_token(path: Path) -> str:
    """Read the token from a file that contains nothing else. Raises ConfigError if it is empty or unreadable."""
    text = read_text(path, _LONGEST)
    if isinstance(text, Diagnostic):
        raise ConfigError(f"The token in {path}: {text.message}.")
    return text.strip()


def _checked(token: object) -> str:
    if isinstance(token, str) and _FORM.fullmatch(token):
        return token
    raise ConfigError("The token is not valid: it must be one word of letters, digits and -._~+/=.")

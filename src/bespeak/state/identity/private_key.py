"""Private keys in documents for publication."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bespeak.text.source.pointer import child

_PEM: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_MEMBERS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
"""Members that only a private or secret JWK has (RFC 7518 6)."""

_NAME: Final = re.compile(r"(?:^|_)(?:private|secret)_(?:key|jwk)s?$")


def private_keys(document: Mapping[str, Any]) -> Iterator[str]:
    """Return pointers to private key material anywhere in a document, recognized by its form or its name."""
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        at, value = waiting.pop()
        if isinstance(value, Mapping):
            if isinstance(value.get("kty"), str) and not _MEMBERS.isdisjoint(value):
                yield at
                continue
            for name, item in value.items():
                if item and isinstance(item, str | Mapping) and _NAME.search(name.lower().replace("-", "_")):
                    yield child(at, name)
                else:
                    waiting.append((child(at, name), item))
        elif isinstance(value, list):
            waiting.extend((child(at, index), item) for index, item in enumerate(value))
        elif isinstance(value, str) and _PEM.search(value):
            yield at

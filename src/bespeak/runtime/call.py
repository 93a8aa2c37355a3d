"""One request on its way through the gates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bespeak.protocol.exchange.headers import METHOD_GRAMMAR
from bespeak.protocol.exchange.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from bespeak.protocol.exchange.messages import Request
    from bespeak.protocol.exchange.token_hints import TokenHints
    from bespeak.runtime.registry import Registry
    from bespeak.runtime.route import Route


class Call:
    """What is known so far. Each gate reads what the ones before it found out and adds its own."""

    __slots__ = (
        "captures",
        "hints",
        "input",
        "method",
        "nonce",
        "outdated",
        "path",
        "preset",
        "principal",
        "registry",
        "request",
        "route",
    )

    def __init__(self, request: Request, registry: Registry) -> None:
        self.request = request
        self.registry = registry
        self.method: str = request.method
        """The method in force: a redirect or a legacy mapping may change it."""
        self.path: str = request.path
        self.principal: Principal = ANONYMOUS
        self.nonce: tuple[str, float] | None = None
        """The nonce of a signed request, which may be used once, and the seconds for which that must be remembered."""
        self.outdated = False
        """Whether the refusal may only be due to keys that have changed meanwhile."""
        self.route: Route | None = None
        self.captures: dict[str, str] | None = None
        self.preset: dict[str, Any] | None = None
        """Input a legacy mapping adds, `action: "delete"` (AGTP-API 3.6)."""
        self.input: dict[str, Any] = {}
        self.hints: TokenHints | None = None
        """Which part of the answer the caller wants; None for all of it."""

    @property
    def speaks_agis(self) -> bool:
        """Whether the request asks for AGIS rules; the vocabulary gate has refused every other grammar."""
        return METHOD_GRAMMAR in self.request.headers

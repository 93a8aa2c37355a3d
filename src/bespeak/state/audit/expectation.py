"""What an operator knows about a trail besides the trail itself, so that its own claims need not be believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Expectation:
    """The configuration of the server, as far as it is known."""

    sign: str | None = None
    """Configured signing: `each`, `checkpoints` or `none`; None if the configuration is not known."""
    server_ids: frozenset[str] = frozenset()
    """Ids that the server has had; empty for any."""
    replaced: Mapping[str, float] = field(default_factory=dict)
    """Times at which keys were replaced, in seconds since 1970, by key id."""

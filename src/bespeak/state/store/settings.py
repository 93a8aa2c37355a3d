"""`[store]` and `[idempotency]` of a bespeak.toml: where state is kept, and how long answers are remembered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bespeak.text.diagnostics.brief import brief
from bespeak.text.reading.table import Table

MEMORY: Final = "memory"
POSTGRES: Final = ("postgresql://", "postgres://")
DURABILITIES: Final = ("full", "process")
DEFAULT_FILE: Final = "bespeak.db"
"""The store of a deployment that names none, in its folder."""

_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PASSWORD: Final = re.compile(r"://[^/@:]*:([^@]+)@|[?&]password=([^&]+)")
_RETENTION: Final = (1, 366 * 86400)
_LEASE: Final = (1, 86400)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """`[store]`: where state is kept, and what an acknowledged change survives."""

    place: str | None = None
    """As it is written: a path from the folder of the file, `memory` or `postgresql://...`, perhaps with `${VAR}`."""
    durability: str = "full"
    """`full`: the loss of power; `process`: the death of the process."""

    def located(self, base: Path, environment: Mapping[str, str]) -> str | MissingVariable:
        """The place with its variables filled in and its path made whole."""
        if self.place is None:
            return str(base / DEFAULT_FILE)
        for name in _VARIABLE.findall(self.place):
            if not environment.get(name):
                return MissingVariable(name)
        place = _VARIABLE.sub(lambda match: environment[match.group(1)], self.place)
        return place if place == MEMORY or _SCHEME.match(place) else str(base / place)


@dataclass(frozen=True, slots=True)
class MissingVariable:
    """A variable of the environment that a place needs and that is not set."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencySettings:
    """`[idempotency]`: how long answers are remembered, and who must ask for it."""

    retention: float = 86400
    """Seconds for which an answer is given again."""
    lease: float = 30
    """Seconds after which another process may take over a request whose process is silent."""
    require: bool = False
    """Whether endpoints that are irreversible and not idempotent refuse requests without a key."""


def read_store(root: Table) -> StoreSettings:
    """The `[store]` table; a value that is wrong is reported and keeps its default."""
    block = root.table("store")
    if block is None:
        return StoreSettings()
    settings = StoreSettings(
        place=_read_place(block), durability=block.choice("durability", DURABILITIES) or StoreSettings().durability
    )
    block.finish()
    return settings


def read_idempotency(root: Table) -> IdempotencySettings:
    """The `[idempotency]` table; a value that is wrong is reported and keeps its default."""
    block = root.table("idempotency")
    if block is None:
        return IdempotencySettings()
    default = IdempotencySettings()
    settings = IdempotencySettings(
        retention=block.seconds("retention", "Y877", _RETENTION, default.retention),
        lease=block.seconds("lease", "Y877", _LEASE, default.lease),
        require=block.boolean("require") or False,
    )
    if settings.lease > settings.retention:
        message = f"`lease` is {settings.lease:.10g} seconds, longer than the {settings.retention:.10g} of `retention`"
        advice = "Make it shorter: a key must not be forgotten while its request is at work."
        block.findings.error("Y877", message, block.pointer("lease"), advice)
        settings = default
    block.finish()
    return settings


def _read_place(block: Table) -> str | None:
    place = block.text("place")
    if place is None:
        return None
    at, fault = block.pointer("place"), ""
    scheme = _SCHEME.match(place)
    if not place.strip():
        fault = "`place` is empty"
    elif not place.isprintable():
        fault = f"`place` holds characters that cannot be printed: {brief(place)}"
    elif scheme is not None and not place.startswith(POSTGRES):
        fault = f"no store is known by {scheme[0]}"
    if fault:
        block.findings.error("Y875", fault, at, 'Write a path, "memory" or "postgresql://...".')
        return None
    if _has_password(place):
        message = "the password of the database stands in the file, for everybody who may read it"
        advice = 'Write it like "postgresql://user:${DB_PASSWORD}@host/name", and set the variable.'
        block.findings.warning("Y876", message, at, advice)
    return place


def _has_password(place: str) -> bool:
    """Whether a place has a password that is not a variable."""
    if not place.startswith(POSTGRES):
        return False
    return any(_VARIABLE.sub("", part) for found in _PASSWORD.findall(place) for part in found)

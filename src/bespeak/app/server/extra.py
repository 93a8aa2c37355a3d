"""Optional dependencies: an import that fails names what to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bespeak.errors import ConfigError


@contextmanager
def extra_needed(what: str, extra: str, *packages: str) -> Iterator[None]:
    """Raise ConfigError with install advice if an import of one of the packages fails inside the block."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        raise ConfigError(f"{what} needs the official SDK: pip install 'bespeak[{extra}]'") from error

"""Bundled catalogs, and catalogs by reference: a bundled version or a file (AGTP-API 4.9)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.catalog.document import parse_catalog
from bespeak.contract.catalog.rules import UNREADABLE
from bespeak.contract.catalog.version import parse_version
from bespeak.contract.service import DEFAULT_CATALOG
from bespeak.errors import ContractError
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.source.span import Location

_DATA: Final = Path(__file__).with_name("data")

_MAX_BYTES: Final = 16 * 1024 * 1024
"""Size limit: the bundled catalogs have about fifty kilobytes."""


@cache
def bundled_versions() -> tuple[str, ...]:
    """Return the bundled versions, oldest first."""
    versions = (path.stem.removeprefix("methods-") for path in _DATA.glob("methods-*.json"))
    return tuple(sorted(versions, key=lambda text: parse_version(text) or (0, 0, 0)))


@cache
def load_bundled(version: str = DEFAULT_CATALOG) -> Catalog:
    """Load a bundled catalog once. Raises ContractError for a version that is not bundled."""
    if version not in bundled_versions():
        raise ContractError(f"catalog {version!r} is not bundled; available: {', '.join(bundled_versions())}")
    path = _DATA / f"methods-{version}.json"
    catalog, findings = parse_catalog(path.read_bytes(), str(path))
    if catalog is None:
        raise ContractError(f"the bundled catalog {version} is damaged", findings)
    return catalog


def versions_with(method: str) -> tuple[str, ...]:
    """Return the bundled versions with a verb, oldest first; tells a removed verb from an unknown one."""
    return tuple(version for version in bundled_versions() if method in load_bundled(version).verbs)


def open_catalog(reference: str, base: Path | None = None) -> tuple[Catalog | None, list[Diagnostic]]:
    """Open a bundled version or a catalog file; a relative path starts at `base`."""
    if reference in bundled_versions():
        return load_bundled(reference), []
    path = (base or Path()) / reference
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return None, [_unreadable(path, f"the catalog {reference[:200]!r} cannot be read: {reason}")]
    if len(data) > _MAX_BYTES:
        message = f"the catalog {reference[:200]!r} is larger than {_MAX_BYTES // 1024 // 1024} MiB"
        return None, [_unreadable(path, message)]
    return parse_catalog(data, str(path))


def _unreadable(path: Path, message: str) -> Diagnostic:
    advice = f"Give a bundled version ({', '.join(bundled_versions())}) or the path of a catalog document."
    return UNREADABLE.found(message, Location(str(path)), advice=advice)

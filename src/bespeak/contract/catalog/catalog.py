"""The catalog of approved verbs: look-up, categories, deprecation, legacy verbs (AGTP-API 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bespeak.contract.deprecation import format_warning
from bespeak.contract.grammar.near_words import NearWords


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One approved verb."""

    name: str
    categories: tuple[str, ...]
    """Categories; the first is the primary one."""
    description: str
    deprecated_in: str | None = None
    removed_in: str | None = None
    successor: str | None = None

    @property
    def warning(self) -> str | None:
        """Value of AGTP-Catalog-Warning, or None for a verb that is not deprecated (AGTP-API 4.4)."""
        return format_warning(self.successor, self.removed_in) if self.deprecated_in else None

    def to_json(self) -> dict[str, Any]:
        """Return the verb's entry in a catalog document; deprecation appears if it is set."""
        entry: dict[str, Any] = {
            "name": self.name,
            "categories": list(self.categories),
            "description": self.description,
        }
        deprecation = (
            ("deprecated_in", self.deprecated_in),
            ("removed_in", self.removed_in),
            ("successor", self.successor),
        )
        return entry | {key: value for key, value in deprecation if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyVerb:
    """An HTTP verb and the AGTP verb to use instead."""

    name: str
    preferred: str
    description: str


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """One version of the vocabulary."""

    version: str
    embedded: tuple[str, ...]
    legacy: Mapping[str, LegacyVerb]
    categories: Mapping[str, str]
    verbs: Mapping[str, Verb]

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of all approved verbs, for membership tests on the hot path and the leakage check."""
        return frozenset(self.verbs)

    def warns_of(self, method: str) -> str | None:
        """Return the warning for a method, or None (AGTP-API 4.4)."""
        verb = self.verbs.get(method)
        return verb.warning if verb is not None else None

    @cached_property
    def _near(self) -> NearWords:
        return NearWords(self.names)

    def near(self, method: str) -> list[str]:
        """Return approved verbs close to an unknown word; for a legacy verb, the one to use instead."""
        legacy = self.legacy.get(method.upper())
        return [legacy.preferred] if legacy else self._near.near(method)

    def verbs_in(self, category: str) -> list[Verb]:
        """Return the verbs of a category, primary or not, in the catalog's order."""
        return [verb for verb in self.verbs.values() if category in verb.categories]

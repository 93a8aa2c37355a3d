"""Changes between two catalogs, and whether the version number reflects them (AGTP-API 3.4, 4.1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bespeak.checks.evolution.version_bump import Bump, Step, suffices, version_step
from bespeak.contract.catalog.catalog import Catalog, Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbChange:
    """A verb that both catalogs have, before and after."""

    before: Verb
    after: Verb

    @property
    def name(self) -> str:
        """Verb; the same in both."""
        return self.after.name

    def to_json(self) -> dict[str, Any]:
        """Return both entries under the verb's name."""
        return {"name": self.name, "before": self.before.to_json(), "after": self.after.to_json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogDiff:
    """The changes from an old catalog to a new one, verbs in alphabetical order."""

    old_version: str
    new_version: str
    added: tuple[Verb, ...] = ()
    removed: tuple[Verb, ...] = ()
    """Removed verbs as the old catalog has them; a successor named there is the replacement."""
    newly_deprecated: tuple[Verb, ...] = ()
    deprecation_changed: tuple[VerbChange, ...] = ()
    """Verbs that were already deprecated: their successor or removal version changed, or the deprecation was
    withdrawn.
    """
    recategorised: tuple[VerbChange, ...] = ()
    redescribed: tuple[VerbChange, ...] = ()
    embedded_added: tuple[str, ...] = ()
    embedded_removed: tuple[str, ...] = ()
    legacy_changed: tuple[str, ...] = ()
    """Legacy verbs with another preferred verb or description."""
    categories_changed: tuple[str, ...] = ()
    """Categories that were added, removed or redefined."""

    @property
    def removed_without_warning(self) -> tuple[Verb, ...]:
        """Removed verbs that were not marked deprecated before, although AGTP-API 4.1 requires a warning."""
        return tuple(verb for verb in self.removed if verb.deprecated_in is None)

    @property
    def needed_bump(self) -> Bump:
        """Smallest version bump that the changes require."""
        if self.removed or self.embedded_removed:
            return "major"
        if self.added or self.newly_deprecated or self.deprecation_changed or self.embedded_added:
            return "minor"
        if self.recategorised or self.redescribed or self.legacy_changed or self.categories_changed:
            return "patch"
        return "none"

    @property
    def version_step(self) -> Step:
        """Actual version bump."""
        return version_step(self.old_version, self.new_version)

    @property
    def honours_semver(self) -> bool:
        """True if the version bump is at least the required one."""
        return suffices(self.version_step, self.needed_bump)

    def to_json(self) -> dict[str, Any]:
        """Return the diff as a document; `agtp-catalog-diff --json` prints it."""
        return {
            "old_version": self.old_version,
            "new_version": self.new_version,
            "added": [verb.to_json() for verb in self.added],
            "removed": [verb.to_json() for verb in self.removed],
            "removed_without_warning": [verb.name for verb in self.removed_without_warning],
            "newly_deprecated": [verb.to_json() for verb in self.newly_deprecated],
            "deprecation_changed": [change.to_json() for change in self.deprecation_changed],
            "recategorised": [change.to_json() for change in self.recategorised],
            "redescribed": [change.to_json() for change in self.redescribed],
            "embedded_added": list(self.embedded_added),
            "embedded_removed": list(self.embedded_removed),
            "legacy_changed": list(self.legacy_changed),
            "categories_changed": list(self.categories_changed),
            "needed_bump": self.needed_bump,
            "version_step": self.version_step,
            "honours_semver": self.honours_semver,
        }


def diff_catalogs(old: Catalog, new: Catalog) -> CatalogDiff:
    """Compare two catalogs. A renamed verb counts as one removed and one added."""
    kept = [VerbChange(before=old.verbs[name], after=new.verbs[name]) for name in sorted(old.names & new.names)]
    return CatalogDiff(
        old_version=old.version,
        new_version=new.version,
        added=_pick(new, new.names - old.names),
        removed=_pick(old, old.names - new.names),
        newly_deprecated=tuple(
            change.after for change in kept if change.after.deprecated_in and not change.before.deprecated_in
        ),
        deprecation_changed=tuple(
            change for change in kept if change.before.deprecated_in and _fate(change.before) != _fate(change.after)
        ),
        recategorised=tuple(change for change in kept if change.before.categories != change.after.categories),
        redescribed=tuple(change for change in kept if change.before.description != change.after.description),
        embedded_added=tuple(sorted(set(new.embedded) - set(old.embedded))),
        embedded_removed=tuple(sorted(set(old.embedded) - set(new.embedded))),
        legacy_changed=_differing(old.legacy.items(), new.legacy.items()),
        categories_changed=_differing(old.categories.items(), new.categories.items()),
    )


def _pick(catalog: Catalog, names: Iterable[str]) -> tuple[Verb, ...]:
    return tuple(catalog.verbs[name] for name in sorted(names))


def _fate(verb: Verb) -> tuple[str | None, str | None, str | None]:
    return verb.deprecated_in, verb.removed_in, verb.successor


def _differing(old: Iterable[tuple[str, object]], new: Iterable[tuple[str, object]]) -> tuple[str, ...]:
    return tuple(sorted({name for name, _ in set(old) ^ set(new)}))

"""Changes between two catalogs (AGTP-API 3.4, 4.1), and the conflicts of a deployment with the new one (4.7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, Literal

from bespeak.checks.evolution.change_report import Bump, Step, suffices, version_step
from bespeak.contract.catalog.catalog import Catalog, Verb
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.syntax import leaking_segment
from bespeak.contract.policy import Policies, Redirect
from bespeak.contract.recipe import Recipe
from bespeak.text.source.tree import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbChange:
    before: Verb
    after: Verb

    @property
    def name(self) -> str:
        return self.after.name

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "before": self.before.to_json(), "after": self.after.to_json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogDiff:
    """The changes from an old catalog to a new one, verbs in alphabetical order."""

    old_version: str
    new_version: str
    added: tuple[Verb, ...] = ()
    removed: tuple[Verb, ...] = ()  # As the old catalog has them; a successor named there is the replacement.
    newly_deprecated: tuple[Verb, ...] = ()
    deprecation_changed: tuple[VerbChange, ...] = ()
    """Deprecated verbs whose successor or removal version changed, or whose deprecation was withdrawn."""
    recategorised: tuple[VerbChange, ...] = ()
    redescribed: tuple[VerbChange, ...] = ()
    embedded_added: tuple[str, ...] = ()
    embedded_removed: tuple[str, ...] = ()
    legacy_changed: tuple[str, ...] = ()  # legacy verbs with another preferred verb or description
    categories_changed: tuple[str, ...] = ()  # categories that were added, removed or redefined

    @property
    def removed_without_warning(self) -> tuple[Verb, ...]:
        """Removed verbs that were not marked deprecated before, although AGTP-API 4.1 requires a warning."""
        return tuple(verb for verb in self.removed if verb.deprecated_in is None)

    @property
    def needed_bump(self) -> Bump:
        if self.removed or self.embedded_removed:
            return "major"
        if self.added or self.newly_deprecated or self.deprecation_changed or self.embedded_added:
            return "minor"
        if self.recategorised or self.redescribed or self.legacy_changed or self.categories_changed:
            return "patch"
        return "none"

    @property
    def version_step(self) -> Step:
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
        newly_deprecated=tuple(one.after for one in kept if one.after.deprecated_in and not one.before.deprecated_in),
        deprecation_changed=tuple(
            one for one in kept if one.before.deprecated_in and _fate(one.before) != _fate(one.after)
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


ConflictKind = Literal["path", "endpoint", "recipe", "policy", "deprecation"]


@dataclass(frozen=True, slots=True)
class CatalogConflict:
    """One part of a deployment that the new catalog touches."""

    kind: ConflictKind
    method: str  # verb that was removed, added or deprecated
    artefact: str  # part of the deployment: `endpoint BOOK /room`, `recipe trip, step 2`, `policies.methods.allow`
    message: str  # effect under the new catalog
    help: str  # advice
    breaking: bool
    location: Location | None = None

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return f"{place}{self.artefact}: {self.message} {self.help}"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "location": str(self.location) if self.location else None}


@dataclass(frozen=True, slots=True)
class _Use:
    kind: ConflictKind
    artefact: str
    method: str | None
    if_removed: str  # effect on the place when the method is removed
    path: str | None = None
    _: KW_ONLY
    calls: bool = True  # True if the method is called there, so that its deprecation matters
    breaks: bool = True
    location: Location | None = None

    def conflict(self, kind: ConflictKind, method: str, message: str, advice: str, breaking: bool) -> CatalogConflict:
        return CatalogConflict(kind, method, self.artefact, message, advice, breaking, self.location)


def scan_deployment(
    endpoints: Iterable[Endpoint], recipes: Iterable[Recipe], policies: Policies, diff: CatalogDiff
) -> list[CatalogConflict]:
    """Return every conflict of a deployment with the new catalog: endpoints, then recipes, then policies."""
    # A method the server lists as its own stays accepted, whatever the catalog says (AGTP-API 3.3).
    custom = policies.methods.custom
    removed = {verb.name: verb for verb in diff.removed if verb.name not in custom}
    deprecated = {verb.name: verb for verb in diff.newly_deprecated}
    added = frozenset(verb.name for verb in diff.added)
    conflicts: list[CatalogConflict] = []
    for use in _uses(endpoints, recipes, policies):
        if use.method in removed:
            conflicts.append(_removal(use, removed[use.method], diff.new_version))
        elif use.calls and use.method in deprecated:
            conflicts.append(_deprecation(use, deprecated[use.method], diff.new_version))
        if use.path is not None and leaking_segment(use.path, added) is not None:
            conflicts += _leaks(use, use.path, sorted(added))
    return conflicts


def _uses(endpoints: Iterable[Endpoint], recipes: Iterable[Recipe], policies: Policies) -> Iterator[_Use]:
    for endpoint in endpoints:
        yield from _endpoint_uses(endpoint)
    for recipe in recipes:
        yield from _recipe_uses(recipe)
    yield from _policy_uses(policies)


def _endpoint_uses(endpoint: Endpoint) -> Iterator[_Use]:
    named, place = f"endpoint {endpoint}", endpoint.location
    yield _Use("endpoint", named, endpoint.method, "the server will not load it.", endpoint.path, location=place)
    if endpoint.deprecated is not None and endpoint.deprecated.successor_method is not None:
        successor, effect = endpoint.deprecated.successor_method, "callers are sent to a method that no longer exists."
        yield _Use("endpoint", f"{named}, its successor", successor, effect, breaks=False, location=place)


def _recipe_uses(recipe: Recipe) -> Iterator[_Use]:
    named, place = f"recipe {recipe.name}", recipe.location
    for number, step in enumerate(recipe.steps, 1):
        where = f"{named}, step {number} ({_pair(step.method, step.path)})"
        yield _Use("recipe", where, step.method, "the recipe can no longer run.", step.path, location=place)
    if recipe.pattern:
        method, path = recipe.pattern.get("name_exact"), recipe.pattern.get("path_exact")
        effect = "its proposals are refused before the recipe is considered."
        yield _Use("recipe", f"{named}, its pattern", method, effect, path, calls=False, location=place)


def _policy_uses(policies: Policies) -> Iterator[_Use]:
    policy = policies.methods
    # AGTP-API 9.4: the server skips such an entry and goes on, so what matters is what the skip changes.
    for method in () if policy.allow == "*" else policy.allow:
        skipped = "the entry is skipped, and requests for it get 459."
        yield _Use("policy", "policies.methods.allow", method, skipped, calls=False)
    for method in policy.disallow:
        skipped = "the entry is skipped, and requests for it get 459 in place of 405."
        yield _Use("policy", "policies.methods.disallow", method, skipped, calls=False)
    for redirect in policy.redirects:
        yield from _redirect_uses(redirect)


def _redirect_uses(redirect: Redirect) -> Iterator[_Use]:
    source = _pair(redirect.from_method, redirect.from_path)
    artefact = f"policies.methods.redirects, {source} -> {_pair(redirect.to_method, redirect.to_path)}"
    skipped = "the redirect is skipped, and requests for it get 459."
    yield _Use("policy", artefact, redirect.from_method, skipped, redirect.from_path, calls=False)
    if (redirect.to_method, redirect.to_path) != (redirect.from_method, redirect.from_path):
        path = redirect.to_path if redirect.to_path != redirect.from_path else None
        skipped = f"the redirect is skipped, and {source} is no longer redirected."
        yield _Use("policy", artefact, redirect.to_method, skipped, path)


def _removal(use: _Use, verb: Verb, version: str) -> CatalogConflict:
    instead = f"Use {verb.successor} in its place" if verb.successor else "Choose another verb"
    if use.kind == "policy":
        instead = f"Name {verb.successor} in its place, drop the entry" if verb.successor else "Drop the entry"
    message = f"{verb.name} is not in catalog {version}: {use.if_removed}"
    advice = f"{instead}, or list {verb.name} in policies.methods.custom to keep it as a method of your own."
    return use.conflict(use.kind, verb.name, message, advice, breaking=use.breaks)


def _deprecation(use: _Use, verb: Verb, version: str) -> CatalogConflict:
    until = f" and will be removed in {verb.removed_in}" if verb.removed_in else ""
    message = f"{verb.name} is deprecated in catalog {version}{until}."
    advice = f"Move to {verb.successor}." if verb.successor else "Plan to move to another verb."
    return use.conflict("deprecation", verb.name, message, advice, breaking=False)


def _leaks(use: _Use, path: str, added: Iterable[str]) -> Iterator[CatalogConflict]:
    for name in added:
        if (segment := leaking_segment(path, (name,))) is not None:
            message = f"the segment {segment!r} of {path} is the new verb {name}: requests for the path get 460."
            advice = "Rename the segment; a plural or a longer noun will do."
            yield use.conflict("path", name, message, advice, breaking=True)


def _pair(method: str, path: str | None) -> str:
    return f"{method} {path}" if path else method

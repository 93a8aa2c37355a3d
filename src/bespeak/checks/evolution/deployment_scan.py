"""Conflicts of a deployment with a new catalog, of every kind that AGTP-API 4.7 names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from bespeak.checks.evolution.catalog_diff import CatalogDiff
from bespeak.contract.catalog.catalog import Verb
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar.path_syntax import leaking_segment
from bespeak.contract.policy import Policies, Redirect
from bespeak.contract.recipe import Recipe
from bespeak.text.source.span import Location

ConflictKind = Literal["path", "endpoint", "recipe", "policy", "deprecation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogConflict:
    """One part of a deployment that the new catalog touches."""

    kind: ConflictKind
    method: str
    """Verb that was removed, added or deprecated."""
    artefact: str
    """Part of the deployment: `endpoint BOOK /room`, `recipe trip, step 2`, `policies.methods.allow`."""
    message: str
    """Effect under the new catalog."""
    help: str
    """Advice."""
    breaking: bool
    location: Location | None = None

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return f"{place}{self.artefact}: {self.message} {self.help}"

    def to_json(self) -> dict[str, Any]:
        """Return the conflict as data, with its place as text."""
        return {**asdict(self), "location": str(self.location) if self.location else None}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Use:
    """A place in a deployment that names a method, a path or both."""

    kind: ConflictKind
    artefact: str
    method: str | None
    path: str | None = None
    if_removed: str
    """Effect on the place when the method is removed."""
    calls: bool = True
    """True if the method is called there, so that its deprecation matters."""
    breaks: bool = True
    location: Location | None = None


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
    yield _Use(
        kind="endpoint",
        artefact=f"endpoint {endpoint}",
        method=endpoint.method,
        path=endpoint.path,
        if_removed="the server will not load it.",
        location=endpoint.location,
    )
    if endpoint.deprecated is not None and endpoint.deprecated.successor_method is not None:
        yield _Use(
            kind="endpoint",
            artefact=f"endpoint {endpoint}, its successor",
            method=endpoint.deprecated.successor_method,
            if_removed="callers are sent to a method that no longer exists.",
            breaks=False,
            location=endpoint.location,
        )


def _recipe_uses(recipe: Recipe) -> Iterator[_Use]:
    for number, step in enumerate(recipe.steps, 1):
        yield _Use(
            kind="recipe",
            artefact=f"recipe {recipe.name}, step {number} ({_pair(step.method, step.path)})",
            method=step.method,
            path=step.path,
            if_removed="the recipe can no longer run.",
            location=recipe.location,
        )
    if recipe.pattern:
        yield _Use(
            kind="recipe",
            artefact=f"recipe {recipe.name}, its pattern",
            method=recipe.pattern.get("name_exact"),
            path=recipe.pattern.get("path_exact"),
            if_removed="its proposals are refused before the recipe is considered.",
            calls=False,
            location=recipe.location,
        )


def _policy_uses(policies: Policies) -> Iterator[_Use]:
    policy = policies.methods
    # AGTP-API 9.4: the server skips such an entry and goes on, so what matters is what the skip changes.
    for method in () if policy.allow == "*" else policy.allow:
        skipped = "the entry is skipped, and requests for it get 459."
        yield _Use(kind="policy", artefact="policies.methods.allow", method=method, if_removed=skipped, calls=False)
    for method in policy.disallow:
        skipped = "the entry is skipped, and requests for it get 459 in place of 405."
        yield _Use(kind="policy", artefact="policies.methods.disallow", method=method, if_removed=skipped, calls=False)
    for redirect in policy.redirects:
        yield from _redirect_uses(redirect)


def _redirect_uses(redirect: Redirect) -> Iterator[_Use]:
    source = _pair(redirect.from_method, redirect.from_path)
    artefact = f"policies.methods.redirects, {source} -> {_pair(redirect.to_method, redirect.to_path)}"
    yield _Use(
        kind="policy",
        artefact=artefact,
        method=redirect.from_method,
        path=redirect.from_path,
        if_removed="the redirect is skipped, and requests for it get 459.",
        calls=False,
    )
    if (redirect.to_method, redirect.to_path) != (redirect.from_method, redirect.from_path):
        yield _Use(
            kind="policy",
            artefact=artefact,
            method=redirect.to_method,
            path=redirect.to_path if redirect.to_path != redirect.from_path else None,
            if_removed=f"the redirect is skipped, and {source} is no longer redirected.",
        )


def _removal(use: _Use, verb: Verb, version: str) -> CatalogConflict:
    instead = f"Use {verb.successor} in its place" if verb.successor else "Choose another verb"
    if use.kind == "policy":
        instead = f"Name {verb.successor} in its place, drop the entry" if verb.successor else "Drop the entry"
    return CatalogConflict(
        kind=use.kind,
        method=verb.name,
        artefact=use.artefact,
        message=f"{verb.name} is not in catalog {version}: {use.if_removed}",
        help=f"{instead}, or list {verb.name} in policies.methods.custom to keep it as a method of your own.",
        breaking=use.breaks,
        location=use.location,
    )


def _deprecation(use: _Use, verb: Verb, version: str) -> CatalogConflict:
    until = f" and will be removed in {verb.removed_in}" if verb.removed_in else ""
    return CatalogConflict(
        kind="deprecation",
        method=verb.name,
        artefact=use.artefact,
        message=f"{verb.name} is deprecated in catalog {version}{until}.",
        help=f"Move to {verb.successor}." if verb.successor else "Plan to move to another verb.",
        breaking=False,
        location=use.location,
    )


def _leaks(use: _Use, path: str, added: Iterable[str]) -> Iterator[CatalogConflict]:
    for name in added:
        segment = leaking_segment(path, (name,))
        if segment is not None:
            yield CatalogConflict(
                kind="path",
                method=name,
                artefact=use.artefact,
                message=f"the segment {segment!r} of {path} is the new verb {name}: requests for the path get 460.",
                help="Rename the segment; a plural or a longer noun will do.",
                breaking=True,
                location=use.location,
            )


def _pair(method: str, path: str | None) -> str:
    return f"{method} {path}" if path else method

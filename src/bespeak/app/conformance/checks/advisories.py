"""Items 11 and 12: deprecation warnings on every response, including refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.app.conformance.check import (
    Check,
    Outcome,
    all_of,
    could_not_tell,
    failed,
    not_applicable,
    passed,
    undecided,
    warned,
)
from bespeak.app.conformance.probe import Exchanged
from bespeak.app.conformance.published import is_safe, mapping, valid_input
from bespeak.app.conformance.subject import PROBE_FIELD, Subject
from bespeak.contract.catalog.bundled import bundled_versions, load_bundled
from bespeak.contract.deprecation import format_warning

_TRIED: Final = 40

_KEYS: Final = ("successor", "removed_in")


def _parse(warning: str | None) -> Mapping[str, str] | None:
    """Return the parameters of `deprecated; successor=NAME; removed_in=VERSION`; None if it is written otherwise."""
    word, *parts = (part.strip() for part in (warning or "").split(";"))
    pairs = [part.partition("=") for part in parts]
    if word != "deprecated" or any(not equals or not value.strip() for _, equals, value in pairs):
        return None
    return {name.strip(): value.strip() for name, _, value in pairs}


def _same(warning: str | None, expected: str) -> bool:
    """Return True if two warnings say the same, in any order and spacing of their parameters."""
    given, wanted = _parse(warning), _parse(expected)
    return given is not None and wanted is not None and all(given.get(key) == wanted.get(key) for key in _KEYS)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _expected(endpoint: Mapping[str, Any]) -> str:
    block = mapping(endpoint.get("deprecated"))
    successor = mapping(block.get("successor"))
    parts = [part for part in (_text(successor.get("method")), _text(successor.get("path"))) if part]
    return format_warning(" ".join(parts) or None, _text(block.get("removed_in")))


async def _endpoint_warning(subject: Subject) -> Outcome:
    deprecated = [endpoint for endpoint in subject.endpoints if isinstance(endpoint.get("deprecated"), dict)]
    if not deprecated:
        return not_applicable("no endpoint is deprecated")
    found = []
    for endpoint in [endpoint for endpoint in deprecated if is_safe(endpoint)][:_TRIED]:
        found.append(_warns(endpoint, await subject.call(endpoint, {PROBE_FIELD: True})))
        given = valid_input(endpoint)
        if given is not None:  # success and failure alike
            found.append(_warns(endpoint, await subject.call(endpoint, given)))
    return all_of(found) if found else could_not_tell("no deprecated endpoint can be called without side effects")


def _warns(endpoint: Mapping[str, Any], seen: Exchanged) -> Outcome:
    warning, expected = seen.header("AGTP-Endpoint-Warning"), _expected(endpoint)
    if _same(warning, expected):
        return passed(seen)
    blocked = undecided(seen) if warning is None else None
    return blocked or failed(f"AGTP-Endpoint-Warning is {warning!r}, expected {expected!r}", seen)


async def _seen_catalog_warnings(subject: Subject) -> Outcome:
    """Call each bound verb once and judge the warnings: a manifest does not say which verbs are deprecated."""
    tried: set[str] = set()
    found = []
    for endpoint in subject.endpoints:
        if endpoint["method"] in tried or not is_safe(endpoint) or len(tried) == _TRIED:
            continue
        tried.add(endpoint["method"])
        seen = await subject.call(endpoint, {PROBE_FIELD: True})
        if seen.status == 459:
            found.append(failed(f"{endpoint['method']} is published by an endpoint, yet answered with 459", seen))
        warning = seen.header("AGTP-Catalog-Warning")
        if warning is not None:
            well_formed = _parse(warning) is not None
            found.append(passed(seen) if well_formed else failed(f"AGTP-Catalog-Warning is {warning!r}", seen))
    return all_of(found) if found else not_applicable("no answer carries a catalog warning")


async def _known_deprecated_verbs(subject: Subject) -> Outcome:
    version = subject.manifest.get("catalog_version")
    if version not in bundled_versions():
        return not_applicable(f"the catalog {version!r} is unknown to bespeak")
    deprecated = [verb for verb in load_bundled(version).verbs.values() if verb.warning is not None]
    found = []
    for verb in deprecated[:_TRIED]:
        seen = await subject.ask(verb.name, subject.missing_path)
        if _same(seen.header("AGTP-Catalog-Warning"), verb.warning or "") and seen.status != 459:
            found.append(passed(seen))
        else:
            # Another publisher's catalog may have the same version, so this is only a warning.
            note = f"bespeak's catalog {version} has {verb.warning!r} for {verb.name}"
            found.append(undecided(seen) or warned(note, seen))
    return all_of(found) if found else not_applicable(f"no verb of catalog {version} is deprecated")


CHECKS: Final = (
    Check("13.1-11a", "catalog warnings are well formed and never come with 459", "4.4", _seen_catalog_warnings),
    Check("13.1-11b", "verbs known to be deprecated are answered with a warning", "4.4", _known_deprecated_verbs),
    Check("13.1-12a", "answers of deprecated endpoints carry AGTP-Endpoint-Warning", "6.4", _endpoint_warning),
)

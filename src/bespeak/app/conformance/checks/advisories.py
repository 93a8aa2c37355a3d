"""Items 11 and 12: deprecation warnings on every response, including refusals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bespeak.app.conformance.check import (
    Check,
    Outcome,
    all_of,
    failed,
    not_applicable,
    passed,
    skipped,
    turned_down,
    warned,
)
from bespeak.app.conformance.subject import PROBE_FIELD, Subject, is_safe, mapping
from bespeak.contract.catalog.bundled import bundled_versions, load_bundled
from bespeak.contract.deprecation import format_warning

_TRIED: Final = 40

_WARNING: Final = "deprecated"


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
        seen = await subject.call(endpoint, {PROBE_FIELD: True})
        warning, expected = seen.header("AGTP-Endpoint-Warning"), _expected(endpoint)
        if warning == expected:
            found.append(passed(seen))
        elif warning is None and seen.refuses_identity:
            found.append(turned_down(seen))
        else:
            found.append(failed(f"AGTP-Endpoint-Warning is {warning!r}, expected {expected!r}", seen))
    return all_of(found) if found else skipped("no deprecated endpoint can be called without side effects")


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
            well_formed = warning.split(";")[0].strip() == _WARNING
            found.append(passed(seen) if well_formed else failed(f"AGTP-Catalog-Warning is {warning!r}", seen))
    return all_of(found) if found else not_applicable("no answer carries a catalog warning")


async def _known_deprecated_verbs(subject: Subject) -> Outcome:
    version = subject.manifest.get("catalog_version")
    if version not in bundled_versions():
        return not_applicable(f"the catalog {version!r} is unknown to bespeak")
    deprecated = [verb for verb in load_bundled(version).verbs.values() if verb.warning is not None]
    found = []
    for verb in deprecated[:_TRIED]:
        seen = await subject.ask(verb.name, "/zz-no-such-thing")
        warning = seen.header("AGTP-Catalog-Warning")
        if warning == verb.warning and seen.status != 459:
            found.append(passed(seen))
        elif seen.refuses_identity:
            found.append(turned_down(seen))
        else:
            # Another publisher's catalog may have the same version, so this is only a warning.
            found.append(warned(f"bespeak's catalog {version} has {verb.warning!r} for {verb.name}", seen))
    return all_of(found) if found else not_applicable(f"no verb of catalog {version} is deprecated")


CHECKS: Final = (
    Check("13.1-11a", "catalog warnings are well formed and never come with 459", "4.4", _seen_catalog_warnings),
    Check("13.1-11b", "verbs known to be deprecated are answered with a warning", "4.4", _known_deprecated_verbs),
    Check("13.1-12a", "answers of deprecated endpoints carry AGTP-Endpoint-Warning", "6.4", _endpoint_warning),
)

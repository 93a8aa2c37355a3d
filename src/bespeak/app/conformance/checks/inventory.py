"""Item 13: DISCOVER /methods."""

from __future__ import annotations

from typing import Final

from bespeak.app.conformance.check import Check, Outcome, could_not_tell, expect, failed, faults, passed
from bespeak.app.conformance.published import mapping, objects
from bespeak.app.conformance.subject import Subject


async def _is_exposed(subject: Subject) -> Outcome:
    return expect(subject.inventory_answer, 200)


async def _is_an_array(subject: Subject) -> Outcome:
    seen = subject.inventory_answer
    if seen.status != 200:
        return could_not_tell("no inventory was returned")
    if isinstance(seen.json, list):
        return passed(seen)
    return failed("the body is not a JSON array", seen)


async def _is_complete(subject: Subject) -> Outcome:
    seen = subject.inventory_answer
    if seen.status != 200:
        return could_not_tell("no inventory was returned")
    # The object form of the reference implementation is reported by the previous check.
    entries = list(objects(seen.json if isinstance(seen.json, list) else mapping(seen.json).get("methods")))
    wrong = [
        f"an entry has no {name}"
        for name in ("method", "path", "description")
        if not all(isinstance(entry.get(name), str) for entry in entries)
    ]
    listed = {(str(entry.get("method")), str(entry.get("path"))) for entry in entries}
    published = {(endpoint["method"], endpoint["path"]) for endpoint in subject.endpoints}
    wrong += [f"{method} {path} is missing" for method, path in sorted({*published, ("DISCOVER", "/methods")} - listed)]
    return faults(wrong, seen)


async def _is_published(subject: Subject) -> Outcome:
    if any((endpoint["method"], endpoint["path"]) == ("DISCOVER", "/methods") for endpoint in subject.endpoints):
        return passed()
    return failed("the manifest does not list DISCOVER /methods among its endpoints")


CHECKS: Final = (
    Check("13.1-13a", "DISCOVER /methods is answered", "5.8", _is_exposed, needs_manifest=False),
    Check("13.1-13b", "the inventory is a JSON array", "5.8", _is_an_array, needs_manifest=False),
    Check("13.1-13c", "the inventory lists every endpoint and itself", "5.8", _is_complete),
    Check("13.1-13d", "the manifest lists DISCOVER /methods", "5.8", _is_published),
)

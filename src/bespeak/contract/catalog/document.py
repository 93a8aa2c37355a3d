"""Catalog documents: JSON to a Catalog, with a finding for each fault (AGTP-API 3.1, 4)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from bespeak.contract.catalog.catalog import Catalog, LegacyVerb, Verb, Version, parse_version
from bespeak.contract.grammar.syntax import is_method_name
from bespeak.contract.policy import FLOOR_METHODS, LEGACY_VERBS
from bespeak.contract.service import DEFAULT_CATALOG
from bespeak.errors import ContractError
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, brief
from bespeak.text.reading.json_data import decode_json
from bespeak.text.source.pointer import pointer
from bespeak.text.source.tree import Location

NOT_JSON: Final = Rule("V551", "catalog-malformed", "MUST", "AGTP-API 4.2")
MISSING_KEY: Final = Rule("V552", "catalog-missing-key", "MUST", "AGTP-API 4.2")
WRONG_TYPE: Final = Rule("V553", "catalog-wrong-value", "MUST", "AGTP-API 4.2")
BAD_NAME: Final = Rule("V554", "catalog-verb-name", "MUST", "AGTP-API 4.2")
UNKNOWN_CATEGORY: Final = Rule("V555", "catalog-unknown-category", "MUST", "AGTP-API 4.2")
UNKNOWN_VERB: Final = Rule("V556", "catalog-unknown-verb", "MUST", "AGTP-API 4.2")
BAD_VERSION: Final = Rule("V557", "catalog-version", "MUST", "AGTP-API 4.2")
FLOOR_INCOMPLETE: Final = Rule("V558", "catalog-floor-incomplete", "MUST", "AGTP-API 4.2")
LEGACY_SET: Final = Rule("V559", "catalog-legacy-verbs", "MUST", "AGTP-API 4.2")
UNKNOWN_KEY: Final = Rule("V560", "catalog-unknown-key", "SHOULD", "AGTP-API 4.2")
ODD_DEPRECATION: Final = Rule("V561", "catalog-odd-deprecation", "SHOULD", "AGTP-API 4.2")
UNREADABLE: Final = Rule("V562", "catalog-unreadable", "MUST", "AGTP-API 4.2")

_DOCUMENT_KEYS: Final = frozenset({"version", "embedded", "legacy", "categories", "verbs", "methods", "$schema"})
_VERB_KEYS: Final = frozenset({"categories", "description", "deprecated_in", "removed_in", "successor"})
_KINDS: Final[Mapping[type, str]] = {str: "a text", list: "a list", dict: "an object"}
_MAX_REPORTED: Final = 100  # limit of reported findings per document
_T = TypeVar("_T")
_At = tuple[str | int, ...]


def parse_catalog(data: bytes | str, origin: str) -> tuple[Catalog | None, list[Diagnostic]]:
    """Parse a catalog document and return its findings. Any error means no catalog."""
    reader = _CatalogReader(origin)
    tree = reader.decode(data)
    catalog = reader.catalog(tree) if tree is not None else None
    return (None if reader.errors else catalog), reader.errors + reader.warnings


class _CatalogReader:
    """Walks one document and collects findings."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self.errors: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []

    def _report(
        self, rule: Rule, message: str, at: _At = (), advice: str = "", *, location: Location | None = None
    ) -> None:
        self._add(rule.found(message, location or Location(self._origin), pointer(at), advice))

    def _add(self, finding: Diagnostic) -> None:
        findings = self.errors if finding.severity == "error" else self.warnings
        if len(findings) < _MAX_REPORTED:
            findings.append(finding)

    def decode(self, data: bytes | str) -> dict[str, Any] | None:
        try:
            tree = decode_json(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            location, reason = _fault_of(data, self._origin, error)
            self._report(NOT_JSON, f"the document is not JSON: {reason}", location=location)
            return None
        if not isinstance(tree, dict):
            self._report(WRONG_TYPE, f"a catalog is an object, not {brief(tree)}")
            return None
        return tree

    def catalog(self, tree: Mapping[str, Any]) -> Catalog | None:
        """Read the whole document; return None if a top-level key is not valid."""
        self._unknown_keys(tree, _DOCUMENT_KEYS, ())
        version = self._version(tree, "version", ())
        categories = self._member(tree, "categories", dict, ())
        verbs_key = self._verbs_key(tree)
        entries = self._member(tree, verbs_key, dict, ()) if verbs_key else None
        legacy_entries = self._member(tree, "legacy", dict, ())
        embedded = self._member(tree, "embedded", list, ())
        if categories is not None:
            for name in categories:
                self._member(categories, name, str, ("categories",))
        if version is None or categories is None or entries is None or legacy_entries is None or embedded is None:
            return None
        verbs = {
            name: verb
            for name, entry in entries.items()
            if (verb := self._verb(name, entry, categories, (verbs_key, name))) is not None
        }
        for verb in verbs.values():
            self._deprecation(verb, entries, version[1], (verbs_key, verb.name))
        self._embedded(embedded, entries)
        legacy = self._legacy(legacy_entries, entries)
        return Catalog(version=version[0], embedded=tuple(embedded), legacy=legacy, categories=categories, verbs=verbs)

    def _verbs_key(self, tree: Mapping[str, Any]) -> str:
        # AGTP-API 3.1 calls the key `verbs`; the catalog published at agtp.io calls it `methods`.
        if "verbs" in tree and "methods" in tree:
            message, advice = "the document has both 'verbs' and 'methods'", "Keep 'verbs': they mean the same."
            self._add(UNKNOWN_KEY.found(message, Location(self._origin), "", advice, severity="error"))
            return ""
        return "methods" if "methods" in tree else "verbs"

    def _verb(self, name: str, entry: Any, categories: Collection[str], at: _At) -> Verb | None:
        if not is_method_name(name):
            self._report(BAD_NAME, f"{brief(name)} is not a valid verb: 3 to 32 capital letters A to Z", at)
        elif name in LEGACY_VERBS:
            self._report(BAD_NAME, f"{name} is an HTTP method name", at, "It belongs under 'legacy'.")
        if not self._is(entry, dict, "the entry of a verb", at):
            return None
        self._unknown_keys(entry, _VERB_KEYS, at)
        kinds = self._categories(entry, categories, at)
        description = self._member(entry, "description", str, at)
        versions = (self._version(entry, key, at) if key in entry else None for key in ("deprecated_in", "removed_in"))
        deprecated_in, removed_in = (version and version[0] for version in versions)
        return Verb(
            name=name,
            categories=kinds,
            description=description or "",
            deprecated_in=deprecated_in,
            removed_in=removed_in,
            successor=self._member(entry, "successor", str, at) if "successor" in entry else None,
        )

    def _categories(self, entry: Mapping[str, Any], known: Collection[str], at: _At) -> tuple[str, ...]:
        listed = self._member(entry, "categories", list, at)
        if listed is None:
            return ()
        if not listed:
            self._report(WRONG_TYPE, "a verb has at least one category", (*at, "categories"))
        for index, category in enumerate(listed):
            place = (*at, "categories", index)
            if self._is(category, str, "a category", place) and category not in known:
                message = f"{brief(category)} is not one of the document's categories"
                self._report(UNKNOWN_CATEGORY, message, place, f"Known: {', '.join(sorted(known))}")
        return tuple(listed)

    def _deprecation(self, verb: Verb, verbs: Collection[str], version: Version, at: _At) -> None:
        if verb.successor is not None and (verb.successor not in verbs or verb.successor == verb.name):
            message = f"the successor {brief(verb.successor)} is not another verb of this catalog"
            advice = "Name a verb to migrate to, or leave 'successor' out."
            self._report(UNKNOWN_VERB, message, (*at, "successor"), advice)
        if verb.deprecated_in is None:
            if verb.removed_in is not None or verb.successor is not None:
                self._odd(f"{verb.name} is not deprecated, so 'removed_in' and 'successor' have no effect", at)
            return
        since = parse_version(verb.deprecated_in)
        until = parse_version(verb.removed_in) if verb.removed_in else None
        if since is not None and since > version:
            self._odd(f"{verb.name} is deprecated in {verb.deprecated_in}, after this version of the catalog", at)
        if until is not None and until <= version:
            self._odd(f"{verb.name} was to be removed in {verb.removed_in} but is still listed", at)

    def _odd(self, message: str, at: _At) -> None:
        self._report(ODD_DEPRECATION, message, at)

    def _embedded(self, embedded: list[Any], verbs: Collection[str]) -> None:
        for index, name in enumerate(embedded):
            at: _At = ("embedded", index)
            if self._is(name, str, "an embedded verb", at) and name not in verbs:
                self._report(UNKNOWN_VERB, f"the embedded verb {brief(name)} is missing from the verbs", at)
        absent = [name for name in FLOOR_METHODS if name not in embedded]
        if absent:
            message = f"the floor methods every server supports lack {', '.join(absent)}"
            advice = "AGTP-API 3.1 lists twelve; a catalog may embed more, never fewer."
            self._report(FLOOR_INCOMPLETE, message, ("embedded",), advice)

    def _legacy(self, entries: Mapping[str, Any], verbs: Collection[str]) -> dict[str, LegacyVerb]:
        if wrong := sorted(set(entries) ^ set(LEGACY_VERBS)):
            message = f"the legacy verbs are exactly {', '.join(LEGACY_VERBS)}; too many or missing: {brief(wrong)}"
            self._report(LEGACY_SET, message, ("legacy",))
        legacy: dict[str, LegacyVerb] = {}
        for name, entry in entries.items():
            at: _At = ("legacy", name)
            if not self._is(entry, dict, "the entry of a legacy verb", at):
                continue
            self._unknown_keys(entry, {"preferred", "description"}, at)
            preferred = self._member(entry, "preferred", str, at)
            description = self._member(entry, "description", str, at)
            if preferred is not None and preferred not in verbs:
                message = f"the preferred verb {brief(preferred)} is not in the catalog"
                self._report(UNKNOWN_VERB, message, (*at, "preferred"))
            legacy[name] = LegacyVerb(name=name, preferred=preferred or "", description=description or "")
        return legacy

    def _version(self, node: Mapping[str, Any], key: str, at: _At) -> tuple[str, Version] | None:
        text = self._member(node, key, str, at)
        if text is None:
            return None
        version = parse_version(text)
        if version is None:
            self._report(BAD_VERSION, f"{brief(text)} is not a valid version", (*at, key), "Write '1.0.0'.")
            return None
        return text, version

    def _member(self, node: Mapping[str, Any], key: str, kind: type[_T], at: _At) -> _T | None:
        if key not in node:
            self._report(MISSING_KEY, f"the key {key!r} is missing", at)
            return None
        value = node[key]
        if not isinstance(value, kind):
            self._is(value, kind, brief(key), (*at, key))
            return None
        if value == "":
            self._report(WRONG_TYPE, f"{brief(key)} is empty", (*at, key))
            return None
        return value

    def _is(self, value: object, kind: type[_T], what: str, at: _At) -> bool:
        if isinstance(value, kind):
            return True
        self._report(WRONG_TYPE, f"{what} is {_KINDS[kind]}, not {brief(value)}", at)
        return False

    def _unknown_keys(self, node: Mapping[str, Any], known: Collection[str], at: _At) -> None:
        for key in node:
            if key not in known:
                self._report(UNKNOWN_KEY, f"the key {brief(key)} is unknown and ignored", at)


def _fault_of(data: bytes | str, origin: str, error: Exception) -> tuple[Location, str]:
    """Return the place of a JSON syntax error. Only the slower decoder of the standard library reports the line."""
    try:
        json.loads(data)
    except json.JSONDecodeError as fault:
        return Location(origin, fault.lineno, fault.colno), fault.msg
    except RecursionError:
        return Location(origin), "it is nested too deeply"
    except ValueError as fault:
        return Location(origin), str(fault)
    return Location(origin), str(error)


_DATA: Final = Path(__file__).with_name("data")
_MAX_BYTES: Final = 16 * 1024 * 1024  # size limit: the bundled catalogs have about fifty kilobytes


@cache
def bundled_versions() -> tuple[str, ...]:
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

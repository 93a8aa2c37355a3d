"""Baseline file: fingerprints of accepted findings, stable when lines move, so that only new ones are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, Final

from bespeak.errors import ConfigError
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule
from bespeak.text.diagnostics.report import Finding
from bespeak.text.reading.json_data import decode_json
from bespeak.text.source.pointer import unescaped
from bespeak.text.source.tree import Location

NAME: Final = "bespeak-baseline.json"

STALE: Final = Rule("D193", "stale-baseline", "SHOULD", "bespeak")

_FORMAT: Final = 1
_MAX_BYTES: Final = 1 << 25

Entries = dict[str, dict[str, str]]  # By fingerprint: rule, file, pointer and message, for people who read the file.


class Baseline:
    def __init__(self, path: Path, entries: Entries) -> None:
        self.path = path
        self.entries = entries

    def split(
        self, findings: Iterable[Finding], kept: Callable[[str], bool] = lambda _: False
    ) -> tuple[list[Finding], set[str]]:
        """Return the new findings, and the fingerprints of the others. Findings of `kept` rules are always new."""
        new: list[Finding] = []
        known: set[str] = set()
        for finding in findings:
            if finding.fingerprint in self.entries and not kept(finding.diagnostic.rule):
                known.add(finding.fingerprint)
            else:
                new.append(finding)
        return new, known

    def stale(self, present: Collection[str], files: Collection[str], root: Path) -> list[Diagnostic]:
        """Report the entries without a finding in files that were checked or no longer exist."""
        return [
            STALE.found(
                f"the baseline lists {entry.get('rule')} in {entry.get('file')}, which no longer occurs",
                Location(str(self.path)),
                f"/findings/{fingerprint}",
                "Run `bespeak lint --write-baseline`.",
            )
            for fingerprint, entry in self.entries.items()
            if fingerprint not in present and _is_over(entry, files, root)
        ]

    def merged(self, findings: Iterable[tuple[Finding, str]], files: Collection[str], root: Path) -> Baseline:
        """Return the baseline with the findings of this run, each with its file, and the entries of other files."""
        entries = {name: entry for name, entry in self.entries.items() if not _is_over(entry, files, root)}
        for finding, file in findings:
            one = finding.diagnostic
            entry = {"rule": one.rule, "file": file, "pointer": one.pointer, "message": one.message}
            entries[finding.fingerprint] = entry
        return Baseline(self.path, entries)

    def write(self) -> None:
        """Write the file in a stable order, to keep its diffs small."""
        ordered = sorted(
            self.entries.items(),
            key=lambda pair: (pair[1].get("file", ""), pair[1].get("rule", ""), pair[1].get("pointer", ""), pair[0]),
        )
        text = json.dumps({"format": _FORMAT, "findings": dict(ordered)}, indent=2)
        try:
            self.path.write_text(f"{text}\n", "utf-8")
        except OSError as error:
            raise ConfigError(f"the baseline {self.path} cannot be written: {error.strerror or error}") from error


def read_baseline(path: Path) -> Baseline:
    """Read a baseline file. Raises ConfigError if it is not valid."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        document: Any = decode_json(data) if len(data) <= _MAX_BYTES else None
    except OSError as error:
        raise ConfigError(f"the baseline {path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the baseline {path} is not JSON. Recreate it with --write-baseline.") from error
    found = document.get("findings") if isinstance(document, dict) and document.get("format") == _FORMAT else None
    if not isinstance(found, dict):
        raise ConfigError(f"{path} is not a baseline of this version. Recreate it with --write-baseline.")
    entries = {
        name: {key: str(value) for key, value in entry.items()} if isinstance(entry, dict) else {}
        for name, entry in found.items()
    }
    return Baseline(path, entries)


def _is_over(entry: dict[str, str], files: Collection[str], root: Path) -> bool:
    """Return True if this run has checked the file of an entry, or the file no longer exists."""
    file = entry.get("file", "")
    if file in files:
        return True
    if "://" in file:
        return False  # fetched by another run
    try:
        return not (root / file).exists()
    except (OSError, ValueError):
        return True


_PLACE: Final = re.compile(r":[0-9]+(?::[0-9]+)?")
_NAMES: Final = ("name", "id", "key", "verb", "from_method")  # keys whose value identifies an item of a list


def fingerprint(finding: Diagnostic, file: str, data: Any) -> str:
    """Compute the fingerprint of a finding from the path of its file, relative to the project, and the file's data."""
    from hashlib import sha256  # noqa: PLC0415 - brings OpenSSL, and many runs find nothing

    said = _PLACE.sub("", " ".join(finding.message.split()))
    parts = (finding.rule, file, stable_pointer(finding.pointer, data), said)
    return sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:20]


def stable_pointer(pointer: str, data: Any) -> str:
    """Replace the indexes in a pointer by the names of the items."""
    here = data
    parts: list[str] = []
    for part in pointer.split("/")[1:]:
        if isinstance(here, list):
            here = here[int(part)] if part.isdecimal() and len(part) < 10 and int(part) < len(here) else None
            parts.append(_identity(here) or part)
        else:
            here = here.get(unescaped(part)) if isinstance(here, dict) else None
            parts.append(part)
    return "/".join(("", *parts)) if parts else ""


def _identity(item: Any) -> str:
    if isinstance(item, str):
        return f"[{item[:200]}]"
    if not isinstance(item, dict):
        return ""
    method, path = item.get("method"), item.get("path")
    if isinstance(method, str) and isinstance(path, str):
        return f"[{method} {path}]"
    return next((f"[{item[key]}]" for key in _NAMES if isinstance(item.get(key), str)), "")

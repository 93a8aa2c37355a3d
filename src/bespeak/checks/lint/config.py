"""What an author wants of lint: `[lint]` in bespeak.toml, or `[tool.bespeak.lint]` in pyproject.toml."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, get_args

from bespeak.checks.lint.path_pattern import matches
from bespeak.checks.lint.registry import all_rules, near_rules
from bespeak.checks.lint.selection import ALL, means_any
from bespeak.errors import ConfigError, ContractError
from bespeak.text.diagnostics.brief import brief
from bespeak.text.diagnostics.diagnostic import Diagnostic, Severity
from bespeak.text.reading.rules import WRONG_CHOICE
from bespeak.text.reading.table import Table
from bespeak.text.reading.text_file import read_text, toml_table

FILES: Final = ("bespeak.toml", "pyproject.toml")
"""Where settings may stand; in one folder the first of them wins."""

_SEVERITIES: Final[tuple[str, ...]] = get_args(Severity)
_LEVELS: Final = (1, 2)


@dataclass(frozen=True, slots=True)
class PathIgnore:
    """Rules that are off for some files, or for a part of them."""

    pattern: str
    pointer: str
    """The part; empty for all of the file."""
    selectors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings that hold for a file. Paths and patterns start at `base`."""

    file: Path | None = None
    base: Path = field(default_factory=Path)
    select: tuple[str, ...] = (ALL,)
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    severity: Mapping[str, Severity] = field(default_factory=dict)
    per_path_ignores: tuple[PathIgnore, ...] = ()
    exclude: tuple[str, ...] = ()
    conformance: bool = False
    """Whether what the drafts demand is reported as it is, whatever else is said."""
    conformance_level: int = 1
    allowed_verbs: tuple[str, ...] = ()
    allowed_segments: tuple[str, ...] = ()
    catalog: str | None = None
    fail_on: Severity = "error"
    require_reason: bool = False

    def excludes(self, path: Path) -> bool:
        """Whether a file or folder that was come across is left out."""
        return bool(self.exclude) and any(matches(pattern, self.relative(path)) for pattern in self.exclude)

    def relative(self, path: Path) -> str:
        """A path as patterns see it."""
        return relative_to(path, self.base)


class Configs:
    """The settings of every file of a run: those of the nearest folder above it that has any, else the run's own."""

    def __init__(self, here: Path, *, file: Path | None = None, isolated: bool = False) -> None:
        self._fixed = isolated or file is not None
        self._found: dict[Path, Config | None] = {}
        self.run = Config(base=here)
        """What holds for files that have no settings of their own above them."""
        if file is not None:
            config = read_config(file)
            if config is None:
                raise ConfigError(
                    f"{file} has no settings for lint: write [lint], or [tool.bespeak.lint] in pyproject."
                )
            self.run = config
        elif not isolated:
            self.run = self._above(here) or self.run

    def of(self, folder: Path) -> Config:
        """The settings for the files of a folder."""
        return self.run if self._fixed else self._above(folder.absolute()) or self.run

    def _above(self, folder: Path) -> Config | None:
        if folder not in self._found:
            config = next(filter(None, (read_config(folder / name) for name in FILES)), None)
            if config is None and folder.parent != folder:
                config = self._above(folder.parent)
            self._found[folder] = config
        return self._found[folder]


def read_config(path: Path) -> Config | None:
    """The settings in a file; None if there are none. Raises ContractError for settings that are wrong."""
    if not path.is_file():
        return None
    text = read_text(path)
    if isinstance(text, str) and "lint" not in text:
        return None
    root = text if isinstance(text, Diagnostic) else toml_table(text, str(path))
    if isinstance(root, Diagnostic):
        raise ContractError("The settings for lint cannot be read.", [root])
    table: Table | None = root
    for name in ("tool", "bespeak", "lint") if path.name == "pyproject.toml" else ("lint",):
        table = table.table(name) if table else None
    config = _read(table, path) if table else None
    if root.findings.found:
        raise ContractError("The settings for lint are wrong.", root.findings.found)
    return config


def _read(table: Table, path: Path) -> Config:
    severity = _severities(table)
    level = table.count("conformance-level") or 1
    if level not in _LEVELS:
        message = f"`conformance-level` is {level}, and there are only 1 and 2 (AGIS 3.3)"
        table.findings.error(WRONG_CHOICE, message, table.pointer("conformance-level"))
    config = Config(
        file=path,
        base=path.absolute().parent,
        select=table.texts("select") if table.has("select") else (ALL,),
        extend_select=table.texts("extend-select"),
        ignore=table.texts("ignore"),
        severity=severity,
        per_path_ignores=_path_ignores(table),
        exclude=table.texts("exclude"),
        conformance=table.boolean("conformance") or False,
        conformance_level=level,
        allowed_verbs=table.texts("allowed-verbs"),
        allowed_segments=table.texts("allowed-segments"),
        catalog=table.text("catalog"),
        fail_on=_severity(table.choice("fail-on", _SEVERITIES)),
        require_reason=table.boolean("require-reason") or False,
    )
    table.finish()
    for key in ("select", "extend-select", "ignore"):
        _check_selectors(table, table.pointer(key), table.texts(key))
    _check_selectors(table, table.pointer("severity"), severity)
    for entry in config.per_path_ignores:
        _check_selectors(table, table.pointer("per-path-ignores"), entry.selectors)
    if config.conformance:
        _check_conformance(table, severity)
    return config


def unknown_selector(selector: str) -> str:
    """Why a selector is none, with what may have been meant; empty for one that means a rule."""
    if means_any(selector, all_rules().values()):
        return ""
    near = near_rules(selector)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; `bespeak explain` lists them"
    return f"there is no rule {brief(selector)}{hint}"


def relative_to(path: Path, base: Path) -> str:
    """A path from a folder, with forward slashes; absolute if it is not below."""
    absolute = path.absolute()
    try:
        return absolute.relative_to(base.absolute()).as_posix()
    except ValueError:
        return absolute.as_posix()


def _check_selectors(table: Table, at: str, selectors: Iterable[str]) -> None:
    for selector in selectors:
        wrong = unknown_selector(selector)
        if wrong:
            table.findings.error(WRONG_CHOICE, wrong, at)


def _check_conformance(table: Table, severity: Mapping[str, Severity]) -> None:
    for rule in all_rules().values():
        named = rule.id if rule.id in severity else rule.name
        if rule.normative == "MUST" and severity.get(named, "error") != "error":
            message = f"{named} is a MUST of {rule.source} and stays an error while `conformance` is true"
            table.findings.error(WRONG_CHOICE, message, f"{table.pointer('severity')}/{named}")


def _path_ignores(table: Table) -> tuple[PathIgnore, ...]:
    inner = table.table("per-path-ignores")
    entries: list[PathIgnore] = []
    for key in inner.data if inner else ():
        assert inner is not None
        pattern, _, pointer = key.partition("#")
        entries.append(PathIgnore(pattern, pointer.rstrip("/"), inner.texts(key)))
    return tuple(entries)


def _severities(table: Table) -> dict[str, Severity]:
    found: dict[str, Severity] = {}
    for key, value in table.text_map("severity").items():
        if value in _SEVERITIES:
            found[key] = _severity(value)
        else:
            message = f"the severity of {brief(key)} is {brief(value)}, which is none of {', '.join(_SEVERITIES)}"
            table.findings.error(WRONG_CHOICE, message, f"{table.pointer('severity')}/{key}")
    return found


def _severity(value: str | None) -> Severity:
    return "warning" if value == "warning" else "info" if value == "info" else "error"

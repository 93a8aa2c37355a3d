"""Lint settings, `[lint]` in bespeak.toml or `[tool.bespeak.lint]` in pyproject.toml, and their use on findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, cast, get_args

from bespeak.checks.lint.rule_index import ALWAYS, all_rules, near_rules
from bespeak.checks.lint.suppress import fingerprint
from bespeak.errors import ConfigError, ContractError
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, Severity, brief
from bespeak.text.diagnostics.report import Finding, Replacement
from bespeak.text.reading.rules import WRONG_CHOICE
from bespeak.text.reading.settings import RULE, VERB, Setting, read_settings, setting
from bespeak.text.reading.table import Table
from bespeak.text.reading.text_file import read_text, toml_table


def matches_pattern(pattern: str, path: str) -> bool:
    """Return True if a pattern matches a path, both with forward slashes and relative to the same folder.

    A pattern without a slash matches files and folders of that name anywhere; a folder includes its content.
    """
    parts = path.split("/")
    # One row of the dynamic programming table: prefixes of the path that the pattern so far matches.
    reached = {0}
    for part in _compiled(pattern):
        if part is None:
            reached = set(range(min(reached), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and part.match(parts[at])}
        if not reached:
            return False
    return True


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> tuple[re.Pattern[str] | None, ...]:
    """Compile a pattern for each path segment; None stands for `**`."""
    anchored = "/" in pattern.rstrip("/")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if not anchored:
        parts.insert(0, "**")
    return tuple(None if part == "**" else re.compile(translate(part)) for part in parts)


ALL: Final = "ALL"

_PREFIX: Final = re.compile(r"[A-Z][0-9]{0,3}")
_EXACT: Final = 9  # precision of a rule name, the highest possible


def selected(selector: str, rules: Mapping[str, Rule]) -> frozenset[str]:
    """Return the ids of the rules that a selector means: ALL, the beginning of ids, or a name."""
    if selector == ALL:
        return frozenset(rules)
    if _PREFIX.fullmatch(selector):
        return frozenset(rule for rule in rules if rule.startswith(selector))
    return frozenset(rule.id for rule in rules.values() if rule.name == selector)


def _precision(selector: str) -> int:
    return 0 if selector == ALL else len(selector) if _PREFIX.fullmatch(selector) else _EXACT


def enabled(rules: Mapping[str, Rule], select: Iterable[str], ignore: Iterable[str]) -> frozenset[str]:
    """Return the ids of the enabled rules: the most precise selector decides; on a tie, `ignore` wins."""
    found: frozenset[str] = frozenset()
    turns = [*((selector, True) for selector in select), *((selector, False) for selector in ignore)]
    for selector, is_on in sorted(turns, key=lambda turn: _precision(turn[0])):
        found = found | selected(selector, rules) if is_on else found - selected(selector, rules)
    return found


def severities(rules: Mapping[str, Rule], given: Mapping[str, Severity]) -> dict[str, Severity]:
    """Return the configured severities by rule; the most precise selector decides."""
    return {rule: given[selector] for selector in sorted(given, key=_precision) for rule in selected(selector, rules)}


FILES: Final = ("bespeak.toml", "pyproject.toml")  # Files with settings; within a folder, the first one wins.

_SEVERITIES: Final[tuple[str, ...]] = get_args(Severity)


@dataclass(frozen=True, slots=True)
class PathIgnore:
    """Rules that are disabled for some files, or for a part of them."""

    pattern: str
    pointer: str  # pointer of the part; empty for the whole file
    selectors: tuple[str, ...]


def _read_select(table: Table, key: str) -> tuple[str, ...] | None:
    # An empty list selects nothing.
    return table.texts(key) if table.has(key) else None


def _read_path_ignores(table: Table, key: str) -> tuple[PathIgnore, ...]:
    inner = table.table(key)
    if inner is None:
        return ()
    named = ((*name.partition("#"), inner.texts(name)) for name in inner.data)
    return tuple(PathIgnore(pattern, pointer.rstrip("/"), selectors) for pattern, _, pointer, selectors in named)


def _read_severities(table: Table, key: str) -> dict[str, Severity]:
    found: dict[str, Severity] = {}
    for rule, value in table.text_map(key).items():
        if value in _SEVERITIES:
            found[rule] = cast("Severity", value)
        else:
            message = f"the severity of {brief(rule)} must be one of {', '.join(_SEVERITIES)}; got {brief(value)}"
            table.findings.error(WRONG_CHOICE, message, f"{table.pointer(key)}/{rule}")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What `bespeak lint` looks for. Paths and patterns start at `base`."""

    file: Path | None = None
    base: Path = field(default_factory=Path)
    select: tuple[str, ...] = setting((ALL,), "Only these rules.", format=RULE, read=_read_select)
    extend_select: tuple[str, ...] = setting((), "These rules as well.", format=RULE, key="extend-select")
    ignore: tuple[str, ...] = setting((), "Not these rules.", format=RULE)
    severity: Mapping[str, Severity] = setting(
        {},
        "`RULE = SEVERITY`: how grave the findings of a rule are.",
        kind="map",
        read=_read_severities,
        values=Setting(meaning="How grave they are.", choices=_SEVERITIES),
    )
    per_path_ignores: tuple[PathIgnore, ...] = setting(
        (),
        "`PATTERN = [RULE]`: rules to ignore for files, or for parts of them.",
        kind="map",
        key="per-path-ignores",
        read=_read_path_ignores,
        values=Setting(meaning="Rules to ignore there.", kind="strings", format=RULE),
    )
    exclude: tuple[str, ...] = setting((), "Files and folders to skip unless they are named.")
    conformance: bool = setting(
        False, "Report what the drafts require as errors, whatever is ignored, set or in the baseline."
    )
    conformance_level: int = setting(
        1, "The level of AGIS 3.3 to reach.", choices=(1, 2), rule=WRONG_CHOICE, key="conformance-level"
    )
    allowed_verbs: tuple[str, ...] = setting((), "Verbs that passes 2 and 3 accept.", format=VERB, key="allowed-verbs")
    allowed_segments: tuple[str, ...] = setting((), "Path segments that pass 4 accepts.", key="allowed-segments")
    catalog: str | None = setting(
        None, "A bundled version, or the path of a catalog document. Without it: that of the deployment."
    )
    fail_on: Severity = setting("error", "The lightest finding a run fails for.", choices=_SEVERITIES, key="fail-on")
    require_reason: bool = setting(False, "Require a reason in every ignore.", key="require-reason")

    def checked(self, table: Table) -> Config:
        """Report selectors that mean no rule, and requirements that would be lowered in a conformance run."""
        for key in ("select", "extend-select", "ignore"):
            _check_selectors(table, table.pointer(key), getattr(self, key.replace("-", "_")) if table.has(key) else ())
        _check_selectors(table, table.pointer("severity"), self.severity)
        for entry in self.per_path_ignores:
            _check_selectors(table, table.pointer("per-path-ignores"), entry.selectors)
        for rule in all_rules().values() if self.conformance else ():
            named = rule.id if rule.id in self.severity else rule.name
            if rule.normative == "MUST" and self.severity.get(named, "error") != "error":
                message = f"{named} is a MUST of {rule.source} and stays an error while `conformance` is true"
                table.findings.error(WRONG_CHOICE, message, f"{table.pointer('severity')}/{named}")
        return self

    def excludes(self, path: Path) -> bool:
        """Return True if a file or folder found in a directory walk is excluded."""
        return any(matches_pattern(pattern, relative_to(path, self.base)) for pattern in self.exclude)


class Configs:
    """Settings of every file of a run: those of the nearest parent folder that has any, else those of the run."""

    def __init__(self, here: Path, *, file: Path | None = None, isolated: bool = False) -> None:
        self._fixed = isolated or file is not None
        self._found: dict[Path, Config | None] = {}
        self.run = Config(base=here)  # settings for files without settings in a parent folder
        if file is not None:
            config = read_config(file)
            if config is None:
                raise ConfigError(f"{file} has no lint settings: add [lint], or [tool.bespeak.lint] in pyproject.toml.")
            self.run = config
        elif not isolated:
            self.run = self._above(here) or self.run

    def of(self, folder: Path) -> Config:
        return self.run if self._fixed else self._above(folder.absolute()) or self.run

    def _above(self, folder: Path) -> Config | None:
        if folder not in self._found:
            config = next(filter(None, (read_config(folder / name) for name in FILES)), None)
            if config is None and folder.parent != folder:
                config = self._above(folder.parent)
            self._found[folder] = config
        return self._found[folder]


def read_config(path: Path) -> Config | None:
    """Read the settings of a file; return None if it has none. Raises ContractError if they are not valid."""
    if not path.is_file():
        return None
    text = read_text(path)
    if isinstance(text, str) and "lint" not in text:
        return None
    root = text if isinstance(text, Diagnostic) else toml_table(text, str(path))
    if isinstance(root, Diagnostic):
        raise ContractError("The lint settings cannot be read.", [root])
    table: Table | None = root
    for name in ("tool", "bespeak", "lint") if path.name == "pyproject.toml" else ("lint",):
        table = table.table(name) if table else None
    config = read_settings(Config, table) if table else None
    if root.findings.found:
        raise ContractError("The lint settings are not valid.", root.findings.found)
    return None if config is None else replace(config, file=path, base=path.absolute().parent)


def unknown_selector(selector: str) -> str:
    """Explain why a selector matches no rule, with suggestions; return an empty string if it matches one."""
    if selected(selector, all_rules()):
        return ""
    near = near_rules(selector)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; `bespeak explain` lists them"
    return f"there is no rule {brief(selector)}{hint}"


def relative_to(path: Path, base: Path) -> str:
    """Return a path relative to a folder, with forward slashes; absolute if it is outside."""
    absolute = path.absolute()
    try:
        return absolute.relative_to(base.absolute()).as_posix()
    except ValueError:
        return absolute.as_posix()


def _check_selectors(table: Table, at: str, selectors: Iterable[str]) -> None:
    for wrong in filter(None, map(unknown_selector, selectors)):
        table.findings.error(WRONG_CHOICE, wrong, at)


class Judge:
    """Settings of a file, applied to its findings."""

    def __init__(self, config: Config) -> None:
        rules = all_rules()
        self.config = config
        # In a conformance run, requirements of a draft are always enabled.
        demanded = (rule.id for rule in rules.values() if config.conformance and rule.normative == "MUST")
        self._standing = ALWAYS.union(demanded)
        chosen = enabled(rules, (*config.select, *config.extend_select), config.ignore)
        self._disabled = rules.keys() - self._standing - chosen
        self._severities = severities(rules, config.severity)
        self._path_ignores = [
            (entry, {rule for selector in entry.selectors for rule in selected(selector, rules)})
            for entry in config.per_path_ignores
        ]

    def is_on(self, rule: str) -> bool:
        return rule not in self._disabled

    def stands(self, rule: str) -> bool:
        """Return True if findings of a rule cannot be hidden by ignores in files, by path or in a baseline."""
        return rule in self._standing

    def severity(self, rule: str) -> Severity | None:
        return None if rule in self._standing else self._severities.get(rule)

    def finding(
        self, diagnostic: Diagnostic, path: str, data: Any = None, edits: tuple[Replacement, ...] = ()
    ) -> Finding:
        """Return what is reported for a file: the finding with its configured severity and its fingerprint."""
        severity = self.severity(diagnostic.rule) or diagnostic.severity
        return Finding(replace(diagnostic, severity=severity), fingerprint(diagnostic, path, data), edits)

    def visible(self, findings: Iterable[Diagnostic], path: str) -> tuple[list[Diagnostic], int]:
        """Return the findings of enabled rules that are not ignored for their file, and the number of the ignored."""
        found = [finding for finding in findings if self.is_on(finding.rule)]
        left = [finding for finding in found if not self.is_ignored(finding, path)]
        return left, len(found) - len(left)

    def is_ignored(self, finding: Diagnostic, path: str) -> bool:
        """Return True if the finding is ignored for its file, a path relative to the settings."""
        return not self.stands(finding.rule) and any(
            matches_pattern(entry.pattern, path)
            and (not entry.pointer or f"{finding.pointer}/".startswith(f"{entry.pointer}/"))
            and finding.rule in ignored
            for entry, ignored in self._path_ignores
        )

"""Lint settings: `[lint]` in bespeak.toml, or `[tool.bespeak.lint]` in pyproject.toml.

Selectors (`S`, `S4`, `S450`, a name or ALL) choose rules and severities; path patterns are those of ignore files.
`Judge` applies the settings to findings: which are shown, and with which severity.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, cast, get_args

from bespeak.checks.lint.baseline import fingerprint
from bespeak.checks.lint.rule_index import ALWAYS, all_rules, near_rules
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
    wanted, parts = _compiled(pattern), path.split("/")
    # One row of the dynamic programming table: prefixes of the path that the pattern so far matches.
    reached = {0}
    for part in wanted:
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
_EXACT: Final = 9  # specificity of a rule name, the highest possible


def specificity(selector: str, rule: Rule) -> int:
    """Return how precisely a selector matches a rule; -1 if it does not match."""
    if selector == ALL:
        return 0
    if selector == rule.name:
        return _EXACT
    return len(selector) if _PREFIX.fullmatch(selector) and rule.id.startswith(selector) else -1


def enabled(
    rules: Iterable[Rule], select: Iterable[str], ignore: Iterable[str], *, conformance: bool = False
) -> frozenset[str]:
    """Return the ids of the enabled rules: the most specific selector decides; on a tie, `ignore` wins.

    In a conformance run, requirements of a draft are always enabled.
    """
    select, ignore = tuple(select), tuple(ignore)
    return frozenset(
        rule.id
        for rule in rules
        if (conformance and rule.normative == "MUST") or _closest(select, rule) > _closest(ignore, rule)
    )


def severities(rules: Iterable[Rule], given: Mapping[str, Severity]) -> dict[str, Severity]:
    """Return the configured severities by rule."""
    found: dict[str, Severity] = {}
    for rule in rules:
        meant = [(specificity(selector, rule), severity) for selector, severity in given.items()]
        most, severity = max(meant, key=lambda pair: pair[0], default=(-1, rule.severity))
        if most >= 0:
            found[rule.id] = severity
    return found


def means_any(selector: str, rules: Iterable[Rule]) -> bool:
    """Return True if a selector matches any rule."""
    return any(specificity(selector, rule) >= 0 for rule in rules)


def _closest(selectors: tuple[str, ...], rule: Rule) -> int:
    return max((specificity(selector, rule) for selector in selectors), default=-1)


FILES: Final = ("bespeak.toml", "pyproject.toml")
"""Files that may contain settings; within a folder, the first one wins."""

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
    entries: list[PathIgnore] = []
    for name in inner.data if inner else ():
        assert inner is not None
        pattern, _, pointer = name.partition("#")
        entries.append(PathIgnore(pattern, pointer.rstrip("/"), inner.texts(name)))
    return tuple(entries)


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
        if self.conformance:
            _check_conformance(table, self.severity)
        return self

    def excludes(self, path: Path) -> bool:
        """Return True if a file or folder found in a directory walk is excluded."""
        return bool(self.exclude) and any(matches_pattern(pattern, self.relative(path)) for pattern in self.exclude)

    def relative(self, path: Path) -> str:
        """Return a path relative to `base`, as patterns expect it."""
        return relative_to(path, self.base)


class Configs:
    """Settings of every file of a run: those of the nearest parent folder that has any, else those of the run."""

    def __init__(self, here: Path, *, file: Path | None = None, isolated: bool = False) -> None:
        self._fixed = isolated or file is not None
        self._found: dict[Path, Config | None] = {}
        self.run = Config(base=here)
        """Settings for files without settings in a parent folder."""
        if file is not None:
            config = read_config(file)
            if config is None:
                raise ConfigError(f"{file} has no lint settings: add [lint], or [tool.bespeak.lint] in pyproject.toml.")
            self.run = config
        elif not isolated:
            self.run = self._above(here) or self.run

    def of(self, folder: Path) -> Config:
        """Return the settings for the files of a folder."""
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
    if means_any(selector, all_rules().values()):
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


class Judge:
    """Settings of a file, applied to its findings."""

    def __init__(self, config: Config) -> None:
        rules = all_rules().values()
        self.config = config
        self._enabled = enabled(
            rules, (*config.select, *config.extend_select), config.ignore, conformance=config.conformance
        )
        self._known = frozenset(rule.id for rule in rules)
        self._severities = severities(rules, config.severity)
        self._demanded = frozenset(rule.id for rule in rules if config.conformance and rule.normative == "MUST")

    def is_on(self, rule: str) -> bool:
        """Return True if a rule is enabled."""
        return rule in self._enabled or rule in ALWAYS or rule not in self._known

    def stands(self, rule: str) -> bool:
        """Return True if findings of a rule cannot be hidden by ignores in files, by path or in a baseline."""
        return rule in ALWAYS or rule in self._demanded

    def severity(self, rule: str) -> Severity | None:
        """Return the severity set for a rule, or None."""
        return None if rule in ALWAYS or rule in self._demanded else self._severities.get(rule)

    def weighed(self, finding: Diagnostic) -> Diagnostic:
        """Return the finding with its configured severity."""
        severity = self.severity(finding.rule)
        return finding if severity in (None, finding.severity) else replace(finding, severity=severity)

    def finding(
        self, diagnostic: Diagnostic, path: str, data: Any = None, edits: tuple[Replacement, ...] = ()
    ) -> Finding:
        """Return what is reported for a file: the finding with its configured severity and its fingerprint."""
        return Finding(self.weighed(diagnostic), fingerprint(diagnostic, path, data), edits)

    def visible(self, findings: Iterable[Diagnostic], path: str) -> tuple[list[Diagnostic], int]:
        """Return the findings of enabled rules that are not ignored for their file, and the number of the ignored."""
        enabled = [finding for finding in findings if self.is_on(finding.rule)]
        left = [finding for finding in enabled if not self.is_ignored(finding, path)]
        return left, len(enabled) - len(left)

    def is_ignored(self, finding: Diagnostic, path: str) -> bool:
        """Return True if the finding is ignored for its file, a path relative to the settings."""
        if self.stands(finding.rule):
            return False
        rule = all_rules().get(finding.rule)
        return rule is not None and any(
            matches_pattern(entry.pattern, path)
            and (not entry.pointer or f"{finding.pointer}/".startswith(f"{entry.pointer}/"))
            and any(specificity(selector, rule) >= 0 for selector in entry.selectors)
            for entry in self.config.per_path_ignores
        )

"""Report of one run for all reporters: findings, their rules, the number of checked files, and a score in points."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorePart:
    """Part of the 100 points."""

    name: str
    points: float
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Possible improvement, and its points."""

    points: float
    part: str
    what: str
    rules: tuple[str, ...] = ()  # rules whose findings give details


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Score of one subject. The points of its parts and its gains add up to 100."""

    subject: str  # scored subject: the address of a host
    parts: Sequence[ScorePart]
    gains: Sequence[Gain] = ()  # possible improvements, largest first
    rating: tuple[int, str] | None = None  # points of 100 and grade of the public platform; None if unknown

    @property
    def points(self) -> int:
        """Whole points; 100 only if nothing is missing."""
        return math.floor(sum(part.points for part in self.parts) + 1e-6)


def score_lines(score: Score) -> list[str]:
    """Format the score for people: total, parts, possible gains."""
    said = f"score {score.points}/100"
    if score.rating is not None:
        points, grade = score.rating
        said += f' (the platform\'s own rating: {points}, "{grade}")'
    widest = max((len(part.name) for part in score.parts), default=0)
    lines = [f"{score.subject}: {said}"]
    lines += [f"  {part.name:<{widest}}  {shown(part.points):>5} of {part.of}" for part in score.parts]
    for gain in score.gains:
        rules = f" ({', '.join(gain.rules)})" if gain.rules else ""
        lines.append(f"  +{shown(gain.points):<4} {gain.what}{rules}")
    return lines


def score_entry(score: Score) -> dict[str, Any]:
    return {
        "subject": score.subject,
        "points": score.points,
        "parts": [{"name": part.name, "points": round(part.points, 2), "of": part.of} for part in score.parts],
        "gains": [
            {"points": round(gain.points, 2), "part": gain.part, "what": gain.what, "rules": list(gain.rules)}
            for gain in score.gains
        ],
        "platform": None if score.rating is None else {"points": score.rating[0], "grade": score.rating[1]},
    }


def shown(points: float) -> str:
    return f"{round(points, 1):g}"


Source = Callable[[str], str | None]  # function that returns the text of a file, or None if it cannot be read
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "info")  # severities, the gravest first


@dataclass(frozen=True, slots=True)
class Replacement:
    """Range of a file with its replacement text. Lines and columns count from one; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """Reported diagnostic, with its fingerprint and its fix as text."""

    diagnostic: Diagnostic
    fingerprint: str = ""  # identity that is stable when the text around it moves; see `bespeak.checks.lint.suppress`
    edits: tuple[Replacement, ...] = ()

    @property
    def file(self) -> str:
        return self.diagnostic.location.file if self.diagnostic.location else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Report of one run."""

    findings: Sequence[Finding]
    files: Sequence[str] = ()  # all checked files, with or without findings
    rules: Mapping[str, Rule] = field(default_factory=dict)  # rules that findings may name, by id
    source: Source | None = None  # source of the texts for code frames; None reads them from disk
    version: str = ""  # version of bespeak
    ignored: int = 0  # number of findings hidden by ignores in files or settings
    baselined: int = 0  # number of findings in the baseline
    left_out: int = 0  # number of findings above the requested maximum
    scores: Sequence[Score] = ()  # scores of the live services that were checked

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return [finding.diagnostic for finding in self.findings]

    def count(self) -> dict[Severity, int]:
        found = Counter(finding.diagnostic.severity for finding in self.findings)
        return {severity: found[severity] for severity in SEVERITIES}

    def fixable(self) -> tuple[int, int]:
        fixes = [finding.diagnostic.fix for finding in self.findings if finding.diagnostic.fix is not None]
        safe = sum(fix.safe for fix in fixes)
        return safe, len(fixes) - safe


def summary(report: Report) -> str:
    counts = report.count()
    found = ", ".join(_plural(number, severity) for severity, number in counts.items() if number)
    named = (*report.files, *(finding.file for finding in report.findings))
    noun = "document" if any("://" in file for file in named) else "file"
    parts = [f"Checked {_plural(len(report.files), noun)}: {found or 'nothing found'}."]
    if report.left_out:
        parts.append(f"{report.left_out} more are not shown.")
    hidden = [(report.ignored, "ignored"), (report.baselined, "in the baseline")]
    if any(number for number, _ in hidden):
        parts.append(", ".join(f"{number} {how}" for number, how in hidden if number) + ".")
    safe, unsafe = report.fixable()
    if safe:
        parts.append(f"{safe} can be fixed with --fix.")
    if unsafe:
        parts.append(f"{unsafe}{' more' if safe else ''} can be fixed with --fix --unsafe-fixes.")
    return " ".join(parts)


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


_PAGES: Final = Path(__file__).with_name("rules")
_PAGE: Final = (
    r"# (?P<name>.+)\n\n(?:(?P<summary>(?:(?!#|```)\S.*\n)+)\n)?## Why\n\n(?P<why>(?:(?!#|```)\S.*\n)+)"
    r"(?:\n## Bad\n\n```(?P<notation>yaml|toml|json|python|http)\n(?P<bad>(?:(?!```).*\n)+)```\n"
    r"\n## Good\n\n```(?P=notation)\n(?P<good>(?:(?!```).*\n)+)```\n)?"
)


class Page(NamedTuple):
    """What people read about a rule."""

    summary: str  # the requirement in one sentence
    why: str  # harm for an agent or an author, and what to do about it
    bad: str = ""  # smallest piece of a document that breaks the rule
    good: str = ""  # the same piece, corrected
    notation: str = "yaml"  # YAML for .agis files, TOML for settings, JSON for documents, HTTP for answers


def page_of(rule: Rule) -> Page:
    """Return the page of a rule, which is read when it is first used. A page of several has a line for each."""
    page = _read(rule.page)
    if rule.page == rule.id:
        return page
    own = re.search(rf"- {rule.id}: (.+?)(?: - C\d+: |$)", page.summary)
    return page._replace(summary=own[1] if own else "")


@lru_cache(1024)
def _read(name: str) -> Page:
    match = re.fullmatch(_PAGE, (_PAGES / f"{name}.md").read_text("utf-8"))
    if match is None or match["name"] != name:
        raise ValueError(f"rules/{name}.md is not a valid page; its form is described in {__name__}.")
    summary, why = ((match[part] or "").rstrip().replace("\n", " ") for part in ("summary", "why"))
    return Page(summary, why, match["bad"], match["good"], match["notation"]) if match["bad"] else Page(summary, why)

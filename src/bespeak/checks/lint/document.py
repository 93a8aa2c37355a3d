"""Check of one text: runs the passes, places the findings, applies settings and ignores. Editors and CI share it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

from bespeak.checks.lint.config import Judge
from bespeak.checks.lint.failed_check import attempt, failed_document
from bespeak.checks.lint.reading import read_subject
from bespeak.checks.lint.registration import check_binding, check_contract, check_service, effective_policies
from bespeak.checks.lint.rule_index import DOCUMENTS, PASSES, RULES, find_rule
from bespeak.checks.lint.subject import Kind, LintContext, Subject
from bespeak.checks.lint.suppress import suppress
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.policy import Policies
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding, Replacement
from bespeak.text.reading.rules import MISSING_KEY
from bespeak.text.source.pointer import child
from bespeak.text.source.tree import Tree

_MOST: Final = 10_000  # default maximum number of findings per document


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of checking one text. `subject` is None if the text could not be read."""

    findings: tuple[Diagnostic, ...]
    subject: Subject | None = None


def check_text(
    text: str, file: str, context: LintContext, kind: Kind | None = None, *, most: int | None = _MOST
) -> Checked:
    """Check a text; return at most `most` findings. Never raises."""
    try:
        subject = read_subject(text, file, kind)
    except Exception as error:  # noqa: BLE001 - one document must not stop the others
        return Checked((failed_document("reading the document", error, file),))
    if isinstance(subject, Diagnostic):
        return Checked((subject,))
    return Checked(tuple(check(subject, context, most=most)), subject)


def check(subject: Subject, context: LintContext, *, most: int | None = _MOST) -> list[Diagnostic]:
    """Check a document; return at most `most` findings in the order of the text. None returns all of them."""
    context = _within(subject, context)
    found = list(_unspoken(subject.found, _agtp(subject, context)))
    advice = _agis(subject, context)
    if not context.agis:
        advice = _as_advice((*subject.found, *found), advice)
    placed = [*subject.found, *(located(finding, subject.tree) for finding in (*found, *advice))]
    placed.sort(key=_order)
    return placed[:most]


def _within(subject: Subject, context: LintContext) -> LintContext:
    """Add the document's own vocabulary and policies to the context."""
    vocabulary = subject.agis.vocabulary if subject.agis else None
    policies = subject.policies or context.policies
    return replace(context, agis=subject.kind == "agis", vocabulary=vocabulary, policies=policies)


def _agis(subject: Subject, context: LintContext) -> Iterator[Diagnostic]:
    yield from attempt(*((check, subject, context) for step in PASSES for check in step.document))
    for declared in subject.endpoints:
        checks = ((check, declared, context) for step in PASSES for check in step.endpoint)
        yield from map(declared.place, attempt(*checks, endpoint=declared.endpoint))


def _agtp(subject: Subject, context: LintContext) -> Iterator[Diagnostic]:
    owners = {id(declared.endpoint): declared for declared in subject.endpoints}
    # Of two colliding endpoints the second is reported.
    for endpoint, finding in check_service(declared.endpoint for declared in subject.endpoints):
        yield owners[id(endpoint)].place(finding)
    if subject.kind == "agis":
        return
    yield from attempt(*((check_document, subject, context) for check_document in DOCUMENTS))
    if subject.policies is not None:
        yield from attempt((_check_policies, subject.policies, context.catalog))
    for declared in subject.endpoints:
        yield from map(declared.place, check_contract(declared.endpoint, context.catalog, context.policies))
        if subject.kind == "endpoint":
            yield from map(declared.place, check_binding(declared.endpoint, context.recipes))


def _check_policies(policies: Policies, catalog: Catalog) -> list[Diagnostic]:
    return effective_policies(policies, catalog)[1]


def _as_advice(found: Sequence[Diagnostic], advice: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Turn errors of AGIS-only rules into warnings; skip them where AGTP-API already reports the same place."""
    spoken = {(finding.rule[0], finding.pointer) for finding in found}
    for finding in _unspoken(found, advice):
        if (finding.rule[0], finding.pointer) not in spoken:
            rule = RULES.get(finding.rule)
            lighter = rule is not None and rule.is_agis and finding.severity == "error"
            yield replace(finding, severity="warning") if lighter else finding


def _unspoken(found: Iterable[Diagnostic], more: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Skip findings about keys that the reader has reported as missing."""
    missing = {child(one.pointer, one.message.split("`")[1]) for one in found if one.rule == MISSING_KEY.id}
    return (finding for finding in more if finding.pointer not in missing)


def located(finding: Diagnostic, tree: Tree) -> Diagnostic:
    """Set the location of a finding from its pointer: on the value, also in TOML, where readers use the key."""
    span = tree.value_span(finding.pointer) if finding.pointer and not finding.on_key else None
    place = tree.locate(finding.pointer, key=finding.on_key) if span is None else tree.location(span)
    return replace(finding, location=place)


def _order(finding: Diagnostic) -> tuple[int, int, str, str]:
    location = finding.location
    return (location.line, location.column, finding.rule, finding.message) if location else (0, 0, finding.rule, "")


@dataclass(frozen=True, slots=True)
class Examined:
    """Findings of one text after the settings and ignores are applied."""

    findings: tuple[Finding, ...]
    ignored: int = 0  # number of findings hidden by ignores
    subject: Subject | None = None  # parsed document; None if the text could not be read


def examine(
    text: str,
    shown: str,
    context: LintContext,
    judge: Judge,
    *,
    path: str = "",
    extra: Iterable[Diagnostic] = (),
    with_edits: bool = False,
) -> Examined:
    """Check a text and return its findings in order.

    `shown` is the file name in findings, `path` the one for patterns and fingerprints. `extra` are findings that
    involve other documents; their pointers set their places. `with_edits` adds fixes as text edits, which is slow.
    """
    return settle(check_text(text, shown, context), judge, path or shown, extra=extra, with_edits=with_edits)


def settle(
    checked: Checked, judge: Judge, path: str, *, extra: Iterable[Diagnostic] = (), with_edits: bool = False
) -> Examined:
    """Apply the settings to the findings of a text."""
    subject = checked.subject
    if subject is None:
        # An unreadable text is always reported, whatever rules are enabled.
        return Examined(tuple(judge.finding(finding, path) for finding in checked.findings))
    tree = subject.tree
    placed = (*checked.findings, *(located(one, tree) for one in extra))
    found, hidden = suppress(
        (finding for finding in placed if judge.is_on(finding.rule)),
        tree,
        find_rule,
        kept=lambda rule: judge.stands(rule) or not judge.is_on(rule),
        require_reason=judge.config.require_reason,
    )
    left, ignored = judge.visible(found, path)
    findings = (
        judge.finding(finding, path, tree.data, replacements(finding, tree) if with_edits else ()) for finding in left
    )
    return Examined(tuple(sorted(findings, key=order)), hidden + ignored, subject)


def replacements(finding: Diagnostic, tree: Tree) -> tuple[Replacement, ...]:
    """Return the fix of a finding as text replacements; empty if there is none, or if it cannot be made in place."""
    if finding.fix is None:
        return ()
    from bespeak.checks.lint.fix_edits import fix_edits  # noqa: PLC0415 - most runs want no edits

    made = ((tree.location(edit.span), edit.text) for edit in fix_edits(finding.fix, tree) or ())
    return tuple(Replacement(at.line, at.column, at.end_line, at.end_column, text) for at, text in made)


def order(finding: Finding) -> tuple[str, int, int, str, str]:
    """Return the sort key of a finding: file, line, column, rule and message."""
    said = finding.diagnostic
    place = said.location
    line, column = (place.line, place.column) if place else (0, 0)
    return finding.file, line, column, said.rule, said.message


class Times:
    """Seconds per step over all measured documents, each checked again."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = defaultdict(float)
        self._documents = 0

    def measure(self, subject: Subject, context: LintContext) -> None:
        """Read and check a document again, step by step."""
        self._documents += 1
        with self._clock("reading, pass 1"):
            read_subject(subject.tree.text, subject.tree.file, subject.kind)
        for step in PASSES:
            runs = [
                *((check, (subject,)) for check in step.document),
                *((check, subject.endpoints) for check in step.endpoint),
            ]
            for check, subjects in runs:
                module = check.__module__.rpartition(".")[2]
                with self._clock(f"pass {step.number}, {module}.{check.__name__.lstrip('_')}"):
                    list(attempt(*((check, one, context) for one in subjects)))
        with self._clock("registration, AGTP-API"):
            for declared in subject.endpoints:
                list(check_contract(declared.endpoint, context.catalog, context.policies))

    def rows(self) -> Iterator[str]:
        """Return a line for each step, longest first."""
        total = sum(self._seconds.values())
        yield f"{total * 1000:9.1f} ms  {self._documents} documents, each step measured by itself"
        for name, seconds in sorted(self._seconds.items(), key=lambda pair: -pair[1]):
            yield f"{seconds * 1000:9.1f} ms  {name}"

    @contextmanager
    def _clock(self, name: str) -> Iterator[None]:
        start = perf_counter()
        yield
        self._seconds[name] += perf_counter() - start

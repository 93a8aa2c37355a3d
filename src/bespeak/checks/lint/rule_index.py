"""Every rule that a lint finding can name, and what is shown about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Final, NamedTuple

from bespeak.checks.lint import served, subject, suppress
from bespeak.checks.lint.rules import (
    composition,
    error,
    handler,
    intent,
    manifest,
    method,
    path,
    policy,
    review,
    schema,
    security,
    semantic,
    vocabulary,
)
from bespeak.checks.lint.subject import Declared, LintContext, Subject
from bespeak.contract import rules as contract
from bespeak.contract.catalog import document as catalog
from bespeak.contract.extensions import BUNDLED
from bespeak.documents import rules as documents
from bespeak.state import rules as state
from bespeak.text.diagnostics.diagnostic import Diagnostic, Rule, declared_in
from bespeak.text.diagnostics.report import page_of
from bespeak.text.reading import rules as reading

RULES: Final = declared_in(  # All rules by id. A server registers with only a few of them and does not load this table.
    *(manifest, method, path, semantic, intent, vocabulary),
    *(schema, error, handler, policy, composition, security, review),
)

EndpointCheck = Callable[[Declared, LintContext], Iterable[Diagnostic]]
DocumentCheck = Callable[[Subject, LintContext], Iterable[Diagnostic]]


@dataclass(frozen=True, slots=True)
class Pass:
    """Validation pass with its checks of endpoints and of whole documents."""

    number: int
    name: str
    summary: str
    ids: tuple[str, ...]  # prefixes of the ids of its rules
    endpoint: tuple[EndpointCheck, ...] = ()
    document: tuple[DocumentCheck, ...] = ()


PASSES: Final = (  # Passes in the order of the draft.
    # Reading a document is its first pass: `documents.agis.document`.
    Pass(1, "Structural", "every required field is present and valid", ("D12",)),
    Pass(
        2,
        "Method Syntax",
        "every method is one word in capitals, a verb in its imperative base form",
        ("M21", "M22"),
        endpoint=(method.check_syntax,),
    ),
    Pass(
        3,
        "Method Class",
        "every method requests an action, and none is an HTTP method",
        ("M23", "M24"),
        endpoint=(method.check_class,),
    ),
    Pass(4, "Path Syntax", "every path names things, without verbs", ("P32", "P33", "P34"), endpoint=(path.check,)),
    Pass(
        5,
        "Semantic Completeness",
        "every semantic block has an intent, an actor and an outcome that an agent can use",
        ("S41", "S42", "S43", "S44", "X90"),
        endpoint=(semantic.check, intent.check, semantic.check_consequences, semantic.check_hints, security.check),
        document=(security.check_document,),
    ),
    Pass(
        6,
        "Semantic Consistency",
        "no intent contradicts its method",
        ("S45", "S46"),
        endpoint=(intent.check_consistency,),
    ),
    Pass(
        7,
        "Vocabulary Integrity",
        "the declared verbs are those in use, and the data manifest discloses nothing",
        ("V50", "V51", "V52", "V53"),
        document=(vocabulary.check_document, vocabulary.check_data_manifest),
    ),
    Pass(
        8,
        "Schema Completeness",
        "every endpoint has valid schemas for input and output, and names its errors",
        ("J62", "J63", "J64", "X92"),
        endpoint=(schema.check, error.check, security.check_schemas),
        document=(schema.check_shared, schema.check_document),
    ),
)


def pass_of(rule: str) -> int:
    """Return the pass of AGIS 9.1 that a rule belongs to; 0 for rules of AGTP-API and of files."""
    return next((step.number for step in PASSES if rule.startswith(step.ids)), 0)


DOCUMENTS: Final[tuple[DocumentCheck, ...]] = (  # Checks of whole documents other than AGIS; each check knows its kind.
    manifest.check_document,
    composition.check_document,
    manifest.check_ai,
    review.check_document,
)


ALWAYS: Final = frozenset({reading.UNREADABLE.id, reading.MALFORMED.id, subject.FAILED.id})
"""Rules that no selection turns off: without them a part that was not checked would look like one without faults."""

_DECLARED: Final = (  # The modules that declare rules, other than those of the passes and of extensions.
    *(reading, contract, catalog, state, documents),
    *(suppress, subject, served),
)

_DIGITS: Final = str.maketrans("OIL", "011")  # letters that are mistyped for digits


@cache
def all_rules() -> Mapping[str, Rule]:
    extensions = (known.module(name) for known in BUNDLED for name in known.rules)
    return dict(sorted({**RULES, **declared_in(*_DECLARED, *extensions)}.items()))


def find_rule(text: str, among: Mapping[str, Rule] | None = None) -> Rule | None:
    """Find a rule by its id or its name, ignoring case; `among` is for other rules than those of the lint."""
    rules, wanted = all_rules() if among is None else among, text.strip()
    if wanted.upper() in rules:
        return rules[wanted.upper()]
    return next((rule for rule in rules.values() if rule.name == wanted.lower()), None)


def near_rules(text: str) -> list[str]:
    """Suggest ids and names similar to a mistyped one."""
    rules = all_rules()
    names = [rule.name for rule in rules.values()]
    wanted = text.strip()[:60]
    number = wanted.upper()[:1] + wanted.upper()[1:].translate(_DIGITS)
    found = [number] if number in rules else get_close_matches(number, rules, n=2, cutoff=0.7)
    found += get_close_matches(wanted.lower(), names, n=2)
    # Part of a name is not similar by its letters, but clearly meant.
    found += [name for name in names if len(wanted) > 3 and wanted.lower() in name]
    return list(dict.fromkeys(found))[:4]


_BOUND: Final = {"MUST": "required by the draft", "SHOULD": "recommended by the draft", "style": "improves readability"}
_FIXES: Final = {
    "none": "There is no automatic fix.",
    "safe": "`bespeak lint --fix` fixes it where the fix is unambiguous, without changing the meaning of the contract.",
    "unsafe": "`bespeak lint --fix --unsafe-fixes` fixes it where the fix is unambiguous; review the result.",
}


class Section(NamedTuple):
    title: str
    text: str
    is_code: bool = False


def facts(rule: Rule, pass_name: str) -> list[tuple[str, str]]:
    number = pass_of(rule.id)
    return [
        ("severity", rule.severity),
        ("binding", f"{rule.normative}: {_BOUND[rule.normative]}"),
        ("source", rule.source),
        ("pass", f"{number}, {pass_name}" if number else "none of AGIS 9.1"),
    ]


def sections(rule: Rule) -> list[Section]:
    """Return the sections after the summary, without empty ones."""
    page = page_of(rule)
    parts = [
        Section("Why", page.why),
        Section("Bad", page.bad, is_code=True),
        Section("Good", page.good, is_code=True),
        Section("Fix", _FIXES[rule.fix]),
        Section("Ignore", how_to_ignore(rule)),
    ]
    return [part for part in parts if part.text]


def how_to_ignore(rule: Rule) -> str:
    if rule.id in ALWAYS:
        return "It is always reported, because something was not checked; `exclude` leaves a file out of a run."
    if rule.id.startswith("W"):
        # A finding about a live server has no line for a comment.
        return f'In a run: `--ignore {rule.id}`. Everywhere: `ignore = ["{rule.id}"]` in the settings.'
    return (
        f"In a line: `# bespeak: ignore[{rule.id}] the reason`. In a mapping, for all of it: "
        f'`"x-bespeak-ignore": {{"{rule.id}": "the reason"}}`. In files: `per-path-ignores`. '
        f'Everywhere: `ignore = ["{rule.id}"]` in the settings.'
    )

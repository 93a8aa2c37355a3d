"""Every rule a finding may name: those of lint, and those under which files and catalogs are read."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Final

from bespeak.checks.lint import baseline, served_agreement, served_answer, suppress
from bespeak.checks.lint.passes import RULES
from bespeak.checks.lint.reader_pages import PAGES
from bespeak.contract.catalog.document import RULES as CATALOG_RULES
from bespeak.documents.agis.rules import RULES as AGIS_RULES
from bespeak.text.diagnostics.report import RuleText
from bespeak.text.diagnostics.rule import Fixable, Normative, Rule
from bespeak.text.reading.findings import RULES as READER_RULES

ALWAYS: Final = frozenset({"D101", "D102"})
"""A file that cannot be read is reported whatever is selected: nothing else is known about it."""

_READERS: Final[Mapping[str, tuple[str, Normative]]] = {
    "D101": ("unreadable-file", "MUST"),
    "D102": ("malformed-text", "MUST"),
    "D103": ("missing-key", "MUST"),
    "D104": ("wrong-value", "MUST"),
    "D105": ("unknown-key", "SHOULD"),
    "D106": ("wrong-choice", "MUST"),
    "D107": ("earlier-spelling", "SHOULD"),
    "D108": ("unsupported-handler", "MUST"),
    "D109": ("said-twice", "MUST"),
    "D110": ("not-json", "MUST"),
    "D111": ("endpoint-in-two-files", "MUST"),
    "D112": ("folder-reached-twice", "SHOULD"),
    "D113": ("nothing-to-serve", "SHOULD"),
    "D114": ("unknown-document", "MUST"),
    "D115": ("incomplete-agent", "MUST"),
    "D116": ("unusable-endpoint", "SHOULD"),
    "D117": ("method-in-small-letters", "SHOULD"),
    "D118": ("assumed-default", "SHOULD"),
    "D119": ("python-not-read", "style"),
    "D160": ("no-openapi-description", "MUST"),
    "D161": ("reference-not-followed", "MUST"),
    "D162": ("schema-cut", "SHOULD"),
    "D163": ("schema-part-left-out", "SHOULD"),
    "D164": ("parameter-not-described", "SHOULD"),
    "D165": ("part-not-imported", "style"),
    "D166": ("operation-id-twice", "SHOULD"),
    "D167": ("server-left-open", "SHOULD"),
    "D168": ("body-left-open", "SHOULD"),
    "D169": ("unusable-security-scheme", "MUST"),
    "D196": ("private-key-in-document", "MUST"),
    "D197": ("genesis-does-not-hold", "MUST"),
    "D198": ("trust-without-proof", "MUST"),
    "D199": ("too-many-findings", "MUST"),
    "V551": ("catalog-malformed", "MUST"),
    "V552": ("catalog-missing-key", "MUST"),
    "V553": ("catalog-wrong-value", "MUST"),
    "V554": ("catalog-verb-name", "MUST"),
    "V555": ("catalog-unknown-category", "MUST"),
    "V556": ("catalog-unknown-verb", "MUST"),
    "V557": ("catalog-version", "MUST"),
    "V558": ("catalog-floor-incomplete", "MUST"),
    "V559": ("catalog-legacy-verbs", "MUST"),
    "V560": ("catalog-unknown-key", "SHOULD"),
    "V561": ("catalog-odd-deprecation", "SHOULD"),
    "V562": ("catalog-unreadable", "MUST"),
    "W101": ("web-document-unreachable", "MUST"),
    "W102": ("web-address-refused", "MUST"),
    "W103": ("web-answer-unusable", "MUST"),
    "W104": ("robots-disallowed", "MUST"),
    "W105": ("web-document-unusable", "MUST"),
    "W106": ("capability-unusable", "SHOULD"),
    "W107": ("web-document-cut", "SHOULD"),
    "W108": ("content-usage-preference", "style"),
    "W109": ("capability-elsewhere", "style"),
    "Y820": ("incomplete-identity", "SHOULD"),
    "Y821": ("setting-without-effect", "SHOULD"),
    "Y822": ("contradicting-settings", "MUST"),
    "Y850": ("unknown-auth-mode", "MUST"),
    "Y851": ("contradicting-auth-modes", "MUST"),
    "Y852": ("token-keys-unclear", "MUST"),
    "Y853": ("unsafe-jwks-url", "MUST"),
    "Y854": ("token-algorithm-not-allowed", "MUST"),
    "Y855": ("auth-time-out-of-bounds", "MUST"),
    "Y856": ("client-authorities-missing", "MUST"),
    "Y857": ("auth-table-without-effect", "SHOULD"),
    "Y858": ("empty-auth-setting", "MUST"),
    "Y870": ("recorded-field-without-endpoint", "MUST"),
    "Y871": ("signing-without-key", "MUST"),
    "Y872": ("checkpoint-distance-out-of-bounds", "MUST"),
    "Y873": ("secret-recorded", "SHOULD"),
    "Y874": ("audit-setting-without-effect", "SHOULD"),
    "Y875": ("unknown-store-place", "MUST"),
    "Y876": ("store-password-in-file", "SHOULD"),
    "Y877": ("idempotency-time-out-of-bounds", "MUST"),
    "Y878": ("session-setting-out-of-bounds", "MUST"),
    "Y881": ("rate-limit", "MUST"),
    "Y890": ("unknown-service-category", "MUST"),
    "Y891": ("no-web-address", "MUST"),
    "Y892": ("unlimited-on-the-web", "SHOULD"),
    "Y893": ("no-network-address", "MUST"),
    "Y894": ("no-language-tag", "MUST"),
}
"""Names for the rules of readers, which give an id and a sentence, and how binding each is."""

_SOURCES: Final = {"V": "AGTP-API 4.2", "W": "AI-Discovery 4"}
"""What asks for the rules of readers, by the first letter of their ids; the others are about files."""

_FIXES: Final[Mapping[str, Fixable]] = {"D105": "unsafe", "D106": "unsafe", "D107": "safe", "D117": "safe"}
"""Which of them come with a repair."""

_PASSES: Final[Mapping[str, int]] = {
    "D12": 1,
    "D13": 1,
    "D14": 1,
    "M21": 2,
    "M22": 2,
    "M23": 3,
    "M24": 3,
    "P32": 4,
    "P33": 4,
    "P34": 4,
    "S41": 5,
    "S42": 5,
    "S43": 5,
    "S44": 5,
    "X9": 5,
    "S45": 6,
    "S46": 6,
    "V50": 7,
    "V51": 7,
    "V52": 7,
    "V53": 7,
    "J62": 8,
    "J63": 8,
    "J64": 8,
}
"""The pass of AGIS 9.1 by the beginning of an id."""

_DIGITS: Final = str.maketrans("OIL", "011")
"""Letters that are taken for digits."""


@cache
def all_rules() -> Mapping[str, Rule]:
    """Every rule by its id, sorted."""
    rules = dict(RULES)
    for rule in AGIS_RULES:
        rules[rule.id] = Rule(*rule)
    for id_, text in (*READER_RULES.items(), *CATALOG_RULES.items()):
        if id_ not in rules:
            name, normative = _READERS[id_]
            source = _SOURCES.get(id_[0], "reading files")
            page, fix = PAGES[id_], _FIXES.get(id_, "none")
            rules[id_] = Rule(id_, name, normative, source, text, page.why, page.bad, page.good, fix, page.notation)
    others = (*suppress.RULES, *baseline.RULES, *served_answer.RULES, *served_agreement.RULES)
    rules |= {rule.id: rule for rule in others}
    return dict(sorted(rules.items()))


def find_rule(text: str) -> Rule | None:
    """A rule by its id or its name, in any case."""
    rules = all_rules()
    wanted = text.strip()
    if wanted.upper() in rules:
        return rules[wanted.upper()]
    return next((rule for rule in rules.values() if rule.name == wanted.lower()), None)


def near_rules(text: str) -> list[str]:
    """The ids or names somebody may have meant."""
    rules = all_rules()
    names = [rule.name for rule in rules.values()]
    wanted = text.strip()[:60]
    number = wanted.upper()[:1] + wanted.upper()[1:].translate(_DIGITS)
    found = [number] if number in rules else get_close_matches(number, rules, n=2, cutoff=0.7)
    found += get_close_matches(wanted.lower(), names, n=2)
    # A part of a name is no near miss by letters, but plainly meant.
    found += [name for name in names if len(wanted) > 3 and wanted.lower() in name]
    return list(dict.fromkeys(found))[:4]


def pass_of(rule: str) -> int:
    """The pass of AGIS 9.1 a rule belongs to; 0 for what AGTP-API or the files themselves ask."""
    return _PASSES.get(rule[:3]) or _PASSES.get(rule[:2], 0)


def rule_texts() -> dict[str, RuleText]:
    """The rules as reporters speak of them."""
    return {
        rule.id: RuleText(
            id=rule.id,
            name=rule.name,
            severity=rule.severity,
            summary=rule.summary,
            why=rule.why,
            source=rule.source,
        )
        for rule in all_rules().values()
    }

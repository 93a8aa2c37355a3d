"""V50x: the vocabulary block lists exactly the verbs in use, and their origin (AGIS 8.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bespeak.checks.lint.subject import LintContext, Subject
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief, instead, unquoted
from bespeak.text.identifiers import slug
from bespeak.text.source.tree import Change

UNDECLARED: Final = Rule("V501", "undeclared-verb", "MUST", "AGIS 8.2(a), 9.1 pass 7", fix="safe")
UNUSED: Final = Rule("V502", "unused-verb", "MUST", "AGIS 8.2(b), 9.1 pass 7", fix="safe")
NO_VERBS: Final = Rule("V503", "no-declared-verbs", "MUST", "AGIS 8.2", fix="safe")
REPEATED: Final = Rule("V504", "repeated-verb", "style", "AGIS 8.2", fix="safe")
NOT_CAPITAL: Final = Rule("V505", "verb-not-in-capitals", "SHOULD", "AGIS 4.1(e), 10", fix="safe")
NO_DOMAIN: Final = Rule("V506", "no-domain", "SHOULD", "AGIS 8.2(c)")
NAMESPACE: Final = Rule("V507", "namespace-form", "SHOULD", "AGIS 8.2(d), 10.1", fix="unsafe")
VERSION: Final = Rule("V508", "vocabulary-version-form", "style", "AGIS 8.2")

_AT: Final = "/vocabulary/declared_verbs"
_NAMESPACE: Final = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
_VERSION: Final = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[0-9A-Za-z.-]{1,64})?(?:\+[0-9A-Za-z.-]{1,64})?")


def check_document(subject: Subject, context: LintContext) -> Iterator[Diagnostic]:
    block = subject.data.get("vocabulary") if subject.kind == "agis" else None
    if not isinstance(block, dict) or not block:
        return
    verbs = block.get("declared_verbs")
    if verbs is None or verbs == []:
        yield _no_verbs(subject, block)
    elif isinstance(verbs, list):
        yield from _check_verbs(subject, verbs)
    domain = block.get("domain", "")
    if isinstance(domain, str) and not domain.strip():
        message = "the vocabulary has no domain"
        yield NO_DOMAIN.inside("/vocabulary", message, "Add domain, in plain words: hospitality, logistics.")
    namespace = block.get("namespace")
    if isinstance(namespace, str) and _NAMESPACE.fullmatch(namespace) is None:
        at, message = "/vocabulary/namespace", f"the namespace {brief(namespace)} is not one lower-case word"
        yield NAMESPACE.inside(at, message, *instead(at, slug(namespace[:100], "-"), "Write it like acme-rooms."))
    version = block.get("version")
    if isinstance(version, str) and _VERSION.fullmatch(version) is None:
        message = f"the version of the vocabulary is {brief(version)}, not three numbers"
        yield VERSION.inside("/vocabulary/version", message, 'Write it like "1.2.0".')


def _no_verbs(subject: Subject, block: Mapping[str, Any]) -> Diagnostic:
    used = list(_used(subject))
    at, absence, change = "/vocabulary", "is missing", Change("insert", "/vocabulary", used, key="declared_verbs")
    if "declared_verbs" in block:
        at, absence, change = _AT, "is empty", Change("replace", _AT, used)
    fix = Fix("List the verbs in use", (change,)) if used else None
    advice = f"List the verbs in use: [{', '.join(used[:8])}]." if used else "List the verbs of the endpoints."
    return NO_VERBS.inside(at, f"declared_verbs {absence}", advice, fix)


def _used(subject: Subject) -> dict[str, list[str]]:
    used: dict[str, list[str]] = {}
    for declared in subject.endpoints:
        method = declared.endpoint.method.strip().upper()  # pass 2 reports the spaces
        if method:
            used.setdefault(method, []).append(declared.pointer("/method"))
    return used


def _check_verbs(subject: Subject, verbs: list[Any]) -> Iterator[Diagnostic]:
    used = _used(subject)
    names = {verb.strip().upper() for verb in verbs if isinstance(verb, str)}
    # BOOK declared and BOOKING used: only the author knows which of the two is wrong.
    one_sided = used.keys() <= names or names <= used.keys()
    listed: set[str] = set()
    for index, verb in enumerate(verbs):
        if not isinstance(verb, str):
            continue
        at, name = f"{_AT}/{index}", verb.strip().upper()
        if name in listed:
            fix = Fix(f"Remove the second {name}", (Change("remove", at),))
            message = f"declared_verbs lists {unquoted(verb)} twice"
            yield REPEATED.inside(at, message, "Remove one of the two.", fix)
            continue
        listed.add(name)
        if name not in used:
            fix = Fix(f"Remove {unquoted(verb)}", (Change("remove", at),), safe=one_sided)
            message = f"declared_verbs lists {brief(verb)}, but no endpoint uses it"
            yield UNUSED.inside(at, message, "Remove it, or declare the endpoint.", fix)
        elif verb != name:
            yield NOT_CAPITAL.inside(at, f"the verb {brief(verb)} is not in capitals", *instead(at, name, safe=True))
    for name, places in used.items():
        if name not in listed:
            users = "an endpoint uses it" if len(places) == 1 else f"{len(places)} endpoints use it"
            message = f"{unquoted(name)} is not in declared_verbs, and {users}"
            fix = Fix(f"Add {unquoted(name)} to declared_verbs", (Change("append", _AT, name),), safe=one_sided)
            advice = f"Add {unquoted(name)} to declared_verbs."
            if not one_sided:
                unused = [verb for verb in sorted(names) if verb not in used]
                advice = f"Add it to declared_verbs, or write a verb that is declared: {', '.join(unused[:4])}."
            yield UNDECLARED.inside(places[0], message, advice, fix)

"""V5xx: the vocabulary lists the verbs in use, and the data manifest discloses nothing (AGIS 8.2, 8.3, 13)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from bespeak.checks.lint.subject import LintContext, Subject
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief, instead, unquoted
from bespeak.text.identifiers import slug
from bespeak.text.language.sentence import LatePattern
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


_SEEN: Final = 10_000  # maximum number of characters to examine


class Disclosed(NamedTuple):
    """Match in a text."""

    kind: str
    text: str


_HELD: Final = (
    r"(?:records?|rows?|entries|customers?|users?|patients?|accounts?|clients?|transactions?|documents?|members?|guests?"
    r"|files|profiles|subscribers?|employees|orders|bookings|reservations|people|objects|items)\b"
)
_CONTENTS: Final = {
    "an e-mail address": LatePattern(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+"),
    "a connection string": LatePattern(
        r"\b[a-z][a-z0-9+]{1,20}://[^\s/@:]{1,64}:[^\s/@]{1,64}@|\b(?:jdbc:\w|mongodb(?:\+srv)?://|postgres(?:ql)?://"
        r"|mysql://|redis://|amqps?://|(?:server|host|data source)=[^;\s]{1,100};)",
        re.IGNORECASE,
    ),
    "a key or secret": LatePattern(
        r"\b(?:AKIA[0-9A-Z]{16}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|xox[abpr]-[A-Za-z0-9-]{10,}"
        r"|eyJ[A-Za-z0-9_-]{10,}\.|AIza[0-9A-Za-z_-]{30,})|-----BEGIN "
        r"|\b(?:password|passwd|pwd|secret|api[_ -]?key|token)\s?[:=]\s?\S{4,}",
        re.IGNORECASE,
    ),
    "an internal host or address": LatePattern(
        r"\b(?:\d{1,3}\.){3}\d{1,3}\b|\\\\[\w.-]{2,64}\\\w|\bs3://\S"
        r"|\b(?:[a-z0-9-]{1,63}\.){1,6}(?:internal|local|lan|intranet|corp|svc|cluster|prod|rds\.amazonaws\.com)\b",
        re.IGNORECASE,
    ),
    "a telephone number": LatePattern(
        r"(?<![\w+.-])\+\d{1,3}[ .()-]{0,2}\d(?:[ .()-]{0,2}\d){6,13}(?!\w)"
        r"|(?<![\w.-])\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?![\w.-])"
    ),
    "an account or card number": LatePattern(
        r"\b\d{3}-\d{2}-\d{4}\b|\b(?:\d{4}[ -]?){3}\d{4}\b|\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}\b"
    ),
}
_DETAILS: Final = {
    "a record count": LatePattern(
        r"\b(?:\d{1,3}(?:[,.]\d{3}){1,5}|\d{5,15}|\d[\d,.]{0,20}\s?(?:k|m|b|bn|thousand|million|billion|trillion))"
        rf"\+?\s(?:[a-z-]{{1,30}}\s){{0,3}}?{_HELD}"
        rf"|\b(?:hundreds|thousands|millions|billions)\sof\s(?:[a-z-]{{1,30}}\s){{0,2}}?{_HELD}",
        re.IGNORECASE,
    ),
    "a field name": LatePattern(
        r"(?<![\w./-])[a-z][a-z0-9]{0,40}(?:_[a-z0-9]{1,40}){1,6}(?![\w/])"
        r"|(?<![\w./-])[a-z]{2,20}(?:[A-Z][a-z]{1,20}){1,4}(?:ID)?(?![\w/])"
    ),
    "a storage detail": LatePattern(
        r"\b(?:SELECT\s.{1,80}?\sFROM|INSERT INTO|CREATE TABLE|VARCHAR|(?:primary|foreign) key|NOT NULL)\b"
        r"|\b(?:columns?|fields?|tables?)\s?(?:named|called|:)\s?\S|\b\w{1,40}\.\w{1,40}\scolumn",
        re.IGNORECASE,
    ),
}


def disclosed_contents(text: str) -> Disclosed | None:
    """Find data itself, or a way to access it."""
    return _search(_CONTENTS, text)


def disclosed_details(text: str) -> Disclosed | None:
    """Find amounts of data, field names, or storage details."""
    return _search(_DETAILS, text)


def _search(patterns: Mapping[str, LatePattern], text: str) -> Disclosed | None:
    matches = ((kind, pattern.search(text[:_SEEN])) for kind, pattern in patterns.items())
    return next((Disclosed(kind, found[0]) for kind, found in matches if found is not None), None)


NO_MANIFEST: Final = Rule("V520", "negotiable-without-manifest", "MUST", "AGIS 8.2(e), 8.3")
NO_DATA: Final = Rule("V521", "no-available-data", "MUST", "AGIS 8.3")
NO_CLASS: Final = Rule("V522", "data-class-unnamed", "MUST", "AGIS 8.3")
REPEATED_CLASS: Final = Rule("V523", "repeated-data-class", "SHOULD", "AGIS 8.3")
CLASS_FORM: Final = Rule("V524", "data-class-form", "style", "AGIS 8.3", fix="unsafe")
NO_DESCRIPTION: Final = Rule("V525", "data-class-undescribed", "SHOULD", "AGIS 8.3")
SENSITIVITY: Final = Rule("V526", "sensitivity-value", "MUST", "AGIS 8.3", fix="safe")
UNGUARDED: Final = Rule("V527", "sensitive-without-authorization", "SHOULD", "AGIS 8.3", fix="unsafe")
CONTENTS: Final = Rule("V528", "manifest-reveals-contents", "MUST", "AGIS 13")
DETAILS: Final = Rule("V529", "manifest-reveals-details", "SHOULD", "AGIS 13")
NOT_NEGOTIABLE: Final = Rule("V530", "manifest-without-negotiation", "style", "AGIS 8.2(e), 8.3")

_DATA_AT: Final = "/data_manifest/available_data"
_LEVELS: Final = ("informational", "reversible", "irreversible", "low", "medium", "high")
_CLASS_NAME: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def check_data_manifest(subject: Subject, context: LintContext) -> Iterator[Diagnostic]:
    if subject.kind != "agis":
        return
    vocabulary = subject.data.get("vocabulary")
    negotiable = isinstance(vocabulary, dict) and vocabulary.get("negotiable") is True
    block = subject.data.get("data_manifest")
    if not block:
        if negotiable and not isinstance(block, list | str | int | float):
            message = "the service is negotiable, but has no data_manifest"
            advice = "Add data_manifest with available_data, or remove negotiable."
            yield NO_MANIFEST.inside("/vocabulary/negotiable", message, advice)
        return
    if not isinstance(block, dict):
        return
    if not negotiable:
        message = "there is a data_manifest, but the vocabulary lacks negotiable: true"
        yield NOT_NEGOTIABLE.inside("/data_manifest", message, "Add negotiable: true to vocabulary.", on_key=True)
    entries = block.get("available_data")
    if entries is None or entries == []:
        message = "the data_manifest lists no class of data"
        yield NO_DATA.inside("/data_manifest", message, "Add available_data: with an entry `class: ...` for each.")
    elif isinstance(entries, list):
        names: set[str] = set()
        for index, entry in enumerate(entries):
            if isinstance(entry, dict):
                yield from _check_entry(f"{_DATA_AT}/{index}", entry, names)
                if block.get("pre_auth_discovery") is True:
                    yield from _check_public(f"{_DATA_AT}/{index}", entry)


def _check_entry(at: str, entry: Mapping[str, Any], names: set[str]) -> Iterator[Diagnostic]:
    name = entry.get("class")
    if name is None or (isinstance(name, str) and not name.strip()):
        yield NO_CLASS.inside(at, "the entry has no class", "Write class: and a name like customer-profile.")
    elif isinstance(name, str):
        yield from _check_name(f"{at}/class", name, names)
    description = entry.get("description")
    if description is None or (isinstance(description, str) and not description.strip()):
        message = f"the class {brief(name)} has no description" if name else "the entry has no description"
        yield NO_DESCRIPTION.inside(at, message, "Describe the kind of data in words that may be public.")
    sensitivity = entry.get("sensitivity")
    if not isinstance(sensitivity, str):
        return
    level = sensitivity.strip().lower()
    if sensitivity not in _LEVELS:
        place, otherwise = f"{at}/sensitivity", "Write irreversible, or high, for what must not get out."
        message = f"sensitivity is {', '.join(_LEVELS[:-1])} or {_LEVELS[-1]}, not {brief(sensitivity)}"
        meant = level if level in _LEVELS else ""
        yield SENSITIVITY.inside(place, message, *instead(place, meant, otherwise, safe=True))
    if level in ("irreversible", "high") and entry.get("requires_authorization") in (None, False):
        if "requires_authorization" in entry:
            change, place = Change("replace", f"{at}/requires_authorization", True), f"{at}/requires_authorization"
        else:
            change, place = Change("insert", at, True, key="requires_authorization"), f"{at}/sensitivity"
        fix = Fix("Require authorization", (change,), safe=False)
        message = f"the sensitivity is {level}, and no authorization is required"
        yield UNGUARDED.inside(place, message, "Add requires_authorization: true.", fix)


def _check_name(at: str, name: str, names: set[str]) -> Iterator[Diagnostic]:
    if name.lower() in names:
        message = f"the class {brief(name)} is listed twice"
        yield REPEATED_CLASS.inside(at, message, "Merge the two entries, or rename one of them.")
    names.add(name.lower())
    if _CLASS_NAME.fullmatch(name) is None:
        message = f"the class {brief(name)} is not lower-case words and hyphens"
        yield CLASS_FORM.inside(at, message, *instead(at, slug(name[:100], "-"), "Write it like customer-profile."))


def _check_public(at: str, entry: Mapping[str, Any]) -> Iterator[Diagnostic]:
    for key in ("class", "description"):
        text = entry.get(key)
        if not isinstance(text, str):
            continue
        if (what := disclosed_contents(text)) is not None:
            message = f"the manifest is public and contains {what.kind}: {brief(what.text)}"
            yield CONTENTS.inside(f"{at}/{key}", message, "Describe the kind of data, without an example of it.")
            continue
        what = disclosed_details(text) if key == "description" else None
        if what is not None:
            message = f"the manifest is public and discloses {what.kind}: {brief(what.text)}"
            advice = "Leave it out; authorized agents can learn it in the negotiation."
            yield DETAILS.inside(f"{at}/{key}", message, advice)

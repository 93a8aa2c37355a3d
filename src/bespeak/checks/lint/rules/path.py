"""P3xx: a path follows the grammar (AGTP-API 5), names things without verbs (AGIS 5), and is unique (5.4, 6.1)."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from bespeak.checks.lint.subject import Declared, LintContext
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.grammar import syntax as spelling
from bespeak.contract.grammar.syntax import TemplateSet, check_leakage, check_structure, parse_template
from bespeak.contract.handler import RegisteredFunction
from bespeak.protocol.exchange.refusal import Fault
from bespeak.text.diagnostics.diagnostic import Diagnostic, Fix, Rule, brief, unquoted
from bespeak.text.reading.table import as_mapping
from bespeak.text.source.tree import Change

if TYPE_CHECKING:
    from bespeak.text.language.segment import Reason, SegmentVerdict

STRUCTURE: Final = Rule("P301", "path-structure", "MUST", "AGTP-API 5.1, 5.2", fix="safe")
LEAKAGE: Final = Rule("P302", "method-name-in-path", "MUST", "AGTP-API 5.1")
TEMPLATE: Final = Rule("P303", "template-form", "MUST", "AGTP-API 5.2, 5.3")
REPEATED: Final = Rule("P304", "repeated-parameter", "MUST", "AGTP-API 5.2")
UNDECLARED: Final = Rule("P305", "undeclared-parameter", "MUST", "AGTP-API 5.3")
LOOKALIKE: Final = Rule("P308", "parameter-look-alike", "SHOULD", "AGTP-API 5.2", fix="unsafe")

SLASH: Final = Rule("P320", "path-without-slash", "MUST", "AGIS 5(a)", fix="safe")
EMPTY: Final = Rule("P321", "empty-segment", "MUST", "AGIS 5(b), AGTP-API 5.1", fix="safe")
UPPERCASE: Final = Rule("P322", "uppercase-path", "MUST", "AGIS 5(c)", fix="safe")
CAMEL: Final = Rule("P323", "camel-case-path", "MUST", "AGIS 5(c)", fix="unsafe")
UNDERSCORE: Final = Rule("P324", "underscore-in-path", "MUST", "AGIS 5(c)", fix="unsafe")
PARAMETER: Final = Rule("P325", "parameter-notation", "MUST", "AGIS 5(d)", fix="unsafe")
DUPLICATE_PARAMETER: Final = Rule("P326", "parameter-twice", "MUST", "AGIS 5(d)")
NO_NOUN: Final = Rule("P327", "path-without-noun", "MUST", "AGIS 5(b)")
VERSION: Final = Rule("P328", "version-in-path", "SHOULD", "AGIS 5(b)", fix="unsafe")
VERB: Final = Rule("P330", "verb-in-path", "MUST", "AGIS 5(b)", fix="unsafe")
LIKELY_VERB: Final = Rule("P331", "likely-verb-in-path", "SHOULD", "AGIS 5(b)", fix="unsafe")
METHOD: Final = Rule("P332", "method-in-path", "MUST", "AGIS 5(e)", fix="unsafe")
METHOD_AS_NOUN: Final = Rule("P333", "method-as-path", "MUST", "AGIS 5(e)")
QUERY: Final = Rule("P334", "query-in-path", "MUST", "AGIS 5(f)", fix="unsafe")
CHARACTERS: Final = Rule("P335", "path-characters", "MUST", "AGIS 5(c)", fix="safe")

_QUERY: Final = re.compile(r"(?<!\{)[?#]")  # Where the query or fragment starts; `{?page}` is an invalid parameter.
_VERSION: Final = re.compile(r"v[0-9]+(?:[.-][0-9]+)*")
_WHERE: Final[dict[Reason, str]] = {
    "question": "asks a question with {}",
    "method": "repeats the method",
    "infinitive": "is the infinitive of the verb {}",
    "alone": "is the verb {}",
    "form": "is a form of the verb {}",
    "past": "is a past form of the verb {}",
    "first": "begins with the verb {}",
    "first form": "begins with a form of the verb {}",
    "inside": "contains the verb {}",
    "last": "ends with the verb {}",
    "last form": "ends with a form of the verb {}",
    "joined": "joins the verb {} and a noun",
    "tail": "reads like the verb {} behind a resource",
}
_NAME_THE_THING: Final = "The method names the action; the path names its object."
_SHOWN: Final = 120
_MOST: Final = 100  # maximum number of segments whose words are looked up


def check_endpoint(endpoint: Endpoint, verbs: Container[str]) -> Iterator[Diagnostic]:
    """Check the path of one endpoint as registration does, by the grammar of AGTP-API."""
    template = parse_template(endpoint.path)
    fault = check_structure(endpoint.path) if isinstance(template, Fault) else None
    if fault is not None:
        rule = TEMPLATE if ("{" in fault.at or "}" in fault.at) and endpoint.path.startswith("/") else STRUCTURE
        fix = _with_slashes(endpoint.path) if rule is STRUCTURE else None
        yield rule.at(endpoint, "/path", fault.message, _write_parameter(spelling.foreign_parameter(fault.at)), fix)
        return
    if (leak := check_leakage(endpoint.path, verbs)) is not None:
        advice = (
            f"Remove {brief(leak.at)}, or name the resource, for example in the plural: the method names the action."
        )
        yield LEAKAGE.at(endpoint, "/path", leak.message, advice)
    if isinstance(template, Fault):
        yield REPEATED.at(endpoint, "/path", template.message, "Give each parameter its own name.")
        return
    if "/:" in endpoint.path:
        yield from _check_lookalikes(endpoint)
    declared = as_mapping(endpoint.input_schema.get("properties"))
    yield from (_undeclared(endpoint, name) for name in template.parameters if name not in declared)


def _with_slashes(path: str) -> Fix | None:
    """Return the path with one leading slash and no trailing one, if nothing else is wrong."""
    meant = "/" + path.strip("/")
    if check_structure(meant) is not None:
        return None
    return Fix(f"Write {unquoted(meant)}", (Change("replace", "/path", meant),))


def _check_lookalikes(endpoint: Endpoint) -> Iterator[Diagnostic]:
    segments = endpoint.path.split("/")
    for index, segment in enumerate(segments):
        if name := spelling.foreign_parameter(segment):
            message, advice = f"{brief(segment)} matches only itself, to the letter", _write_parameter(name)
            meant = "/".join([*segments[:index], f"{{{name}}}", *segments[index + 1 :]])
            fix = Fix(f"Write {unquoted(meant)}", (Change("replace", "/path", meant),), safe=False)
            yield LOOKALIKE.at(endpoint, "/path", message, advice, fix)


def _write_parameter(name: str) -> str:
    return f"Write a parameter as {{{name}}}." if name else ""


def _undeclared(endpoint: Endpoint, name: str) -> Diagnostic:
    handler = endpoint.handler
    if isinstance(handler, RegisteredFunction) and handler.target is not None:
        message, advice = f"the path has {{{name}}}, but the function has no parameter {name}", "Add the parameter"
    else:
        message, advice = f"the path parameter {{{name}}} is not a property of input_schema", "Add the property"
    advice = f"{advice} {name!r}: its value reaches the handler with the input."
    return UNDECLARED.at(endpoint, "/path", message, advice)


def check(declared: Declared, context: LintContext) -> Iterator[Diagnostic]:
    """Run pass 4: report each rule at most once per path."""
    endpoint, path = declared.endpoint, declared.endpoint.path
    if not path.strip():
        return  # pass 1 reports a missing path
    if path != path.strip() and "://" not in path:
        yield _replacing(CHARACTERS, endpoint, f"{brief(path)} has spaces around it", path.strip(), safe=True)
        return
    segments, findings = _divide(endpoint)
    yield from findings
    yield from _check_first(endpoint, segments, context)
    yield from _check_parameters(endpoint, segments)
    yield from _check_words(endpoint, segments, context)


def _divide(endpoint: Endpoint) -> tuple[list[str], list[Diagnostic]]:
    """Return the segments of a path as they are meant, and what is wrong with what surrounds them."""
    path, findings = endpoint.path, []
    if "://" in path:
        path = "/" + path.partition("://")[2].partition("/")[2]
        message = f"{brief(endpoint.path)} is an address"
        findings.append(_replacing(SLASH, endpoint, message, path, "Declare only the path."))
    if not path.startswith("/"):
        message = f"{brief(path)} does not begin with a slash"
        findings.append(_replacing(SLASH, endpoint, message, f"/{path}", safe=True))
        path = f"/{path}"
    if (query := _QUERY.search(path)) is not None:
        message = f"{brief(path[query.start() :])} is {'a query string' if query[0] == '?' else 'a fragment'}"
        path = path[: query.start()]
        advice = "Declare variable parts as properties of the input."
        findings.append(_replacing(QUERY, endpoint, message, path, advice))
    segments = path[1:].split("/")
    if "" in segments and path != "/":
        segments = list(filter(None, segments))
        message = "the path ends with a slash" if path.endswith("/") else "the path has an empty segment"
        findings.append(_replacing(EMPTY, endpoint, message, "/" + "/".join(segments), safe=True))
    return segments, findings


def _check_words(endpoint: Endpoint, segments: Sequence[str], context: LintContext) -> Iterator[Diagnostic]:
    """Check the literal segments: first for verbs, then the others for their spelling."""
    from bespeak.text.language.segment import judge_segment  # noqa: PLC0415 - a plain server does without English

    judged = {
        segment: judge_segment(segment, endpoint.method, last=place > 0 and place == len(segments) - 1)
        for place, segment in enumerate(segments[:_MOST])
        if segment and not spelling.is_parameter(segment) and segment not in context.allowed_segments
    }
    yield from _check_verbs(endpoint, segments, {name: verdict for name, verdict in judged.items() if verdict})
    rest = [
        segment
        for segment, verdict in judged.items()
        if not spelling.is_name(segment) and (verdict is None or verdict.tier != "error")
    ]
    yield from _check_spelling(endpoint, segments, rest)


def _check_first(endpoint: Endpoint, segments: Sequence[str], context: LintContext) -> Iterator[Diagnostic]:
    first = segments[0] if segments else ""
    if first in context.allowed_segments:
        return
    if not first:
        if context.agis:  # the floor methods of AGTP are at the root
            yield NO_NOUN.at(endpoint, "/path", "the path does not name a resource", "Name the resource: /reservation.")
    elif spelling.parameter_name(first):
        advice = f"Name the kind of resource first: /reservation/{first[:80]}."
        yield NO_NOUN.at(endpoint, "/path", f"the path begins with the parameter {brief(first)}", advice)
    elif first.isdecimal():
        message = f"the path begins with the number {brief(first)}"
        yield NO_NOUN.at(endpoint, "/path", message, "Name the resource first.")
    elif _VERSION.fullmatch(first):
        without = "/" + "/".join(segments[1:])
        message = f"the path begins with the version {first[:80]}"
        advice = "vocabulary.version sets it for all endpoints."
        yield _replacing(VERSION, endpoint, message, without if len(segments) > 1 else "", advice)


def _check_parameters(endpoint: Endpoint, segments: Sequence[str]) -> Iterator[Diagnostic]:
    wrong: dict[str, str] = {}
    seen: set[str] = set()
    twice = ""
    for segment in segments:
        if name := spelling.parameter_name(segment):
            twice = twice or (name if name in seen else "")
            seen.add(name)
        elif spelling.is_parameter(segment):
            meant = spelling.meant_parameter(segment)
            wrong[segment] = f"{{{meant}}}" if meant else ""
    if wrong:
        segment, written = next(iter(wrong.items()))
        message = f"{brief(segment)} is not a valid parameter{_and_more(len(wrong))}"
        path = _rebuilt(segments, wrong) if all(wrong.values()) else ""
        advice = "" if written else "Write a parameter as a whole segment: {id}."
        yield _replacing(PARAMETER, endpoint, message, path, advice)
    if twice:
        message = f"the parameter {{{twice[:80]}}} occurs twice in the path"
        yield DUPLICATE_PARAMETER.at(endpoint, "/path", message, "Name what each one identifies: {order_id}.")


def _check_verbs(
    endpoint: Endpoint, segments: Sequence[str], verdicts: Mapping[str, SegmentVerdict]
) -> Iterator[Diagnostic]:
    grouped: dict[Rule, list[str]] = {}
    method = endpoint.method.lower()
    for segment, verdict in verdicts.items():
        if segment.lower() == method:
            rule = METHOD_AS_NOUN
        elif verdict.tier == "error":
            rule = METHOD if verdict.verb == method else VERB
        else:
            rule = LIKELY_VERB
        grouped.setdefault(rule, []).append(segment)
    for rule, found in grouped.items():
        verdict = verdicts[found[0]]
        where = _WHERE[verdict.reason].format(verdict.verb)
        message = f"{brief(found[0])} {where}{_and_more(len(found))}"
        instead = {segment: verdicts[segment].instead or "" for segment in found}
        path = _rebuilt(segments, instead) if all(instead.values()) and rule is not METHOD_AS_NOUN else ""
        yield _replacing(rule, endpoint, message, path, _NAME_THE_THING)


def _check_spelling(endpoint: Endpoint, segments: Sequence[str], odd: Sequence[str]) -> Iterator[Diagnostic]:
    grouped: dict[Rule, list[str]] = {}
    for segment in odd:
        if not spelling.is_name(spelling.hyphenated(segment)):
            grouped.setdefault(CHARACTERS, []).append(segment)
            continue
        if "_" in segment:
            grouped.setdefault(UNDERSCORE, []).append(segment)
        if segment != segment.lower():
            grouped.setdefault(CAMEL if spelling.is_camel(segment) else UPPERCASE, []).append(segment)
    for rule, found in grouped.items():
        segment = found[0]
        more = _and_more(len(found))
        if rule is CHARACTERS:
            message = f"{brief(segment)} has {spelling.odd_character(segment)}{more}"
            yield rule.at(endpoint, "/path", message, "Write lower-case words with hyphens between them.")
        elif rule is UPPERCASE:
            path = _rebuilt(segments, {each: each.lower() for each in found})
            yield _replacing(rule, endpoint, f"{brief(segment)} has capitals{more}", path, safe=True)
        else:
            what = "an underscore" if rule is UNDERSCORE else "words separated by capitals"
            path = _rebuilt(segments, {each: spelling.hyphenated(each) for each in found})
            yield _replacing(rule, endpoint, f"{brief(segment)} has {what}{more}", path)


def _rebuilt(segments: Sequence[str], instead: Mapping[str, str]) -> str:
    return "/" + "/".join(instead.get(segment, segment) for segment in segments)


def _and_more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""


def _replacing(
    rule: Rule, endpoint: Endpoint, message: str, path: str, advice: str = "", *, safe: bool = False
) -> Diagnostic:
    """Build a finding with the replacement path as advice and as fix, if there is exactly one."""
    if not path:
        return rule.at(endpoint, "/path", message, advice)
    shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}..."
    fix = Fix(f"Write {shown}", (Change("replace", "/path", path),), safe=safe)
    return rule.at(endpoint, "/path", message, f"Write {shown}. {advice}".rstrip(), fix)


AMBIGUOUS_ENDPOINT: Final = Rule("P306", "ambiguous-path", "MUST", "AGTP-API 5.4")
DUPLICATE_ENDPOINT: Final = Rule("P307", "duplicate-endpoint", "MUST", "AGTP-API 6.1")


class PathClaims:
    """Paths claimed by the endpoints of a service so far, by method."""

    def __init__(self) -> None:
        self._templates: dict[str, TemplateSet] = {}
        self._places: dict[tuple[str, str], Endpoint] = {}

    def claim(self, endpoint: Endpoint) -> Diagnostic | None:
        """Claim the endpoint's path for its method, or report the earlier endpoint that it collides with."""
        template = parse_template(endpoint.path)
        if isinstance(template, Fault):
            return None
        rival = self._templates.setdefault(endpoint.method, TemplateSet()).add(template)
        if rival is None:
            self._places[endpoint.key] = endpoint
            return None
        earlier = self._places[endpoint.method, rival.path]
        where = f" ({earlier.location})" if earlier.location else ""
        if rival.path == endpoint.path:
            message = f"this method and path are already declared{where}"
            return DUPLICATE_ENDPOINT.at(endpoint, "/path", message, "Remove one of the two.")
        message = f"the path is ambiguous with {rival.path}{where}: some request matches both equally well"
        return AMBIGUOUS_ENDPOINT.at(endpoint, "/path", message, "Make one of the two more specific.")


def check_collision(endpoint: Endpoint, claims: PathClaims) -> Iterator[Diagnostic]:
    """Claim the path of an endpoint; report a collision with an earlier one."""
    if (finding := claims.claim(endpoint)) is not None:
        yield finding

"""Check of one text: reads it, runs the passes, places findings, applies settings and ignores, as editors and CI do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from bespeak.checks.lint.config import Judge
from bespeak.checks.lint.registration import check_binding, check_contract, check_service, effective_policies
from bespeak.checks.lint.rule_index import DOCUMENTS, PASSES, RULES, find_rule
from bespeak.checks.lint.subject import AGIS_NAMES, Declared, Kind, LintContext, Subject, attempt, failed_document
from bespeak.checks.lint.suppress import suppress
from bespeak.contract.catalog.catalog import Catalog
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.policy import Policies
from bespeak.documents.deployment.folder import AGENT_SUFFIX
from bespeak.documents.rules import UNKNOWN_DOCUMENT
from bespeak.documents.yaml_text import parse_notation
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.diagnostics.report import Finding, Replacement
from bespeak.text.reading.rules import MISSING_KEY
from bespeak.text.reading.table import Findings, Table, as_list, as_mapping
from bespeak.text.source.pointer import child
from bespeak.text.source.python_tree import PythonSource, PythonTree
from bespeak.text.source.tree import Location, Span, Tree, plain, without_collections


def read_subject(text: str, file: str, kind: Kind | None = None) -> Subject | Diagnostic:
    """Read the document in a text, or return why it is unreadable. The kind is detected if it is not given."""
    tree = parse_notation(text, file)
    if isinstance(tree, Diagnostic):
        return tree
    kind = kind or kind_of(tree)
    if kind is None:
        known = "An AGIS document has `agis`, an endpoint file [endpoint], a manifest `agtp_version`"
        advice = f"{known}, an agent document `agent_id`."
        return UNKNOWN_DOCUMENT.found("the kind of document is not known", Location(file), advice=advice)
    root = Table(as_mapping(tree.data), "", Findings(tree.locate))
    members = _READERS[kind](root, tree)  # first: it adds to the findings
    return Subject(kind=kind, tree=tree, **{"found": tuple(root.findings.found), **members})


def kind_of(tree: Tree) -> Kind | None:
    """Detect the kind of a document by its file name and its content."""
    data: object = tree.data
    if tree.file.endswith(".agis"):
        return "agis"
    if not isinstance(data, dict):
        return None
    if tree.notation == "toml":
        return _toml_kind(data, Path(tree.file).name)
    if "aiendpoint" in data:
        return "ai"
    if "agis" in data or ("endpoints" in data and "vocabulary" in data):
        return "agis"
    if tree.file.endswith(AGENT_SUFFIX) or ("agent_id" in data and "endpoints" not in data):
        return "agent"
    if "agtp_version" in data or "agtp_api_version" in data:
        return "manifest"
    return None


def _toml_kind(data: Mapping[str, Any], name: str) -> Kind | None:
    if "endpoint" in data:
        return "endpoint"
    if "recipe" in data:
        return "recipes"
    if "server" in data or "policies" in data or name in ("bespeak.toml", "agtp-server.toml"):
        return "server"
    return None


# Most runs have few kinds of documents; importing readers on demand speeds up the start.


def _read_agis(_: Table, tree: Tree) -> dict[str, Any]:
    from bespeak.documents.agis.document import read_agis  # noqa: PLC0415 - as above

    document, found = read_agis(tree)
    entries = document.endpoints if document else ()
    endpoints = tuple(Declared(entry.endpoint, entry.at, entry.declared, AGIS_NAMES) for entry in entries)
    return {"endpoints": endpoints, "found": tuple(found), "agis": document}


def _endpoint(root: Table, tree: Tree) -> dict[str, Any]:
    from bespeak.documents.deployment.endpoint_toml import declared_endpoint  # noqa: PLC0415 - as above

    endpoint, written = declared_endpoint(root, tree.file), as_mapping(tree.data.get("endpoint"))
    return {"endpoints": (Declared(endpoint, "/endpoint", written),) if endpoint else ()}


def _server(root: Table, tree: Tree) -> dict[str, Any]:
    from bespeak.documents.deployment.server_toml import server_of  # noqa: PLC0415 - as above

    return {"policies": server_of(root, Path(tree.file).parent)[0].policies}


def _recipes(root: Table, tree: Tree) -> dict[str, Any]:
    from bespeak.documents.deployment.endpoint_toml import recipes_of  # noqa: PLC0415 - as above

    return {"recipes": recipes_of(root, tree.file)[0]}


def _manifest(root: Table, tree: Tree) -> dict[str, Any]:
    from bespeak.documents.manifest_json import read_manifest  # noqa: PLC0415 - as above

    document = read_manifest(root)
    return {"endpoints": tuple(_listed(document.endpoints, tree.data.get("endpoints"))), "policies": document.policies}


def _ai(root: Table, _: Tree) -> dict[str, Any]:
    from bespeak.documents.ai.document import read_ai  # noqa: PLC0415 - as above

    return {"ai": read_ai(root)}


def _agent(root: Table, _: Tree) -> dict[str, Any]:
    from bespeak.state.identity.agent_json import agent_of  # noqa: PLC0415 - as above

    agent_of(root)
    return {}


_READERS: Final = {
    "agis": _read_agis,
    "endpoint": _endpoint,
    "server": _server,
    "recipes": _recipes,
    "manifest": _manifest,
    "ai": _ai,
    "agent": _agent,
}


def _listed(endpoints: tuple[Endpoint, ...], written: object) -> list[Declared]:
    """Pair the endpoints of a manifest with their entries; the reader skips entries without method and path."""
    entries = ((f"/endpoints/{index}", as_mapping(entry)) for index, entry in enumerate(as_list(written)))
    usable = ((at, entry) for at, entry in entries if entry.get("method") and entry.get("path"))
    return [Declared(endpoint, at, entry) for endpoint, (at, entry) in zip(endpoints, usable, strict=False)]


def python_subject(text: str, file: str, endpoints: Sequence[Endpoint]) -> Subject:
    """Place endpoints in the text that declared them."""
    text, _ = plain(text)
    source = PythonSource(text)
    spans: dict[str, Span] = {}
    written: list[dict[str, Any]] = []
    declared: list[Declared] = []
    for number, endpoint in enumerate(endpoints):
        at = f"/endpoints/{number}"
        line = endpoint.location.line if endpoint.location else 1
        spans |= {f"{at}{inside}": span for inside, span in source.spans(line, endpoint.method, endpoint.path).items()}
        written.append(_written(endpoint))
        declared.append(Declared(endpoint, at, written[-1]))
    tree = PythonTree(text, file, {"endpoints": written}, spans)
    return Subject(kind="endpoint", tree=tree, endpoints=tuple(declared))


def _written(endpoint: Endpoint) -> dict[str, Any]:
    """Return what an author may have written; texts in it are not comments."""
    semantic = endpoint.semantic
    block: dict[str, Any] = {name: getattr(semantic, name) for name in ("intent", "outcome", "mcp_tool_name")}
    block |= {name: dict(getattr(semantic, name)) for name in ("parameter_hints", "state_transition")}
    block |= {"concepts": list(semantic.concepts), "confidence_guidance": semantic.confidence_guidance}
    return {
        "method": endpoint.method,
        "path": endpoint.path,
        "description": endpoint.description,
        "semantic": {name: value for name, value in block.items() if value},
        "input_schema": endpoint.input_schema,
        "output_schema": endpoint.output_schema,
    }


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
    with without_collections():  # those of a large document cost as much as the passes
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

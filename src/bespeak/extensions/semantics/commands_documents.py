"""`bespeak semantic publish`, `validate`, `align` and `explain`: the core ontology, envelopes, and alignments."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, Final, get_args

import click
import msgspec

from bespeak.contract.core_ontology import DEFAULT, Namespace, parse_base
from bespeak.errors import ConfigError
from bespeak.extensions.semantics.alignment.aligner import TOOL, Aligned, Base, Override, TermPair, align
from bespeak.extensions.semantics.alignment.draft_json import statement_of
from bespeak.extensions.semantics.alignment.notation import AlignmentNotation, read_alignment, write_alignment
from bespeak.extensions.semantics.alignment.policy import Alignment, MappingRule, Policy, Provenance
from bespeak.extensions.semantics.alignment.signals import Histories, History
from bespeak.extensions.semantics.commands import accepted
from bespeak.extensions.semantics.envelope.reader import EnvelopeReader
from bespeak.extensions.semantics.envelope.writer import find_payload
from bespeak.extensions.semantics.ontology.publication import publish_core
from bespeak.extensions.semantics.ontology.reader import load_ontology, read_bytes
from bespeak.extensions.semantics.profile import ProfilePolicy, judge, judge_agents, judge_violations
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.store import ListMappedCalls, MappedCalls
from bespeak.extensions.semantics.terms import Meanings, Ontology
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Fault
from bespeak.terminal import PATH, CommandFailedError
from bespeak.terminal.console import choice_option, json_option, line, print_findings, print_json, print_lines
from bespeak.terminal.target_store import existing_place, usable, use_store, written_in_one_step
from bespeak.text.diagnostics.diagnostic import Diagnostic, Severity, printable
from bespeak.text.language.embedding import PACKAGE, embed
from bespeak.text.reading.rules import MALFORMED
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.json_tree import parse_json
from bespeak.text.source.tree import SyntaxFault


@click.command()
@click.option("-o", "--output", "folder", required=True, type=PATH, help="Folder; created if needed.")
@click.option("--base", default=DEFAULT.base, show_default=True, help="IRI that all names begin with.")
def publish(folder: Path, base: str) -> None:
    """Write the core ontology, its JSON-LD context and its SHACL shapes.

    Serve the files where your base IRI leads. Other tools can then validate semantic profiles with them.

    \b
    Example:
    bespeak semantic publish -o public --base https://acme.example/meaning/
    """
    namespace = _namespace(base)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot create the folder {folder}: {error.strerror or error}") from error
    for name, text in publish_core(namespace).items():
        path = folder / name
        with written_in_one_step(path) as write:
            write(text.encode())
        path.chmod(0o644)
        click.echo(path)


@click.command()
@click.argument("file", type=PATH)
@click.option("--ontology", "ontologies", multiple=True, type=PATH, help="Ontology that declares the terms.")
@click.option("--strict-domains", is_flag=True, help="Count concepts of sub-domains as outside of a domain.")
@click.option("--renegotiate", is_flag=True, help="Ask to renegotiate for what breaks a consistency rule.")
@click.option("--base", default=DEFAULT.base, show_default=True, help="IRI that all names of the core begin with.")
@json_option
@click.pass_context
def validate(
    context: click.Context,
    *,
    file: Path,
    ontologies: tuple[Path, ...],
    strict_domains: bool,
    renegotiate: bool,
    base: str,
    as_json: bool,
) -> None:
    """Validate a semantic envelope, a message that carries one, or a capability registration.

    Without --ontology, the members are checked; with it, the references too. Contexts are never fetched.

    \b
    Examples:
    bespeak semantic validate request.json --ontology cs.ttl --ontology law.ttl
    bespeak semantic validate registration.json --json
    """
    namespace = _namespace(base)
    tree = parse_json(usable(read_text(file), file), str(file))
    if isinstance(tree, SyntaxFault):
        print_findings([MALFORMED.found(tree.message, tree.location, advice=tree.help)])
        raise CommandFailedError(f"{file} is not JSON; see the finding")
    known = [_load(one, quiet=True, namespace=namespace) for one in ontologies]
    meanings = Meanings(known, namespace) if known else None
    policy = ProfilePolicy(consistency="renegotiate" if renegotiate else "reject", strict_domains=strict_domains)
    reader = EnvelopeReader(namespace)
    carried = find_payload(tree.data)
    is_registration = reader.is_registration(carried.payload)
    if is_registration:
        registration = reader.parse_registration(carried.payload)
        broken = [] if meanings is None else judge_agents(registration, meanings)
        verdict = judge_violations(registration.violations, broken, policy)
    else:
        envelope = reader.parse(carried.payload)
        if meanings is not None:
            verdict = judge(envelope.profile, meanings, policy, envelope.violations)
        else:
            verdict = judge_violations(envelope.violations, (), policy)
    violations = [{**msgspec.to_builtins(one), "path": carried.path + one.path} for one in verdict.violations]
    if as_json:
        kind = "registration" if is_registration else "envelope"
        told = {"kind": kind, "status": verdict.status, "reason": verdict.reason}
        print_json({**told, "references_checked": meanings is not None, "violations": violations})
    else:
        severity: Severity = "error" if verdict.status == "reject" else "warning"
        paths = [carried.path + one.path for one in verdict.violations]
        print_findings(
            Diagnostic(one.rule, severity, one.message, tree.locate(path), path)
            for one, path in zip(verdict.violations, paths, strict=True)
        )
        rest = "" if meanings is not None else " (members only: give --ontology to check the references)"
        print_lines([line(verdict.status, f": {verdict.reason}" if verdict.reason else "", rest)])
    if verdict.status != "accept":
        context.exit(1)


def _namespace(base: str) -> Namespace:
    namespace = parse_base(base)
    if isinstance(namespace, Fault):
        raise ConfigError(namespace.message)
    return namespace


def read_histories(place: str | None) -> Histories:
    """Return how calls through mappings have ended, in both directions together; nothing without a place."""
    if place is None:
        return {}
    rows: list[MappedCalls] = asyncio.run(use_store(existing_place(place), lambda store: store.read(ListMappedCalls())))
    found: dict[tuple[str, str], History] = {}
    for row in rows:
        # Terms that stand for each other do so whichever side has asked.
        for pair in ((row.source, row.target), (row.target, row.source)):
            known = found.get(pair, History(0, 0))
            found[pair] = History(known.succeeded + row.succeeded, known.failed + row.failed)
    return found


_SHOWN: Final = 5
_MOST_LISTED: Final = 20  # most terms to decide that are listed


def _common(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--store", metavar="PLACE", help="Store whose history of calls through mappings counts, too."),
        click.option("--embeddings", is_flag=True, help="Also compare vectors; needs the extra `embeddings`."),
        click.option(
            "--threshold", type=click.FloatRange(0, 1), help="Lowest confidence that is written.  [default: 0.5]"
        ),
        click.argument("target", metavar="B", type=PATH),
        click.argument("source", metavar="A", type=PATH),
    ):
        command = option(command)
    return command


@click.command("align")
@_common
@click.option("-o", "--output", type=PATH, help="File to write.  [default: standard output]")
@choice_option(
    *("--format", "notation"),
    of=get_args(AlignmentNotation),
    default="json",
    help="JSON of the draft, SSSOM TSV, or Alignment API RDF/XML.",
)
@click.option("--id", "iri", default="", help="IRI of the artifact.  [default: made from those of A and B]")
@click.option("--version", default="1.0", show_default=True, help="Version of the artifact.")
@click.option("--base", type=PATH, help="Earlier artifact, kept where both terms are unchanged.")
@click.option("--before", nargs=2, type=PATH, help="The two ontologies of --base, if they have changed since.")
@click.option(
    *("--override", "decisions"),
    nargs=2,
    multiple=True,
    metavar="FROM TO",
    help="Your decision: terms as IRIs, ends of IRIs or labels. TO '' means none.",
)
@click.option("--by", metavar="NAME", help="Name that is recorded with --override.  [default: your login name]")
@click.option("--key", type=PATH, help="Private key to sign with; only JSON carries the signature.")
def align_(
    *,
    source: Path,
    target: Path,
    threshold: float | None,
    embeddings: bool,
    store: str | None,
    output: Path | None,
    notation: AlignmentNotation,
    iri: str,
    version: str,
    base: Path | None,
    before: tuple[Path, Path] | None,
    decisions: Sequence[tuple[str, str]],
    by: str | None,
    key: Path | None,
) -> None:
    """Map the terms of ontology A to those of ontology B.

    Mappings that need a person are not written but listed, with what to do next; `bespeak semantic explain` shows the
    reasons.

    \b
    Examples:
    bespeak semantic align radiology.ttl clinical.owl -o mapping.json
    bespeak semantic align radiology.ttl clinical.owl --format sssom --override https://x.org/rad#scan ''
    """
    if key is not None and notation != "json":
        raise click.UsageError("--key needs the format json")
    actor = ""
    if decisions:
        from bespeak.terminal.decisions import check_decision  # noqa: PLC0415 - it loads the server's configuration

        actor = check_decision("override", None, by)
    one, other = _load(source), _load(target)
    aligned = _align(
        *(one, other),
        threshold=threshold,
        embeddings=embeddings,
        histories=read_histories(store),
        base=_base(base, before),
        overrides=[
            Override(source=_find(one, ours), target=_find(other, theirs) if theirs else "", by=actor)
            for ours, theirs in decisions
        ],
        provenance=Provenance(tool=TOOL, tool_version=installed_version(TOOL), created=write_instant(time.time())),
    )
    found = aligned.alignment
    # An id of its own, so that what is written can be registered as it is.
    iri = iri or f"{found.source.id.rstrip('#/')}/align/{found.target.id.rstrip('#/').rpartition('/')[2]}"
    alignment = msgspec.structs.replace(found, id=iri, version=version)
    signature = ""
    if key is not None:
        from bespeak.extensions.semantics.commands_register import sign_statement  # noqa: PLC0415 - most alignments are not signed

        signature = sign_statement(statement_of(alignment), key)
    data = write_alignment(alignment, notation, signature)
    if output is None:
        click.echo(data.decode(), nl=False)
    else:
        with written_in_one_step(output) as write:
            write(data)
        output.chmod(0o644)
    for text in _next_steps(alignment, aligned, str(source), str(target), str(output or "FILE")):
        click.echo(printable(text), err=True)


def _next_steps(alignment: Alignment, aligned: Aligned, source: str, target: str, output: str) -> Iterator[str]:
    """Yield what was found, what a person has to decide, and what comes next."""
    best: dict[str, TermPair] = {}
    for one in aligned.questions:
        best.setdefault(one.source, one)
    yield f"{len(alignment.rules)} mappings, {len(best)} terms to decide"
    for one in list(best.values())[:_MOST_LISTED]:
        yield f"  {one.source} = {one.target}? (confidence {one.confidence:.2f})"
    if len(best) > _MOST_LISTED:
        yield f"  and {len(best) - _MOST_LISTED} more"
    if aligned.unmatched:
        ends = (iri.removeprefix(alignment.source.id).lstrip("#/") for iri in aligned.unmatched[:_MOST_LISTED])
        shown = ", ".join(ends)
        more = f" and {len(aligned.unmatched) - _MOST_LISTED} more" if len(aligned.unmatched) > _MOST_LISTED else ""
        yield f"without a candidate: {shown}{more}"
    for rule in aligned.dropped:
        other = rule.target if isinstance(rule, MappingRule) else "nothing"
        yield f"dropped: the decision {rule.source} = {other}, because a term is gone"
    default = SemanticSettings().threshold
    doubtful = sum(alignment.confidence_of(rule) < default for rule in alignment.rules)
    if best or aligned.unmatched:
        yield f"decide:   bespeak semantic align {source} {target} --base {output} --override FROM TO"
    if doubtful:
        yield f"confirm:  {doubtful} are below {default}; they count after `bespeak semantic confirm {alignment.id}`"
    if not (alignment.source.version and alignment.target.version):
        yield "versions: an ontology without owl:versionInfo is registered with --version"
    yield f"register: bespeak semantic register {output} TARGET, after the two ontologies"


@click.command()
@_common
@click.argument("term")
@json_option
def explain(*, source: Path, target: Path, store: str | None, term: str, as_json: bool, **policy: Any) -> None:
    """Explain how a TERM of ontology A was mapped to B, or why not.

    TERM is an IRI, the end of one, or a label. Shown are the candidates with their scores, confidences and signals.
    """
    ontology = _load(source)
    iri = _find(ontology, term)
    aligned = _align(ontology, _load(target), **policy, histories=read_histories(store))
    found = sorted(aligned.candidates.get(iri, {}).values(), key=lambda one: (-one.score, one.target))[:_SHOWN]
    outcomes = [_outcome(one, aligned) for one in found]
    if as_json:
        listed = [{**msgspec.to_builtins(one), "outcome": text} for one, text in zip(found, outcomes, strict=True)]
        print_json({"term": iri, "candidates": listed})
        return
    click.echo(printable(iri))
    if not found:
        click.echo("  no term has a similar name")
    for one, outcome in zip(found, outcomes, strict=True):
        signals = ", ".join(f"{name} {value:.2f}" for name, value in one.signals.items())
        click.echo(printable(f"  {one.score:.2f} {one.target}: {outcome}"))
        click.echo(printable(f"       names {one.names[0]!r} and {one.names[1]!r}; {signals}"))
        click.echo(f"       confidence {one.confidence:.2f}, band {one.band}")


def _outcome(candidate: TermPair, aligned: Aligned) -> str:
    pair = (candidate.source, candidate.target)
    if any((rule.source, rule.target) == pair for rule in aligned.alignment.rules):
        return "mapped"
    lost = next((one.winner for one in aligned.lost if (one.rule.source, one.rule.target) == pair), None)
    if lost is not None:
        return f"not mapped, because {lost.source} is mapped to {lost.target}"
    taken = {iri for rule in aligned.alignment.rules for iri in (rule.source, rule.target)}
    if candidate.band == "reject":
        return "rejected"
    return "not mapped, because another mapping is surer" if taken.intersection(pair) else "for a person to decide"


def _align(one: Ontology, other: Ontology, *, threshold: float | None, embeddings: bool, **given: Any) -> Aligned:
    policy = Policy()
    if threshold is not None:
        ask, accept = min(policy.ask, threshold), max(threshold, policy.accept)
        policy = Policy(threshold=threshold, accept=accept, ask=ask)
    if embeddings and embed([""]) is None:
        raise ConfigError(f"{PACKAGE} is not installed: pip install 'bespeak[embeddings]'")
    aligned = align(one, other, policy=policy, embed=embed if embeddings else None, **given)
    if isinstance(aligned, Fault):
        raise CommandFailedError(aligned.message)
    return aligned


def _load(path: Path, *, quiet: bool = False, **given: Any) -> Ontology:
    ontology, findings = load_ontology(path, **given)
    return accepted(ontology, () if quiet and ontology else findings, path)


def _find(ontology: Ontology, text: str) -> str:
    if text in ontology.terms:
        return text
    found = [
        iri
        for iri, term in sorted(ontology.terms.items())
        if text == term.local_name or text.lower() in {label.lower() for label in term.labels}
    ]
    if len(found) == 1:
        return found[0]
    several = f": {', '.join(found[:_SHOWN])}; give the IRI" if found else ""
    raise ConfigError(f"{text} names {len(found) or 'none'} of the terms of {ontology.id}{several}")


def _base(path: Path | None, before: tuple[Path, Path] | None) -> Base | None:
    if path is None:
        if before:
            raise click.UsageError("--before needs --base")
        return None
    document = read_alignment(usable(read_bytes(path), path), str(path))
    alignment = accepted(document.alignment, document.findings, path)
    source, target = (_load(one) for one in before) if before else (None, None)
    return Base(alignment=alignment, source=source, target=target)

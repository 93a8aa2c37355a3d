"""`bespeak semantic align` and `explain`: map the terms of one ontology to another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any, Final, get_args

import click
import msgspec

from bespeak.errors import ConfigError
from bespeak.extensions.semantics.alignment.aligner import TOOL, Aligned, Base, Override, TermPair, align
from bespeak.extensions.semantics.alignment.draft_json import statement_of
from bespeak.extensions.semantics.alignment.notation import AlignmentNotation, read_alignment, write_alignment
from bespeak.extensions.semantics.alignment.policy import Policy, Provenance
from bespeak.extensions.semantics.alignment.signals import Histories, History
from bespeak.extensions.semantics.ontology.reader import load_ontology, read_bytes
from bespeak.extensions.semantics.store import ListMappedCalls, MappedCalls
from bespeak.extensions.semantics.terms import Ontology
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Fault
from bespeak.terminal import CommandFailedError
from bespeak.terminal.console import choice_option, json_option, print_findings, print_json
from bespeak.terminal.target_store import existing_place, usable, use_store, written_in_one_step
from bespeak.text.diagnostics.diagnostic import printable
from bespeak.text.language.embedding import PACKAGE, embed


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


_FILE: Final = click.Path(path_type=Path)
_SHOWN: Final = 5


def _common(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--store", metavar="PLACE", help="Store whose history of calls through mappings counts, too."),
        click.option("--embeddings", is_flag=True, help="Also compare vectors; needs the extra `embeddings`."),
        click.option(
            "--threshold", type=click.FloatRange(0, 1), help="Lowest score that is accepted.  [default: 0.75]"
        ),
        click.argument("target", metavar="B", type=_FILE),
        click.argument("source", metavar="A", type=_FILE),
    ):
        command = option(command)
    return command


@click.command("align")
@_common
@click.option("-o", "--output", type=_FILE, help="File to write.  [default: standard output]")
@choice_option(
    *("--format", "notation"),
    of=get_args(AlignmentNotation),
    default="json",
    help="JSON of the draft, SSSOM TSV, or Alignment API RDF/XML.",
)
@click.option("--id", "iri", default="", help="IRI of the artifact.")
@click.option("--version", default="1.0", show_default=True, help="Version of the artifact.")
@click.option("--base", type=_FILE, help="Earlier artifact, kept where both terms are unchanged.")
@click.option("--before", nargs=2, type=_FILE, help="The two ontologies of --base, if they have changed since.")
@click.option(
    "--override", "decisions", nargs=2, multiple=True, metavar="FROM TO", help="Your decision; '' means none."
)
@click.option("--by", metavar="NAME", help="Name that is recorded with --override.  [default: your login name]")
@click.option("--key", type=_FILE, help="Private key to sign with; only JSON carries the signature.")
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

    Mappings that need a person are not written; they are counted, and `bespeak semantic explain` shows the reasons.

    \b
    Examples:
    bespeak semantic align radiology.ttl clinical.owl -o mapping.json
    bespeak semantic align radiology.ttl clinical.owl --format sssom --override https://x.org/rad#scan ''
    """
    if key is not None and (notation != "json" or not iri):
        raise click.UsageError("--key needs --id, and the format json")
    aligned = _align(
        *(_load(source), _load(target)),
        threshold=threshold,
        embeddings=embeddings,
        histories=read_histories(store),
        base=_base(base, before),
        overrides=_overrides(decisions, by) if decisions else (),
        provenance=Provenance(tool=TOOL, tool_version=installed_version(TOOL), created=write_instant(time.time())),
    )
    alignment = msgspec.structs.replace(aligned.alignment, id=iri, version=version)
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
    counts = f"{len(alignment.rules)} mappings, {len({one.source for one in aligned.questions})} terms to decide"
    click.echo(counts, err=True)


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
        policy = Policy(threshold=threshold, property_threshold=threshold, accept=accept, ask=ask)
    if embeddings and embed([""]) is None:
        raise ConfigError(f"{PACKAGE} is not installed: pip install 'bespeak[embeddings]'")
    aligned = align(one, other, policy=policy, embed=embed if embeddings else None, **given)
    if isinstance(aligned, Fault):
        raise CommandFailedError(aligned.message)
    return aligned


def _load(path: Path) -> Ontology:
    ontology, findings = load_ontology(path)
    print_findings(findings)
    if ontology is None:
        raise CommandFailedError(f"{path} cannot be used as it is; see the findings")
    return ontology


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
    print_findings(document.findings)
    if document.alignment is None:
        raise CommandFailedError(f"{path} cannot be used as it is; see the findings")
    source, target = (_load(one) for one in before) if before else (None, None)
    return Base(alignment=document.alignment, source=source, target=target)


def _overrides(decisions: Sequence[tuple[str, str]], by: str | None) -> list[Override]:
    from bespeak.terminal.decisions import check_decision  # noqa: PLC0415 - it loads the server's configuration

    actor = check_decision("override", None, by)
    return [Override(source=source, target=target, by=actor) for source, target in decisions]

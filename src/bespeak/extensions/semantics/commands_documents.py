"""`bespeak semantic publish` and `validate`: write the core ontology; check envelopes and registrations."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import msgspec

from bespeak.contract.core_ontology import DEFAULT, Namespace, parse_base
from bespeak.errors import ConfigError
from bespeak.extensions.semantics.envelope.reader import EnvelopeReader
from bespeak.extensions.semantics.envelope.writer import find_payload
from bespeak.extensions.semantics.ontology.publication import publish_core
from bespeak.extensions.semantics.ontology.reader import load_ontology
from bespeak.extensions.semantics.profile import ACCEPTED, ProfilePolicy, Verdict, judge, judge_agents, judge_violations
from bespeak.extensions.semantics.terms import Meanings, Ontology
from bespeak.protocol.exchange.refusal import Fault
from bespeak.terminal import CommandFailedError
from bespeak.terminal.console import json_option, line, print_findings, print_json, print_lines
from bespeak.terminal.target_store import usable, written_in_one_step
from bespeak.text.diagnostics.diagnostic import Diagnostic, Severity
from bespeak.text.reading.rules import MALFORMED
from bespeak.text.reading.text_file import read_text
from bespeak.text.source.json_tree import JsonTree, parse_json
from bespeak.text.source.tree import SyntaxFault

_FILE = click.Path(path_type=Path)


@click.command()
@click.option("-o", "--output", "folder", required=True, type=_FILE, help="Folder; created if needed.")
@click.option("--base", default=DEFAULT.base, show_default=True, help="IRI that all names begin with.")
def publish(folder: Path, base: str) -> None:
    """Write the core ontology, its JSON-LD context and its SHACL shapes.

    Serve the files where your base IRI leads. Other tools can then validate semantic profiles with them.

    \b
    Example:
    bespeak semantic publish -o public --base https://acme.example/meaning/
    """
    namespace = parse_base(base)
    if isinstance(namespace, Fault):
        raise ConfigError(namespace.message)
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
@click.argument("file", type=_FILE)
@click.option("--ontology", "ontologies", multiple=True, type=_FILE, help="Ontology that declares the terms.")
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
    namespace = parse_base(base)
    if isinstance(namespace, Fault):
        raise ConfigError(namespace.message)
    tree = _read(file)
    meanings = _load(ontologies, namespace) if ontologies else None
    policy = ProfilePolicy(consistency="renegotiate" if renegotiate else "reject", strict_domains=strict_domains)
    reader = EnvelopeReader(namespace)
    carried = find_payload(tree.data)
    is_registration = reader.is_registration(carried.payload)
    found = _judge_registration if is_registration else _judge_envelope
    verdict = found(carried.payload, reader, meanings, policy)
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


def _judge_envelope(data: Any, reader: EnvelopeReader, meanings: Meanings | None, policy: ProfilePolicy) -> Verdict:
    envelope = reader.parse(data)
    if meanings is None:
        return Verdict("reject", envelope.violations) if envelope.violations else ACCEPTED
    return judge(envelope.profile, meanings, policy, envelope.violations)


def _judge_registration(data: Any, reader: EnvelopeReader, meanings: Meanings | None, policy: ProfilePolicy) -> Verdict:
    registration = reader.parse_registration(data)
    broken = [] if meanings is None else judge_agents(registration, meanings)
    return judge_violations(registration.violations, broken, policy)


def _read(file: Path) -> JsonTree:
    tree = parse_json(usable(read_text(file), file), str(file))
    if isinstance(tree, SyntaxFault):
        print_findings([MALFORMED.found(tree.message, tree.location, advice=tree.help)])
        raise CommandFailedError(f"{file} is not JSON; see the finding")
    return tree


def _load(files: Iterable[Path], namespace: Namespace) -> Meanings:
    found: list[Ontology] = []
    for file in files:
        ontology, findings = load_ontology(file, namespace=namespace)
        if ontology is None:
            print_findings(findings)
            raise CommandFailedError(f"{file} cannot be used; see the findings")
        found.append(ontology)
    return Meanings(found, namespace)

"""`bespeak semantic register`, `sign`, `confirm`, `list` and `show`: the registry of a store."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from bespeak.contract.core_ontology import is_iri
from bespeak.errors import ConfigError
from bespeak.extensions.semantics import knowledge
from bespeak.extensions.semantics import store as registry
from bespeak.extensions.semantics.alignment.artifact import Trust, judge_alignment
from bespeak.extensions.semantics.alignment.draft_json import statement_of
from bespeak.extensions.semantics.alignment.notation import AlignmentNotation, is_alignment
from bespeak.extensions.semantics.alignment.policy import Alignment
from bespeak.extensions.semantics.commands import accepted
from bespeak.extensions.semantics.envelope.expansion import CONTEXT_LIMITS
from bespeak.extensions.semantics.ontology.contexts import DocumentRefused, inline_contexts, shipped_contexts
from bespeak.extensions.semantics.ontology.reader import read_bytes
from bespeak.extensions.semantics.ontology.registration import Judged, judge_registration
from bespeak.extensions.semantics.settings import SemanticSettings
from bespeak.extensions.semantics.terms import parse_version
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jws import PrivateKey, PublicKey, key_id
from bespeak.state.identity.key_files import parse_keys, read_key
from bespeak.state.identity.signed_document import ArtifactStatement, sign_artifact, verify_artifact
from bespeak.state.store.commands.cases import Case
from bespeak.state.store.store import Command, Conflict, Store
from bespeak.terminal import PATH, CommandFailedError
from bespeak.terminal.console import json_option, print_findings, print_json
from bespeak.terminal.decisions import check_decision, decision_options
from bespeak.terminal.deployment import server_document, store_place
from bespeak.terminal.target_store import lasting_place, store_options, usable, use_store, visit_store
from bespeak.text.diagnostics.diagnostic import printable
from bespeak.text.reading.json_data import json_value
from bespeak.text.reading.text_file import read_text


def is_context(data: bytes, file: str) -> bool:
    """Return True for a JSON object whose only member is a context."""
    value = json_value(data, file) if data.lstrip()[:1] == b"{" else None
    return isinstance(value, dict) and value.keys() == {"@context"}


def context_command(data: bytes, file: str, iri: str, version: str) -> registry.RegisterArtifact:
    """Return the command that registers a context; contexts inside of it must be shipped ones."""
    if not is_iri(iri) or parse_version(version) is None:
        raise CommandFailedError(f"{file} is a context; give its --id, an absolute IRI, and its --version")
    try:
        content = inline_contexts(data, file, shipped_contexts(), CONTEXT_LIMITS)
    except DocumentRefused as refused:
        print_findings([refused.finding])
        raise CommandFailedError(f"{file} cannot be used as it is; see the finding") from refused
    digest = hashlib.sha256(content).hexdigest()
    return registry.RegisterArtifact("context", iri, version, digest, registry.compress(content), source=file[:500])


def _document(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the FILE argument and what it may not say itself."""
    for option, name, what in (("--version", "version", "Version"), ("--id", "iri", "IRI")):
        command = click.option(option, name, default="", help=f"{what}, if the document does not say it.")(command)
    return click.argument("file", type=PATH)(command)


@click.command()
@_document
@click.option("--key", required=True, type=PATH, help="Private key, as `bespeak keys new` writes it.")
def sign(file: Path, iri: str, version: str, key: Path) -> None:
    """Sign an ontology or an alignment and print the signature.

    The signature is for id, version and content, whatever the notation: those who receive the document register it
    with `bespeak semantic register --signature`.
    """
    data = usable(read_bytes(file), file)
    if is_alignment(data):
        offered = judge_alignment(data, str(file), for_registry=True, id=iri, version=version)
        found = accepted(offered.alignment, offered.findings, file)
        if not (found.source.version and found.target.version):
            # The registry fills them in, and the signature would be for other content.
            raise CommandFailedError(
                f"{file} must say the versions of its ontologies to be signed, as JSON and SSSOM do"
            )
        statement = statement_of(found)
    else:
        statement = _judge(data, file, iri, version).statement
    click.echo(sign_statement(statement, key))


def sign_statement(statement: ArtifactStatement, key: Path) -> str:
    private = usable(read_key(key), key)
    if not isinstance(private.private_key, PrivateKey):
        raise ConfigError(f"{key} holds a public key; give the private key file.")
    return sign_artifact(statement, private.private_key, key_id(private), time.time())


@click.command()
@_document
@store_options
@click.option("--signature", type=PATH, help="File with the signature that `bespeak semantic sign` has printed.")
@click.option("--trusted", type=PATH, help="Public key, or set of keys, that may sign.")
@click.option("--by", metavar="NAME", help="Name that is recorded.  [default: your login name]")
@json_option
def register(
    *,
    file: Path,
    target: str,
    override: str | None,
    iri: str,
    version: str,
    signature: Path | None,
    trusted: Path | None,
    by: str | None,
    as_json: bool,
) -> None:
    """Register an ontology in Turtle, RDF/XML or JSON-LD, an alignment, or a JSON-LD context.

    An alignment is between registered ontologies. Envelopes may name a registered context.

    A version is registered once and never changes. A later one must be newer, and signed if the one before was.
    TARGET is the deployment, whose configuration names the store; --store overrides it.

    \b
    Examples:
    bespeak semantic register clinical.ttl examples/hotel
    bespeak semantic register clinical.owl --store rooms.db --signature clinical.jws --trusted issuer.json
    bespeak semantic register mapping.json --store rooms.db --trusted issuer.json
    """
    actor = check_decision(str(file), None, by)
    place = lasting_place(store_place(target, override))
    data = usable(read_bytes(file), file)
    if is_alignment(data):
        token = usable(read_text(signature), signature).strip() if signature else ""
        offer = knowledge.Offer[AlignmentNotation](data=data, file=str(file), id=iri, version=version, signature=token)
        trust = _trust(target, trusted)
        offered = asyncio.run(use_store(place, lambda store: knowledge.judge_offer(store, offer, trust)))
        accepted(offered.alignment, offered.findings, file)
        command = offered.command(str(file))
    elif is_context(data, str(file)):
        command = context_command(data, str(file), iri, version)
    else:
        judged = _judge(data, file, iri, version)
        assert judged.command is not None, "a refused document has ended the command"
        if (signature is None) != (trusted is None):
            raise click.UsageError("--signature and --trusted belong together")
        token = usable(read_text(signature), signature).strip() if signature else ""
        signer = verify_artifact(token, judged.statement, _read_keys(trusted)) if trusted else ""
        if isinstance(signer, Fault):
            raise CommandFailedError(f"{signature}: {signer.message}")
        command = msgspec.structs.replace(judged.command, signer=signer, signature=token)
    command = msgspec.structs.replace(command, actor=f"{registry.OPERATOR}{actor}")
    done = asyncio.run(use_store(place, lambda store: _register(store, command)))
    if isinstance(done, Conflict):
        refused = _REFUSALS.get(done.reason, "{0.id}: another registration was faster; try again")
        raise CommandFailedError(refused.format(command, **done.details))
    if as_json:
        print_json(done.document())
    else:
        click.echo(f"registered   {done.id} {done.version}")
        click.echo(f"sha256       {done.digest}")
        click.echo(f"supersedes   {done.supersedes or '-'}")
        click.echo(f"signer       {done.signer or '-'}")


def read_settings_trust(target: str) -> Trust:
    settings = server_document(target).extension_table("semantic", SemanticSettings)
    return Trust() if settings is None else knowledge.read_trust(settings)


def _trust(target: str, trusted: Path | None) -> Trust:
    """Return whose signatures count: keys of the command only if the configuration of the target names them too."""
    configured, given = read_settings_trust(target), _read_keys(trusted) if trusted else {}
    if not configured.signed:
        return Trust(keys=given)
    stranger = next((one for one in given if one not in configured.keys), None)
    if stranger is not None:
        raise CommandFailedError(f"the key {stranger} is not in `trusted_keys` of [semantic], so it would not count")
    return configured


_REFUSALS: Final = {
    "version-taken": "{0.id} {0.version} is registered with other content; give the change a new version",
    "version-order": "{0.id}: {fault}",
    "signature-missing": "{0.id} is signed since its latest version, by {signer}; sign this version too",
    "reference-unknown": "{0.id} refers to {id} {version}, which is not registered",
    "registry-full": "the registry has {most} artifacts, which is the limit",
    "too-many-versions": "{0.id} has {most} versions, which is the limit",
}


def _judge(data: bytes, file: Path, iri: str, version: str) -> Judged:
    judged = judge_registration(data, str(file), id=iri, version=version)
    accepted(judged.command, judged.findings, file)
    return judged


def _read_keys(path: Path) -> dict[str, PublicKey]:
    return usable(parse_keys(usable(read_text(path), path)), path)


async def _register(store: Store, command: registry.RegisterArtifact) -> registry.ArtifactRow | Conflict:
    done: Any = Conflict("changed")
    for _ in range(10):
        done = await store.do(command)
        if not isinstance(done, Conflict) or done.reason != "changed":
            break
    return done if isinstance(done, Conflict) else done[0]


_MOST_SHOWN = 50


@click.command(short_help="Confirm an alignment, or revoke that.")
@click.argument("alignment")
@store_options
@click.option("--version", help="Version.  [default: the latest]")
@click.option("--revoke", is_flag=True, help="Revoke the confirmation.")
@decision_options
@json_option
def confirm(
    *,
    alignment: str,
    target: str,
    override: str | None,
    version: str | None,
    revoke: bool,
    reason: str | None,
    by: str | None,
    as_json: bool,
) -> None:
    """Confirm a registered alignment by its IRI, so that calls that cannot be undone may use it.

    Look at what it maps first: `bespeak semantic show --kind alignment --content`. All of its mappings are confirmed,
    whatever their confidence. The confirmation is for exactly this content: a new version needs its own. It is recorded
    as a case, and `bespeak semantic list` shows it.

    \b
    Examples:
    bespeak semantic confirm https://ex.org/align/X-Y-2026 examples/semantic --reason "reviewed with the board"
    bespeak semantic confirm https://ex.org/align/X-Y-2026 examples/semantic --revoke
    """
    decider, attestation = f"operator:{check_decision(alignment, reason, by)}", f"att-{secrets.token_hex(16)}"
    wanted = registry.ReadArtifact("alignment", alignment, version)
    found: registry.Artifact | None = visit_store(target, override, lambda store: store.read(wanted))
    if found is None:
        raise CommandFailedError(f"{alignment} {version or ''}".strip() + " is not a registered alignment")
    command: Command
    read: Any = None
    if revoke:
        command = registry.RevokeConfirmation(alignment, found.row.version, decider, attestation, reason)
    else:
        # No server would use content that was changed, or lacks the signature of a trusted key.
        trust, read = read_settings_trust(target), knowledge.read_artifact(found)
        if trust.signed and isinstance(read, Alignment):
            read = knowledge.verify_alignment(read, found.row, trust)
        if isinstance(read, Fault):
            raise CommandFailedError(f"{alignment} {found.row.version} cannot be confirmed: {read.message}")
        decision = (found.row.version, decider, attestation, reason, f"align-{secrets.token_hex(16)}")
        command = registry.ConfirmAlignment(alignment, *decision)
    outcome = visit_store(target, override, lambda store: store.do(command))
    if isinstance(outcome, Conflict):
        raise CommandFailedError(f"{alignment} {found.row.version} is not confirmed")
    done: Case = outcome[0]
    state = "revoked" if revoke else "confirmed"
    if as_json:
        about = {"case_id": done.case_id, "alignment": found.row.id, "version": found.row.version}
        decided = {"state": state, "by": done.decided_by, "at": write_instant(done.decided_at or 0.0)}
        print_json({**about, "sha256": found.row.digest, **decided})
        return
    click.echo(printable(f"{state}    {found.row.id} {found.row.version}"))
    click.echo(f"sha256       {found.row.digest}")
    click.echo(printable(f"by           {done.decided_by}"))
    click.echo(f"case         {done.case_id}")
    if isinstance(read, Alignment):
        for rule in read.rules[:_MOST_SHOWN]:
            confidence = read.confidence_of(rule)
            click.echo(printable(f"  {rule.source} {rule.relation} {rule.target} ({confidence:.2f})"))
        if len(read.rules) > _MOST_SHOWN:
            click.echo(f"  and {len(read.rules) - _MOST_SHOWN} more")


_KINDS: Final[tuple[registry.ArtifactKind, ...]] = ("ontology", "alignment", "context")


@click.command("list")
@store_options
@click.option("--kind", type=click.Choice(_KINDS), help="Only artifacts of this kind.")
@json_option
def list_(target: str, override: str | None, kind: registry.ArtifactKind | None, as_json: bool) -> None:
    """List registered ontologies, alignments and contexts, oldest first, and who has confirmed an alignment."""

    async def read(store: Store) -> tuple[list[registry.ArtifactRow], dict[str, str]]:
        return await store.read(registry.ListArtifacts(kind)), await store.read(registry.ListConfirmed())

    rows, confirmed = visit_store(target, override, read)
    if as_json:
        print_json([{**row.document(), "confirmed_by": confirmed.get(row.digest, "")} for row in rows])
        return
    for row in rows:
        by = f"  confirmed by {confirmed[row.digest]}" if row.digest in confirmed else ""
        about = f"{row.kind:<10} {row.id} {row.version}  {row.digest[:12]}  {row.signer or 'unsigned'}{by}"
        click.echo(printable(about))


@click.command()
@click.argument("artifact")
@store_options
@click.option("--version", help="Version.  [default: the latest]")
@click.option("--kind", type=click.Choice(_KINDS), default="ontology", show_default=True, help="Kind of the artifact.")
@click.option("--content", is_flag=True, help="Print the content: canonical N-Quads of an ontology.")
@json_option
def show(  # noqa: PLR0917 - click passes them all by name
    artifact: str,
    target: str,
    override: str | None,
    version: str | None,
    kind: registry.ArtifactKind,
    content: bool,
    as_json: bool,
) -> None:
    """Show a registered ontology by its IRI: version, digest, source, signer and time."""
    command = registry.ReadArtifact(kind, artifact, version)
    found: registry.Artifact | None = visit_store(target, override, lambda store: store.read(command))
    if found is None:
        raise CommandFailedError(f"{artifact} {version or ''}".strip() + " is not registered")
    if content:
        click.echo(found.content.decode(errors="replace"), nl=False)
    elif as_json:
        print_json(found.row.document())
    else:
        for name, value in found.row.document().items():
            shown = ", ".join(f"{one['id']} {one['version']}" for one in value) if name == "refs" else value
            click.echo(printable(f"{name:<12} {shown if shown != '' else '-'}"))

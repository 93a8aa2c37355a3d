"""`bespeak semantic register` and `sign`: put ontologies and alignments into the registry of a store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from bespeak.app.cli.console import print_findings, print_json
from bespeak.app.cli.deciding import check_decision
from bespeak.app.cli.main import CommandFailedError
from bespeak.app.cli.semantic_list import as_dict
from bespeak.app.cli.semantic_register_alignment import alignment_statement, command_for
from bespeak.app.cli.semantic_register_context import context_command, is_context
from bespeak.app.cli.target_store import lasting_place, store_options, use_store
from bespeak.app.server.state import server_document, store_place
from bespeak.checks.alignment.artifact import Trust
from bespeak.checks.ontology.registration import Judged, judge_registration
from bespeak.documents.alignment.notation import is_alignment
from bespeak.documents.ontology.file import read_bytes
from bespeak.errors import ConfigError
from bespeak.protocol.fault import Fault
from bespeak.runtime.semantic.alignment_registration import AlignmentOffer
from bespeak.runtime.semantic.registry import read_trust
from bespeak.state.audit.trusted_keys import parse_keys
from bespeak.state.identity.artifact_signature import (
    ArtifactStatement,
    sign_artifact,
    signature_fault,
    verify_artifact,
)
from bespeak.state.identity.jws import PrivateKey, PublicKey
from bespeak.state.identity.key_file import read_key
from bespeak.state.identity.key_text import key_id
from bespeak.state.store.command import Conflict
from bespeak.state.store.commands.ontologies import ArtifactRow, RegisterArtifact
from bespeak.state.store.store import Store
from bespeak.text.diagnostics.diagnostic import Diagnostic
from bespeak.text.reading.text_file import read_text

_ATTEMPTS: Final = 10
_FILE: Final = click.Path(path_type=Path)


def _document(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the FILE argument and what it may not say itself."""
    for option, name, what in (("--version", "version", "Version"), ("--id", "iri", "IRI")):
        command = click.option(option, name, default="", help=f"{what}, if the document does not say it.")(command)
    return click.argument("file", type=_FILE)(command)


@click.command()
@_document
@click.option("--key", required=True, type=_FILE, help="Private key, as `bespeak keys new` writes it.")
def sign(file: Path, iri: str, version: str, key: Path) -> None:
    """Sign an ontology or an alignment and print the signature.

    The signature is for id, version and content, whatever the notation: those who receive the document register it
    with `bespeak semantic register --signature`.
    """
    data = _read_document(file)
    if is_alignment(data):
        statement = alignment_statement(data, str(file), iri, version)
    else:
        statement = _judge(data, file, iri, version).statement
    click.echo(sign_statement(statement, key))


def sign_statement(statement: ArtifactStatement, key: Path) -> str:
    """Return the signature of a statement with the private key in a file."""
    private = read_key(key)
    if isinstance(private, Fault):
        raise ConfigError(f"{key}: {private.message}")
    if not isinstance(private.private_key, PrivateKey):
        raise ConfigError(f"{key} holds a public key; give the private key file.")
    return sign_artifact(statement, private.private_key, key_id(private), time.time())


@click.command()
@_document
@store_options
@click.option("--signature", type=_FILE, help="File with the signature that `bespeak semantic sign` has printed.")
@click.option("--trusted", type=_FILE, help="Public key, or set of keys, that may sign.")
@click.option("--by", metavar="NAME", help="Name that is recorded.  [default: your login name]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
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
    data = _read_document(file)
    if is_alignment(data):
        token = _read(signature).strip() if signature else ""
        offer = AlignmentOffer(data=data, file=str(file), id=iri, version=version, signature=token)
        trust = _trust(target, trusted)
        command = msgspec.structs.replace(command_for(place, offer, trust), actor=actor)
    elif is_context(data, str(file)):
        command = msgspec.structs.replace(context_command(data, str(file), iri, version), actor=actor)
    else:
        judged = _judge(data, file, iri, version)
        assert judged.command is not None, "a refused document has ended the command"
        signer, token = _verify(judged, signature, trusted)
        command = msgspec.structs.replace(judged.command, signer=signer, signature=token, actor=actor)
    done = asyncio.run(use_store(place, lambda store: _register(store, command)))
    if isinstance(done, Conflict):
        raise CommandFailedError(refusal_text(done, command))
    if as_json:
        print_json(as_dict(done))
    else:
        click.echo(f"registered   {done.id} {done.version}")
        click.echo(f"sha256       {done.digest}")
        click.echo(f"supersedes   {done.supersedes or '-'}")
        click.echo(f"signer       {done.signer or '-'}")


def read_settings_trust(target: str) -> Trust:
    """Return whose signatures the configuration of a target trusts."""
    settings = server_document(target).semantic
    return Trust() if settings is None else read_trust(settings)


def _trust(target: str, trusted: Path | None) -> Trust:
    """Return whose signatures count: keys of the command only if the configuration of the target names them too."""
    configured, given = read_settings_trust(target), _read_keys(trusted) if trusted else {}
    if not configured.signed:
        return Trust(keys=given)
    stranger = next((one for one in given if one not in configured.keys), None)
    if stranger is not None:
        raise CommandFailedError(f"the key {stranger} is not in `trusted_keys` of [semantic], so it would not count")
    return configured


def refusal_text(conflict: Conflict, command: RegisterArtifact) -> str:
    """Explain why the registry refused an artifact."""
    details = conflict.details
    match conflict.reason:
        case "version-taken":
            return f"{command.id} {command.version} is registered with other content; give the change a new version"
        case "version-order":
            return f"{command.id}: {details['fault']}"
        case "signature-missing":
            return f"{command.id} is signed since its latest version, by {details['signer']}; sign this version too"
        case "reference-unknown":
            return f"{command.id} refers to {details['id']} {details['version']}, which is not registered"
        case "registry-full":
            return f"the registry has {details['most']} artifacts, which is the limit"
        case "too-many-versions":
            return f"{command.id} has {details['most']} versions, which is the limit"
        case _:
            return f"{command.id}: another registration was faster; try again"


def _read_document(file: Path) -> bytes:
    data = read_bytes(file)
    if isinstance(data, Diagnostic):
        raise ConfigError(f"{file}: {data.message}")
    return data


def _judge(data: bytes, file: Path, iri: str, version: str) -> Judged:
    judged = judge_registration(data, str(file), id=iri, version=version)
    print_findings(judged.findings)
    if judged.command is None:
        raise CommandFailedError(f"{file} cannot be used as it is; see the findings")
    return judged


def _verify(judged: Judged, signature: Path | None, trusted: Path | None) -> tuple[str, str]:
    """Return the signer and the token of a verified signature, or nothing without one."""
    if (signature is None) != (trusted is None):
        raise click.UsageError("--signature and --trusted belong together")
    if signature is None or trusted is None:
        return "", ""
    token = _read(signature).strip()
    signed = verify_artifact(token, _read_keys(trusted))
    if isinstance(signed, Fault):
        raise CommandFailedError(f"{signature}: {signed.message}")
    fault = signature_fault(signed, judged.statement)
    if fault is not None:
        raise CommandFailedError(f"{signature}: {fault.message}")
    return signed.signer, token


def _read_keys(path: Path) -> dict[str, PublicKey]:
    keys = parse_keys(_read(path))
    if isinstance(keys, Fault):
        raise ConfigError(f"{path}: {keys.message}")
    return keys


async def _register(store: Store, command: RegisterArtifact) -> ArtifactRow | Conflict:
    for _ in range(_ATTEMPTS):
        done = await store.do(command)
        if not isinstance(done, Conflict):
            row = done[0]
            assert isinstance(row, ArtifactRow)
            return row
        if done.reason != "changed":
            return done
    return Conflict("changed")


def _read(path: Path) -> str:
    text = read_text(path)
    if isinstance(text, Diagnostic):
        raise ConfigError(f"{path}: {text.message}")
    return text

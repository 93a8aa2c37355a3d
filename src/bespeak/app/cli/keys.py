"""`bespeak keys`: create, show and rotate the Ed25519 keys that sign manifests, records and requests."""

from __future__ import annotations

import stat
import sys
import time
from pathlib import Path

import click
import msgspec
from joserfc.jwk import OKPKey

from bespeak.contract.extensions import Lazy
from bespeak.errors import ConfigError
from bespeak.protocol.exchange.instant import write_instant
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.identity.jws import generate_key, key_id, parse_key, private_text, public_jwk
from bespeak.state.identity.key_files import (
    PastKey,
    history_path,
    history_text,
    parse_history,
    parse_keys,
    read_history,
    read_key,
)
from bespeak.state.identity.signed_document import read_signed
from bespeak.terminal import PATH, CommandFailedError, LazyGroup
from bespeak.terminal.console import print_json
from bespeak.terminal.target_store import replace_file, usable, write_secret
from bespeak.text.reading.text_file import read_text

_FOR_ALL = 0o644


@click.group(cls=LazyGroup, lazy={"api": Lazy("bespeak.app.cli.agents", "api")})
def keys() -> None:
    """Create, show and rotate signing keys, verify signatures, and manage API keys."""


@keys.command()
@click.option(
    "-o", "--output", "--out", "out", type=PATH, help="Write the private key to this file instead of printing it."
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def new(out: Path | None, force: bool) -> None:
    """Create a key pair.

    Prints the key id and the public key. The private key is written to --output, readable by its owner only.
    """
    key = generate_key()
    if out is None:
        click.echo(private_text(key), nl=False)
    else:
        write_secret(out, private_text(key), force=force)
        click.echo(f"private key  {out}")
    _print_public(key)


@keys.command(short_help="Print the id and public key of a key file.")
@click.argument("file", type=PATH)
def show(file: Path) -> None:
    """Print the id and the public key of a PEM or JWK file, and those of the keys it replaced."""
    text = usable(read_text(file), file)
    found = parse_history(text)
    if isinstance(found, Fault):
        key = usable(parse_key(text), file)
        found = [PastKey(key), *_history(file, key)]
    for number, one in enumerate(found):
        if number:
            click.echo()
        _print_public(one.key)
        if one.replaced_at is not None:
            click.echo(f"replaced at  {write_instant(one.replaced_at)}")


@keys.command()
@click.argument("file", type=PATH)
def rotate(file: Path) -> None:
    """Replace the private key in FILE with a new one.

    The old public key is kept in FILE.keys.json, a JWK set, so that its signatures can still be verified. The old
    private key is deleted. Clients that pinned or registered the old key need the new public key. Restart the server to
    use the new key.
    """
    old = usable(read_key(file), file)
    if not old.is_private:
        raise ConfigError(f"{file} holds a public key; give the private key file.")
    fresh = generate_key()
    now = time.time()
    earlier = [PastKey(one.key, one.replaced_at or now) for one in (PastKey(old), *_history(file, old))]
    try:
        like = file.stat()
        # Write the JWK set first: a failure in between then loses no key; it only lists one that was never used.
        replace_file(history_path(file), history_text([PastKey(fresh), *earlier], (fresh, old)), mode=_FOR_ALL)
        replace_file(file, private_text(fresh), mode=stat.S_IMODE(like.st_mode), owner=(like.st_uid, like.st_gid))
    except OSError as error:
        raise ConfigError(f"cannot replace {file}; the old key is still in use: {error}") from error
    click.echo(f"private key  {file}")
    click.echo(f"earlier keys {history_path(file)}")
    _print_public(fresh)


@keys.command()
@click.argument("token", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--key", "file", required=True, type=PATH, help="Key of the server, or its set of keys.")
@click.option("--json", "as_json", is_flag=True, help="Print what was signed as JSON.")
def verify(token: Path, file: Path, as_json: bool) -> None:
    """Verify a signature of SIGN, and show what was signed, for whom and when.

    TOKEN is a file with the signature, or - for standard input. --key is a PEM or JWK file, or the JWK set of a server
    that has replaced its keys.
    """
    text = sys.stdin.read() if str(token) == "-" else usable(read_text(token), token)
    trusted = usable(parse_keys(usable(read_text(file), file)), file)
    signed = read_signed(text.strip(), trusted)
    if isinstance(signed, Fault):
        raise CommandFailedError(f"the signature is not valid: {signed.message}")
    if as_json:
        print_json(msgspec.to_builtins(signed))
        return
    click.echo(f"valid        signed at {signed.signed_at} for {signed.agent_id} by {signed.server_id}")
    click.echo(f"payload      {msgspec.json.encode(signed.payload).decode()}")


def _history(file: Path, key: OKPKey) -> list[PastKey]:
    """Read the replaced keys, including any that was never used."""
    found = read_history(file, key)
    if isinstance(found, Fault):
        advice = "Restore or delete it; without it, signatures of earlier keys cannot be verified."
        raise ConfigError(f"{found.message}. {advice}")
    return [one for one in found if key_id(one.key) != key_id(key)]


def _print_public(key: OKPKey) -> None:
    click.echo(f"key id       {key_id(key)}")
    click.echo(f"public key   {msgspec.json.encode(public_jwk(key)).decode()}")

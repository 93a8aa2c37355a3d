"""`bespeak keys`: make and show the Ed25519 keys that sign manifests."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import click
import msgspec
from joserfc.jwk import OKPKey

from bespeak.diagnostics.diagnostic import Diagnostic
from bespeak.documents.key_text import (
    KeyFault,
    generate_key,
    key_id,
    parse_key,
    private_text,
    public_jwk,
)
from bespeak.documents.text_file import read_text
from bespeak.errors import ConfigError

_OWNER_ONLY = 0o600


@click.group()
def keys() -> None:
    """Make and show keys that sign manifests."""


@keys.command()
@click.option("--out", type=click.Path(path_type=Path), help="Write the private key here instead of printing it.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def new(out: Path | None, force: bool) -> None:
    """Make a key. The private half goes to --out, readable by its owner only; its id and public half are printed."""
    key = generate_key()
    if out is None:
        click.echo(private_text(key), nl=False)
    else:
        write_secret(out, private_text(key), force=force)
        click.echo(f"private key  {out}")
    _print_public(key)


@keys.command()
@click.argument("file", type=click.Path(path_type=Path))
def show(file: Path) -> None:
    """Print the id and the public half of a key in PEM or JWK form."""
    text = read_text(file)
    if isinstance(text, Diagnostic):
        raise ConfigError(f"{file}: {text.message}")
    key = parse_key(text)
    if isinstance(key, KeyFault):
        raise ConfigError(f"{file}: {key.message}")
    _print_public(key)


def _print_public(key: OKPKey) -> None:
    click.echo(f"key id       {key_id(key)}")
    click.echo(f"public key   {msgspec.json.encode(public_jwk(key)).decode()}")


def write_secret(path: Path, text: str, *, force: bool) -> None:
    """Write a secret, to a file that is at no time readable by others."""
    try:
        if force:
            _replace(path, text)
            return
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ConfigError(f"{path} exists already. Use --force to replace it; what it signed stays signed.") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error}") from error


def _replace(path: Path, text: str) -> None:
    """Put a new file in the place of an old one, in one step: a failure leaves the old key."""
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        raise ConfigError(f"{path} is not an ordinary file, and is not replaced.")
    descriptor, name = tempfile.mkstemp(prefix=".bespeak-", dir=path.parent)
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        beside.replace(path)
    except BaseException:
        beside.unlink()
        raise

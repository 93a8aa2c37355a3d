"""`bespeak keys`: make and show the Ed25519 keys that sign manifests."""

from __future__ import annotations

import os
from pathlib import Path

import click
import msgspec
from joserfc.jwk import OKPKey

from bespeak.errors import ConfigError
from bespeak.projections.manifest_signature import (
    KeyFault,
    generate_key,
    key_id,
    parse_key,
    private_text,
    public_jwk,
)

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
        _write(out, private_text(key), force=force)
        click.echo(f"private key  {out}")
    _print_public(key)


@keys.command()
@click.argument("file", type=click.Path(path_type=Path))
def show(file: Path) -> None:
    """Print the id and the public half of a key in PEM or JWK form."""
    try:
        key = parse_key(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    if isinstance(key, KeyFault):
        raise ConfigError(f"{file}: {key.message}")
    _print_public(key)


def _print_public(key: OKPKey) -> None:
    click.echo(f"key id       {key_id(key)}")
    click.echo(f"public key   {msgspec.json.encode(public_jwk(key)).decode()}")


def _write(path: Path, text: str, *, force: bool) -> None:
    """Write a secret. A new file is made in one step, so that it is at no time readable by others."""
    try:
        if force:
            path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise ConfigError(f"{path} exists already. Use --force to replace it; what it signed stays signed.") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error}") from error

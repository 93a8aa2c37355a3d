"""`bespeak init`: write a new service, or a copy of an example."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Final

import click

from bespeak.documents.replacement import write_folder
from bespeak.errors import ConfigError
from bespeak.terminal import PATH
from bespeak.text.diagnostics.diagnostic import brief, printable

_APP: Final = Path(__file__).parents[1]
_STARTER: Final = _APP / "starter"
_PACKAGED: Final = _APP / "examples"  # folder of the examples in an installed package
_SOURCE: Final = _APP.parents[2] / "examples"  # folder of the examples in a working copy
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
EXAMPLES: Final = ("finance", "hotel", "library", "restaurant", "semantic", "travel")
_SUFFIXES: Final = (".agis", ".csv", ".json", ".md", ".py", ".toml", ".ttl")
"""Kinds of files of examples. What a run leaves behind has other ones."""


@click.command()
@click.argument("folder", metavar="NAME", type=PATH)
@click.option("--example", type=click.Choice(EXAMPLES), help="Write a copy of an example instead.")
def init(folder: Path, example: str | None) -> None:
    """Write a new service into the folder NAME: a contract, its settings, a test and a Dockerfile.

    The service is a small cinema. It has an endpoint that only reads and one that cannot be undone and waits for a
    confirmation. It can be served, checked and tested as it is. NAME may be a path; its last part, of at most 40
    letters, digits, `-` and `_`, names the service. A folder that exists is left alone.

    With --example the folder is a copy of one of the services that the guides use.

    \b
    Examples:
    bespeak init cinema
    bespeak serve cinema
    bespeak init hotel --example hotel
    """
    name = folder.name
    if _NAME.fullmatch(name) is None:
        raise click.BadParameter(
            f"{brief(str(folder))} does not end in a valid name: use at most 40 letters, digits, - and _, and begin "
            "with a letter, as in `bespeak init cinema`",
            param_hint="NAME",
        )
    if os.path.lexists(folder):
        raise ConfigError(f"{folder} already exists, and nothing in it was changed. Choose another name, or remove it.")
    try:
        write_folder(folder, _starter(name) if example is None else _example(example))
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror or error}.") from error
    if example is not None:
        click.echo(f"{printable(str(folder))}: the example {example}")
        return
    shown = printable(shlex.quote(str(folder)))
    click.echo(f"{printable(str(folder))}: a service to start with")
    click.echo(f"Serve it with `bespeak serve {shown}`, check it with `bespeak lint {shown}`.")


def _starter(name: str) -> dict[str, str]:
    """Return the files of a new service by name; `starter` stands for its name in the templates."""
    # A server id is a host name: neither capitals nor underscores. Images and volumes have the same letters.
    texts = {path.name.removesuffix(".in"): path.read_text("utf-8") for path in sorted(_STARTER.glob("*.in"))}
    host = re.sub(r"_+", "-", name.lower()).strip("-")
    return {
        f".{file}" if file == "gitignore" else file: text.replace(
            "starter", host if file in ("service.py", "Dockerfile") else name
        )
        for file, text in texts.items()
    }


def _example(name: str) -> dict[str, str]:
    folder = (_PACKAGED if _PACKAGED.is_dir() else _SOURCE) / name
    if not folder.is_dir():
        raise ConfigError(f"This installation has no examples; the example {name} is in the repository of bespeak.")
    files = (path for path in sorted(folder.rglob("*")) if path.suffix in _SUFFIXES and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in files}

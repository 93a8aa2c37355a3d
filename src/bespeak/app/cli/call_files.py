"""Files of `bespeak call`: members of the input that are read from one, and an output that is written to one."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from bespeak.agent.client.errors import Reply
from bespeak.agent.client.service import INLINE
from bespeak.contract.schema.file_schema import FileField
from bespeak.terminal import CommandFailedError
from bespeak.terminal.console import console, line
from bespeak.text.diagnostics.diagnostic import brief

_MOST_TEXT: Final = 64 << 20  # bytes of a file that is sent as a text


def read_text_file(name: str, hint: str) -> str:
    """Read a file of text. Raises BadParameter, which says what is wrong with the file."""
    path = find_file(name, hint)
    if path.stat().st_size > _MOST_TEXT:
        fault = f"{name!r} has {path.stat().st_size:,} bytes; at most {_MOST_TEXT:,} are sent as a text"
        raise click.BadParameter(fault, param_hint=hint)
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise click.BadParameter(f"{name!r}: {error.strerror}", param_hint=hint) from error
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"{name!r} is not UTF-8, and {hint} takes a text", param_hint=hint) from error


def find_file(name: str, hint: str) -> Path:
    """Return the path of a regular file: opening a pipe blocks until it has a writer."""
    path = Path(name)
    try:
        if not path.exists():
            raise click.BadParameter(f"{name!r}: No such file or directory", param_hint=hint)
        if not path.is_file():
            what = "a folder" if path.is_dir() else "not a regular file"
            raise click.BadParameter(f"{name!r} is {what}", param_hint=hint)
    except OSError as error:
        raise click.BadParameter(f"{name!r}: {error.strerror}", param_hint=hint) from error
    return path


def read_member(name: str, file: str, takes: FileField | None, *, takes_text: bool, over_http: bool) -> str | Path:
    """Return what a member of the input is for `NAME=@FILE`: the path of an upload where one is taken, else a text."""
    if takes is None:
        return read_text_file(file, name)
    path = find_file(file, name)
    size = path.stat().st_size
    if size > takes.max_bytes:
        fault = f"{file!r} has {size:,} bytes; the endpoint takes at most {takes.max_bytes:,}"
        raise click.BadParameter(fault, param_hint=name)
    if over_http or size <= INLINE:
        return path
    if takes_text:
        return read_text_file(file, name)
    advice = f"over AGTP at most {INLINE:,} are sent; call the web address of the service"
    raise click.BadParameter(f"{file!r} has {size:,} bytes, and {advice}", param_hint=name)


def check_output(file: Path | None) -> None:
    """Refuse a file that cannot be written before anything is called."""
    if file is not None and (file.is_dir() or not file.parent.is_dir()):
        fault = "is a folder" if file.is_dir() else "is in a folder that does not exist"
        raise click.BadParameter(f"{str(file)!r} {fault}", param_hint="-o")


def write_output(file: Path, reply: Reply, result: Any = None) -> None:
    """Write a result, or what a reply brings: the bytes of a file, the `content` of an output, or all of it as JSON."""
    if result is None and "json" not in reply.headers.get("content-type", "json"):
        content = reply.body
    else:
        content = _content_of(reply.output if result is None else result)
    try:
        file.write_bytes(content)
    except OSError as error:
        raise CommandFailedError(f"{brief(str(file))} cannot be written: {error.strerror}") from error
    console(stderr=True).print(line((f"{len(content):,} bytes written to {file}", "dim")))


def _content_of(output: Any) -> bytes:
    if isinstance(output, Mapping) and isinstance(output.get("data"), str) and {"name", "size"} <= output.keys():
        return _decode(output["data"])
    if isinstance(output, Mapping) and isinstance(output.get("file"), str) and {"name", "size"} <= output.keys():
        message = f"the service has stored the file; read it with GET /files/{output['file']} at its web address"
        raise CommandFailedError(message)
    value = output["content"] if isinstance(output, Mapping) and "content" in output else output
    if isinstance(value, str):
        return _decode(value) if output is not value and output.get("encoding") == "base64" else value.encode()
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _decode(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error as error:
        raise CommandFailedError("the service has sent a file that is not valid base64") from error

"""`bespeak call`: call an endpoint."""

from __future__ import annotations

import asyncio
import binascii
import logging
import shlex
import sys
from base64 import b64decode
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import click
import msgspec

from bespeak.agent.client.errors import Reply, ServiceError
from bespeak.agent.client.sender import WIRE_LOGGER
from bespeak.agent.client.service import INLINE, ServiceClient
from bespeak.agent.discovery.readers import Capability
from bespeak.app.cli.service import check_text, open_service, service_options
from bespeak.contract.endpoint import Endpoint
from bespeak.contract.schema.file_schema import FileField, file_fields, is_file
from bespeak.contract.schema.subschemas import resolve
from bespeak.contract.schema.view import SchemaView
from bespeak.errors import BespeakError
from bespeak.protocol import status
from bespeak.protocol.exchange.headers import is_header_name, is_header_value
from bespeak.terminal import CommandFailedError
from bespeak.terminal.console import console, line, print_json
from bespeak.text.diagnostics.diagnostic import brief
from bespeak.text.reading.json_data import decode_json


@click.command()
@click.argument("service")
@click.argument("method")
@click.argument("path", required=False)
@click.argument("given", nargs=-1, metavar="[KEY=VALUE | KEY:=JSON | KEY=@FILE]...")
@click.option(
    "-d", "--data", metavar="JSON", help="Input as a JSON object; @FILE reads a file, - reads standard input."
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the file or content of the answer."
)
@click.option("--no-wait", is_flag=True, help="Print a 202 answer without waiting for the end of the work.")
@click.option("--task-id", help="Task-ID header, echoed by the service.")
@click.option("--idempotency-key", metavar="KEY", help="Execute this call only once, even if it is sent again.")
@click.option("--fields", metavar="NAME,...", help="Return only these fields, with dots for nesting: id,owner.name.")
@click.option("--compact", is_flag=True, help="Omit empty optional fields from the response.")
@click.option("--since", metavar="TIME", help="Return only what changed after this date or time (ISO 8601).")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Show request and response as sent, secrets masked, and the gate that refused.",
)
@click.option("--stream", is_flag=True, help="Print each item as it arrives, one line of JSON for each.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME:VALUE", help="Additional header; repeatable.")
@service_options
def call(
    *,
    service: str,
    method: str,
    path: str | None,
    given: tuple[str, ...],
    data: str | None,
    stream: bool,
    output: Path | None,
    no_wait: bool,
    headers: tuple[str, ...],
    verbose: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Call METHOD on PATH of SERVICE and print the response.

    KEY=VALUE is a string, or is converted to the type in the endpoint's schema; KEY:=JSON is any JSON value.
    KEY=@FILE sends a file, or its text where no file is taken; KEY:=@FILE is its JSON; KEY=@@VALUE begins with @.
    For a web service, the id of a capability can replace METHOD and PATH.
    The exit code is 0 if the call succeeded and 1 if the service refused it.

    Examples:

    \b
    bespeak call agtp://127.0.0.1 QUERY /rooms beds=2 --scope rooms:read
    bespeak call agtp://127.0.0.1 BOOK /room -d @booking.json --agent-id ID --scope booking:room
    bespeak call agtp://127.0.0.1 BOOK /room guest=ann --idempotency-key 7f3a
    bespeak call agtp://127.0.0.1 QUERY /rooms --fields rooms.room_id --compact
    bespeak call agtp://127.0.0.1 QUERY /rooms beds=2 --stream
    bespeak call agtp://127.0.0.1 IMPORT / source=@rows.csv format=csv target=contacts
    bespeak call https://flights.example search_flights from=ZRH to=LIS
    """
    method, path, given = _what(method, path, given)
    asked = {name: options.pop(name) for name in ("idempotency_key", "fields", "compact", "since")}
    task_id, fields = options.pop("task_id"), asked["fields"]
    texts = (task_id, fields, asked["idempotency_key"], asked["since"])
    check_text(method, path, *given, *headers, *filter(None, texts))
    whole = _read_data(data)
    more = dict(_read_header(header) for header in headers)
    check_output(output)
    waits = not no_wait and not any(name.lower() == "prefer" for name in more)

    if stream and (as_json or output is not None or any(asked.values())):
        text = "--stream prints items as they arrive: --idempotency-key, --fields, --compact, --since, -o and --json"
        raise click.UsageError(f"{text} need the whole answer.")

    async def run() -> Ended | None:
        # A case or a session that ends with the command would mislead, so a loaded service has no store.
        async with open_service(service, with_state=False, **options) as client:
            described = await _describe(client, method, path) if given or output is not None else None
            schema = {} if described is None else described.input_schema
            types, files, is_web = property_types(schema), file_fields(schema), client.locator.web is not None
            named = dict(read_field(field, types, files, over_http=is_web) for field in given)
            if output is not None and isinstance(described, Endpoint) and is_file(described.output_schema):
                more.setdefault("Accept", "*/*")
            content = {**(whole or {}), **named} if given else whole
            with _wire_shown() if verbose else nullcontext():
                if stream:
                    items = client.stream_request(method, path, content, headers=more, task_id=task_id)
                    refused = await _print_items(items)
                    return None if refused is None else Ended(refused)
                asked["fields"] = None if fields is None else [fields]
                reply = await client.request(method, path, content, headers=more, task_id=task_id, **asked)
                return await follow(client, service, reply, more) if waits else Ended(reply)

    ended = asyncio.run(run())
    return 0 if ended is None else _report(ended, output, verbose=verbose, as_json=as_json)


def _report(ended: Ended, output: Path | None, *, verbose: bool, as_json: bool) -> int:
    """Print or write what has become of a call; return the exit code."""
    reply, aside = ended.reply, console(stderr=True)
    if verbose and reply.error is not None and not reply.unchanged:
        gate = reply.error.gate
        by = f"the {gate} gate" if gate else "the endpoint, or a rule of the service"
        aside.print(line((f"* refused by {by} ({reply.status} {reply.error.code})", "bold")))
    if as_json:
        told = {"status": reply.status, "reason": reply.reason, "headers": dict(reply.headers)}
        print_json({**told, "body": reply.json()})
    elif reply.ok and output is not None and not ended.fault:
        write_output(output, reply, ended.result)
    elif ended.result is not None:
        print_json(ended.result)
    else:
        _print(reply)
    if ended.fault:
        aside.print(line((ended.fault, "bold red")))
    return 0 if (reply.ok or reply.unchanged) and not ended.fault else 1


class _WirePrinter(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Print a message of the wire, escaped: a server may send anything."""
        for text in record.getMessage().split("\n"):
            console(stderr=True).print(line((text, "dim")))


@contextmanager
def _wire_shown() -> Iterator[None]:
    """Print what is sent and received inside the block to standard error."""
    logger, printer = logging.getLogger(WIRE_LOGGER), _WirePrinter()
    level, propagates = logger.level, logger.propagate
    logger.addHandler(printer)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(printer)
        logger.setLevel(level)
        logger.propagate = propagates


def _what(method: str, path: str | None, given: tuple[str, ...]) -> tuple[str, str, tuple[str, ...]]:
    """Sort the arguments: either a method and a path, or a capability id followed by its fields."""
    if path is None:
        return method, "", given
    if not path.startswith("/") and "=" in path and "://" not in path.partition("=")[0]:
        return method, "", (path, *given)
    return method.upper(), path, given


def _read_header(header: str) -> tuple[str, str]:
    name, mark, value = header.partition(":")
    if not mark or not is_header_name(name.strip()) or not is_header_value(value.strip()):
        advice = "write NAME:VALUE, like 'Session-ID: 5e1f'"
        raise click.BadParameter(f"{brief(header)} is not a valid header; {advice}", param_hint="-H")
    return name.strip(), value.strip()


def _read_data(data: str | None) -> dict[str, Any] | None:
    if data is None:
        return None
    try:
        text = sys.stdin.read() if data == "-" else read_text_file(data[1:], "-d") if data[:1] == "@" else data
        value = decode_json(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="-d") from error
    if not isinstance(value, dict):
        raise click.BadParameter('the input must be a JSON object, like {"beds": 2}', param_hint="-d")
    return value


async def _describe(client: ServiceClient, method: str, path: str) -> Endpoint | Capability | None:
    """Return what describes the endpoint; None if the manifest cannot be read, or has no such endpoint."""
    described: Endpoint | Capability | None
    try:
        manifest = await client.discover()
        described = manifest.endpoint(method, path) if path else None
        if path and described is None:
            fitting = (one for one in manifest.endpoints if one.method == method and _fits(one.path, path))
            described = next(fitting, None)
    except BespeakError:
        return None
    if not path and client.discovered is not None:
        described = client.discovered.capability(method)
    return described


def _fits(template: str, path: str) -> bool:
    """Tell whether a path is one of a template. The server decides which one is called; this only reads types."""
    pairs = list(zip(template.split("/"), path.split("/"), strict=False))
    return template.count("/") == path.count("/") and all(part[:1] == "{" or part == given for part, given in pairs)


def property_types(schema: Mapping[str, Any]) -> Mapping[str, frozenset[str]]:
    """Return the JSON types of every property, also of alternatives; none for a property that may have any."""
    found: dict[str, frozenset[str]] = {}
    options = [one for keyword in ("oneOf", "anyOf") for one in schema.get(keyword) or () if isinstance(one, Mapping)]
    for node in (schema, *(resolve(option, schema, most=8) for option in options)):
        properties = node.get("properties")
        for name, one in properties.items() if isinstance(properties, Mapping) else ():
            types, before = SchemaView(one, schema).types, found.get(name)
            found[name] = types if before is None else before | types if before and types else frozenset()
    return found


def read_field(
    field: str,
    types: Mapping[str, frozenset[str]],
    files: Mapping[str, FileField] = MappingProxyType({}),
    *,
    over_http: bool = False,
) -> tuple[str, Any]:
    """Read KEY=VALUE, converted to one of the types of its property, or KEY:=JSON; @FILE stands for what it has."""
    name, mark, text = field.partition("=")
    if not mark or not name.rstrip(":"):
        raise click.BadParameter(f"{field!r} is neither KEY=VALUE nor KEY:=JSON", param_hint="KEY=VALUE")
    explicit = name.endswith(":")
    name = name.removesuffix(":")
    if text.startswith("@@") and not explicit:
        text = text[1:]
    elif text.startswith("@") and not explicit:
        takes_text = "string" in types.get(name, ())
        return name, read_member(name, text[1:], files.get(name), takes_text=takes_text, over_http=over_http)
    elif text.startswith("@"):
        text = read_text_file(text[1:], f"{name}:=@FILE")
    if not explicit and ("string" in types.get(name, ()) or not types.get(name)):
        return name, text
    try:
        return name, decode_json(text)
    except (msgspec.DecodeError, RecursionError) as error:
        if explicit:
            raise click.BadParameter(f"{brief(text)} is not JSON: {error}", param_hint=f"{name}:=JSON") from error
        return name, text


async def _print_items(items: AsyncGenerator[Any]) -> Reply | None:
    """Print items as they arrive; return the refusal that ends them, if one does."""
    async with aclosing(items):
        try:
            async for item in items:
                click.echo(msgspec.json.encode(item))
        except ServiceError as error:
            return error.reply
    return None


def _print(reply: Reply) -> None:
    aside = console(stderr=True)
    for advisory in reply.warnings:
        successor = f"; use {advisory.successor}" if advisory.successor else ""
        removed = f"; removed in {advisory.removed_in}" if advisory.removed_in else ""
        what = "verb" if advisory.about == "catalog" else "endpoint"
        aside.print(line((f"warning: this {what} is {advisory.kind}{successor}{removed}", "yellow")))
    if reply.replayed:
        aside.print(line(("note: this is the stored response to an earlier call with the same key", "dim")))
    if reply.ok:
        print_json(reply.output)
    elif reply.unchanged:
        aside.print(line(("note: nothing changed since then", "dim")))
    else:
        print_refusal(reply)


def print_refusal(reply: Reply) -> None:
    """Print the error of a refusal and what may help to standard error."""
    aside = console(stderr=True)
    error = reply.error
    aside.print(line((f"{reply.status} {reply.reason}", "bold red")))
    if error is None:
        return
    aside.print(line(f"{error.code}: {error.message}"))
    violations = error.members.get("violations")
    for violation in violations if isinstance(violations, list) else ():
        if isinstance(violation, Mapping):
            where = violation.get("pointer") or violation.get("rule") or "(input)"
            aside.print(line(f"  {where}: {violation.get('message')}"))
    if error.details:
        aside.print(line(f"details: {msgspec.json.encode(error.details).decode()}"))
    missing = error.members.get("missing_scopes")
    if isinstance(missing, list):
        scopes = [word for scope in missing for word in ("--scope", str(scope))]
        aside.print(line(f"help: declare the scopes with {shlex.join(scopes)}"))
    elif error.code == "scope-claim-invalid":
        aside.print(line("help: declare fewer scopes with --scope, or omit it to use all granted scopes"))
    elif error.members.get("type") == "scope-required":
        aside.print(line("help: declare a scope with --scope DOMAIN:ACTION"))
    elif error.members.get("modes"):
        aside.print(line("help: authenticate with --token-file, --key-file, --client-cert or --agent-key"))
    elif error.members.get("type") == "credentials-missing":
        aside.print(line("help: identify the agent with --as NAME or --agent-id, and declare scopes with --scope"))
    elif error.code == "confirmation-required" and isinstance(given := error.members.get("confirmation_id"), str):
        aside.print(line(f"help: after confirmation, call again with -H {shlex.quote(f'Confirmation-ID: {given}')}"))


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


_GOING_ON: Final = frozenset({"queued", "running", "waiting", "sleeping", "cancelling"})
_GOOD: Final = frozenset({"done", "completed"})
_SHORTEST: Final = 0.05
_LONGEST: Final = 2.0  # seconds between two looks


class Ended:
    """The end of a call: its reply, or the last one of CHECK if it was followed to its end."""

    def __init__(self, reply: Reply, *, followed: bool = False) -> None:
        self.reply = reply
        self.result: Any = None  # the receipt, or what CHECK tells if there is none; None if it was not followed
        self.fault = ""  # what went wrong in the background; empty if nothing did
        if not followed or not reply.ok:
            return
        told = reply.output
        details, state = told.get("details") or {}, told.get("status")
        self.result = details.get("result", told)
        if state not in _GOOD:
            error = details.get("error") or told.get("error") or {}
            self.fault = f"It is {state}: {error.get('code')}: {error.get('message')}" if error else f"It is {state}."


async def follow(client: ServiceClient, service: str, reply: Reply, headers: Mapping[str, str]) -> Ended:
    """Follow what a call has begun in the background to its end, if its reply says where to look."""
    target = _find_look(reply)
    if target is None:
        return Ended(reply)
    try:
        return Ended(await _ask(client, target, headers), followed=True)
    except asyncio.CancelledError:  # Ctrl-C
        # Quoted: the service has chosen the target.
        hint = shlex.join(("bespeak", "call", service, "CHECK", "/", f"target={target}"))
        console(stderr=True).print(line(f"It goes on. See it with: {hint}"))
        raise


def _find_look(reply: Reply) -> str | None:
    """Return the id under which CHECK shows what an accepted call does; None if the reply tells none."""
    match reply.output if reply.status == status.ACCEPTED else None:
        case {"look": {"method": "CHECK", "parameters": {"target": str(target)}}}:
            return target
    return None


async def _ask(client: ServiceClient, target: str, headers: Mapping[str, str]) -> Reply:
    """Ask CHECK until what it shows has ended, with a bar on a terminal; return its last reply."""
    from rich.progress import Progress  # noqa: PLC0415 - most calls are answered at once

    aside, wait = console(stderr=True), _SHORTEST
    with Progress(console=aside, transient=True, disable=not aside.is_terminal) as shown:
        bar = shown.add_task("waiting", total=None)
        while True:
            reply = await client.request("CHECK", "/", {"target": target}, headers=headers)
            told = reply.output if reply.ok else {}
            if told.get("status") not in _GOING_ON:
                return reply
            progress = (told.get("details") or {}).get("progress") or {}
            done, total = progress.get("done") or 0, progress.get("total")
            counted = f", {done:,}{f' of {total:,}' if total else ''} {progress.get('unit', '')}" if done else ""
            shown.update(bar, description=line(f"{told['status']}{counted}").plain, completed=done, total=total)
            await asyncio.sleep(wait)
            wait = min(wait * 1.5, _LONGEST)

"""`bespeak audit`: verify, show and export the audit trail, with the keys of the deployment or of `--key`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from rich.text import Text

from bespeak.errors import ConfigError
from bespeak.protocol.exchange.principal import is_canonical_id
from bespeak.protocol.exchange.refusal import Fault
from bespeak.state.audit.record import KeptRecord, parse_compact, payload_of
from bespeak.state.audit.trail import FileTrail, StoreTrail, Trail, export_lines
from bespeak.state.audit.verification import Expectation, Tally, TrailFault, Verification
from bespeak.state.identity.jws import key_id
from bespeak.state.identity.key_files import TrustedKeys, check_signature, parse_keys, read_history, read_key, trusted
from bespeak.state.store.commands.audit import LatestAudit, ReadAudit
from bespeak.state.store.store import Store
from bespeak.terminal import EXIT_GOOD, EXIT_REFUSED, PATH, CommandFailedError, repeatable_option
from bespeak.terminal.console import json_option, limit_option, line, print_json, print_lines, print_result
from bespeak.terminal.deployment import server_document, store_place
from bespeak.terminal.target_store import store_option, store_options, usable, visit_store, write_export
from bespeak.text.reading.text_file import read_text


@dataclass(frozen=True, slots=True)
class TrailTrust:
    """The keys that may have signed a trail, and what the configuration says about it."""

    keys: TrustedKeys = field(default_factory=dict)
    expected: Expectation = field(default_factory=Expectation)
    is_off: bool = False  # True if the configuration says that nothing is recorded


def trust_of(target: str | None, key_files: Iterable[Path] = (), server_ids: Iterable[str] = ()) -> TrailTrust:
    """Return what to rely on for the trail of a target; None for a trail whose configuration is not known.

    `key_files` replace the keys of the configuration, `server_ids` its server_id.
    """
    given = [usable(parse_keys(usable(read_text(file), file)), file) for file in key_files]
    trust = TrailTrust() if target is None else _configured(target, with_keys=not given)
    if given:
        trust = replace(trust, keys={kid: key for keys in given for kid, key in keys.items()})
    ids = frozenset(server_ids)
    return replace(trust, expected=replace(trust.expected, server_ids=ids)) if ids else trust


def _configured(target: str, *, with_keys: bool) -> TrailTrust:
    document = server_document(target)
    path = document.signing_key
    ids = frozenset({document.main.server_id} if document.main.server_id else ())
    expected = Expectation(document.audit.sign or ("each" if path is not None else "none"), ids)
    is_off = document.audit.recording(lasting=True) == "off"
    if path is None or not with_keys:
        return TrailTrust(expected=expected, is_off=is_off)
    key = read_key(path)
    if isinstance(key, Fault):
        raise ConfigError(f"signing_key {path}: {key.message}. Give the public keys of the server with --key.")
    history = read_history(path, key)
    if isinstance(history, Fault):
        raise ConfigError(f"{history.message}. Give the keys that you trust with --key.")
    replaced = {key_id(one.key): one.replaced_at for one in history if one.replaced_at is not None}
    replaced.pop(key_id(key), None)
    return TrailTrust(trusted([*(one.key for one in history), key]), replace(expected, replaced=replaced), is_off)


_ID: Final = re.compile(r"[0-9a-fA-F]{64}")
_SIGNATURES: Final = {
    "good": "good",
    "unsigned": "none",
    "unknown-key": "by an untrusted key",
    "bad": "invalid for the named key",
    "unchecked": "not checked: no key is available",
}


@click.group()
def audit() -> None:
    """Verify, show and export the audit trail of a deployment.

    TARGET is the deployment, whose configuration names the store; --store overrides it.
    """


_key_option = click.option(
    *("--key", "key_files"),
    multiple=True,
    type=PATH,
    help="Trust only this public key (JWK, JWK set or PEM); repeatable.  [default: the key of TARGET]",
)


@audit.command(short_help="Verify the audit trail.")
@store_options
@_key_option
@click.option("--file", type=PATH, help="Verify this export instead of the store.")
@repeatable_option("--expect", "expected", metavar="ID", text="Audit-ID or checkpoint that must exist")
@click.option(
    "--server-id",
    "server_ids",
    multiple=True,
    metavar="ID",
    help="Server that the records must be of, for a trail from before it was renamed; repeatable.  "
    "[default: the server_id of TARGET]",
)
@json_option
def verify(
    *,
    target: str,
    override: str | None,
    key_files: tuple[Path, ...],
    file: Path | None,
    expected: tuple[str, ...],
    server_ids: tuple[str, ...],
    as_json: bool,
) -> int:
    """Verify the whole trail and report every record that was changed, removed, moved or added.

    The key, the signing mode and the server_id come from the configuration of TARGET, not from the trail. The end of a
    trail can be cut off together with its checkpoints. To detect this, save the last checkpoint elsewhere from time to
    time and pass it with --expect. The exit code is 1 if a fault is found.

    \b
    Examples:
    bespeak audit verify examples/hotel
    bespeak audit verify --file trail.jsonl --key server.jwk
    """
    trust = trust_of(_audit_configured(target, override or file), key_files, server_ids)
    if trust.is_off and not as_json:
        click.echo('auditing is off: nothing is recorded while bespeak.toml has [audit] records = "off"', err=True)
    faults: list[TrailFault] = []

    def tell(fault: TrailFault) -> None:
        if as_json:
            faults.append(fault)
        else:
            place = f" (record {fault.sequence} of stream {fault.stream})" if fault.sequence else ""
            name = f" {fault.audit_id}" if fault.audit_id else ""
            print_lines([line((f"{fault.kind}", "bold red"), f"{name}{place}: {fault.message}")])

    async def check(trail: Trail) -> Tally:
        verification = Verification(trail, trust.keys, trust.expected)
        async for fault in verification.faults():
            tell(fault)
        for wanted in expected:
            if await trail.find(wanted) is None and await trail.find_checkpoint(wanted) is None:
                verification.tally.faults += 1
                tell(TrailFault("removed", "no record or checkpoint has this expected id", wanted))
        return verification.tally

    if file is not None:
        with closing(FileTrail(file)) as trail:
            tally = asyncio.run(check(trail))
    else:
        tally = visit_store(target, override, lambda store: check(StoreTrail(store)))
    data = {"auditing": not trust.is_off, **asdict(tally), "found": faults}
    print_result(data, _tally_lines(tally, trust, expected), as_json=as_json)
    return EXIT_REFUSED if tally.faults else EXIT_GOOD


@audit.command(short_help="Show audit records.")
@click.argument("words", nargs=-1, metavar="[AUDIT-ID] [TARGET]")
@store_option
@click.option("--agent", metavar="ID", help="Show only this agent's records; `anonymous` for calls without an id.")
@limit_option("records", 20)
@_key_option
@json_option
def show(
    *,
    words: tuple[str, ...],
    override: str | None,
    agent: str | None,
    limit: int,
    key_files: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Show one record, or the latest records of one agent or of all agents.

    \b
    Examples:
    bespeak audit show 3f5e... examples/hotel
    bespeak audit show --agent 9c1b... --limit 5
    """
    ids = [word.lower() for word in words if _ID.fullmatch(word)]
    targets = [word for word in words if not _ID.fullmatch(word)]
    if len(ids) > 1 or len(targets) > 1:
        raise click.UsageError("Give at most one AUDIT-ID (64 hexadecimal digits) and one TARGET.")
    if targets and not ids and not Path(targets[0]).exists() and re.fullmatch(r"[0-9a-fA-F.]+", targets[0]):
        raise click.UsageError(f"AUDIT-ID must be 64 hexadecimal digits; got {targets[0]!r}.")
    if agent is not None and agent != "anonymous" and not is_canonical_id(agent):
        raise click.UsageError(f"--agent must be 64 hexadecimal digits or `anonymous`; got {agent!r}.")
    target = targets[0] if targets else "."
    keys = trust_of(_audit_configured(target, override), key_files).keys

    async def read(store: Store) -> list[KeptRecord]:
        if ids:
            row = await store.read(ReadAudit(ids[0]))
            return [KeptRecord(*row)] if row is not None else []
        agent_id = "" if agent == "anonymous" else agent
        return [KeptRecord(*row) for row in await store.read(LatestAudit(limit, agent_id))]

    records = visit_store(target, override, read)
    if not records:
        raise CommandFailedError(f"no record has the id {ids[0]}" if ids else "no records found")
    if as_json:
        shown = [_as_dict(record, keys) for record in records]
        print_json(shown[0] if ids else shown)
    elif ids:
        print_lines(_record_lines(records[0], keys))
    else:
        print_lines(_summary(record) for record in records)


@audit.command(short_help="Export the trail as JSON Lines.")
@store_options
@click.option("-o", "--output", type=PATH, help="Write to this file, atomically.")
def export(target: str, override: str | None, output: Path | None) -> None:
    """Export the trail as JSON Lines, for `bespeak audit verify --file`.

    The export contains only those inputs that the configuration selects. Protect it like any log.
    """
    write_export(store_place(target, override), output, _write, "line")


async def _write(store: Store, write: Callable[[bytes], object]) -> int:
    lines = 0
    async for text in export_lines(store):
        write(text)
        lines += 1
    return lines


def _audit_configured(target: str, override: str | Path | None) -> str | None:
    """Return the target whose configuration to use; None if only another trail is given, which need not be of "."."""
    return None if override is not None and target == "." else target


def _tally_lines(tally: Tally, trust: TrailTrust, pinned: tuple[str, ...]) -> Iterator[Text]:
    agents, streams = _plural(tally.agents, "agent"), _plural(tally.streams, "stream")
    last = f", the last one {tally.last_checkpoint}" if tally.last_checkpoint else ""
    yield line(f"records      {tally.records:,} of {agents}, in {streams}")
    yield line(f"checkpoints  {tally.checkpoints:,}{last}")
    if tally.behind and tally.checkpoints:
        yield line(f"             {tally.behind:,} of the latest records are not yet covered")
    yield line(f"signatures   {_signatures(tally, trust.keys)}")
    yield line(f"checked      {_checked(trust)}")
    yield from (line(f"not proven   {note}") for note in _notes(tally, pinned))
    yield line((_plural(tally.faults, "fault"), "bold red")) if tally.faults else line("no faults")


def _checked(trust: TrailTrust) -> str:
    expected = trust.expected
    parts = [_plural(len(trust.keys), "trusted key")] if trust.keys else []
    parts += [] if expected.sign is None else [f"sign = {expected.sign!r} of the configuration".replace("'", '"')]
    parts += [] if not expected.server_ids else [f"server_id {', '.join(sorted(expected.server_ids))}"]
    return f"against {', '.join(parts)}" if parts else "against itself only; give a TARGET or --key"


def _notes(tally: Tally, pinned: tuple[str, ...]) -> Iterator[str]:
    """Yield what a trail without faults leaves open."""
    signed = tally.signed or tally.checkpoints
    if tally.adopted:
        yield f"{_plural(tally.adopted, 'record')} from before signing began, at {tally.signing_at}"
    if tally.unproven and signed and not tally.faults:
        yield f"{_plural(tally.unproven, 'record')} since signing was switched off, at {tally.signing_at}"
    if signed and tally.last_checkpoint not in pinned:
        yield "that nothing was cut off at the end: keep the last checkpoint elsewhere and give it with --expect"


def _signatures(tally: Tally, keys: TrustedKeys) -> str:
    if tally.unchecked:
        return f"{tally.unchecked:,} not checked: no key is available; give one with --key"
    if not tally.signed and not tally.checkpoints:
        return "none: anyone with write access to the store could have forged the trail"
    text = f"{tally.signed:,} good, by {_plural(len(keys), 'trusted key')}"
    return f"{text}; {tally.unsigned:,} records are not signed themselves" if tally.unsigned else text


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _signature(record: KeptRecord, keys: TrustedKeys) -> str:
    compact = parse_compact(record.jws)
    return _SIGNATURES[check_signature(compact, keys)] if compact is not None else "none: not a valid record"


def _as_dict(record: KeptRecord, keys: TrustedKeys) -> dict[str, Any]:
    signed = {"signature": _signature(record, keys), "record": payload_of(record.jws)}
    return {"audit_id": record.audit_id, **signed, "jws": record.jws}


def _record_lines(record: KeptRecord, keys: TrustedKeys) -> Iterator[Text]:
    members = {"audit_id": record.audit_id, "signature": _signature(record, keys), **(payload_of(record.jws) or {})}
    width = max(map(len, members))
    for name, value in members.items():
        yield line(f"{name:<{width}}  {value if isinstance(value, str) else msgspec.json.encode(value).decode()}")


def _summary(record: KeptRecord) -> Text:
    payload = payload_of(record.jws) or {}
    what = " ".join(str(payload[name]) for name in ("method", "path") if name in payload)
    if "step" in payload:
        what += f"  (step {payload['step']} of {payload.get('parent_response_id', '?')})"
    return line(f"{payload.get('issued_at', '?')}  {payload.get('status', '?')}  {record.audit_id}  {what}")

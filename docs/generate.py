"""Write the pages and blocks that come from the code: `make docs`. A test fails if one of them is stale."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import click
import types_tables
from api_page import api_parts
from settings_page import settings_tables

from bespeak.agent.discovery.fetcher import DEADLINE as FETCH_DEADLINE
from bespeak.agent.discovery.fetcher import MOST_REDIRECTS
from bespeak.agent.discovery.web_document import DISCOVERY, OPENAPI
from bespeak.agent.tools import tool_runner
from bespeak.app.cli.catalog import catalog_diff
from bespeak.app.cli.main import COMMANDS, bespeak
from bespeak.app.server.settings import Settings
from bespeak.checks.evolution.change import ChangeRule, Kind
from bespeak.checks.evolution.change_report import RULES as CHANGE_RULES
from bespeak.checks.lint import manifest_report
from bespeak.checks.lint.rule_index import PASSES, all_rules, pass_of
from bespeak.contract.limits import StreamLimits
from bespeak.contract.schema.validation import MAX_DEPTH as SCHEMA_DEPTH
from bespeak.documents.deployment.server_settings import A2aSettings, McpSettings
from bespeak.extensions.messages import delivery, message, methods_broadcast, methods_send
from bespeak.extensions.workflows.spec import MOST_COPIED
from bespeak.faces.a2a.http import MOST_VALUES as A2A_VALUES
from bespeak.faces.a2a.tasks import MOST_KEPT as A2A_KEPT
from bespeak.faces.a2a.tasks import MOST_RUNNING as A2A_RUNNING
from bespeak.faces.limits import MAX_BUFFERED, UNREAD_FACTOR, Timeouts
from bespeak.faces.mcp import catalog
from bespeak.faces.mcp.results import LIFETIME as KEPT_LIFETIME
from bespeak.faces.mcp.results import MOST_KEPT_CHARACTERS as KEPT_CHARACTERS
from bespeak.faces.mcp.results import MOST_KEPT_RESULTS as KEPT_RESULTS
from bespeak.faces.mcp.sessions import MOST_SESSIONS as MCP_SESSIONS
from bespeak.protocol import status
from bespeak.protocol.wire.messages import Limits
from bespeak.runtime.bindings.upstream import MAX_RESPONSE_BYTES
from bespeak.text.diagnostics.diagnostic import Rule
from bespeak.text.diagnostics.report import page_of
from bespeak.text.source.toml_tree import MAX_BYTES as DOCUMENT_BYTES
from bespeak.text.source.tree import MAX_BYTES as TREE_BYTES
from bespeak.text.source.tree import MAX_DEPTH as TREE_DEPTH
from bespeak.text.source.tree import MAX_NODES as TREE_NODES

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "bespeak"
REFERENCE = ROOT / "docs" / "reference"
PAGES = "../../src/bespeak/text/diagnostics/rules"
"""Folder with the pages of rules, from the list of rules."""
WIDTH = 100
CODE = re.compile(r"[a-z]+(-[a-z]+)+")
READ_BY_CLIENTS = ("invalid-status-line", "unexpected-response")
"""Codes that only clients use, for replies that they cannot read."""

LETTERS = {
    "D": "D1xx: reading files and documents, and ignores in them",
    "M": "M2xx: methods (AGTP-API 3)",
    "P": "P3xx: paths (AGTP-API 5)",
    "S": "S4xx: semantic blocks (AGTP-API 6.2, 7.1)",
    "V": "V5xx: reading catalogs (AGTP-API 4.2)",
    "J": "J6xx: schemas and errors (AGTP-API 6.3, 13.3)",
    "H": "H7xx: handlers (AGTP-API 12)",
    "Y": "Y8xx: scopes, policies, recipes (AGTP-API 6.3, 6.4, 8.7, 9); settings of identity, state and limits",
    "X": "X9xx: security",
    "R": "R9xx: unreviewed guesses of an importer (AGTP-API 14.1)",
    "I": "I1xx, I2xx: ontologies and semantic profiles (IoA 5, 6)",
    "W": "W1xx, W9xx: discovering and linting services on the web (AI-Discovery, AGIS 11)",
}
"""Headings for rules that do not belong to a pass, by their letter."""

# <!-- name in the reader's folder: file in this repository -->, and the block that shows it
INCLUDE = re.compile(
    r"<!-- (?P<name>\S+): (?P<source>docs_src/\S+) -->\n```(?P<kind>\w+)\n.*?^```$", re.DOTALL | re.MULTILINE
)

# <!-- name of a block --> ... <!-- end -->
MADE = re.compile(r"<!-- (?P<name>[a-z]+) -->\n.*?<!-- end -->", re.DOTALL)


def commands_page() -> str:
    """Write the page of commands from their help texts."""
    shown = [
        f"## {path}\n\n```text\n{text}\n```"
        for root, command in (("bespeak", bespeak), ("agtp-catalog-diff", catalog_diff))
        for path, text in _helps(command, click.Context(command, info_name=root, max_content_width=WIDTH))
    ]
    intro = (
        "The output of `--help`. Exit codes: 0 for success, 1 for findings or a refusal, 2 for wrong usage, a wrong "
        "configuration or an internal error."
    )
    return _page("Commands", intro, commands_table(), *shown)


def _helps(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    context.help_option_names = ["-h", "--help"]
    context.terminal_width = WIDTH
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _helps(inner, click.Context(inner, info_name=name, parent=context))
    for name, inner in getattr(command, "commands", {}).items() if not isinstance(command, click.Group) else ():
        yield from _helps(inner, click.Context(inner, info_name=f"{context.info_name} {name}", parent=context.parent))


def rules_page() -> str:
    """Write the list of rules, by the pass of AGIS 9.1 or by letter."""
    groups: dict[str, list[Rule]] = defaultdict(list)
    about = {step.number: f"Pass {step.number}, {step.name}: {step.summary}" for step in PASSES}
    for rule in all_rules().values():
        number = pass_of(rule.id)
        groups[about[number] if number else LETTERS[rule.id[0]]].append(rule)
    order = [*about.values(), *LETTERS.values()]
    changes = [rule for rule in CHANGE_RULES.values() if isinstance(rule, ChangeRule)]
    reasons = {rule.kind: page_of(rule).why for rule in changes}
    sections = [
        f"## {title}\n\n"
        + _table(
            ("id", "name", "binding", "from", "what it asks"),
            (
                (rule.id, f"[`{rule.name}`]({PAGES}/{rule.id}.md)", rule.normative, rule.source, page_of(rule).summary)
                for rule in groups[title]
            ),
        )
        for title in order
        if groups[title]
    ]
    return _page(
        "Rules",
        "The rules of `bespeak lint`. A server checks the same rules before it registers an endpoint. A finding of a "
        "MUST rule is an error: the server leaves the endpoint out, or does not start with `--strict`. A finding of a "
        "SHOULD rule is a warning, and a finding of a style rule is information. Rules that only AGIS has are warnings "
        "in other documents.\n\n"
        "An id never changes its meaning. `bespeak explain RULE` prints the page of a rule and the settings in the "
        "current folder.",
        *sections,
        "## C1xx: changes of a contract, reported by `bespeak diff`\n\n"
        + _table(
            ("id", "name", "kind", "category", "what changed"),
            ((rule.id, f"`{rule.name}`", rule.kind, rule.category, page_of(rule).summary) for rule in changes),
        ),
        "The effect of each kind of change on callers, and what to do:\n\n"
        + _table(("kind", "what to do"), ((kind, reasons[kind]) for kind in get_args(Kind))),
        "Other findings:\n\n"
        + _table(
            ("id", "name", "finding", "reason"),
            (
                (rule.id, f"`{rule.name}`", page_of(rule).summary, page_of(rule).why)
                for rule in CHANGE_RULES.values()
                if not isinstance(rule, ChangeRule)
            ),
        ),
    )


def settings_page() -> str:
    """Write the reference of every key of bespeak.toml."""
    sections = [
        f"## {heading}\n\n{meaning}" + (f"\n\n{_table(('key', 'type', 'meaning'), rows)}" if rows else "")
        for heading, meaning, rows in settings_tables()
    ]
    return _page(
        "Settings: bespeak.toml",
        "Every key of `bespeak.toml`. Relative paths start at the folder of the file. A value that is not valid is an "
        "error, and a server with errors in its configuration does not start. An unknown key is an error too, "
        "unless it starts with `x-`; the message names the key you may have "
        "meant. Options of `bespeak serve` override `[listen]` and `[store]`.",
        *sections,
    )


def status_page() -> str:
    """Write the status codes, their sections in the drafts, and their error codes."""
    codes = _codes_in_use()
    rows = []
    for number, reason in sorted(status.REASONS.items()):
        used = ", ".join(f"`{code}`" for code in sorted(codes[number]))
        rows.append((number, reason, status.MEANINGS.get(number, ""), used))
    return _page(
        "Status codes",
        "Status codes of AGTP, and the values of `error.code` that the server sends with them. A 422 with another code "
        "carries the name of an error that the endpoint declares. Refusals without a value in the last column are "
        "understood by the client, but not sent by servers of this version.",
        _table(("status", "name", "meaning", "`error.code`"), rows),
    )


def _codes_in_use() -> dict[int, set[str]]:
    """Collect the error codes in the source, by the status they are written with."""
    found: dict[int, set[str]] = defaultdict(set)
    refusal = ast.parse((SOURCE / "protocol" / "exchange" / "refusal.py").read_text("utf-8"))
    shared = list(_forwarding(list(ast.walk(refusal))))
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        constants, nodes = dict(_constants(tree)), list(ast.walk(tree))
        calls = [node for node in nodes if isinstance(node, ast.Call) and node.args]
        made = [(node.args[0], node.args[1]) for node in calls if len(node.args) >= 3]
        for written, name in (*shared, *_forwarding(nodes)):
            made += [(written, node.args[0]) for node in calls if name in _called(node)]
        for written, given in made:
            code = _code(given, constants)
            for number in _statuses(written) if code not in (None, *READ_BY_CLIENTS) else ():
                found[number].add(str(code))
    return found


def _forwarding(nodes: list[ast.AST]) -> Iterator[tuple[ast.expr, str]]:
    """Yield the status and the name of each function that refuses with the code it is given first."""
    calls = [node for node in nodes if isinstance(node, ast.Call) and len(node.args) >= 3]
    named = {call.args[1].id for call in calls if isinstance(call.args[1], ast.Name)}
    for function in (node for node in nodes if isinstance(node, ast.FunctionDef)):
        first = [given.arg for given in function.args.args if given.arg not in ("self", "cls")][:1]
        if named.isdisjoint(first):
            continue
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call) and len(node.args) >= 3):
            if isinstance(call.args[1], ast.Name) and [call.args[1].id] == first:
                yield call.args[0], function.name


def _called(call: ast.Call) -> tuple[str, str]:
    """Return the name of a function that is called, alone or after a dot; the other one is empty."""
    return getattr(call.func, "id", ""), getattr(call.func, "attr", "")


def _constants(tree: ast.Module) -> Iterator[tuple[str, object]]:
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value.value if isinstance(node.value, ast.Constant) else None


def _statuses(node: ast.expr) -> Iterator[int]:
    """Yield the statuses that an expression can have: a number, a name of `status`, or a choice of two."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "status":
            yield getattr(status, part.attr, 0)
        elif isinstance(part, ast.Constant) and isinstance(part.value, int) and part.value in status.REASONS:
            yield part.value


def _code(node: ast.expr, constants: dict[str, object]) -> str | None:
    value = constants.get(node.id) if isinstance(node, ast.Name) else getattr(node, "value", None)
    return value if isinstance(value, str) and CODE.fullmatch(value) else None


def requirements_page() -> str:
    """Write the number of statements of the drafts by section, how many a test shows, and the deviations."""
    entries = tomllib.loads((ROOT / "specs" / "requirements.toml").read_text("utf-8"))["requirement"]
    drafts = tomllib.loads((ROOT / "specs" / "drafts.toml").read_text("utf-8"))["draft"]
    kinds = ("shown", "deviation", "deferred", "outside")
    heads = ("statements", "shown by a test", "deviations", "deferred", "outside")

    def count(chosen: Iterable[dict[str, Any]]) -> list[int]:
        counts: Counter[str] = Counter()
        for entry in chosen:
            counts[entry.get("status", "shown")] += len(entry.get("covers", ("",)))
        return [counts.total(), *(counts[kind] for kind in kinds)]

    sections, totals = [], []
    for draft in drafts:
        chosen = [entry for entry in entries if entry["id"].startswith(f"{draft['id']}-")]
        totals.append((draft["id"], draft["name"], draft["revision"], *count(chosen)))
        numbers = dict.fromkeys(entry["section"] for entry in chosen)
        rows = [(number, *count(entry for entry in chosen if entry["section"] == number)) for number in numbers]
        chosen_otherwise = [entry for entry in chosen if entry.get("status") == "deviation"]
        section = f"## {draft['id']}: {draft['title']}\n\n{_table(('section', *heads), rows)}"
        if chosen_otherwise:
            reasons = ((entry["id"], entry["text"], entry["reason"]) for entry in chosen_otherwise)
            section += f"\n\n{_table(('deviation', 'statement', 'reason'), reasons)}"
        sections.append(section)
    return _page(
        "Requirements",
        "What the drafts ask, counted from [requirements.toml](../../specs/requirements.toml). A statement is shown by "
        "a test that fails if it is broken, or has a recorded reason: bespeak does something else on purpose "
        "(deviation), will do it (deferred), or cannot show it here (outside). Of the methods in "
        "[methods.toml](../../specs/methods.toml), every row of a table, every response, idempotency and error code is "
        "a statement. `pytest tests/requirements` fails if a statement has neither a test nor a reason, or both, and "
        "if a row of a table is in no requirement.",
        _table(("id", "draft", "revision", *heads), totals),
        *sections,
    )


def api_page() -> str:
    """Write the public Python names, from their signatures and docstrings."""
    return _page(
        "Python API",
        "Import these names from `bespeak`: `from bespeak import App, Refusal`. Everything else below `bespeak` is "
        "internal and may change ([versioning](../../VERSIONING.md)).",
        *api_parts(),
    )


def commands_table() -> str:
    """List the commands, one line each."""
    rows = [(f"`bespeak {name}`", entry.summary) for name, entry in COMMANDS.items()]
    text = (catalog_diff.help or "").splitlines()[0].partition(". ")[0] + "."
    return _table(("command", "what it does"), [*rows, ("`agtp-catalog-diff`", f"{text} The draft's own command.")])


def layers_table() -> str:
    """Return the rooms from the top down, as pyproject.toml orders them and as each describes itself."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    [layers] = [contract["layers"] for contract in settings if contract["type"] == "layers"]
    rows = []
    for height, layer in enumerate(line for line in layers if not line.startswith("(")):
        for name in layer.split(" | "):
            text = (import_module(f"bespeak.{name}").__doc__ or "").splitlines()[0]
            rows.append((height + 1, f"`{name}`", text))
    return _table(("layer", "room", "what it is"), rows)


def limits_table() -> str:
    """List the limits of a server with their defaults."""
    limits, timeouts, streams = Limits(), Timeouts(), StreamLimits()
    settings = {field.name: field.default for field in fields(Settings)}
    assert (settings["max_body"], settings["idle_timeout"]) == (limits.body, timeouts.idle)
    rows = (
        ("start line of a request", _size(limits.line), "", "400 (HTTP: 414), close"),
        ("all headers together", _size(limits.head), "", "400 (HTTP: 431), close"),
        ("header lines", limits.headers, "", "400 (HTTP: 431), close"),
        ("body", _size(limits.body), "`max_body`", "413, close; the body is not read"),
        (
            "connections per worker, all faces together",
            f"{settings['max_connections']:,}",
            "`max_connections`",
            "503, close",
        ),
        ("first request while the server is full", _time(timeouts.crowded), "", "503, close"),
        ("unfinished requests per worker", _size(MAX_BUFFERED), "`max_buffered`", "503 for the oldest, close"),
        (
            "unread answers per worker",
            _size(UNREAD_FACTOR * MAX_BUFFERED),
            "`max_buffered` × 4",
            "the oldest is cut off",
        ),
        ("reading a request, first byte to last", _time(timeouts.read), "`read_timeout`", "408, close"),
        ("idle time between two requests", _time(timeouts.idle), "`idle_timeout`", "close"),
        ("writing to a peer that does not read", _time(timeouts.write), "", "close"),
        ("TLS handshake", _time(timeouts.handshake), "", "close"),
        ("running requests at shutdown", _time(timeouts.drain), "`drain_timeout`", "cancelled"),
        ("a stream, and its items in one answer", _time(streams.seconds), "`[limits.stream] seconds`", "408"),
        ("one item of a stream", _size(streams.max_item), "`[limits.stream] max_item`", "the stream ends with 500"),
        (
            "items of an answer that is not streamed",
            f"{streams.max_items:,}",
            "`[limits.stream] max_items`",
            "422, with how to ask for a stream",
        ),
        (
            "bytes of such an answer",
            _size(streams.max_bytes),
            "`[limits.stream] max_bytes`",
            "422, with how to ask for a stream",
        ),
        (
            "tasks of one caller over A2A",
            f"{A2aSettings().most_tasks:,}",
            "`[a2a] most_tasks`",
            "the one finished first makes room, else 429",
        ),
        ("calls over A2A that run in one worker", f"{A2A_RUNNING:,}", "", "503"),
        ("values in a request of A2A", f"{A2A_VALUES:,}", "", "413"),
        ("a task of A2A in the store", _size(A2A_KEPT), "", "the output is sent once, and not kept"),
        (
            "characters of a result over MCP",
            f"{McpSettings().max_result:,}",
            "`[mcp] max_result`",
            "the result is cut and marked",
        ),
        (
            "results that were cut, kept for their callers per worker",
            f"{KEPT_RESULTS}, {KEPT_CHARACTERS // 1_000_000} million characters, {_time(KEPT_LIFETIME)}",
            "",
            "the oldest is forgotten",
        ),
        (
            "sessions of earlier revisions of MCP per worker",
            f"{MCP_SESSIONS:,}",
            "",
            "the longest unused one of the agent that has most ends",
        ),
        (
            "text of an MCP prompt, and of its task",
            f"{catalog._LONGEST:,} and {catalog.LONGEST_TASK:,} characters",
            "",
            "cut with a note; refused",
        ),
        (
            "attempts to deliver a message at a time per worker",
            f"{delivery._PLACES}; {delivery._FOR_RECEIVER} for a receiver, {delivery._FOR_SENDER} for a sender",
            "",
            "it waits",
        ),
        ("a message of SEND", _size(methods_send.MOST_CONTENT), "", "413"),
        ("messages of one agent with SEND in 30 days", f"{methods_send.MOST:,}", "", "503"),
        (
            "messages in an inbox, and unread ones of one sender among them",
            f"{message.MOST_RECEIVED:,} and {message.MOST_FROM_ONE:,}",
            "",
            "503",
        ),
        ("copies of one message for addresses outside", _size(methods_broadcast.MOST_COPIES), "", "413"),
        ("what the steps of a workflow take from earlier ones", _size(MOST_COPIED), "", "the step fails"),
        ("findings in the lint report that MCP clients read", f"{manifest_report._MOST}", "", "counted as left out"),
        (
            "arguments of a model's tool call",
            f"{tool_runner._LONGEST_ARGUMENTS // 1_000_000} MB",
            "",
            "the model is told",
        ),
        (
            "tool calls in one message of a model",
            f"{tool_runner._MOST_CALLS}",
            "",
            "the model is told of each further one",
        ),
        ("response of an upstream", _size(MAX_RESPONSE_BYTES), "", "`upstream_malformed_response`"),
        ("nesting of a schema", SCHEMA_DEPTH, "", "the endpoint is not registered"),
        ("TOML file", _size(DOCUMENT_BYTES), "", "refused with a finding"),
        ("AGIS document", _size(TREE_BYTES), "", "refused with a finding"),
        ("OpenAPI description", f"{OPENAPI.most // 1_000_000} MB", "", "refused with a finding"),
        ("fetched discovery document", f"{DISCOVERY.most // 1_000} kB", "", "refused with a finding"),
        ("fetching a document, first byte to last", _time(FETCH_DEADLINE), "", "abandoned with a finding"),
        ("redirects while fetching", MOST_REDIRECTS, "", "abandoned with a finding"),
        ("nesting of a document", TREE_DEPTH, "", "refused with a finding"),
        ("keys and values of a document", f"{TREE_NODES:,}", "", "refused with a finding"),
    )
    return _table(("limit", "default", "key in `[limits]`", "if exceeded"), rows)


def statuses_table() -> str:
    """List the HTTP status of each status code that only AGTP has."""
    rows = []
    for number, there in sorted(status.HTTP.items()):
        shown = "401 or 403" if number == status.AUTHORIZATION_REQUIRED else there
        rows.append((number, status.REASONS[number], shown))
    return _table(("AGTP", "name", "HTTP"), rows)


def _size(number: int) -> str:
    return f"{number // 2**20} MiB" if number >= 2**20 else f"{number // 2**10} KiB"


def _time(seconds: float) -> str:
    return f"{seconds:g} s"


def _table(heading: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    lines = [heading, tuple("---" for _ in heading), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def _page(title: str, *parts: str) -> str:
    note = "<!-- Written by docs/generate.py from the code; change it there and run `make docs`. -->"
    return "\n\n".join((f"# {title}", note, *parts)) + "\n"


def with_includes(text: str) -> str:
    """Fill each marked block of a page from its file or its generator."""

    def shown(match: re.Match[str]) -> str:
        content = (ROOT / match["source"]).read_text("utf-8").rstrip()
        return f"<!-- {match['name']}: {match['source']} -->\n```{match['kind']}\n{content}\n```"

    def made(match: re.Match[str]) -> str:
        return f"<!-- {match['name']} -->\n\n{BLOCKS[match['name']]()}\n\n<!-- end -->"

    return MADE.sub(made, INCLUDE.sub(shown, text))


BLOCKS: dict[str, Callable[[], str]] = {
    "layers": layers_table,
    "limits": limits_table,
    "statuses": statuses_table,
    "scalars": lambda: types_tables.input_table(types_tables.SCALARS),
    "containers": lambda: types_tables.input_table(types_tables.CONTAINERS),
    "classes": lambda: types_tables.input_table(types_tables.CLASSES),
    "outputs": types_tables.output_table,
    "refused": types_tables.refused_list,
}

REFERENCE_PAGES: dict[str, Callable[[], str]] = {
    "api.md": api_page,
    "commands.md": commands_page,
    "rules.md": rules_page,
    "settings.md": settings_page,
    "status.md": status_page,
    "requirements.md": requirements_page,
}


def hand_written() -> list[Path]:
    """List the pages that people write: at the root, beside the examples, and under docs."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("examples/*.md"), *ROOT.glob("docs/**/*.md")]
    generated = {REFERENCE / name for name in REFERENCE_PAGES}
    return sorted(page for page in pages if page not in generated)


def stale() -> dict[Path, str]:
    """Map each outdated page to its new text."""
    wanted = {REFERENCE / name: make() for name, make in REFERENCE_PAGES.items()}
    wanted |= {page: with_includes(page.read_text("utf-8")) for page in hand_written()}
    return {page: text for page, text in wanted.items() if not page.is_file() or page.read_text("utf-8") != text}


def main(*, check: bool) -> int:
    """Write outdated pages, or with `check` only list them. Return 1 if `check` finds any."""
    pages = stale()
    for page, text in pages.items():
        if not check:
            page.write_text(text, "utf-8")
        sys.stdout.write(f"{'stale' if check else 'wrote'} {page.relative_to(ROOT)}\n")
    return 1 if check and pages else 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))

"""Write the pages and blocks that come from the code: `make docs`. A test fails if one of them is stale."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import click
import types_tables
from api_page import api_parts
from settings_page import settings_tables

from bespeak.agent.discovery.document_kind import DISCOVERY, OPENAPI
from bespeak.agent.discovery.fetcher import DEADLINE as FETCH_DEADLINE
from bespeak.agent.discovery.fetcher import MOST_REDIRECTS
from bespeak.app.cli.catalog_diff import catalog_diff
from bespeak.app.cli.main import COMMANDS, bespeak
from bespeak.app.server.settings import Settings
from bespeak.checks.evolution.change_rules import FINDINGS as CHANGE_FINDINGS
from bespeak.checks.evolution.change_rules import FINDINGS_WHY as CHANGE_FINDINGS_WHY
from bespeak.checks.evolution.change_rules import RULES as CHANGE_RULES
from bespeak.checks.evolution.change_rules import WHY as CHANGE_KINDS
from bespeak.checks.lint.passes import PASSES, pass_of
from bespeak.checks.lint.registry import all_rules
from bespeak.checks.lint.rule_page import facts, sections
from bespeak.contract.schema.compile import MAX_DEPTH as SCHEMA_DEPTH
from bespeak.faces.timeouts import Timeouts
from bespeak.protocol import status
from bespeak.protocol.wire.limits import Limits
from bespeak.runtime.bindings.external import MAX_RESPONSE_BYTES
from bespeak.text.diagnostics.rule import Rule
from bespeak.text.source.toml_tree import MAX_BYTES as DOCUMENT_BYTES
from bespeak.text.source.tree import MAX_BYTES as TREE_BYTES
from bespeak.text.source.tree import MAX_DEPTH as TREE_DEPTH
from bespeak.text.source.tree import MAX_NODES as TREE_NODES

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "bespeak"
REFERENCE = ROOT / "docs" / "reference"
WIDTH = 100
CODE = re.compile(r"[a-z]+(-[a-z]+)+")
READ_BY_CLIENTS = ("invalid-status-line", "unexpected-response")
"""What only a client finds wrong with what it reads; no server sends them."""

LETTERS = {
    "D": "D1xx: files and documents as they are read, and the ignores in them",
    "M": "M2xx: methods (AGTP-API 3)",
    "P": "P3xx: paths (AGTP-API 5)",
    "S": "S4xx: semantic blocks (AGTP-API 6.2, 7.1)",
    "V": "V5xx: catalogs as they are read (AGTP-API 4.2)",
    "J": "J6xx: schemas and errors (AGTP-API 6.3, 13.3)",
    "H": "H7xx: handlers (AGTP-API 12)",
    "Y": "Y8xx: scopes, policies, recipes (AGTP-API 6.3, 6.4, 8.7, 9), settings of identity, state and limits",
    "X": "X9xx: security",
    "R": "R9xx: what an importer has guessed and nobody has looked at (AGTP-API 14.1)",
    "W": "W1xx, W9xx: services on the web, as they are looked up and as they are examined (AI-Discovery, AGIS 11)",
}
"""What the letters stand for, for rules that belong to no pass."""

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


def rules_page() -> str:
    """Every rule, by the pass of AGIS 9.1 it belongs to or by its letter."""
    groups: dict[str, list[Rule]] = defaultdict(list)
    about = {step.number: f"Pass {step.number}, {step.name}: {step.summary}" for step in PASSES}
    for rule in all_rules().values():
        number = pass_of(rule.id)
        groups[about[number] if number else LETTERS[rule.id[0]]].append(rule)
    order = [*about.values(), *LETTERS.values()]
    sections = [
        f"## {title}\n\n"
        + _table(
            ("id", "name", "binding", "from", "what it asks"),
            (
                (rule.id, f"[`{rule.name}`](rules/{rule.id}.md)", rule.normative, rule.source, rule.summary)
                for rule in groups[title]
            ),
        )
        for title in order
        if groups[title]
    ]
    return _page(
        "Rules",
        "What `bespeak lint` looks for, and what a server asks of an endpoint before it registers it. A finding of a "
        "MUST rule is an error: a server leaves the endpoint out, or with `--strict` does not start. A finding of a "
        "SHOULD rule is a warning, one of style an advice. What only AGIS asks is a warning in other documents.\n\n"
        "An id never changes its meaning. `bespeak explain RULE` prints the page of a rule, with the settings that "
        "hold where you are.",
        *sections,
        "## C1xx: changes of a contract, as `bespeak diff` reports them\n\n"
        + _table(
            ("id", "name", "kind", "category", "what changed"),
            ((rule.id, f"`{rule.name}`", rule.kind, rule.category, rule.summary) for rule in CHANGE_RULES.values()),
        ),
        "What each kind does to callers, and what to do:\n\n" + _table(("kind", "what to do"), CHANGE_KINDS.items()),
        "Beside the changes:\n\n"
        + _table(
            ("id", "what was found", "why it is told"),
            ((rule, text, CHANGE_FINDINGS_WHY[rule]) for rule, text in CHANGE_FINDINGS.items()),
        ),
    )


def rule_page(rule: Rule) -> str:
    """The page of one rule."""
    names = {step.number: step.name for step in PASSES}
    shown = [
        f"## {title}\n\n" + (f"```{rule.notation}\n{text.rstrip()}\n```" if is_code else text)
        for title, text, is_code in sections(rule)
    ]
    table = _table(("", ""), facts(rule, names.get(pass_of(rule.id), "")))
    return _page(f"{rule.id} {rule.name}", rule.summary, table, *shown, "[All rules](../rules.md)")


def settings_page() -> str:
    """Write the reference of every key of bespeak.toml."""
    sections = [
        f"## {heading}\n\n{meaning}" + (f"\n\n{_table(('key', 'type', 'meaning'), rows)}" if rows else "")
        for heading, meaning, rows in settings_tables()
    ]
    return _page(
        "Settings: bespeak.toml",
        "Every key of `bespeak.toml`. Relative paths start at the folder of the file. A value that is not valid is an "
        "error, and a server with errors in its configuration does not start. An unknown key is a warning that names "
        "the key you may have meant. Options of `bespeak serve` override `[listen]` and `[store]`. `bespeak lint` has "
        "[settings of its own](lint.md#settings).",
        *sections,
    )


def status_page() -> str:
    """The status codes, the section that defines each, and the error codes that come with it."""
    texts, codes = _texts_of(SOURCE / "protocol" / "status.py"), _codes_in_use()
    rows = []
    for name, number in vars(status).items():
        if isinstance(number, int):
            used = ", ".join(f"`{code}`" for code in sorted(codes[number]))
            rows.append((number, status.REASONS[number], texts.get(name, ""), used))
    return _page(
        "Status codes",
        "The codes bespeak knows, and the values of `error.code` its server sends with them. A 422 with none of these "
        "carries the name of an error the endpoint declares. Refusals without a value in the last column are known "
        "to the client and sent by no server of this version.",
        _table(("status", "name", "meaning", "`error.code`"), rows),
    )


def _texts_of(path: Path) -> dict[str, str]:
    """The string that stands under each constant of a module."""
    body = ast.parse(path.read_text("utf-8")).body
    return {
        constant.target.id: text.value.value
        for constant, text in pairwise(body)
        if isinstance(constant, ast.AnnAssign)
        and isinstance(constant.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def _codes_in_use() -> dict[int, set[str]]:
    """The error code of every refusal that is written down with its status, by status."""
    found: dict[int, set[str]] = defaultdict(set)
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        constants = dict(_constants(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and len(node.args) >= 3:
                code = _code(node.args[1], constants)
                for number in _statuses(node.args[0]) if code not in (None, *READ_BY_CLIENTS) else ():
                    found[number].add(str(code))
    return found


def _constants(tree: ast.Module) -> Iterator[tuple[str, object]]:
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value.value if isinstance(node.value, ast.Constant) else None


def _statuses(node: ast.expr) -> Iterator[int]:
    """The statuses an expression can be: a number, a name of `status`, or a choice between two."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "status":
            yield getattr(status, part.attr, 0)
        elif isinstance(part, ast.Constant) and isinstance(part.value, int) and part.value in status.REASONS:
            yield part.value


def _code(node: ast.expr, constants: dict[str, object]) -> str | None:
    value = constants.get(node.id) if isinstance(node, ast.Name) else getattr(node, "value", None)
    return value if isinstance(value, str) and CODE.fullmatch(value) else None


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
    """How much and how long a server takes, with the defaults that are in force."""
    limits, timeouts = Limits(), Timeouts()
    settings = {field.name: field.default for field in fields(Settings)}
    assert (settings["max_body"], settings["idle_timeout"]) == (limits.body, timeouts.idle)
    rows = (
        ("start line of a request", _size(limits.line), "", "400, on HTTP 414; close"),
        ("headers together", _size(limits.head), "", "400, on HTTP 431; close"),
        ("header lines", limits.headers, "", "400, on HTTP 431; close"),
        ("body", _size(limits.body), "`max_body`", "413, close; nothing of it is read"),
        ("connections of one worker", f"{settings['max_connections']:,}", "`max_connections`", "503, close"),
        ("a request, first byte to last", _time(timeouts.read), "`read_timeout`", "408, close"),
        ("between two requests", _time(timeouts.idle), "`idle_timeout`", "close"),
        ("a peer that does not take its answer", _time(timeouts.write), "", "close"),
        ("TLS handshake", _time(timeouts.handshake), "", "close"),
        ("running requests, when the server stops", _time(timeouts.drain), "`drain_timeout`", "cancelled"),
        ("response of an upstream", _size(MAX_RESPONSE_BYTES), "", "`upstream_malformed_response`"),
        ("levels of JSON in a schema", SCHEMA_DEPTH, "", "the endpoint is not registered"),
        ("a TOML file", _size(DOCUMENT_BYTES), "", "it is not read, and reported"),
        ("an AGIS document", _size(TREE_BYTES), "", "it is not read, and reported"),
        ("an OpenAPI description", f"{OPENAPI.most // 1_000_000} MB", "", "it is not read, and reported"),
        ("a discovery document of others", f"{DISCOVERY.most // 1_000} kB", "", "it is not read, and reported"),
        ("a document of the web, first byte to last", _time(FETCH_DEADLINE), "", "it is given up, and reported"),
        ("redirects on the way to one", MOST_REDIRECTS, "", "it is given up, and reported"),
        ("collections inside collections of a document", TREE_DEPTH, "", "it is not read, and reported"),
        ("keys and values of a document", f"{TREE_NODES:,}", "", "it is not read, and reported"),
    )
    return _table(("limit", "default", "key in `[limits]`", "beyond it"), rows)


def statuses_table() -> str:
    """What AGTP's own status codes are on HTTP."""
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
    """A page with each marked block as its file has it, or as the code says it, now."""

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
}


def hand_written() -> list[Path]:
    """List the pages that people write: at the root, beside the examples, and under docs."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("examples/*.md"), *ROOT.glob("docs/**/*.md")]
    generated = {REFERENCE / name for name in REFERENCE_PAGES}
    return sorted(page for page in pages if page not in generated and page.parent != REFERENCE / "rules")


def stale() -> dict[Path, str | None]:
    """Every page that is not as the code says, and how it should be; None for one that should not be there."""
    wanted: dict[Path, str | None] = dict.fromkeys(REFERENCE.glob("rules/*.md"))
    wanted |= {REFERENCE / name: make() for name, make in REFERENCE_PAGES.items()}
    wanted |= {REFERENCE / "rules" / f"{rule.id}.md": rule_page(rule) for rule in all_rules().values()}
    wanted |= {page: with_includes(page.read_text("utf-8")) for page in hand_written()}
    return {page: text for page, text in wanted.items() if not page.is_file() or page.read_text("utf-8") != text}


def main(*, check: bool) -> int:
    """Write what is stale, or with `check` only name it; the exit code tells whether there was anything."""
    pages = stale()
    for page, text in pages.items():
        if not check and text is None:
            page.unlink()
        elif not check and text is not None:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, "utf-8")
        sys.stdout.write(f"{'stale' if check else 'wrote'} {page.relative_to(ROOT)}\n")
    return 1 if check and pages else 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))

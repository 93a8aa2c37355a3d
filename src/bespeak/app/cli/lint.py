"""`bespeak lint`: check contracts in files, folders and live services; `bespeak lsp`: the same in editors."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from bespeak.errors import ConfigError
from bespeak.terminal import EXIT_GOOD, EXIT_REFUSED, EXIT_UNUSABLE, FILE, PATH, Option, repeatable_option, screen_width
from bespeak.text.diagnostics.report import SEVERITIES, Report, Score, summary
from bespeak.text.diagnostics.reporters import FORMATS, reporter
from bespeak.text.diagnostics.reporters.text import Style, render_concise, render_full

if TYPE_CHECKING:
    from bespeak.app.cli.lint_fix import Fixes
    from bespeak.checks.lint.project import LintResult, Project
    from bespeak.checks.lint.suppress import Baseline

_COLOURS: Final[dict[str, dict[str, Any]]] = {
    "error": {"fg": "red", "bold": True},
    "warning": {"fg": "yellow", "bold": True},
    "info": {"fg": "blue", "bold": True},
    "place": {"bold": True},
    "frame": {"fg": "cyan"},
    "label": {"fg": "cyan", "bold": True},
}


def default_format() -> str:
    """Choose annotations in a GitHub workflow, else the full text format."""
    in_workflow = os.environ.get("GITHUB_ACTIONS") == "true" and not sys.stdout.isatty()
    return "github" if in_workflow else "full"


def style() -> Style | None:
    """Return the terminal style; None in a pipe unless FORCE_COLOR is set, and None if NO_COLOR is set."""
    if os.environ.get("NO_COLOR") or not (os.environ.get("FORCE_COLOR") or sys.stdout.isatty()):
        return None
    return lambda text, role: click.style(text, **_COLOURS[role])


def print_report(report: Report, name: str, *, quiet: bool = False, err: bool = False) -> None:
    """Print the report to standard output, or to standard error with `err`."""
    if name == "full":
        text = render_full(report, style(), quiet=quiet, width=screen_width())
    elif name == "concise":
        text = render_concise(report, quiet=quiet)
    else:
        text = reporter(name)(report)
    # color=True: click would strip colours in a pipe even with FORCE_COLOR.
    click.echo(text, nl=False, color=True, err=err)


def write_report(report: Report, name: str, file: Path) -> None:
    try:
        file.write_text(reporter(name)(report), "utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror or error}") from error


def parse_outputs(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> list[tuple[str, Path]]:
    pairs: list[tuple[str, Path]] = []
    for value in values:
        name, _, file = value.partition("=")
        if not file or name not in FORMATS:
            raise click.BadParameter(f"{value!r} is not FORMAT=FILE; FORMAT is one of {', '.join(FORMATS)}")
        pairs.append((name, Path(file)))
    return pairs


_STDIN: Final = "-"
_WEB: Final = ("https://", "http://")
_APP: Final = re.compile(r"(?:[^:]+\.py|\w+(?:\.\w+)*):[A-Za-z_]\w*")
_WITH_EDITS: Final = frozenset({"json", "jsonl", "sarif"})  # the report formats that include fixes as edits
_WITH_VERSION: Final = frozenset({"json", "sarif"})  # those that include the version, which is slow to look up
_CHOOSING: Final = ("select", "extend_select", "ignore", "level", "fail_on")  # the options that choose rules
_CONNECTING: Final = ("insecure", "allow_private", "ca_file")  # the options for live services


class _PathOrAddress(click.Path):
    name = "path or address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # `module:app` and `file.py:app` are apps, unless there is a file of that name.
        if isinstance(value, str) and (
            value[:8].lower().startswith(_WEB) or (_APP.fullmatch(value) and not Path(value).exists())
        ):
            return value
        return super().convert(value, param, ctx)


def _selectors(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    given = tuple(part.strip() for value in values for part in value.split(",") if part.strip())
    if given:
        from bespeak.checks.lint.config import unknown_selector  # noqa: PLC0415 - only needed with selectors

        for selector in given:
            if wrong := unknown_selector(selector):
                raise click.BadParameter(wrong)
    return given


def _rules_option(name: str, text: str) -> Option:
    return click.option(name, multiple=True, callback=_selectors, metavar="RULES", help=text)


@click.command(
    epilog="Exit codes: 0 no findings at or above --fail-on, 1 findings, 2 usage, configuration, connection or "
    "internal error."
)
@click.argument("paths", nargs=-1, type=_PathOrAddress(exists=True, allow_dash=True, path_type=Path))
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    help="Output format.  [default: full, or github in a GitHub workflow]",
)
@repeatable_option(
    "--output", "outputs", metavar="FORMAT=FILE", text="Also write a report to this file", callback=parse_outputs
)
@_rules_option("--select", "Enable only these rules: ids (S450), prefixes (S4), names or ALL, separated by commas.")
@_rules_option("--extend-select", "Enable these rules in addition to the configured ones.")
@_rules_option("--ignore", "Disable these rules.")
@click.option(
    "--level",
    type=click.IntRange(1, 2),
    help="Target conformance level (AGIS 3.3).  [default: from the settings, else 1]",
)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    help="Lowest severity that makes the exit code 1.  [default: from the settings, else error]",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")
@click.option("--config", type=FILE, help="Use this settings file.")
@click.option("--no-config", is_flag=True, help="Ignore settings files and baselines that are not given as options.")
@click.option(
    "--baseline", type=click.Path(dir_okay=False, path_type=Path), help="Hide the known findings in this file."
)
@click.option("--write-baseline", is_flag=True, help="Add all current findings to the baseline.")
@click.option("--fix", is_flag=True, help="Apply safe fixes in place; fixed standard input goes to standard output.")
@click.option("--unsafe-fixes", is_flag=True, help="Also apply fixes that need review; with --fix or --diff.")
@click.option(
    "--diff", is_flag=True, help="Do not write files; print what --fix would change and exit with 1 if anything."
)
@click.option("--max-findings", type=click.IntRange(min=0), metavar="N", help="Show at most N findings.")
@click.option("--statistics", is_flag=True, help="Count findings by rule instead of showing them.")
@click.option("--stats", is_flag=True, help="Print the time of each pass to standard error.")
@click.option("--quiet", "-q", is_flag=True, help="Skip the summary.")
@click.option("--no-import", is_flag=True, help="Do not import the app that a bespeak.toml names.")
@click.option("--stdin-filename", type=PATH, help="File name for standard input.")
@click.option("--insecure", is_flag=True, help="Allow plain HTTP to other hosts.")
@click.option("--allow-private", is_flag=True, help="Allow redirects of a live service into private networks.")
@click.option("--ca-file", type=FILE, help="Trust these certificate authorities for live services.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of --format json.")
def lint(paths: tuple[Path | str, ...], schema: bool, **options: Any) -> None:
    """Check contracts: .agis documents, endpoint files, apps, bespeak.toml, recipes, manifests, agent documents and
    /.well-known/ai documents.

    PATHS are files, folders, or - for standard input; the default is the current folder. In a folder, all .agis files
    are checked, and those TOML and JSON files whose content is a contract, settings or a manifest.

    A .py file, module:app and the app that a bespeak.toml names are imported, and their endpoints are checked at their
    places in the source.

    For https://HOST, the documents are checked as served, including their headers and their consistency, and the
    service gets a score. Only documents are requested; no endpoints are called.

    \b
    Examples:
      bespeak lint examples/hotel
      bespeak lint rooms.agis --select P,S4 --fail-on warning
      bespeak lint rooms.py
      bespeak lint --format concise --output sarif=lint.sarif
      bespeak lint --diff --unsafe-fixes
      bespeak lint https://flights.example
    """
    if schema:
        from bespeak.text.diagnostics.reporters.json_report import schema as text  # noqa: PLC0415

        click.echo(text(), nl=False)
        return
    from bespeak.app.server import collector_paused  # noqa: PLC0415 - `--help` does not need it

    # A run leaves almost no cyclic garbage; collecting it would take as long as the rules.
    chosen = {name: options.pop(name) for name in _CHOOSING}
    connection = {name: options.pop(name) for name in _CONNECTING}
    with collector_paused():
        code = _run(paths, chosen, connection, **options)
    click.get_current_context().exit(code)


def _run(
    paths: tuple[Path | str, ...],
    chosen: Mapping[str, Any],
    connection: Mapping[str, Any],
    *,
    format_name: str | None,
    outputs: list[tuple[str, Path]],
    exit_zero: bool,
    config: Path | None,
    no_config: bool,
    baseline: Path | None,
    write_baseline: bool,
    fix: bool,
    unsafe_fixes: bool,
    diff: bool,
    max_findings: int | None,
    statistics: bool,
    stats: bool,
    quiet: bool,
    stdin_filename: Path | None,
    no_import: bool,
) -> int:
    files = tuple(path for path in paths if isinstance(path, Path) and path.suffix != ".py")
    urls = tuple(path for path in paths if isinstance(path, str) and not _APP.fullmatch(path))
    apps = tuple(str(path) for path in paths if path not in files and path not in urls)
    if urls and (fix or diff):
        raise click.UsageError(f"{urls[0]} is a live service and cannot be fixed. Use --fix on its files.")
    _refuse_contradiction(fix=fix, unsafe_fixes=unsafe_fixes, diff=diff, write_baseline=write_baseline)
    from bespeak.checks.lint.config import Configs  # noqa: PLC0415 - `--help` does not need the rules
    from bespeak.checks.lint.project import Options, Project  # noqa: PLC0415

    configs = Configs(Path.cwd(), file=config, isolated=no_config)
    format_name = format_name or default_format()
    names = {format_name, *(name for name, _ in outputs)}
    project = Project(Path.cwd(), configs, Options(**chosen, with_edits=bool(names & _WITH_EDITS)), measured=stats)
    given = _add(project, files, stdin_filename) if files or not (urls or apps) else None
    if not no_import and (apps or project.configurations()):
        from bespeak.app.cli.lint_python import check_apps  # noqa: PLC0415 - most runs have no app

        check_apps(project, apps)
    scores: tuple[Score, ...] = ()
    all_reached = True
    if urls:
        from bespeak.app.cli.lint_live import check_services  # noqa: PLC0415 - only needed for live services

        scores, all_reached = check_services(project, urls, **connection)
    project.check_together()
    fixes: Fixes | None = None
    if fix or diff:
        from bespeak.app.cli.lint_fix import Fixes  # noqa: PLC0415

        known = _baseline(project, baseline, isolated=no_config, writing=False)
        fixes = Fixes(project.mend(known, unsafe=unsafe_fixes), given)
        if diff:
            return EXIT_REFUSED if fixes.show(quiet=quiet) and not exit_zero else EXIT_GOOD
        fixes.write()
    known = _baseline(project, baseline, isolated=no_config, writing=write_baseline)
    outcome = project.outcome(known)
    report = _report(project, outcome, fixes, with_version=bool(names & _WITH_VERSION))
    report = replace(report, scores=scores)
    if max_findings is not None:
        left_out = max(0, len(report.findings) - max_findings)
        report = replace(report, findings=report.findings[:max_findings], left_out=left_out)
    for name, file in outputs:
        write_report(report, name, file)
    if statistics:
        _print_statistics(report, outcome, quiet=quiet)
    else:
        print_report(report, format_name, quiet=quiet, err=fixes is not None and given is not None)
    asides = [fixes.summary(len(outcome.findings))] if fixes is not None and not quiet else []
    for row in (*asides, *(project.times.rows() if project.times is not None else ())):
        click.echo(row, err=True)
    if exit_zero:
        return EXIT_GOOD
    if not all_reached:
        return EXIT_UNUSABLE
    return EXIT_REFUSED if outcome.failed else EXIT_GOOD


def _refuse_contradiction(*, fix: bool, unsafe_fixes: bool, diff: bool, write_baseline: bool) -> None:
    if unsafe_fixes and not (fix or diff):
        raise click.UsageError("--unsafe-fixes requires --fix or --diff.")
    if diff and write_baseline:
        raise click.UsageError("--diff and --write-baseline cannot be combined.")


def _add(project: Project, paths: tuple[Path, ...], stdin_filename: Path | None) -> str | None:
    """Add the paths to the project; return the text of standard input if it was read."""
    from bespeak.text.reading.text_file import read_stream  # noqa: PLC0415
    from bespeak.text.source.tree import MAX_BYTES  # noqa: PLC0415

    if Path(_STDIN) not in paths:
        if stdin_filename is not None:
            raise click.UsageError("--stdin-filename requires - as the path.")
        project.add(paths or (Path(),))
        return None
    if len(paths) > 1:
        raise click.UsageError("Standard input (-) cannot be combined with other paths.")
    text = read_stream(sys.stdin.buffer, stdin_filename or Path(_STDIN), MAX_BYTES)
    project.add_text(text, stdin_filename)
    return text if isinstance(text, str) else ""


def _baseline(project: Project, given: Path | None, *, isolated: bool, writing: bool) -> Baseline | None:
    """Read the baseline that was given or found; with `writing`, update it with the current findings."""
    from bespeak.checks.lint.suppress import NAME, Baseline, read_baseline  # noqa: PLC0415

    found = None if isolated else next((path for path in project.baselines() if path.is_file()), None)
    path = given or found
    if not writing:
        return read_baseline(path) if path else None
    path = path or project.root / NAME
    new = project.new_baseline(read_baseline(path) if path.is_file() else Baseline(path, {}))
    new.write()
    click.echo(f"Wrote {len(new.entries)} known findings to {path}.", err=True)
    return new


def _report(project: Project, outcome: LintResult, fixes: Fixes | None, *, with_version: bool) -> Report:
    from bespeak.checks.lint.rule_index import all_rules  # noqa: PLC0415

    bespeak = ""
    if with_version:
        from importlib.metadata import version  # noqa: PLC0415

        bespeak = version("bespeak")
    return Report(
        findings=outcome.findings if fixes is None else fixes.without_stuck(outcome.findings),
        version=bespeak,
        files=outcome.files,
        rules=all_rules(),
        source=project.text,
        ignored=outcome.ignored,
        baselined=outcome.baselined,
    )


def _print_statistics(report: Report, outcome: LintResult, *, quiet: bool) -> None:
    counts = Counter(finding.diagnostic.rule for finding in outcome.findings)
    width = len(str(max(counts.values(), default=0)))
    for rule, number in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        text = report.rules.get(rule)
        click.echo(f"{number:>{width}}  {rule}  {text.name if text else ''}")
    if not quiet:
        click.echo(summary(replace(report, findings=outcome.findings, left_out=0)))


@click.command()
@click.option("--stdio", is_flag=True, help="Accepted for compatibility; standard input and output are always used.")
def lsp(stdio: bool) -> int:
    """Run the language server: diagnostics, fixes, completion and hover in editors.

    Editors start it and speak the Language Server Protocol over standard input and output. It reports
    the same findings as `bespeak lint`, with the same settings, ignores and baseline.
    """
    try:
        from bespeak.app.lsp.server import serve  # noqa: PLC0415 - needs the lsp extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise ConfigError("The language server needs pygls: pip install 'bespeak[lsp]'") from error
    return serve()

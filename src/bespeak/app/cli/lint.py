"""`bespeak lint`: what is wrong with contracts, in files and folders, for people, editors and CI."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from bespeak.app.cli.main import EXIT_GOOD, EXIT_REFUSED, EXIT_UNUSABLE
from bespeak.app.cli.report_output import default_format, parse_outputs, print_report, write_report
from bespeak.text.diagnostics.diagnostic import Severity
from bespeak.text.diagnostics.report import SEVERITIES, Report, summary
from bespeak.text.diagnostics.reporters import FORMATS

if TYPE_CHECKING:
    from bespeak.app.cli.lint_fix import Fixes
    from bespeak.app.cli.lint_live import Live
    from bespeak.checks.lint.baseline import Baseline
    from bespeak.checks.lint.project import Outcome, Project

_STDIN: Final = "-"
_WEB: Final = ("https://", "http://")
_WITH_EDITS: Final = frozenset({"json", "jsonl", "sarif"})
"""The formats that carry repairs as text."""
_WITH_VERSION: Final = frozenset({"json", "sarif"})
"""The formats that say which bespeak wrote them. To look it up takes a tenth of the time of a short run."""


class _PathOrAddress(click.Path):
    """A path that exists, or the address of a live service."""

    name = "path or address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and value[:8].lower().startswith(_WEB):
            return value
        return super().convert(value, param, ctx)


def _selectors(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    given = tuple(part.strip() for value in values for part in value.split(",") if part.strip())
    if given:
        from bespeak.checks.lint.config import unknown_selector  # noqa: PLC0415 - only who selects pays for it

        for selector in given:
            if wrong := unknown_selector(selector):
                raise click.BadParameter(wrong)
    return given


@click.command(
    epilog="Exit codes: 0 nothing as grave as --fail-on, 1 findings, 2 wrong usage, settings, a host that does not "
    "answer, or a defect."
)
@click.argument("paths", nargs=-1, type=_PathOrAddress(exists=True, allow_dash=True, path_type=Path))
@click.option(
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    help="How findings are printed; full, or github in a GitHub workflow.",
)
@click.option(
    "--output",
    "outputs",
    multiple=True,
    callback=parse_outputs,
    metavar="FORMAT=FILE",
    help="Write a report to a file as well; repeatable.",
)
@click.option(
    "--select",
    multiple=True,
    callback=_selectors,
    metavar="RULES",
    help="Only these rules: ids (S450), their beginnings (S4), names or ALL, with commas between.",
)
@click.option(
    "--extend-select",
    multiple=True,
    callback=_selectors,
    metavar="RULES",
    help="These rules as well as those that are set.",
)
@click.option("--ignore", multiple=True, callback=_selectors, metavar="RULES", help="Not these rules.")
@click.option(
    "--level", type=click.IntRange(1, 2), help="The conformance level of AGIS 3.3 aimed at.  [default: as set, else 1]"
)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    help="The lightest finding to exit with 1 for.  [default: as set, else error]",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever is found.")
@click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Take these settings.")
@click.option("--no-config", is_flag=True, help="Take no settings and no baseline but those given here.")
@click.option(
    "--baseline",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Show only what is not in this list of known findings.",
)
@click.option("--write-baseline", is_flag=True, help="Take everything that is found now as known.")
@click.option("--fix", is_flag=True, help="Repair what has a safe repair, in place; standard input goes to the output.")
@click.option("--unsafe-fixes", is_flag=True, help="Make also repairs that want a look; with --fix or --diff.")
@click.option(
    "--diff", is_flag=True, help="Change nothing; show what --fix would, and exit with 1 if that is anything."
)
@click.option("--max-findings", type=click.IntRange(min=0), metavar="N", help="Show no more than these.")
@click.option("--statistics", is_flag=True, help="Count findings by rule instead of showing them.")
@click.option("--stats", is_flag=True, help="Say on standard error how long each pass took.")
@click.option("--quiet", "-q", is_flag=True, help="Leave the summary out.")
@click.option("--stdin-filename", type=click.Path(path_type=Path), help="The name of what is read from -.")
@click.option("--insecure", is_flag=True, help="Plain http also to a host that is not this machine.")
@click.option("--allow-private", is_flag=True, help="Follow redirects of a live service into private networks, too.")
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Trust these certificate authorities for live services.",
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of --format json.")
def lint(paths: tuple[Path | str, ...], schema: bool, **options: Any) -> None:
    """Check contracts: .agis documents, endpoint files, bespeak.toml, recipes, manifests, /.well-known/ai documents.

    PATHS are files, folders, or - for standard input; without any, the folder you are in. Of a folder every .agis file
    is checked, and those TOML and JSON files that are contracts, settings or manifests by what stands in them.

    Of https://HOST the documents are checked as it serves them, with their headers and beside each other, and a score
    says how good they are. Only documents are asked for; nothing is called.

    \b
    Examples:
      bespeak lint examples/hotel
      bespeak lint rooms.agis --select P,S4 --fail-on warning
      bespeak lint --format concise --output sarif=lint.sarif
      bespeak lint --diff --unsafe-fixes
      bespeak lint https://flights.example
    """
    if schema:
        from bespeak.text.diagnostics.reporters.json_report import schema as text  # noqa: PLC0415

        click.echo(text(), nl=False)
        return
    from bespeak.app.server.collector import collector_paused  # noqa: PLC0415 - `--help` does without

    # A run leaves no garbage but what goes by itself; to look for some takes as long as the rules.
    with collector_paused():
        code = _run(paths, **options)
    click.get_current_context().exit(code)


def _run(
    paths: tuple[Path | str, ...],
    *,
    format_name: str | None,
    outputs: list[tuple[str, Path]],
    select: tuple[str, ...],
    extend_select: tuple[str, ...],
    ignore: tuple[str, ...],
    level: int | None,
    fail_on: Severity | None,
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
    insecure: bool,
    allow_private: bool,
    ca_file: Path | None,
) -> int:
    files = tuple(path for path in paths if isinstance(path, Path))
    urls = tuple(path for path in paths if isinstance(path, str))
    if urls and (fix or diff):
        raise click.UsageError(f"{urls[0]} is a live service: nothing can be mended there. Give --fix for its files.")
    _refuse_contradiction(fix=fix, unsafe_fixes=unsafe_fixes, diff=diff, write_baseline=write_baseline)
    from bespeak.checks.lint.config import Configs  # noqa: PLC0415 - `--help` does without the rules
    from bespeak.checks.lint.project import Options, Project  # noqa: PLC0415

    configs = Configs(Path.cwd(), file=config, isolated=no_config)
    format_name = format_name or default_format()
    names = {format_name, *(name for name, _ in outputs)}
    options = Options(
        select=select,
        extend_select=extend_select,
        ignore=ignore,
        level=level,
        fail_on=fail_on,
        with_edits=bool(names & _WITH_EDITS),
    )
    project = Project(Path.cwd(), configs, options, measured=stats)
    given = _add(project, files, stdin_filename) if files or not urls else None
    live: Live | None = None
    if urls:
        from bespeak.app.cli.lint_live import LiveOptions, check_services  # noqa: PLC0415 - files do without the web

        asked = LiveOptions(insecure=insecure, allow_private=allow_private, ca_file=ca_file)
        live = check_services(project, urls, asked)
    project.check_together()
    fixes: Fixes | None = None
    if fix or diff:
        from bespeak.app.cli.lint_fix import Fixes  # noqa: PLC0415

        known = _baseline(project, baseline, isolated=no_config, writing=False)
        fixes = Fixes(project.mend(known, unsafe=unsafe_fixes), given)
        if diff:
            would = fixes.show(quiet=quiet)
            return EXIT_REFUSED if would and not exit_zero else EXIT_GOOD
        fixes.write()
    known = _baseline(project, baseline, isolated=no_config, writing=write_baseline)
    outcome = project.outcome(known)
    report = _report(project, outcome, fixes, with_version=bool(names & _WITH_VERSION))
    report = replace(report, scores=live.scores if live is not None else ())
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
    if live is not None and not live.all_reached:
        return EXIT_UNUSABLE
    return EXIT_REFUSED if outcome.failed else EXIT_GOOD


def _refuse_contradiction(*, fix: bool, unsafe_fixes: bool, diff: bool, write_baseline: bool) -> None:
    if unsafe_fixes and not (fix or diff):
        raise click.UsageError("--unsafe-fixes says which repairs to make: give --fix or --diff as well.")
    if diff and write_baseline:
        raise click.UsageError("--diff changes nothing, and --write-baseline writes a file: give one of them.")


def _add(project: Project, paths: tuple[Path, ...], stdin_filename: Path | None) -> str | None:
    """Look at what was named; the text of standard input, if that was."""
    from bespeak.text.reading.text_file import read_stream  # noqa: PLC0415
    from bespeak.text.source.tree import MAX_BYTES  # noqa: PLC0415

    if Path(_STDIN) not in paths:
        if stdin_filename is not None:
            raise click.UsageError("--stdin-filename is for a text on standard input: give - as the path.")
        project.add(paths or (Path(),))
        return None
    if len(paths) > 1:
        raise click.UsageError("- stands for standard input, and cannot stand beside other paths.")
    text = read_stream(sys.stdin.buffer, stdin_filename or Path(_STDIN), MAX_BYTES)
    project.add_text(text, stdin_filename)
    return text if isinstance(text, str) else ""


def _baseline(project: Project, given: Path | None, *, isolated: bool, writing: bool) -> Baseline | None:
    """What is known already, from a file that was named or found, and with what is found now if it is to be written."""
    from bespeak.checks.lint.baseline import NAME, Baseline, read_baseline  # noqa: PLC0415

    found = None if isolated else next((path for path in project.baselines() if path.is_file()), None)
    path = given or found
    if not writing:
        return read_baseline(path) if path else None
    path = path or project.root / NAME
    old = read_baseline(path) if path.is_file() else Baseline(path, {})
    new = project.new_baseline(old)
    new.write()
    click.echo(f"{len(new.entries)} known findings are in {path}.", err=True)
    return new


def _report(project: Project, outcome: Outcome, fixes: Fixes | None, *, with_version: bool) -> Report:
    from bespeak.checks.lint.registry import rule_texts  # noqa: PLC0415

    bespeak = ""
    if with_version:
        from importlib.metadata import version  # noqa: PLC0415

        bespeak = version("bespeak")
    return Report(
        findings=outcome.findings if fixes is None else fixes.without_stuck(outcome.findings),
        version=bespeak,
        files=outcome.files,
        rules=rule_texts(),
        source=project.text,
        ignored=outcome.ignored,
        baselined=outcome.baselined,
    )


def _print_statistics(report: Report, outcome: Outcome, *, quiet: bool) -> None:
    counts = Counter(finding.diagnostic.rule for finding in outcome.findings)
    width = len(str(max(counts.values(), default=0)))
    for rule, number in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
        text = report.rules.get(rule)
        click.echo(f"{number:>{width}}  {rule}  {text.name if text else ''}")
    if not quiet:
        click.echo(summary(replace(report, findings=outcome.findings, left_out=0)))

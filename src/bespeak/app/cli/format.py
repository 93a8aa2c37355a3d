"""`bespeak format`: write AGIS documents in canonical form."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Final

import click

from bespeak.documents.agis.canonical import Form, format_agis
from bespeak.documents.deployment.folder import is_folder, list_tree
from bespeak.documents.replacement import replace_text
from bespeak.errors import ConfigError
from bespeak.terminal.console import plural, print_findings
from bespeak.text.diagnostics.diagnostic import Diagnostic, printable
from bespeak.text.reading.text_file import read_stream, read_text
from bespeak.text.source.tree import MAX_BYTES

_STDIN = "-"
_MOST_LINES: Final = 20_000  # maximum number of lines for a minimal diff, which takes quadratic time


@click.command("format")
@click.argument("paths", nargs=-1, required=True, metavar="PATHS...")
@click.option("--check", is_flag=True, help="Do not write files; exit with 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Do not write files; print a diff.")
@click.option("--to", type=click.Choice(["yaml", "json"]), help="Output format.  [default: the format of the file]")
@click.option("--drop-comments", is_flag=True, help="Also format files whose comments would be lost.")
@click.option("--stdin-filename", default="stdin.agis", metavar="NAME", help="Name for standard input in findings.")
def format_documents(
    *, paths: tuple[str, ...], check: bool, diff: bool, to: Form | None, drop_comments: bool, stdin_filename: str
) -> int:
    """Format AGIS documents: canonical key order and style, same meaning.

    PATHS are files, folders (all .agis files in them), or `-` to read standard input and write standard output.
    YAML comments are kept; brace notation is converted to YAML.

    Examples:

    \b
    bespeak format menu.agis
    bespeak format --check --diff .
    bespeak format --to json - < menu.agis
    """
    if paths.count(_STDIN) > 1:
        raise click.UsageError("Standard input (-) can be given only once.")
    findings: list[Diagnostic] = []
    unwritten: list[str] = []
    changed = unchanged = 0
    for name, path in _files(paths, findings):
        shown = stdin_filename if path is None else name
        text = read_text(path, MAX_BYTES) if path else read_stream(sys.stdin.buffer, Path(shown), MAX_BYTES)
        written = text if isinstance(text, Diagnostic) else format_agis(text, shown, to, drop_comments=drop_comments)
        if isinstance(text, Diagnostic) or isinstance(written, Diagnostic):
            findings += [found for found in (written,) if isinstance(found, Diagnostic)]
            continue
        differs = written != text
        changed, unchanged = changed + differs, unchanged + (not differs)
        if diff and differs:
            _show(text, written, shown)
        elif check and differs:
            click.echo(f"would format {printable(shown)}")
        elif path is None and not check and not diff:
            sys.stdout.write(written)
        elif path is not None and differs and (reason := _write(path, written)):
            unwritten.append(f"{path} cannot be written: {reason}")
            changed -= 1
    print_findings(findings)
    if paths != (_STDIN,):
        done, failed = "would be formatted" if check or diff else "formatted", len(findings) + len(unwritten)
        counts = ((changed, done), (unchanged, "unchanged"), (failed, "not formatted"))
        listed = ", ".join(f"{plural(count, 'file')} {what}" for count, what in counts if count)
        click.echo(listed or "no AGIS documents found", err=True)
    if unwritten:
        raise ConfigError("\n".join(unwritten))
    return 1 if findings or (changed and (check or diff)) else 0


def _files(paths: tuple[str, ...], findings: list[Diagnostic]) -> Iterator[tuple[str, Path | None]]:
    """List every file once, with its display name; None stands for standard input."""
    seen: set[Path] = set()
    for text in paths:
        path = Path(text)
        if text == _STDIN:
            yield text, None
            continue
        for file in list_tree(path, ".agis", findings) if is_folder(path) else [path]:
            if file not in seen:
                seen.add(file)
                yield str(file), file


def _write(path: Path, text: str) -> str | None:
    """Replace a file. Return the reason on failure, so that the other files are still formatted."""
    try:
        replace_text(path, text)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _show(before: str, after: str, name: str) -> None:
    old, new = before.splitlines(), after.splitlines()
    compare = unified_diff if len(old) + len(new) <= _MOST_LINES else _whole_diff
    click.echo("\n".join(printable(line) for line in compare(old, new, name, f"{name} (formatted)", lineterm="")))


def _whole_diff(old: list[str], new: list[str], old_name: str, new_name: str, lineterm: str) -> Iterator[str]:
    """Write one hunk from the first differing line to the last."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    tail = next((at for at in range(shorter - head) if old[-1 - at] != new[-1 - at]), shorter - head)
    gone, come = old[head : len(old) - tail], new[head : len(new) - tail]
    # An empty range starts at the line before it.
    before, after = (f"{head + bool(lines)},{len(lines)}" for lines in (gone, come))
    yield from (f"--- {old_name}{lineterm}", f"+++ {new_name}{lineterm}", f"@@ -{before} +{after} @@{lineterm}")
    yield from (f"-{line}" for line in gone)
    yield from (f"+{line}" for line in come)

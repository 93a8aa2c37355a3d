"""`bespeak ask` and `bespeak chat`: say in words what is to be done; it is matched, shown, agreed to and called."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.text import Text

from bespeak.app.cli.service import check_text, connection_options, open_service
from bespeak.errors import ContractError
from bespeak.terminal import FILE, CommandFailedError
from bespeak.terminal.console import console, json_option, line, print_json
from bespeak.text.diagnostics.diagnostic import printable

if TYPE_CHECKING:
    from bespeak.agent.acting.agent import Acted, ActingAgent, Asked, Confirmation
    from bespeak.agent.acting.conversation import Turn
    from bespeak.agent.acting.decision import ActingRules, Decision
    from bespeak.agent.acting.service_map import Place
    from bespeak.agent.acting.steps import Carried, Plan
    from bespeak.runtime.bindings.language_model import LanguageModelSettings

_MOST_NOTES: Final = 10  # about the contract of a service
_OPTIONS: Final = (
    click.option("--explain", is_flag=True, help="Show the evidence of the match and the reasons of the decision."),
    click.option("--now", metavar="TIME", help="Time that 'tomorrow' refers to (ISO 8601).  [default: now]"),
    click.option("--order", type=click.Choice(["DMY", "MDY"]), help="Order of day and month in dates such as 3/4."),
    click.option("--rules", type=FILE, help="TOML file with what the agent may do, and its language model."),
    click.option("--escalate", is_flag=True, help="Pass on to the service's people what cannot be decided."),
)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return connection_options(command)


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET... INSTRUCTION")
@click.option("--dry-run", is_flag=True, help="Show the decision and call nothing.")
@click.option("--yes", is_flag=True, help="Agree to calls that can be undone, without asking.")
@json_option
@_options
def ask(*, targets: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool, **options: Any) -> int:
    """Do what INSTRUCTION says with the services at TARGET.

    Shows the endpoint that serves it and the arguments with the words they come from. Asks for what is missing. Asks
    a person at the terminal before anything that cannot be undone, whatever the service says of it; --yes agrees to
    such a call only if the file of --rules allows it. "find a room and book the cheapest" becomes a plan of two steps,
    which is shown before its first call and ends with the first call that is not made.
    The exit code is 0 if the call was made, or is only shown, and 1 if it was refused or needs an answer.

    Examples:

    \b
    bespeak ask agtp://127.0.0.1 "which rooms for two are free tomorrow?" --dry-run
    bespeak ask hotel/ restaurant/ "book a table for two on Friday at seven" --explain
    bespeak ask agtp://127.0.0.1 "find a room for two and book the cheapest" --dry-run
    bespeak ask agtp://127.0.0.1 "cancel reservation 12" --json --now 2026-11-20T09:00:00+01:00
    """
    check_text(*targets)
    if len(targets) < 2:
        raise click.UsageError('Give at least one TARGET and the instruction in quotes, such as "book a room".')
    *services, instruction = targets
    explain = options.pop("explain")

    async def run() -> int:
        from bespeak.agent.acting.steps import Carried  # noqa: PLC0415 - the help does without

        async with _open(services, options, yes=yes) as agent:
            plan = await agent.plan(instruction)
            if dry_run:
                if as_json:
                    print_json({**plan.to_json(), **({"explanation": plan.explain()} if explain else {})})
                else:
                    _print(_describe_plan(plan, explain=explain), aside=False)
                return 1 if plan.verdict in ("none", "refuse") else 0
            if not as_json:
                _print(_describe_plan(plan, explain=explain))
            if len(plan.steps) == 1:
                done: Acted | Carried = await agent.carry_out(plan.steps[0].decision)
            else:
                done = await agent.carry_out_plan(plan, (lambda acted: None) if as_json else _report)
            if as_json:
                explained = done.plan if isinstance(done, Carried) else done.decision
                print_json({**done.to_json(), **({"explanation": explained.explain()} if explain else {})})
            elif not isinstance(done, Carried):
                _report(done)
            elif not done.ok:
                _print([line((done.state, "bold red"), f"  {done.message}")])
            return 0 if done.ok else 1

    return asyncio.run(run())


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@_options
def chat(*, targets: tuple[str, ...], **options: Any) -> int:
    """Talk to the services at TARGET: an instruction on each line.

    It remembers what was said: "and for three people", "yes", "book the second one". An empty line, `exit` or the end
    of the input ends it.

    Examples:

    \b
    bespeak chat agtp://127.0.0.1
    bespeak chat hotel/ restaurant/ --explain
    """
    check_text(*targets)
    explain = options.pop("explain")

    async def run() -> int:
        from bespeak.agent.acting.conversation import Conversation  # noqa: PLC0415 - the help does without

        async with _open(targets, options, asks=False) as agent:
            known = ", ".join(f"{one.namespace} ({len(one.places)} endpoints)" for one in agent.service_map.services)
            _print([line((f"Connected to {known}. Say what you want to have done.", "dim"))])
            conversation = Conversation(agent)
            while (said := _at_terminal(_read_line)) is not None:
                turn = await conversation.say(said, by_person=_is_person())
                _show_turn(turn, explain=explain)
            return 0

    return asyncio.run(run())


@asynccontextmanager
async def _open(
    services: Sequence[str], options: dict[str, Any], *, yes: bool = False, asks: bool = True
) -> AsyncIterator[ActingAgent]:
    """Open an agent for the services and options of a command."""
    from bespeak.agent.acting.agent import ActingAgent  # noqa: PLC0415 - the help does without

    now, order, escalate, file = (options.pop(name) for name in ("now", "order", "escalate", "rules"))
    rules, model = _read_rules(file)
    asks = asks and _is_person()
    person = _Person(rules, yes=yes, asks=asks)
    agent = ActingAgent(
        services,
        opener=partial(open_service, report=lambda _: None),
        confirm=person.confirm if asks or yes else None,
        ask=_ask if asks else None,
        step_up=_step_up if asks else None,
        rules=rules,
        language_model=model,
        now=None if now is None else _read_time(now),
        order=order,
        escalate=escalate,
        **options,
    )
    async with agent:
        failures = agent.service_map.failures
        if not agent.service_map.services:
            raise CommandFailedError("; ".join(map(str, failures)))
        _print(line((f"left out: {failure}", "yellow")) for failure in failures)
        for service in agent.service_map.services:
            _print(line((f"{service.namespace}: {note}", "yellow")) for note in service.notes[:_MOST_NOTES])
            if (more := len(service.notes) - _MOST_NOTES) > 0:
                _print([line((f"{service.namespace}: and {more:,} more notes", "yellow"))])
        yield agent


@dataclass(frozen=True, slots=True)
class _Person:
    """Who agrees to calls: a person at the terminal, or `--yes` where it may."""

    rules: ActingRules
    yes: bool
    asks: bool

    async def confirm(self, question: Confirmation) -> bool:
        if self.yes and not question.needs_person:
            return True
        if not self.asks:
            return False
        _print(_lines(question.text))
        return bool(_at_terminal(click.confirm, "Call it?", default=False, err=True))


def _at_terminal(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Wait for a person, with nothing else going on. Ctrl-C ends the command at once, and not with the next line."""
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments, **options)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return function(*arguments, **options)
    finally:
        signal.signal(signal.SIGINT, before)


def _is_person() -> bool:
    """Return True if a person can be asked. What comes out of a pipe agrees to nothing that cannot be undone."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def _ask(asked: Asked) -> str:
    _print(_lines(asked.text))
    return str(_at_terminal(click.prompt, printable(asked.name) or "number", default="", show_default=False, err=True))


async def _step_up(place: Place, scopes: tuple[str, ...]) -> bool:
    _print([line(f"{place} requires {', '.join(scopes)}, which you have not declared with --scope.")])
    return bool(_at_terminal(click.confirm, "Declare it for this call?", default=False, err=True))


def _read_line() -> str | None:
    """Read what the user says; None at the end."""
    try:
        said = input("> " if _is_person() else "")
    except EOFError:
        return None
    return None if said.strip().lower() in ("", "exit", "quit", "bye") else said


def _read_time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a time; write 2026-11-20T09:00+01:00", param_hint="--now") from error
    return found.astimezone() if found.tzinfo is None else found


def _read_rules(path: Path | None) -> tuple[ActingRules, LanguageModelSettings | None]:
    """Read the tables [rules] and [language_model] of a file."""
    from bespeak.agent.acting.decision import ActingRules  # noqa: PLC0415 - the help does without

    if path is None:
        return ActingRules(), None
    from bespeak.documents.deployment.folder import read_toml  # noqa: PLC0415 - few users have such a file
    from bespeak.runtime.bindings.language_model import LanguageModelSettings  # noqa: PLC0415
    from bespeak.text.diagnostics.diagnostic import Diagnostic  # noqa: PLC0415
    from bespeak.text.reading.settings import optional_table, read_values, table  # noqa: PLC0415

    @dataclass(frozen=True, slots=True, kw_only=True)
    class File:
        rules: ActingRules = table(ActingRules)
        language_model: LanguageModelSettings | None = optional_table(LanguageModelSettings)

    root = read_toml(path)
    values = {} if isinstance(root, Diagnostic) else read_values(File, root)
    found = [root] if isinstance(root, Diagnostic) else root.findings.found
    if found:
        raise ContractError(f"the rules in {path} cannot be used", found)
    return values["rules"], values.get("language_model")


def _describe_plan(plan: Plan, *, explain: bool) -> Iterator[Text]:
    """Yield each step, and what it takes from the steps before it."""
    if len(plan.steps) == 1:
        yield from _describe(plan.steps[0].decision, explain=explain)
        return
    if explain:
        yield from map(line, plan.explain())
        return
    for number, step in enumerate(plan.steps, 1):
        yield line((f'step {number} of {len(plan.steps)}  "{step.decision.instruction}"', "dim"))
        yield from _describe(step.decision, explain=False)
        yield from (line(f"  {bound}") for bound in step.bound())
    yield from (line((reason, "yellow")) for reason in plan.reasons)


def _describe(decided: Decision, *, explain: bool) -> Iterator[Text]:
    """Yield the match, the arguments with their words, and what is missing."""
    if explain:
        yield from map(line, decided.explain())
        return
    if decided.place is None or decided.verdict == "none":
        yield line((decided.verdict, "bold yellow"), f"  {'; '.join(decided.reasons)}")
        return
    style = {"call": "bold green", "refuse": "bold red"}.get(decided.verdict, "bold yellow")
    where = f"{decided.label} {decided.place.endpoint.path}"
    yield line((decided.verdict, style), f"  {where}  ", (f"confidence {decided.confidence:.2f}", "dim"))
    for name, one in decided.arguments.items():
        words = "" if one.span is None else f'  from "{decided.instruction[slice(*one.span)]}"'
        yield line(f"  {name} = {one.value}", (words, "dim"))
    for name in decided.missing:
        offered = decided.offered.get(name)
        yield line((f"  {name} is missing{'' if offered is None else f', perhaps {offered.value}'}", "yellow"))
    for note in decided.notes:
        yield line((f"  note: {note}", "yellow"))
    if decided.verdict != "call":
        yield line((f"  {'; '.join(decided.reasons)}", "dim"))


def _report(acted: Acted) -> None:
    for note in acted.notes:
        _print([line((f"note: {note}", "yellow"))])
    if acted.ok:
        print_json(acted.output)
    elif acted.message != "; ".join(acted.decision.reasons):  # which were printed with the decision
        _print([line((acted.state, "bold red"), f"  {acted.message}")])


def _show_turn(turn: Turn, *, explain: bool) -> None:
    if turn.plan is not None:
        _print(_describe_plan(turn.plan, explain=explain))
    for earlier in turn.before:
        _report(earlier)
    if turn.decision is not None and (turn.plan is None or turn.acted is None):
        _print(_describe(turn.decision, explain=explain))
    if turn.acted is not None:
        _report(turn.acted)
    elif turn.text:
        _print(_lines(f"{turn.text}\nCall it?" if turn.decision and turn.decision.verdict == "confirm" else turn.text))


def _lines(text: str) -> Iterator[Text]:
    return map(line, text.split("\n"))


def _print(lines: Iterable[Text], *, aside: bool = True) -> None:
    out = console(stderr=aside)
    for one in lines:
        out.print(one)

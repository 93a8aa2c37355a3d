"""`bespeak explain`: explain a rule and show its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from bespeak.text.diagnostics.report import page_of

if TYPE_CHECKING:
    from bespeak.checks.lint.config import Judge
    from bespeak.text.diagnostics.diagnostic import Rule


@click.command()
@click.argument("rule", required=False)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
def explain(rule: str | None, form: str) -> None:
    """Explain RULE and show its settings in the current folder.

    RULE is the id or name of a lint rule, or of a change that `bespeak diff` reports, like C129. Without RULE, all
    lint rules are listed.

    \b
    Examples:
      bespeak explain P302
      bespeak explain method-name-in-path --format json
    """
    from bespeak.checks.evolution.change_report import RULES  # noqa: PLC0415 - `--help` does not need the rules
    from bespeak.checks.lint.config import Configs, Judge  # noqa: PLC0415
    from bespeak.checks.lint.rule_index import all_rules, find_rule, near_rules  # noqa: PLC0415
    from bespeak.text.diagnostics.reporters.json_report import encoded  # noqa: PLC0415

    judge = Judge(Configs(Path.cwd()).run)
    as_json = form == "json"
    data: object
    if rule is None:
        # The pages of all rules take longer to read than the list.
        data, lines = [_data(entry, judge) for entry in all_rules().values()] if as_json else None, _listing(judge)
    elif (change := find_rule(rule, RULES)) is not None:
        data, lines = (told := _change_data(change)), _change_page(told)
    elif (found := find_rule(rule)) is not None:
        data, lines = _data(found, judge), _page(found, judge)
    else:
        near = near_rules(rule)
        hint = f" Did you mean {' or '.join(near)}?" if near else " See `bespeak explain` for all rules."
        raise click.UsageError(f"Rule {rule!r} not found.{hint}")
    click.echo(encoded(data) if as_json else "\n".join(lines))


def _page(rule: Rule, judge: Judge) -> Iterator[str]:
    from bespeak.checks.lint.rule_index import facts, sections  # noqa: PLC0415

    yield from (f"{rule.id} {rule.name}", "", page_of(rule).summary, "")
    yield from (f"{name:<10}{value}" for name, value in facts(rule, _passes().get(rule.id, "")))
    yield f"{'here':<10}{_here(rule, judge)}"
    for title, text, is_code in sections(rule):
        yield ""
        yield f"{title}:" if is_code else f"{title}: {text}"
        if is_code:
            yield indent(text.rstrip(), "    ")


def _change_data(rule: Rule) -> dict[str, str]:
    from bespeak.checks.evolution.change import ChangeRule  # noqa: PLC0415

    kind = {"kind": rule.kind, "category": rule.category.lower()} if isinstance(rule, ChangeRule) else {}
    page = page_of(rule)
    return {"id": rule.id, "name": rule.name, **kind, "summary": page.summary, "why": page.why}


def _change_page(data: Mapping[str, str]) -> Iterator[str]:
    yield from (f"{data['id']} {data['name']}", "", data["summary"], "")
    yield from (f"{name:<10}{data[name]}" for name in ("kind", "category") if name in data)
    yield from ("source    bespeak diff", "", f"Why: {data['why']}")


def _listing(judge: Judge) -> Iterator[str]:
    from bespeak.checks.lint.rule_index import all_rules, pass_of  # noqa: PLC0415

    names = _passes()
    groups: dict[int, list[Rule]] = {}
    for rule in all_rules().values():
        groups.setdefault(pass_of(rule.id) or 99, []).append(rule)
    width = max(len(rule.name) for rule in all_rules().values())
    for number, rules in sorted(groups.items()):
        name = names.get(rules[0].id)
        yield f"Pass {number}: {name}" if name else "AGTP-API and file reading"
        for rule in rules:
            severity = _severity(rule, judge) if judge.is_on(rule.id) else "off"
            yield f"  {rule.id}  {severity:<8} {rule.name:<{width}}  {page_of(rule).summary}"
        yield ""
    yield "Run `bespeak explain RULE` for details, also for the changes (C1xx) of `bespeak diff`."


def _here(rule: Rule, judge: Judge) -> str:
    where = str(judge.config.file) if judge.config.file else "no settings"
    if not judge.is_on(rule.id):
        return f"off ({where})"
    hidden = "; cannot be ignored" if judge.stands(rule.id) else ""
    return f"{_severity(rule, judge)} ({where}){hidden}"


def _severity(rule: Rule, judge: Judge) -> str:
    return judge.severity(rule.id) or rule.severity


def _passes() -> dict[str, str]:
    from bespeak.checks.lint.rule_index import PASSES, all_rules, pass_of  # noqa: PLC0415

    names = {step.number: step.name for step in PASSES}
    return {rule: names[pass_of(rule)] for rule in all_rules() if pass_of(rule)}


def _data(rule: Rule, judge: Judge) -> dict[str, Any]:
    from bespeak.checks.lint.rule_index import pass_of  # noqa: PLC0415

    return {
        "id": rule.id,
        "name": rule.name,
        "severity": rule.severity,
        "normative": rule.normative,
        "source": rule.source,
        "pass": pass_of(rule.id) or None,
        **page_of(rule)._asdict(),
        "fix": rule.fix,
        "here": {
            "on": judge.is_on(rule.id),
            "severity": _severity(rule, judge),
            "settings": str(judge.config.file) if judge.config.file else None,
        },
    }

"""The importer agrees with a person about tools in the style of public MCP servers, and is never on the unsafe side."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.documents.mcp.judged_tools import judge_group, read_table

from bespeak.contract.catalog.document import load_bundled
from bespeak.contract.handler import McpServer
from bespeak.documents.mcp.facade import make_facades
from bespeak.documents.mcp.tools import ListedTool, ToolList

FLOORS = {"verb": 0.97, "impact": 0.99, "path": 0.97, "intent": 0.98}
"""Least share of the tools on which the importer must agree."""
CHANGING = ("create", "delete", "update", "send", "cancel", "remove", "publish", "restart", "overwrite", "purge")
NOUNS = ("note", "project", "order", "report", "schedule", "attribute", "user", "pull_request")
STYLES = (
    "{verb}_{noun}",
    "acme_{verb}_{noun}",
    "{noun}-{verb}",
    "{verb}{Noun}",
    "{noun}.{verb}",
    "get_and_{verb}_{noun}",
)


def test_tools_are_judged_as_a_person_does() -> None:
    wrong: Counter[str] = Counter()
    reports = []
    total = 0
    for title, group in read_table().items():
        for one, facade in judge_group(title, group):
            parts = one.wrong(facade)
            total += 1
            wrong.update(part.partition(" ")[0] for part in parts)
            reports += [f"{title} {one.name}: {', '.join(parts)}"] if parts else []
    shares = {part: 1 - wrong[part] / total for part in FLOORS}
    assert all(shares[part] >= floor for part, floor in FLOORS.items()), "\n".join([str(shares), *reports])


def test_no_judged_tool_has_a_lesser_impact_than_a_person_accepts() -> None:
    order = ("informational", "reversible", "irreversible")
    pairs = [pair for title, group in read_table().items() for pair in judge_group(title, group)]
    lesser = [
        one.name
        for one, facade in pairs
        if order.index(facade.endpoint.semantic.impact) < min(order.index(impact) for impact in one.impacts.split())
    ]
    assert lesser == []


@settings(max_examples=150)
@given(
    st.sampled_from(CHANGING),
    st.sampled_from(NOUNS),
    st.sampled_from(STYLES),
    st.sampled_from(["", "Get the {noun}.", "{verb} the {noun}.", "Returns it. {verb}s the {noun} too."]),
    st.dictionaries(st.sampled_from(["readOnlyHint", "destructiveHint", "idempotentHint"]), st.booleans()),
)
def test_no_hint_makes_a_tool_informational_whose_words_change_something(
    verb: str, noun: str, style: str, text: str, hints: dict[str, bool]
) -> None:
    name = style.format(verb=verb, noun=noun, Noun=noun.title().replace("_", ""))
    tool = ListedTool(name=name, description=text.format(verb=verb.capitalize(), noun=noun), hints=hints)
    [facade], _ = make_facades(ToolList(tools=(tool,)), McpServer(tool="", command="x"), load_bundled())
    assert facade.endpoint.semantic.impact != "informational"
    if hints.get("destructiveHint"):
        assert facade.endpoint.semantic.impact == "irreversible"

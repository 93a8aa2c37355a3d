"""Lists whose items have one schema: every position of a tuple may hold what any of them may."""

from __future__ import annotations

from bespeak.documents.projections.model_tools.document import SAYS, Definitions, Node, alternatives, types


def describe_items(node: Node, _: Definitions) -> Node:
    """Give every list a schema of its items, which providers demand."""
    return {**node, "items": {}} if node.get("type") == "array" and not {"items", "prefixItems"} & node.keys() else node


def join_positions(node: Node, definitions: Definitions) -> Node:
    """Replace the schemas of positions by one union and a sentence."""
    first: list[Node] = node.get("prefixItems", [])
    if not first:
        return describe_items(node, definitions)
    made = {key: value for key, value in node.items() if key != "prefixItems"}
    is_closed = node.get("maxItems", len(first) + 1) <= len(first)
    options = [*first, *([] if is_closed else [node.get("items", {})])]
    distinct = list({repr(option): option for option in options}.values())
    made["items"] = distinct[0] if len(distinct) == 1 else {} if {} in distinct else {"anyOf": distinct}
    order = ", ".join(_words(option, definitions) for option in first)
    return {**made, SAYS: [*node.get(SAYS, ()), f"The items are, in this order: {order}."]}


def _words(node: Node, definitions: Definitions) -> str:
    kinds = dict.fromkeys(kind for each in alternatives(node, definitions) for kind in types(each) or ("any value",))
    said = node.get("description")
    name = " or ".join(kinds)
    return f"{name} ({said.rstrip('.')})" if isinstance(said, str) and len(said) < 80 else name

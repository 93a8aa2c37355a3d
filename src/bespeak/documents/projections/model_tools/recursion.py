"""Definitions that contain themselves."""

from __future__ import annotations

from bespeak.documents.projections.model_tools.document import SAYS, Definitions, Document, Node, named, nodes


def circular(definitions: Definitions) -> frozenset[str]:
    """Return the names of definitions on a circle of references, and of those between two circles."""
    leads = {name: {target for target in map(named, nodes(node)) if target} for name, node in definitions.items()}
    return frozenset(_trimmed(_trimmed(leads)))


def open_unions(document: Document) -> Document:
    """Replace alternatives that lead back to their own union by the alternatives there: a value does not get smaller
    on that way.
    """
    definitions = document.definitions
    leads = {
        name: {target for target in map(named, node.get("anyOf", ())) if target and "anyOf" in definitions[target]}
        for name, node in definitions.items()
    }
    circles = _trimmed(_trimmed(leads))
    made = {name: {**definitions[name], "anyOf": _options(name, definitions)} for name in circles}
    return Document(document.root, {**definitions, **made})


def _options(name: str, definitions: Definitions) -> list[Node]:
    """Return the alternatives of a union, and of the unions among them, once each."""
    seen, found, waiting = {name}, [], list(reversed(definitions[name]["anyOf"]))
    while waiting:
        option = waiting.pop()
        target = named(option)
        if target is None or "anyOf" not in definitions[target]:
            found.append(option)
        elif target not in seen:
            seen.add(target)
            waiting += reversed(definitions[target]["anyOf"])
    return found or [{}]


def relax_circles(document: Document) -> Document:
    """Make members optional through which a definition contains itself: Gemini unrolls circles only there."""
    names = circular(document.definitions)

    def relaxed(node: Node, _: Definitions) -> Node:
        needed = [name for name in node.get("required", ()) if _refers(node["properties"].get(name, {}), names)]
        if not needed:
            return node
        left = [name for name in node["required"] if name not in needed]
        return {**node, "required": left, SAYS: [*node.get(SAYS, ()), f"Always give {' and '.join(needed)}."]}

    circles = Document({}, {name: document.definitions[name] for name in names}).apply(relaxed)
    return Document(document.root, {**document.definitions, **circles.definitions})


def _refers(node: Node, names: frozenset[str]) -> bool:
    return any(named(each) in names for each in nodes(node))


def _trimmed(leads: dict[str, set[str]]) -> dict[str, set[str]]:
    """Remove, again and again, what leads nowhere; return the rest with all references turned round."""
    back: dict[str, set[str]] = {name: set() for name in leads}
    for name, targets in leads.items():
        for target in targets:
            back[target].add(name)
    open_ends = {name: len(targets) for name, targets in leads.items()}
    waiting = [name for name, count in open_ends.items() if not count]
    while waiting:
        for name in back.pop(waiting.pop()):
            open_ends[name] -= 1
            if not open_ends[name]:
                waiting.append(name)
    return {name: {source for source in sources if source in back} for name, sources in back.items()}

"""Write the reference of the Python API from signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import is_dataclass
from itertools import pairwise
from typing import Any

import bespeak
from bespeak.text.reading.settings import declared

SECTIONS = {
    "Write a service": (
        *("App", "Body", "Needs", "Refusal", "Context", "Principal", "Price", "Sold", "EntityChange", "Prediction"),
        *("Upload", "FileLimits", "Download"),
    ),
    "Write a workflow": ("Run",),
    "Describe a service": (
        "Policies",
        "MethodPolicy",
        "Redirect",
        "Deprecation",
        "Vocabulary",
        "DataManifest",
        "DataClass",
        "DataSet",
        "DataQuery",
        *("Report", "Table", "Chart"),
    ),
    "Serve inside another application": ("asgi",),
    "Call a service": (
        "connect",
        "connect_sync",
        "ServiceClient",
        "SyncServiceClient",
        "Reply",
        "ReplyError",
        "Synthesis",
        "ToolList",
        "SyncToolList",
        "Question",
    ),
    "Act on instructions": (
        *("Agent", "SyncAgent", "ActingRules", "LanguageModelSettings"),
        *("Decision", "Acted", "Plan", "Carried", "Asked", "Confirmation", "ServiceMap"),
    ),
    "Options of the client": ("RetryPolicy", "WebOptions"),
}
"""Headings of the page, each with its public names. The exceptions have a section of their own."""

SAME = {
    "connect_sync": "`connect_sync` takes the parameters of [`connect`](#connect). It is a plain context manager, and "
    "its client is a [`SyncServiceClient`](#syncserviceclient).",
    "SyncToolList": "Its methods are those of [`ToolList`](#toollist), without `await`.",
    "SyncAgent": "Its options and methods are those of [`Agent`](#agent), without `await`, in a plain `with` block.",
    "SyncServiceClient": "Its methods and attributes are those of [`ServiceClient`](#serviceclient), without `await`.",
}
"""Names that repeat another one."""

CREATED_BY_BESPEAK = (
    *("Decision", "Acted", "Plan", "Carried", "Asked", "Confirmation", "ServiceMap"),
    "Context",
    "DataQuery",
    "Principal",
    "Reply",
    "ReplyError",
    "ServiceClient",
    "Sold",
    "Synthesis",
    "ToolList",
    "Question",
    "Run",
)
"""Classes whose constructors are not for users."""

RETURNS = {"connect": " -> async context manager of ServiceClient", "asgi": " -> ASGI application"}
"""Results that read better than their annotations."""

WIDTH = 100


def api_parts() -> Iterator[str]:
    """Yield the parts of the page."""
    for title, names in SECTIONS.items():
        yield f"## {title}"
        for name in names:
            yield f"### {name}"
            yield from [SAME[name]] if name in SAME else _describe(name, getattr(bespeak, name))
    yield "## Exceptions"
    yield _exceptions()


def left_out() -> set[str]:
    """Return the public names that no section shows."""
    shown = {name for names in SECTIONS.values() for name in names}
    return {name for name in set(bespeak.__all__) - shown if not _is_exception(getattr(bespeak, name))}


def _describe(name: str, value: Any) -> Iterator[str]:
    if name not in CREATED_BY_BESPEAK:
        yield _signature(name, value)
    yield _text(value)
    if not inspect.isclass(value):
        return
    if inspect.isfunction(value.__init__) and value.__init__.__doc__:
        yield _text(value.__init__)
    rows = list(_attributes(value))
    if rows:
        yield _table(("attribute", "type", "meaning"), rows)
    for key, method in _methods(value):
        yield f"#### {name}.{key}"
        yield _signature(f"{name}.{key}" if inspect.ismethod(method) else key, method)
        yield _text(method)


def _signature(name: str, value: Callable[..., Any]) -> str:
    """Write a signature as a block, with one parameter per line if it is long."""
    signature = inspect.signature(value)
    parts = list(_parameters([one for one in signature.parameters.values() if one.name != "self"]))
    returns = "" if inspect.isclass(value) else RETURNS.get(name, f" -> {_type(signature.return_annotation)}")
    prefix = "async " if inspect.iscoroutinefunction(value) else ""
    line = f"{prefix}{name}({', '.join(parts)}){returns}"
    if len(line) > WIDTH:
        line = f"{prefix}{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"
    return f"```text\n{line}\n```"


def _parameters(parameters: list[inspect.Parameter]) -> Iterator[str]:
    previous = None
    for parameter in parameters:
        kind = parameter.kind
        if previous is parameter.POSITIONAL_ONLY and kind is not previous:
            yield "/"
        if kind is parameter.KEYWORD_ONLY and previous not in (kind, parameter.VAR_POSITIONAL):
            yield "*"
        stars = "**" if kind is parameter.VAR_KEYWORD else ""
        default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        yield f"{stars}{parameter.name}: {_type(parameter.annotation)}{default}"
        previous = kind


def _default(value: Any) -> str:
    text = repr(value)
    return "..." if text.startswith("<") else text.replace("'", '"')


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text.replace("'", '"')).replace("_Function", "F").replace("_Items", "F")


def _text(value: Any) -> str:
    """Return a docstring as Markdown; an indented block becomes a fenced one."""
    block = re.compile(r"\n\n((?: {4}.*\n?|\n(?= {4}))+)")
    text = inspect.getdoc(value) or ""
    return block.sub(lambda found: f"\n\n```text\n{inspect.cleandoc(found[1])}\n```\n", text).strip()


def _attributes(kind: type) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and meaning of fields, of attributes documented in the constructor, and of properties."""
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind)))
    settings = {name: setting.meaning for name, _, setting in declared(kind)} if is_dataclass(kind) else {}
    for scope in ast.walk(tree):
        if isinstance(scope, ast.ClassDef | ast.FunctionDef):
            for statement, following in pairwise([*scope.body, ast.Pass()]):
                target = getattr(statement, "target", None)
                name = getattr(target, "id", getattr(target, "attr", "_"))
                text = following.value if isinstance(following, ast.Expr) else None
                meaning = str(text.value) if isinstance(text, ast.Constant) else settings.get(name, "")
                if isinstance(statement, ast.AnnAssign) and not name.startswith("_"):
                    yield f"`{name}`", f"`{ast.unparse(statement.annotation)}`", " ".join(meaning.split())
    for name, member in vars(kind).items():
        if isinstance(member, property) and member.fget is not None:
            returns = _type(inspect.signature(member.fget).return_annotation)
            yield f"`{name}`", f"`{returns}`", " ".join((member.__doc__ or "").split())


def _methods(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the methods of a class and of its bases that are not public, which have no section of their own."""
    own = [base for base in kind.__bases__ if base.__module__.partition(".")[0] == "bespeak"]
    bases = [base for base in own if base.__name__ not in bespeak.__all__]
    for name, member in (pair for one in (kind, *bases) for pair in vars(one).items()):
        if (
            not name.startswith(("_", "model_"))
            and name not in ("to_json", "checked")
            and isinstance(member, classmethod | type(_methods))
        ):
            yield name, getattr(kind, name)


def _exceptions() -> str:
    """List the public exceptions, each after its base class."""
    found = [getattr(bespeak, name) for name in bespeak.__all__ if _is_exception(getattr(bespeak, name))]
    found.sort(key=lambda kind: [base.__name__ for base in reversed(kind.__mro__)])
    rows = []
    for kind in found:
        own = ", ".join(f"`{name}`" for name, member in vars(kind).items() if isinstance(member, property))
        rows.append((f"`{kind.__name__}`", f"`{kind.__base__.__name__}`", " ".join((kind.__doc__ or "").split()), own))
    return _table(("class", "base", "meaning", "attributes"), rows)


def _table(heading: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heading, tuple("---" for _ in heading), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _is_exception(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Exception)

"""The declarations in a Python file with their places, so that findings about them have a line and a column."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from bespeak.text.source.pointer import child
from bespeak.text.source.tree import Notation, Span, Tree

Function = ast.FunctionDef | ast.AsyncFunctionDef
_MEMBERS: Final = {
    **dict.fromkeys(("impact", "confidence", "capability", "actor", "confidence_guidance"), "/semantic/{}"),
    **dict.fromkeys(("parameter_hints", "state_transition", "mcp_tool_name", "intent", "outcome"), "/semantic/{}"),
    "concepts": "/semantic/concepts",
    **dict.fromkeys(("errors", "namespace", "deprecated", "cost", "confirm", "since", "description"), "/{}"),
    "idempotent": "/semantic/is_idempotent",
    "scopes": "/required_scopes",
}  # pointers of the keyword arguments of a declaration
_LINE_END: Final = re.compile(r"\r\n?|\n")  # ends of lines as `ast` counts them
_PREFIXES: Final = "rRuU"
_QUOTES: Final = "\"'"
_HEADING: Final = re.compile(r"^[ \t]*+(?P<name>[A-Za-z]++):", re.MULTILINE)
_PARAGRAPH: Final = re.compile(r"\S(?:.*\S)?(?:\n[ \t]*+\S.*)*")


class PythonTree(Tree):
    """A Python file whose data are the given endpoints. The places come from `declared`."""

    __slots__ = ("_spans",)

    notation: ClassVar[Notation] = "python"

    def __init__(self, text: str, file: str, endpoints: Mapping[str, Any], spans: Mapping[str, Span]) -> None:
        super().__init__(endpoints, text, file)
        self._spans = spans

    def scope_of(self, line: int) -> str | None:
        """Return the endpoint that is declared on a line, because comments are impossible in its docstring."""
        for at, span in self._spans.items():
            name = self._spans.get(f"{at}/handler", span)
            if at.count("/") == 2 and self.location(span).line <= line <= self.location(name).line:
                return at
        return None

    def _span(self, at: str, *, key: bool) -> Span | None:
        return self._spans.get(at)


class PythonSource:
    """The text of a Python file, parsed if possible."""

    def __init__(self, text: str) -> None:
        self._lines = [0, *(found.end() for found in _LINE_END.finditer(text)), len(text) + 1]
        self._text = text
        try:
            self._functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, Function)]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._functions = []

    def spans(self, line: int, method: str, path: str) -> dict[str, Span]:
        """Return the places of a declaration; only the line if other code calls the decorator."""
        for function in self._functions:
            if line in (function.lineno, min((one.lineno for one in function.decorator_list), default=0)):
                return dict(self._declared(function, method, path))
        start, end = self._lines[min(line, len(self._lines)) - 1], self._lines[min(line, len(self._lines) - 1)]
        shown = self._text[start:end].rstrip()
        return {"": Span(start + len(shown) - len(shown.lstrip()), start + len(shown))}

    def _declared(self, function: Function, method: str, path: str) -> Iterator[tuple[str, Span]]:
        name = self._text.find(function.name, self._offset(function.lineno, function.col_offset))
        named = Span(name, name + len(function.name))
        yield "", named
        yield "/handler", named
        yield "/output_schema", self._span(function.returns) if function.returns else named
        arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        if arguments:
            yield "/input_schema", Span(self._span(arguments[0]).start, self._span(arguments[-1]).end)
        for argument in arguments:
            yield child("/input_schema/properties", argument.arg), self._span(argument)
        yield from self._documented(function)
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and [_constant(one) for one in decorator.args[:2]] == [method, path]:
                yield "", self._span(decorator)
                yield from zip(("/method", "/path"), map(self._span, decorator.args[:2]), strict=True)
                for keyword in decorator.keywords:
                    if pointer := _MEMBERS.get(keyword.arg or "", "").format(keyword.arg):
                        yield pointer, self._span(keyword.value)

    def _documented(self, function: Function) -> Iterator[tuple[str, Span]]:
        first = function.body[0]
        if not isinstance(first, ast.Expr) or not isinstance(_constant(first.value), str):
            return
        whole = self._span(first.value)
        text = self._text[whole.start : whole.end]
        start, end = len(text) - len(text.lstrip(_PREFIXES).lstrip(_QUOTES)), len(text.rstrip(_QUOTES))
        if (intent := _PARAGRAPH.search(text, start, end)) is not None:
            for pointer in ("/description", "/semantic/intent"):
                yield pointer, Span(whole.start + intent.start(), whole.start + intent.end())
        for heading in _HEADING.finditer(text, start, end):
            at = {"outcome": "/semantic/outcome", "errors": "/errors"}.get(heading["name"].lower())
            body = _PARAGRAPH.search(text, heading.end(), end) if at else None
            if at and body:
                yield at, Span(whole.start + body.start(), whole.start + body.end())

    def _span(self, node: ast.expr | ast.arg) -> Span:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return Span(self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset))

    def _offset(self, line: int, column: int) -> int:
        """Return the offset of a position, whose column `ast` counts in bytes of UTF-8."""
        start = self._lines[line - 1]
        shown = self._text[start : self._lines[line]]
        return start + (column if shown.isascii() else len(shown.encode()[:column].decode(errors="ignore")))


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None

"""Redirects of the method policy, resolved once so that a request needs only lookups (AGTP-API 9.2)."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from bespeak.contract.grammar.path_syntax import Template, parse_template
from bespeak.contract.policy import Redirect
from bespeak.runtime.router import Router


class Redirects:
    """The redirect entries of a server. An entry with a path takes precedence over one for the method alone."""

    def __init__(self, entries: Iterable[Redirect]) -> None:
        self._by_path: Router[Redirect] = Router()
        self._by_method: dict[str, Redirect] = {}
        self._methods: set[str] = set()
        for entry in entries:
            self._methods.add(entry.from_method)
            template = parse_template(entry.from_path) if entry.from_path is not None else None
            if isinstance(template, Template):
                self._by_path.add(entry.from_method, template, entry)
            else:
                self._by_method[entry.from_method] = entry

    def __len__(self) -> int:
        return len(self._methods)

    def _next(self, method: str, path: str) -> tuple[str, str] | None:
        found = self._by_path.find(method, path)
        entry, captures = found if found is not None else (self._by_method.get(method), None)
        if entry is None:
            return None
        target = entry.to_path or path
        for name, value in (captures or {}).items():
            target = target.replace(f"{{{name}}}", quote(value, safe=""))
        return entry.to_method, target

    def follow(self, method: str, path: str) -> tuple[str, str]:
        """Return the final method and path of a request. A chain is followed to its end; a cycle stops where it
        repeats.
        """
        seen = {(method, path)}
        while (target := self._next(method, path)) is not None and target not in seen:
            seen.add(target)
            method, path = target
        return method, path

    def for_path(self, path: str) -> dict[str, str]:
        """Return the method redirects that apply to a path, for the body of a 405."""
        found = ((method, self._next(method, path)) for method in sorted(self._methods))
        return {method: target[0] for method, target in found if target is not None}

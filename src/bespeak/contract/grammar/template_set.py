"""A set of templates in which no two match the same path equally well (AGTP-API 5.4)."""

from __future__ import annotations

from bespeak.contract.grammar.path_syntax import Template


class _Shape:
    """Templates with literals at the same places, indexed by some of these literals."""

    __slots__ = ("_indexes", "_templates")

    def __init__(self) -> None:
        self._templates: list[Template] = []
        self._indexes: dict[int, dict[tuple[str | None, ...], Template]] = {}

    def add(self, template: Template) -> None:
        self._templates.append(template)
        for places, index in self._indexes.items():
            index.setdefault(_literals(template, places), template)

    def find(self, template: Template, places: int) -> Template | None:
        index = self._indexes.get(places)
        if index is None:
            index = self._indexes[places] = {_literals(known, places): known for known in self._templates}
        return index.get(_literals(template, places))


class TemplateSet:
    """The templates of one method. Adding costs a look-up per shape in use, not per template."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[int, int], dict[int, _Shape]] = {}

    def add(self, template: Template) -> Template | None:
        """Add a template, or return an existing one that some path matches equally well."""
        alike = self._shapes.setdefault((len(template.segments), len(template.parameters)), {})
        literal = sum(1 << place for place, segment in enumerate(template.segments) if segment is not None)
        for other, shape in alike.items():
            # A parameter in either template matches anything; only shared literals can distinguish them.
            rival = shape.find(template, literal & other)
            if rival is not None:
                return rival
        alike.setdefault(literal, _Shape()).add(template)
        return None


def _literals(template: Template, places: int) -> tuple[str | None, ...]:
    return tuple(segment for place, segment in enumerate(template.segments) if places >> place & 1)

"""Charts as SVG: one bar for each number."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final

_WIDTH: Final = 640
_LABEL: Final = 190
_VALUE: Final = 90
_BAR: Final = 18
_STEP: Final = 26
_LONGEST_LABEL: Final = 26
_FONT: Final = 'font-family="Libertinus Serif, Georgia, serif" font-size="13"'


def bar_chart(numbers: Mapping[str, float], title: str) -> str:
    """Return a horizontal bar chart; the bars of negative numbers have another colour."""
    most = max((abs(number) for number in numbers.values()), default=0) or 1
    room = _WIDTH - _LABEL - _VALUE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_STEP * len(numbers) + 8}" '
        f'role="img" {_FONT}><title>{escape(title)}</title>'
    ]
    for index, (label, number) in enumerate(numbers.items()):
        top, width = 4 + index * _STEP, max(room * abs(number) / most, 1.0)
        short = label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"
        middle = top + _BAR - 5
        parts += [
            f'<text x="{_LABEL - 8}" y="{middle}" text-anchor="end" fill="#222">{escape(short)}</text>',
            f'<rect x="{_LABEL}" y="{top}" width="{width:.1f}" height="{_BAR}" rx="2" '
            f'fill="{"#b4553c" if number < 0 else "#2f6f8f"}"/>',
            f'<text x="{_LABEL + width + 6:.1f}" y="{middle}" fill="#222">{number:,.10g}</text>',
        ]
    return "".join([*parts, "</svg>"])

"""Charts of numbers as SVG, which loads nothing. The same numbers make the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Final

_WIDTH, _LABEL, _VALUE, _BAR, _STEP = 640, 190, 90, 18, 26  # of a chart and its parts
_LINE_HEIGHT, _LINE_LEFT, _LINE_TOP, _LINE_DEPTH = 260, 80, 14, 200  # of a line chart and its plot
_MOST_TICKS, _MOST_DOTS = 6, 60  # labels below a line, and points up to which each has a dot
_FONT: Final = 'font-family="Libertinus Serif, Georgia, serif" font-size="13"'


def bar_chart(numbers: Mapping[str, float], title: str) -> str:
    """Return a horizontal bar chart; the bars of negative numbers have another colour."""
    most = max((abs(number) for number in numbers.values()), default=0) or 1
    room = _WIDTH - _LABEL - _VALUE
    parts = [_open(_STEP * len(numbers) + 8, title)]
    for index, (label, number) in enumerate(numbers.items()):
        top, width = 4 + index * _STEP, max(room * (abs(number) / most), 1.0)
        middle = top + _BAR - 5
        parts += [
            _label(_LABEL - 8, middle, _short(label), "end"),
            f'<rect x="{_LABEL}" y="{top}" width="{width:.1f}" height="{_BAR}" rx="2" '
            f'fill="{"#b4553c" if number < 0 else "#2f6f8f"}"/>',
            _label(_LABEL + width + 6, middle, f"{number:,.10g}"),
        ]
    return "".join([*parts, "</svg>"])


def line_chart(numbers: Mapping[str, float], title: str) -> str:
    """Return a line through the numbers in their order; the axis includes zero."""
    low, high = min(0.0, 0.0, *numbers.values()), max(0.0, 0.0, *numbers.values())
    high = high if low or high else 1.0
    most, step = max(high, -low), (_WIDTH - _LINE_LEFT - 40) / max(len(numbers) - 1, 1)
    scale = _LINE_DEPTH / (high / most - low / most)  # divided first: the difference may be infinite

    def height(number: float) -> float:
        return _LINE_TOP + scale * (high / most - number / most)

    parts = [_open(_LINE_HEIGHT, title)]
    for number in sorted({low, 0.0, low / 2 + high / 2, high}):
        colour, label = ("#ddd", f"{number:,.4g}") if number else ("#999", "" if low < 0 < high else "0")
        parts.append(f'<path d="M{_LINE_LEFT} {height(number):.1f}H{_WIDTH - 40}" stroke="{colour}"/>')
        parts.append(_label(_LINE_LEFT - 8, height(number) + 4, label, "end"))
    every, dotted = -(-len(numbers) // _MOST_TICKS), len(numbers) <= _MOST_DOTS
    places = [(_LINE_LEFT + index * step, height(number)) for index, number in enumerate(numbers.values())]
    for index, ((x, y), label) in enumerate(zip(places, numbers, strict=True)):
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#2f6f8f"/>'] if dotted else []
        parts += [] if index % every else [_label(x, _LINE_HEIGHT - 18, _short(label, 14), "middle")]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return "".join([*parts, f'<polyline points="{points}" fill="none" stroke="#2f6f8f" stroke-width="2"/></svg>'])


def _open(height: int, title: str) -> str:
    box = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"'
    return f"<svg {box} {_FONT}><title>{escape(title)}</title>"


def _label(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#222">{escape(text)}</text>'


def _short(label: str, most: int = 26) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"

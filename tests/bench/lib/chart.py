# SPDX-License-Identifier: LGPL-2.1-or-later
"""Line charts as SVG: panels side by side, each with its legend."""

import math
from html import escape

WIDTH, HEIGHT = 430, 330
LEFT, TOP, RIGHT, BOTTOM = 48, 34, 14, 94
LEGEND_COLUMNS = 3
COLORS = ("#1a5fb4", "#c64600", "#26a269", "#813d9c", "#a51d2d", "#77767b", "#986a44", "#0b7285")


def text(x, y, words, anchor="middle", size=11, **attributes):
    extra = "".join(f' {key.replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#333"{extra}>'
            f'{escape(words)}</text>')


def color_of(number):
    return COLORS[number % len(COLORS)]


def polyline(points, number):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{color_of(number)}" stroke-width="1.6"/>'


def legend(names, x0):
    inner_w, out = WIDTH - LEFT - RIGHT, []
    for number, name in enumerate(names):
        x = x0 + LEFT + (number % LEGEND_COLUMNS) * (inner_w / LEGEND_COLUMNS)
        y = HEIGHT - BOTTOM + 52 + 16 * (number // LEGEND_COLUMNS)
        out.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x + 16:.1f}" y2="{y:.1f}" '
                   f'stroke="{color_of(number)}" stroke-width="3"/>')
        out.append(text(x + 20, y + 4, name, "start"))
    return out


class Panel:
    """`lines`: {name: [y of each of `xs`]}, with y from 0 to 1, or None where nothing was measured.
    The values of x are drawn at equal distances, whatever their differences are: the caller chooses
    them so that each shows something new."""

    def __init__(self, title, unit, xs, lines):
        self.title, self.unit, self.xs, self.lines = title, unit, xs, lines

    def draw(self, x0):
        inner_w, inner_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

        def at(i, y):
            return (x0 + LEFT + inner_w * i / max(len(self.xs) - 1, 1), TOP + inner_h * (1 - y))

        out = [text(x0 + LEFT + inner_w / 2, 20, self.title, size=13, font_weight="bold")]
        for percent in range(0, 101, 20):
            x, y = at(0, percent / 100)
            out.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x + inner_w:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            out.append(text(x - 6, y + 4, f"{percent} %", "end"))
        for i, x in enumerate(self.xs):
            out.append(text(at(i, 0)[0], TOP + inner_h + 16, str(x)))
        out.append(text(x0 + LEFT + inner_w / 2, TOP + inner_h + 34, self.unit))
        for number, (name, ys) in enumerate(self.lines.items()):
            points = [at(i, y) for i, y in enumerate(ys) if y is not None and math.isfinite(y)]
            out.append(polyline(points, number))
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{color_of(number)}"/>' for x, y in points]
        return out + legend(self.lines, x0)


def tick_distance(highest):
    """Returns the distance of ticks from 0 to `highest`: 1, 2 or 5 times a power of ten, for at most ten ticks."""
    power = 10 ** math.floor(math.log10(highest / 10))
    return next(power * n for n in (1, 2, 5, 10) if highest / (power * n) <= 10)


class CurvePanel:
    """`lines`: {name: [(x, y)]}, with x and y from 0."""

    def __init__(self, title, unit, lines):
        self.title, self.unit, self.lines = title, unit, lines

    def draw(self, x0):
        inner_w, inner_h = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
        most_x, most_y = (max((point[axis] for points in self.lines.values() for point in points), default=0) or 1
                          for axis in (0, 1))

        def at(x, y):
            return x0 + LEFT + inner_w * x / most_x, TOP + inner_h * (1 - y / most_y)

        out = [text(x0 + LEFT + inner_w / 2, 20, self.title, size=13, font_weight="bold")]
        step = tick_distance(most_y)
        for number in range(int(most_y / step) + 1):
            x, y = at(0, number * step)
            out.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x + inner_w:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            out.append(text(x - 6, y + 4, f"{number * step:g}", "end"))
        step = tick_distance(most_x)
        for number in range(int(most_x / step) + 1):
            out.append(text(at(number * step, 0)[0], TOP + inner_h + 16, f"{number * step:g}"))
        out.append(text(x0 + LEFT + inner_w / 2, TOP + inner_h + 34, self.unit))
        out += [polyline([at(*point) for point in points], number)
                for number, points in enumerate(self.lines.values())]
        return out + legend(self.lines, x0)


def document(panels, columns=2):
    """Returns all panels as one SVG."""
    rows = -(-len(panels) // columns)
    width, height = WIDTH * min(columns, len(panels)), HEIGHT * rows
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
           f'height="{height}" font-family="sans-serif">', '<rect width="100%" height="100%" fill="white"/>']
    for number, panel in enumerate(panels):
        out.append(f'<g transform="translate(0 {HEIGHT * (number // columns)})">')
        out += panel.draw(WIDTH * (number % columns))
        out.append("</g>")
    return "\n".join(out + ["</svg>", ""])


def table(panel):
    """Returns the figures of a panel as a Markdown table."""
    def share(y):
        return "-" if y is None else f"{100 * y:.1f}"

    out = [f"| {panel.unit} | " + " | ".join(map(str, panel.xs)) + " |", "| --- |" + " --- |" * len(panel.xs)]
    out += [f"| {name} | " + " | ".join(map(share, ys)) + " |" for name, ys in panel.lines.items()]
    return "\n".join(out) + "\n"

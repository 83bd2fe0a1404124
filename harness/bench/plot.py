"""Draws lines over a size as SVG, for the bench suite (tests/gpu/bench_plot.py) and growth.py. Colours follow the reader's light or dark scheme.

tools/bench/plot.c is another plotter: it draws the times of `cusplice bench` for users without Python. This one draws any unit on linear or
logarithmic axes, which only the harness needs. One plotter for both would be larger than these two. This module never reads or writes a file.
"""

import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 400, 76, 300, 40, 56
STYLE = """
.g{stroke:#d8d8d8}.t{fill:#222}.b{fill:#fff}
.s0{stroke:#6b6b6b;fill:#6b6b6b}.s1{stroke:#d55e00;fill:#d55e00}.s2{stroke:#0072b2;fill:#0072b2}.s3{stroke:#009e73;fill:#009e73}.s4{stroke:#aa4499;fill:#aa4499}.s5{stroke:#56b4e9;fill:#56b4e9}.s6{stroke:#b8860b;fill:#b8860b}.s7{stroke:#8c564b;fill:#8c564b}
@media(prefers-color-scheme:dark){.g{stroke:#444}.t{fill:#ddd}.b{fill:#161616}
.s0{stroke:#b0b0b0;fill:#b0b0b0}.s1{stroke:#ff9e4a;fill:#ff9e4a}.s2{stroke:#5ab4f0;fill:#5ab4f0}.s3{stroke:#3fd6a4;fill:#3fd6a4}.s4{stroke:#e08bd0;fill:#e08bd0}.s5{stroke:#8fd0f5;fill:#8fd0f5}.s6{stroke:#e0b84a;fill:#e0b84a}.s7{stroke:#c9998c;fill:#c9998c}}
.l{fill:none;stroke-width:2}
"""


def escape(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def ticks(low, high, log):
    """Places of an axis from low to high, with what stands at them."""
    if log:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        few = high / low > 1000
        return [m * 10.0**p for p in range(first, last + 1) for m in ((1,) if few else (1, 2, 5)) if low * 0.999 <= m * 10.0**p <= high * 1.001]
    step = 10.0 ** math.floor(math.log10(high / 5))
    step *= next(m for m in (1, 2, 5, 10) if high / (step * m) <= 6)
    return [n * step for n in range(int(high / step * 1.001) + 1)]


def text(x, y, words, anchor="middle", more=""):
    return f'<text class="t" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


class Axis:
    def __init__(self, values, log, start, end):
        self.log, self.start, self.end = log, start, end
        self.low, self.high = (min(values), max(values)) if log else (0, max(values) or 1)
        if log and self.low == self.high:
            self.low, self.high = self.low / 2, self.high * 2

    def at(self, value):
        share = math.log(value / self.low) / math.log(self.high / self.low) if self.log else value / self.high
        return self.start + share * (self.end - self.start)


def draw(lines, title, x_label, unit, log, colours={}, names={}, level=None):
    """The plot as SVG. `lines`: {(name, series): [(x, y, least, most)]}; a name has a colour (of `colours`, else one that is left), a series
    has its dashes. `log`: of the axis across, and of the one upwards; `level`: a dashed line there."""
    places = sorted({point[0] for of in lines.values() for point in of})
    across = Axis([p for p in places if p > 0 or not log[0]], log[0], LEFT, WIDTH - RIGHT)
    upwards = Axis([v for of in lines.values() for point in of for v in point[2:]] + [level] * (level is not None), log[1], HEIGHT - BOTTOM, TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12" role="img">',
           f"<title>{escape(title)}</title><style>{STYLE}</style>", f'<rect class="b" width="{WIDTH}" height="{HEIGHT}"/>',
           text(LEFT, 22, title, "start", ' font-size="14"')]
    for value in ticks(upwards.low, upwards.high, upwards.log):
        y = upwards.at(value)
        out += [f'<path class="g" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>', text(LEFT - 8, y + 4, f"{value:,g}", "end")]
    if level is not None:
        out.append(f'<path class="g" stroke-dasharray="4 3" d="M{LEFT} {upwards.at(level):.1f}H{WIDTH - RIGHT}"/>')
    # What was measured stands on the axis, as far as there is room.
    last = None
    for value in places:
        x = across.at(value)
        if last is None or x - last >= 34:
            out += [f'<path class="g" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>', text(x, HEIGHT - BOTTOM + 18, f"{value:,g}")]
            last = x
    middle = (TOP + HEIGHT - BOTTOM) / 2
    out += [text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x_label), text(18, middle, unit, more=f' transform="rotate(-90 18 {middle:.0f})"')]
    groups = sorted({series for _, series in lines})
    left_over = {}
    for row, ((name, series), of) in enumerate(sorted(lines.items(), key=lambda item: (item[0][1], colours.get(item[0][0], 9)))):
        colour = colours[name] if name in colours else left_over.setdefault(name, 4 + len(left_over) % 4 if colours else len(left_over) % 8)
        dash = ("", ' stroke-dasharray="6 3"', ' stroke-dasharray="2 3"')[groups.index(series) % 3]
        places_of = [(across.at(x), upwards.at(y), upwards.at(low), upwards.at(high)) for x, y, low, high in of]
        out.append(f'<polyline class="s{colour} l"{dash} points="{" ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in places_of)}" style="fill:none"/>')
        out += [f'<path class="s{colour}" d="M{x:.1f} {low:.1f}V{high:.1f}"/><circle class="s{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'
                for x, y, low, high in places_of]
        y, said = TOP + 8 + 20 * row, ", ".join(word for word in (names.get(name, name), series) if word)
        out += [f'<path class="s{colour} l"{dash} d="M{WIDTH - RIGHT + 12} {y}h24"/>', text(WIDTH - RIGHT + 42, y + 4, said, "start")]
    return "\n".join(out) + "</svg>\n"

"""Pictures as SVG, which is text, so results can be kept with the sources."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 50, 50
COLOURS = ("#1f5fbf", "#d1682e", "#3a8f4d", "#8452a1")
NAMES, BAR, GAP = 210, 11, 10  # of bars: room for the names of rows, thickness, between rows
ENTRY = 150  # of the legend


def _ticks(top, wanted=5):
    """Round numbers from 0 to `top`."""
    step = next(s * 10**e for e in range(-3, 9) for s in (1, 2, 5) if top / (s * 10**e) <= wanted)
    return [i * step for i in range(int(top / step + 1e-9) + 1)]


def _number(x):
    return f"{x:.10g}"


def _frame(width, height, title, x_title, left):
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">'
    yield f'<rect width="{width}" height="{height}" fill="white"/>'
    yield f'<text x="{left}" y="20" font-size="14">{escape(title)}</text>'
    yield f'<text x="{(left + width - RIGHT) / 2}" y="{height - 12}" text-anchor="middle">{escape(x_title)}</text>'


def _legend(names, left, mark):
    """From `left` on, or from farther left if there are many. `mark`: draws the colour's sample, 20 wide, from a position on."""
    first = min(left, WIDTH - ENTRY * len(names))
    for i, name in enumerate(names):
        x = first + ENTRY * i
        yield mark(x, COLOURS[i % len(COLOURS)]) + f'<text x="{x + 26}" y="42">{escape(name)}</text>'


def _axis(values, top, is_log):
    """(the ticks of an axis, the function that tells the part of it below a value). A logarithmic one has powers of ten, and what is not
    above 0 is at its foot."""
    if not is_log:
        top = top or max(values, default=1) or 1
        return _ticks(top), lambda value: min(value / top, 1)
    logs = [math.log10(value) for value in values if value > 0] or [0]
    first, last = math.floor(min(logs)), max(math.ceil(max(logs)), math.floor(min(logs)) + 1)
    return ([10.0**power for power in range(first, last + 1)],
            lambda value: max(math.log10(value) - first, 0) / (last - first) if value > 0 else 0)


def lines(title, x_title, y_title, series, y_top=None, x_top=None, x_names=None, y_log=False):
    """SVG text. `series`: {name: [(x, y), ...]}. `x_names`: what stands below x = 0, 1, 2, ... in place of the numbers. `y_log`: the y axis
    is logarithmic."""
    points = [p for s in series.values() for p in s]
    x_top = x_top or max((x for x, _ in points), default=1) or 1
    y_ticks, share = _axis([y for _, y in points], y_top, y_log)

    def at(x, y):
        return (LEFT + (WIDTH - LEFT - RIGHT) * x / x_top, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share(y))

    out = [*_frame(WIDTH, HEIGHT, title, x_title, LEFT),
           f'<text transform="translate(16 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(y_title)}</text>']
    for tick in y_ticks:
        x, y = at(0, tick)
        out.append(f'<path d="M{x:.1f} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                   f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{_number(tick)}</text>')
    for tick, name in enumerate(x_names) if x_names else ((tick, _number(tick)) for tick in _ticks(x_top, 8)):
        x, y = at(tick, 0)
        out.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{name}</text>')
    for i, row in enumerate(series.values()):
        path = " ".join(f"{'L' if j else 'M'}{x:.1f} {y:.1f}" for j, (x, y) in enumerate(at(*p) for p in row))
        out.append(f'<path d="{path}" fill="none" stroke="{COLOURS[i % len(COLOURS)]}" stroke-width="1.5"/>')
    out += _legend(series, LEFT, lambda x, colour: f'<path d="M{x} 38h20" stroke="{colour}" stroke-width="2"/>')
    return "\n".join([*out, "</svg>", ""])


def bars(title, x_title, rows, text=_number, x_top=None):
    """SVG text. `rows`: {name: {series: value or None}}: each row is a group of horizontal bars. `text`: the text at a bar's
    end."""
    series = list(next(iter(rows.values())))
    x_top = x_top or max(v for row in rows.values() for v in row.values() if v is not None) or 1
    step = BAR * len(series) + GAP
    height = TOP + step * len(rows) + BOTTOM
    room = WIDTH - NAMES - RIGHT - 40  # a bar's text stands behind it

    out = list(_frame(WIDTH, height, title, x_title, NAMES))
    for tick in _ticks(x_top):
        x = NAMES + room * tick / x_top
        out.append(f'<path d="M{x:.1f} {TOP}V{height - BOTTOM}" stroke="#ddd"/>'
                   f'<text x="{x:.1f}" y="{height - BOTTOM + 16}" text-anchor="middle">{_number(tick)}</text>')
    for i, (name, row) in enumerate(rows.items()):
        y = TOP + i * step + GAP / 2
        out.append(f'<text x="{NAMES - 8}" y="{y + BAR * len(series) / 2 + 4:.1f}" text-anchor="end">{escape(name)}</text>')
        for j, value in enumerate(row[s] for s in series):
            if value is None:
                continue
            width, at = room * value / x_top, y + j * BAR
            out.append(f'<rect x="{NAMES}" y="{at:.1f}" width="{width:.1f}" height="{BAR - 1}" fill="{COLOURS[j % len(COLOURS)]}"/>'
                       f'<text x="{NAMES + width + 4:.1f}" y="{at + BAR - 2:.1f}" font-size="10">{escape(text(value))}</text>')
    out += _legend(series, NAMES, lambda x, colour: f'<rect x="{x}" y="33" width="20" height="{BAR - 1}" fill="{colour}"/>')
    return "\n".join([*out, "</svg>", ""])

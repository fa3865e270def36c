"""Lines over time as SVG: nothing but text, so that results can be kept with the sources."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 50, 50
COLOURS = ("#1f5fbf", "#d1682e", "#3a8f4d", "#8452a1")


def _ticks(top, wanted=5):
    """Round numbers from 0 to `top`."""
    step = next(s * 10**e for e in range(-3, 9) for s in (1, 2, 5) if top / (s * 10**e) <= wanted)
    return [i * step for i in range(int(top / step + 1e-9) + 1)]


def _number(x):
    return f"{x:.10g}"


def lines(title, x_title, y_title, series, y_top=None):
    """SVG text. `series`: {name: [(x, y), ...]}."""
    points = [p for s in series.values() for p in s]
    x_top = max((x for x, _ in points), default=1) or 1
    y_top = y_top or max((y for _, y in points), default=1) or 1

    def at(x, y):
        return (LEFT + (WIDTH - LEFT - RIGHT) * x / x_top, HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(y / y_top, 1))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="20" font-size="14">{escape(title)}</text>',
           f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_title)}</text>',
           f'<text transform="translate(16 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(y_title)}</text>']
    for tick in _ticks(y_top):
        x, y = at(0, tick)
        out.append(f'<path d="M{x:.1f} {y:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                   f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{_number(tick)}</text>')
    for tick in _ticks(x_top, 8):
        x, y = at(tick, 0)
        out.append(f'<text x="{x:.1f}" y="{y + 16:.1f}" text-anchor="middle">{_number(tick)}</text>')
    for i, (name, row) in enumerate(series.items()):
        path = " ".join(f"{'L' if j else 'M'}{x:.1f} {y:.1f}" for j, (x, y) in enumerate(at(*p) for p in row))
        colour = COLOURS[i % len(COLOURS)]
        x = LEFT + 150 * i
        out.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
                   f'<path d="M{x} 38h20" stroke="{colour}" stroke-width="2"/><text x="{x + 26}" y="42">{escape(name)}</text>')
    return "\n".join([*out, "</svg>", ""])

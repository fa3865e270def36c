"""The bytes that `cssl-bench serve` answers with; bench/server/pattern.h says how they follow from size and offset."""

PERIOD = 65521


def _make_period():
    x, out = 1, bytearray(PERIOD)
    for i in range(PERIOD):
        out[i] = x >> 24
        x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
    return bytes(out)


_TWICE = _make_period() * 2


def pattern(size, offset=0, length=None):
    """`length` bytes from `offset` on of the answer of `size` bytes; by default all that follow."""
    length = size - offset if length is None else length
    start = (size + offset) % PERIOD
    whole, rest = divmod(length, PERIOD)
    period = _TWICE[start:start + PERIOD]
    return period * whole + period[:rest]


def first_difference(data, size, offset=0):
    """The offset in the answer of the first wrong byte, or None. A failed comparison of megabytes should print only this."""
    expected = pattern(size, offset, len(data))
    if data == expected:
        return None
    return offset + next(i for i, (a, b) in enumerate(zip(data, expected)) if a != b)

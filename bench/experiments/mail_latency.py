"""The latencies of mails as the paper on Warp tells them: end to end, and those of the relay; as a course, and as a histogram.

*End to end* is from the time when a mail was made (its Date, with microseconds) to the time when the receiver took it; *relay* is from
the time when its first mail server took it. A mail that was not there in the end has the least latency that it can have."""

import bisect
import collections
import itertools
import math
import statistics

KINDS = ("end_to_end", "relay")
LEAST_BIN, MOST_BIN = -10, 10  # powers of 2, in seconds


def bin_of(seconds):
    """A latency of 2**b to 2**(b + 1) s is in bin b; those beyond the ends are in the bins at the ends."""
    return min(max(math.floor(math.log2(max(seconds, 2**LEAST_BIN))), LEAST_BIN), MOST_BIN)


def bin_name(number):
    def length(power):
        return f"{2.0**power:g} s" if power >= 0 else f"{1000 * 2.0**power:.3g} ms"
    return f"{length(number)} to {length(number + 1)}"


def _summary(times):
    ordered = sorted(times)
    return {"mean_s": statistics.fmean(ordered), "p50_s": ordered[len(ordered) // 2], "p99_s": ordered[len(ordered) * 99 // 100]}


def _histogram(times):
    return sorted(collections.Counter(map(bin_of, times)).items())


def _course(timed, begin):
    """[(second in which mails came, how many, the mean of each kind)]"""
    found = []
    for second, group in itertools.groupby(sorted(timed, key=lambda mail: mail[0]), lambda mail: int(mail[0] - begin)):
        rows = list(group)
        found.append((second, len(rows), *(round(statistics.fmean(times[kind] for _, times in rows), 6) for kind in KINDS)))
    return found


def mean_between(course, kind, begin_s, end_s):
    """Of the mails that came then; None if none did."""
    rows = [(row[1], row[2 + KINDS.index(kind)]) for row in course if begin_s <= row[0] < end_s]
    return sum(count * mean for count, mean in rows) / sum(count for count, _ in rows) if rows else None


def latencies(mails, begin, end):
    """`mails`: [(made, taken by the sender, taken by the receiver or None)]. All times are in seconds since 1970. Keys of end-to-end
    latencies have no prefix."""
    timed = [(came, {"end_to_end": (came or end) - made, "relay": (came or end) - taken}) for made, taken, came in mails]
    arrived = [mail for mail in timed if mail[0]]
    whole, relay = (_summary([times[kind] for _, times in timed]) for kind in KINDS)
    moments = sorted(came - begin for came, _ in arrived)
    return {"sent": len(timed), "missing": len(timed) - len(arrived), **whole, **{f"relay_{key}": value for key, value in relay.items()},
            "course": _course(arrived, begin), "histograms": {kind: _histogram(times[kind] for _, times in arrived) for kind in KINDS},
            "received": [bisect.bisect(moments, s) for s in range(int(end - begin) + 1)]}

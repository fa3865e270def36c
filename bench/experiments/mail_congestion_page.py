"""The page of ./cssl bench mail congestion."""

import statistics

from bench.experiments import plot, ratios
from bench.experiments.mail_latency import KINDS, LEAST_BIN, MOST_BIN, bin_name, mean_between
from bench.experiments.report import TERMS_OF_GATEWAYS, machine_lines

TARGET = 1.10  # of both ratios
OURS, ITS = "smtpproxy", "Postfix relay"
SLOW_S, FEWER, IN_A_ROW = 10, 0.9, 3  # what counts as grown latency and as fewer receptions, of waves in a row
TITLES = {"end_to_end": "End-to-end latency", "relay": "Relay latency"}

INTRODUCTION = """\
Does a receiver that hardly takes mail delay the mail for other receivers? This is the experiment on congestion of T. Oda et al.,
"Quantitative Evaluation of Transparent SMTP Proxy in Email Sending Server Aggregation" (IOTS 2024), whose proxy is Warp.

Three senders (Postfix) send through one aggregator: msa1 to mx1 (Exim), msa2 to mx2 (Postfix), msa3 to mx3. Every {gap_s:g} s
they get {mails} mails at once, {waves} times. mx3 is a **tarpit**: cssl-bench smtp-sink, which sends a byte of each reply every {tarpit_s:g} s, and
answers each mail with `{put_off}`. So whoever has mail for it waits, defers it, and tries again. The aggregator is one of:

- **smtpproxy**: without a queue, with its default limits. What mx3 puts off stays with msa3;
- **Postfix relay**: it stores each mail and then delivers it. As in the paper, its scheduler looks at {active} messages at a time
  (`qmgr_message_active_limit`, by default 20,000), and all else has its defaults.

Sender, aggregator and receiver have a network namespace each. The kernel redirects connections to port 25 to the aggregator. All share
the cores of this machine. Queues of senders and receivers are in memory; that of the relay is on a disk.

*End-to-end latency* is from the time when a mail was made (its Date, with the microseconds that its Message-Id has) to the time when mx
took it; *relay latency* is from the time when its msa took it. Postfix's times are those in its queue ids, Exim's those in its log. After
{seconds:g} s of waves, and when the senders have taken all mails, a run goes on until all mails for mx1 and mx2 are there, but at most
{rest_s:g} s with smtpproxy and {stuck_s:g} s with the relay. A mail that was not there then counts with the time until then, and as *missing*:
then means and percentiles are the least that they can be, and have a ">". Courses have a mean for each second, of the mails that came in it.
"""

NOTE = """\
*growth*: the mean latency of mails that came in the last third of the waves, to that in the first third. *beside a healthy one*: the
mean latency beside the tarpit, to that in a short run just before ({pair_waves} waves), in which mx3 took all mails. Both are of
end-to-end latencies of mails that came, without the time of the first wave, in which servers begin. Rounds are interleaved.
"""

TERMS = """\
The paper does not say what its tarpit does. Ours is one under which the relay defers: "Queues" tells of how many mails a delivery was put
off. Warp is not packaged, so it did not run here; figures of the paper are from machines of its own."""

COURSE = """\
Of each wave, *mean latency above* looks at the mails that came before the next one, and *receptions below* at their number, beside that of
the mails sent in it. The time is the begin of the first of {IN_A_ROW} such waves in a row (waves in which no mail came have no latency), in
each round. *received in each third* is the median of the rounds."""


def _of(rows, **wanted):
    return sorted((row for row in rows if all(row[key] == value for key, value in wanted.items())), key=lambda row: row["round"])


def _median(rows, key):
    return statistics.median(row[key] for row in rows)


def at_least(rows):
    """What stands before figures in which a mail that never came has the least time that it can have."""
    return "> " if any(row["missing"] for row in rows) else ""


# --- ratios

def _mean(row, begin_s, end_s):
    return mean_between(row["course"], "end_to_end", begin_s, end_s)


def growth(row, gap_s):
    third = row["waves"] * gap_s / 3
    return _mean(row, 2 * third, 3 * third), _mean(row, gap_s, third)


def beside_a_healthy_one(runs, mx, gap_s):
    """[(mean beside the tarpit, mean without)] of smtpproxy, for each round."""
    rows = [_of(runs, aggregator=OURS, mx=mx, third=third) for third in ("tarpit", "healthy")]
    return [tuple(_mean(row, gap_s, len(row["received"])) for row in pair) for pair in zip(*rows)]


def _ratio_columns(pairs, target):
    """Of a quick run there may be none."""
    found = [above / below for above, below in pairs if above and below]
    return ratios.columns(found, target) if found else "| | | "


def ratio_table(runs, gap_s):
    yield "| ratio | aggregator | receiver | median | interval | target | |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name in (OURS, ITS):
        for mx in (1, 2):
            found = [growth(row, gap_s) for row in _of(runs, aggregator=name, mx=mx, third="tarpit")]
            yield f"| growth | {name} | mx{mx} | {_ratio_columns(found, TARGET if name == OURS else None)} |"
    for mx in (1, 2):
        yield f"| beside a healthy one | {OURS} | mx{mx} | {_ratio_columns(beside_a_healthy_one(runs, mx, gap_s), TARGET)} |"


# --- what the paper tells in words

def first_of_some(values, is_so):
    """The place of the first of some values in a row of which that is so; None."""
    return next((i for i in range(len(values) - IN_A_ROW + 1) if all(map(is_so, values[i:i + IN_A_ROW]))), None)


def slow_from(row, gap_s):
    """Seconds from which on mails that came had taken long; None: never. In some waves none may come."""
    means = [(wave, _mean(row, wave * gap_s, (wave + 1) * gap_s)) for wave in range(row["waves"])]
    means = [(wave, mean) for wave, mean in means if mean is not None]
    place = first_of_some(means, lambda found: found[1] > SLOW_S)
    return None if place is None else means[place][0] * gap_s


def fewer_from(row, gap_s):
    """Seconds from which on fewer mails came than were sent; None: never."""
    mails, received = row["sent"] / row["waves"], row["received"]
    marks = [received[min(round(wave * gap_s), len(received) - 1)] for wave in range(row["waves"] + 1)]
    wave = first_of_some([after - before for before, after in zip(marks, marks[1:])], lambda came: came < FEWER * mails)
    return None if wave is None else wave * gap_s


def seconds(found):
    """Of all rounds."""
    times = [second for second in found if second is not None]
    if not times:
        return "never"
    return "/".join("never" if second is None else f"{second:g} s" for second in found)


def thirds(rows, gap_s):
    """Receptions in each third of the waves: medians of the rounds."""
    def came(row, third):
        begin, end = (int((third + i) * row["waves"] * gap_s / 3) for i in (0, 1))
        return row["received"][end] - row["received"][begin]
    return " / ".join(f"{statistics.median(came(row, third) for row in rows):,.0f}" for third in range(3))


def course_table(runs, gap_s):
    yield (f"| aggregator | receiver | mean latency above {SLOW_S} s from | receptions below {100 * FEWER:g} % from | end-to-end mean | "
           "received in each third |")
    yield "| --- | --- | --- | --- | --- | --- |"
    yield "| Warp, in the paper | mx1 and mx2 | never | never: they grew evenly | about 1 s | |"
    yield "| Postfix relay, in the paper | mx1 and mx2 | about 200 s | about 400 s | | |"
    for name in (OURS, ITS):
        for mx in (1, 2):
            rows = _of(runs, aggregator=name, mx=mx, third="tarpit")
            yield (f"| {name} | mx{mx} | {seconds([slow_from(row, gap_s) for row in rows])} | "
                   f"{seconds([fewer_from(row, gap_s) for row in rows])} | {at_least(rows)}{_median(rows, 'mean_s'):.2f} s | "
                   f"{thirds(rows, gap_s)} |")


# --- latencies and queues

def _time(rows, key):
    values = [row[key] for row in rows]
    return f"{at_least(rows)}{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def latency_table(runs):
    yield "| aggregator | receiver | third receiver | waves | runs | latency | mean s | p50 s | p99 s | missing |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for name in (OURS, ITS):
        for mx in (1, 2):
            for third in ("healthy", "tarpit"):
                rows = _of(runs, aggregator=name, mx=mx, third=third)
                for kind, prefix in zip(KINDS, ("", "relay_")) if rows else ():
                    times = " | ".join(_time(rows, prefix + key) for key in ("mean_s", "p50_s", "p99_s"))
                    yield (f"| {name} | mx{mx} | {third} | {rows[0]['waves']} | {len(rows)} | {kind.replace('_', ' ')} | {times} | "
                           f"{_median(rows, 'missing'):.0f} |")


def hosts_of(name):
    return ("msa1", "msa2", "msa3") + (("relay",) if name == ITS else ())


def rounds_of(queues, name):
    rows = _of(queues, aggregator=name)
    return [[row for row in rows if row["round"] == number] for number in sorted({row["round"] for row in rows})]


def longest(rounds, host):
    """[the most mails at a time in each of a host's three queues]: medians of the rounds."""
    return [statistics.median(max(row[host][place] for row in one) for one in rounds) for place in range(3)]


def queue_table(runs, queues):
    yield "| aggregator | queue of | most incoming | most active | most deferred | mails that were deferred |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name in (OURS, ITS):
        rounds = rounds_of(queues, name)
        deferred = [row["deferred"] for row in _of(runs, aggregator=name, mx=1, third="tarpit")]
        whose = ", ".join(f"{statistics.median(found[mx] for found in deferred):.0f} to {mx}" for mx in ("mx1", "mx2", "mx3"))
        for host in hosts_of(name):
            is_it = host == ("relay" if name == ITS else "msa3")
            yield f"| {name} | {host} | {' | '.join(f'{count:,.0f}' for count in longest(rounds, host))} | {whose if is_it else ''} |"
        if name == OURS:
            waited = statistics.median(max(row["waiting"] for row in one) for one in rounds)
            yield f"| {name} | itself | none: at most {waited:.0f} transactions waited for a connection | | | |"


# --- pictures

def _bars_of(runs, kind):
    """{bin: {system: % of its mails}}, of the first round and of both receivers. The last row is of mails that never came."""
    counts, sent, missing = {}, {}, {}
    for name in (OURS, ITS):
        rows = [row for mx in (1, 2) for row in _of(runs, aggregator=name, mx=mx, third="tarpit")[:1]]
        sent[name], missing[name] = (sum(row[key] for row in rows) for key in ("sent", "missing"))
        for row in rows:
            for number, count in row["histograms"][kind]:
                counts[number, name] = counts.get((number, name), 0) + count
    bins = [number for number in range(LEAST_BIN, MOST_BIN + 1) if any((number, name) in counts for name in sent)]
    found = {bin_name(number): {name: 100 * counts.get((number, name), 0) / sent[name] for name in sent}
             for number in range(bins[0], bins[-1] + 1)}
    return {**found, "missing": {name: 100 * missing[name] / sent[name] for name in sent}}


def _courses(runs, kind):
    place = 2 + KINDS.index(kind)
    return {f"{name}, mx{mx}": [(row[0], row[place]) for row in _of(runs, aggregator=name, mx=mx, third="tarpit")[0]["course"]]
            for name in (OURS, ITS) for mx in (1, 2)}


def _queues(rows, name):
    """Those of the relay, or of msa3, beside which all others are small."""
    host = "relay" if name == ITS else "msa3"
    found = {f"{host}: {stage}": [(row["s"], row[host][place]) for row in rows] for place, stage in
             enumerate(("incoming", "active", "deferred"))}
    others = [other for other in hosts_of(name) if other != host]
    return {**found, "other senders" if name == OURS else "senders": [(row["s"], sum(sum(row[o]) for o in others)) for row in rows]}


def figures(report, name):
    """Of the first round."""
    runs, found = report["runs"], {}
    for mx in (1, 2):
        found[f"{name}-received-mx{mx}.svg"] = plot.lines(
            f"Received by mx{mx} beside a tarpit", "seconds", "mails",
            {system: list(enumerate(_of(runs, aggregator=system, mx=mx, third="tarpit")[0]["received"])) for system in (OURS, ITS)})
    for system, file in ((OURS, "proxy"), (ITS, "relay")):
        rows = [row for row in _of(report["queues"], aggregator=system) if row["round"] == 0]
        found[f"{name}-queues-{file}.svg"] = plot.lines(f"Queues beside a tarpit, {system}", "seconds", "mails", _queues(rows, system),
                                                        y_log=True)
    for kind, title in TITLES.items():
        file = kind.replace("_", "-")
        found[f"{name}-latency-{file}.svg"] = plot.lines(f"{title} beside a tarpit, by the second in which mails came", "seconds",
                                                         "seconds", _courses(runs, kind), y_log=True)
        found[f"{name}-histogram-{file}.svg"] = plot.bars(f"{title} beside a tarpit, mx1 and mx2", "% of the mails sent",
                                                          _bars_of(runs, kind), lambda share: f"{share:.1f}" if share else "")
    return found


CAPTIONS = (
    ("received-mx1", "Received by mx1 (the paper's Figure 4)"), ("received-mx2", "Received by mx2 (the paper's Figure 4)"),
    ("queues-relay", "Queues of the relay, and of the senders in front of it (Figure 5)"),
    ("queues-proxy", "Queues of the senders in front of smtpproxy, which has none (Figure 5)"),
    ("latency-end-to-end", "End-to-end latency, means of one second (Figure 6)"),
    ("latency-relay", "Relay latency, means of one second (Figure 6)"),
    ("histogram-end-to-end", "End-to-end latency, histogram with exponential bins (Figure 6)"),
    ("histogram-relay", "Relay latency, histogram with exponential bins (Figure 6)"),
)


def markdown(report, name):
    runs, plan = report["runs"], report["plan"]
    mails = ", ".join(f"{count:,}" for count in plan["mails"])
    text = INTRODUCTION.format(**{**plan, "mails": mails}, put_off=report["put_off"], seconds=plan["waves"] * plan["gap_s"])
    lines = ["# Congestion: mail beside a tarpit", "", text, *machine_lines(report["machine"]), TERMS_OF_GATEWAYS,
             f"- rounds: {report['rounds']}", "", NOTE.format(**report) + ratios.NOTE + ratios.of_few(report["rounds"]), "",
             *ratio_table(runs, plan["gap_s"]), "", TERMS, "",
             *course_table(runs, plan["gap_s"]), "", COURSE.format(IN_A_ROW=IN_A_ROW), "",
             "## Latencies", "", "Medians of the rounds, with the least and the most.", "", *latency_table(runs), "", "## Queues", "",
             "The most mails at a time, and how many mails were put off at least once: medians of the rounds.", "",
             *queue_table(runs, report["queues"]), "", "## Pictures", "",
             "Of the first round. Logarithmic axes have no 0: an empty queue stands at their foot.", ""]
    return "\n".join(lines + [f"{caption}:\n\n![{caption}]({name}-{file}.svg)\n" for file, caption in CAPTIONS])

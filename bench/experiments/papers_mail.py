"""The rows of the papers on mail in the table of the papers: Warp, PMailServer2, Hitachi's gateway, go-smtp-source. A function that finds
no runs of its kind in a file returns nothing: the file is of an earlier form of the experiment."""

import statistics

from bench.experiments import mail_congestion_page, mail_parallel_page
from bench.experiments.papers_table import Row

WARP, PMAIL, HITACHI, GO = "Warp (2024)", "PMailServer2 (2009)", "Hitachi (2012)", "go-smtp-source (2015)"
ABOVE = "as above"


def _of(rows, **wanted):
    return [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]


def _median(rows, key):
    return statistics.median(row[key] for row in rows)


def _times(ours, its, key):
    """The median of the ratios of the same rounds; None: there are none."""
    others = {row["round"]: row[key] for row in its}
    found = [row[key] / others[row["round"]] for row in ours if row["round"] in others]
    return statistics.median(found) if found else None


def _times_text(ours, its, key):
    times = _times(ours, its, key)
    return times is not None and f"{times:.2f} times"


# --- Warp, congestion

def _beside_tarpit(report, aggregator, mx):
    return [row for row in _of(report["runs"], aggregator=aggregator, third="tarpit", mx=mx) if "relay_mean_s" in row]


def _of_both(aggregator, text):
    """`text`: f(rows of a receiver, seconds between waves)."""
    def ours(report):
        rows = {mx: _beside_tarpit(report, aggregator, mx) for mx in (1, 2)}
        return all(rows.values()) and "; ".join(f"mx{mx} {text(found, report['plan']['gap_s'])}" for mx, found in rows.items())
    return ours


def _latency(key):
    return lambda rows, _: f"{mail_congestion_page.at_least(rows)}{_median(rows, key):.2f} s"


def _grown(rows, gap_s):
    slow = mail_congestion_page.seconds([mail_congestion_page.slow_from(row, gap_s) for row in rows])
    return f"mean {_latency('mean_s')(rows, gap_s)}, above {mail_congestion_page.SLOW_S} s from: {slow}"


def _received(rows, gap_s):
    fewer = mail_congestion_page.seconds([mail_congestion_page.fewer_from(row, gap_s) for row in rows])
    return f"{mail_congestion_page.thirds(rows, gap_s)}, below {100 * mail_congestion_page.FEWER:g} % from: {fewer}"


def _queues(aggregator, host):
    def ours(report):
        rounds = mail_congestion_page.rounds_of(report["queues"], aggregator) if any("relay_mean_s" in run for run in report["runs"]) else []
        most = mail_congestion_page.longest(rounds, host) if rounds else []
        return rounds and "at most {:,.0f} incoming, {:,.0f} active, {:,.0f} deferred".format(*most)
    return ours


def _histogram(report):
    return bool(_beside_tarpit(report, "smtpproxy", 1)) and "![end to end](mail-congestion-histogram-end-to-end.svg)"


ONE_MACHINE = "smtpproxy for Warp, which is not packaged; Postfix 3.7 for 3.6; one machine with two cores for two"
TARPIT = "the paper does not say what its tarpit does; ours sends a byte now and then and puts each mail off; mx1 is Exim; " + ONE_MACHINE

CONGESTION = (
    ("Figure 4, receptions of mx1 and mx2, Warp", "linear for 600 s", _of_both("smtpproxy", _received),
     "receptions in each third of the 600 s, and from when on a wave has fewer than it sent, in each round; " + TARPIT),
    ("Figure 4, Postfix as relay", "fewer from about 400 s on", _of_both("Postfix relay", _received), ABOVE),
    ("Figure 5, queues of the relay", "incoming grows when the rate falls; some mail is deferred", _queues("Postfix relay", "relay"), ABOVE),
    ("Figure 5, Warp", "no queue", _queues("smtpproxy", "msa3"), "none either; these are of msa3, which keeps what smtpproxy does not take"),
    ("Figure 6, end-to-end latency, Warp", "mean about 1 s throughout", _of_both("smtpproxy", _grown),
     "means of all mails, and from when on that of a wave is above 10 s, in each round; each second is in the picture on the page"),
    ("Figure 6, end-to-end latency, Postfix as relay", "grows from about 200 s on", _of_both("Postfix relay", _grown),
     "a mail that never came counts with the least time that it can have (>)"),
    ("Figure 6, relay latency, Warp", "in the picture only", _of_both("smtpproxy", _latency("relay_mean_s")), "means of all mails"),
    ("Figure 6, relay latency, Postfix as relay", "in the picture only", _of_both("Postfix relay", _latency("relay_mean_s")),
     "a mail that never came counts with the least time that it can have (>)"),
    ("Figure 6, histograms", "in the picture only", _histogram, "bins are powers of 2"),
)


# --- Warp, resources and fairness

LARGE = 10  # of the two sizes, the one that is nearer to the paper's


def _used(report, system):
    return _of(report["runs"], system=system, factor=LARGE)


def _finished(system):
    def ours(report):
        rows = _used(report, system)
        return rows and f"{_median(rows, 'seconds'):.0f} s for {_median(rows, 'mails'):,.0f} mails ({_median(rows, 'mails') / _median(rows, 'seconds'):,.0f}/s)"
    return ours


def _beside_relay(key):
    return lambda report: _times_text(_used(report, "smtpproxy"), _used(report, "Postfix relay"), key)


def _disk(report):
    def text(system):
        return f"{_median(_used(report, system), 'written') / 1e6:,.0f} MB written and {_median(_used(report, system), 'read') / 1e6:,.0f} MB read"
    ours = _used(report, "smtpproxy")
    return ours and f"{text('smtpproxy')}, {_median(ours, 'written') / _median(ours, 'logs'):.2f} times its logs; the relay {text('Postfix relay')}"


def _shares(system):
    def ours(report):
        rows = _of(report["runs"], system=system) if "limit" in report else []
        return rows and (f"fastest sender {statistics.median(min(row['last_s'].values()) for row in rows):.0f} s, all {_median(rows, 'all_s'):.0f} s, "
                         f"spread {_median(rows, 'spread'):.2f}")
    return ours


TENTH = "a tenth of the mails: all of them would take hours here; receivers are sinks, which check each mail; " + ONE_MACHINE

RESOURCES = (
    ("time with Warp", "158 min for 3,333,000 mails (352/s)", _finished("smtpproxy"), TENTH),
    ("time with Postfix as relay", "187 min (297/s)", _finished("Postfix relay"), ABOVE),
    ("time with Warp, to that with Postfix", "0.84 times", _beside_relay("seconds"), ABOVE),
    ("CPU, to that of Postfix", "slightly lower", _beside_relay("cpu_us"), "of the aggregator's processes, not of its machine"),
    ("memory, to that of Postfix", "about the same", _beside_relay("memory"), "of the aggregator's processes"),
    ("disk", "Warp only its log; Postfix heavy reads and writes of its queue", _disk, "of the aggregator's processes; the whole disk is on the page"),
)

FAIRNESS = (
    ("Warp", "msa3 done after 39 s, msa2 and all after 64 s: spread 1.6", _shares("smtpproxy"), ONE_MACHINE),
    ("the same, a session keeps its connection, as in Warp", "the same", _shares("fairness off"), ABOVE),
    ("Postfix as relay", "equal rates, all after 299 s", _shares("Postfix relay"),
     "what mx1 refused is tried again after 10 s: by default after 300, 600, 1,200 s and more, which it meets here"),
    ("Postfix as relay that knows the limit", "none", _shares("Postfix relay that knows the limit"), "not in the paper"),
    ("proposed: several source addresses in turn", "named, not built", _shares("smtpproxy, 6 addresses"), "`outward.sources` with 6 addresses"),
    ("proposed: the same, where a session keeps its connection, as in Warp", "named, not built", _shares("fairness off, 6 addresses"), ABOVE),
)

WARP_ROWS = [
    *(Row(WARP, f"congestion, {place}", value, "mail-congestion", ours, terms) for place, value, ours, terms in CONGESTION),
    *(Row(WARP, f"resources, {place}", value, "mail-resources", ours, terms) for place, value, ours, terms in RESOURCES),
    *(Row(WARP, f"fairness, {place}", value, "mail-fairness", ours, terms) for place, value, ours, terms in FAIRNESS),
    Row(WARP, "to-do list: find out a receiver's limit", "named, not built", "",
        "smtpproxy makes fewer connections where a receiver refuses them (doc/mail.md)", "-"),
    Row(WARP, "to-do list: stop abuse; rates and addresses for a tenant or account", "named, not built", "",
        "not built: limits of connections, no rates", "-"),
    Row(WARP, "to-do list: collect replies of receivers", "named, not built", "", "events and counters of smtpproxy (doc/mail.md)", "-"),
]


# --- PMailServer2

def _pmail(receiver, shape):
    def ours(report):
        def rows(system):
            return _of(report["runs"], system=system, receiver=receiver, **shape)
        mine = rows("smtpproxy")
        others = "".join(f", {name} {mail_parallel_page.rate(rows(name)):.1f}/s" for name in mail_parallel_page.ITS if rows(name))
        if not mine:
            return None
        each_s = mail_parallel_page.rate(mine)
        cpu = statistics.median((run["server_cpu_s"] + run["redis_cpu_s"]) / run["mails"] * 1e6 for run in mine)
        return f"{each_s:.1f}/s, {each_s * 3600:,.0f} an hour, {each_s * 86400:,.0f} a day; {cpu:.0f} us of CPU a mail{others}"
    return ours


PMAIL_TERMS = {
    "fast": "smtpproxy with `deliver: queue` and two Redis servers for a queue on disk; smtp-sink, which replies at once, for PMailServer2 as MTA2; "
            "MTA1 and MTA2 on one machine, with 100 Mbit/s between, which mails of 21,377 bytes fill; CPU is of smtpproxy and Redis",
    "slow": "the same; MTA2 replies late, so that the deliveries at a time are the limit, as in the paper, where a delivery took some 3 s "
            "if all were always under way (30 at a time, 10/s); the delay is on the page",
}


def _pmail_rows(receiver, lines):
    for number, (version, deliveries, length, mails, seconds) in lines:
        each_s = mails / seconds
        yield Row(PMAIL, f"line {number}: {version}, {deliveries} at a time, {length:,} bytes, {mails:,} mails; here a {receiver} receiver",
                  f"{seconds:,} s, {each_s:.1f}/s, {int(each_s * 3600):,} an hour, {int(each_s * 86400):,} a day", "mail-parallel",
                  _pmail(receiver, {"deliveries": deliveries, "bytes": length, "mails": mails}),
                  PMAIL_TERMS[receiver] if number == lines[0][0] else ABOVE)


PMAIL_LINES = list(enumerate(mail_parallel_page.PAPER, 1))

PMAIL_ROWS = [
    *_pmail_rows("fast", PMAIL_LINES),
    *_pmail_rows("slow", PMAIL_LINES[1:]),
    Row(PMAIL, "CPU", "the second version used less; no figures", "", "in the rows above", "-"),
]


# --- Hitachi's gateway

def _stored(size):
    def ours(report):
        found = {system: _of(report.get("stores", []), system=system, bytes=size) for system in ("CSSL", "memcached")}
        return all(found.values()) and (f"{_median(found['CSSL'], 'per_s'):,.0f}/s, {_times_text(found['CSSL'], found['memcached'], 'per_s')} "
                                        "memcached")
    return ours


def _at_full_rate(report, system):
    """Its rates and its replies."""
    return ([row for row in _of(report["rates"], system=system) if "changes_per_s" in row], _of(report["replies"], system=system, load="full"))


def _accepted(system):
    def ours(report):
        rates, replies = _at_full_rate(report, system)
        return rates and replies and f"{_median(rates, 'accepted_per_s'):,.0f}/s; reply after {_median(replies, 'mean_ms'):.1f} ms"
    return ours


def _beside_relay_of(system):
    def ours(report):
        (rates, replies), (its_rates, its_replies) = (_at_full_rate(report, name) for name in ("CSSL", system))
        return rates and its_rates and (f"{_times_text(rates, its_rates, 'accepted_per_s')} its mails in "
                                        f"{_times_text(replies, its_replies, 'mean_ms')} its time")
    return ours


def _at_paper_s_rate(report):
    """Of the rounds in which it was reached."""
    rows, full = (_of(report["replies"], system="CSSL", load=load) for load in ("the paper's", "full"))
    reached = [row for row in rows if row["is_reached"]]
    times = f"{_median(reached, 'mean_ms'):.2f} ms at {_median(reached, 'per_s'):,.0f}/s, which was " if reached else ""
    return full and f"{times}reached in {len(reached)} of {len(full)} rounds"


def _changes(report):
    rows = [row for row in _of(report["rates"], system="CSSL") if "changes_per_s" in row]
    each = rows and statistics.median(row["changes_per_s"] / row["delivered_per_s"] for row in rows)
    return rows and f"{_median(rows, 'changes_per_s'):,.0f}/s at {_median(rows, 'delivered_per_s'):,.0f} mails/s: {each:.1f} for each mail"


def _read_back(block):
    def ours(report):
        rows, largest = (_of(report.get("blocks", []), block=size) for size in (block, 1000))
        return rows and (f"{_median(rows, 'seconds'):.2f} s, {_times_text(rows, largest, 'seconds')} that of 1,000; mean in a block "
                         f"{statistics.median(row['mails'] / row['blocks'] for row in rows):,.1f}")
    return ours


def _copies(report):
    rows = report.get("copies", [])
    return rows and f"{len(rows)} rows; each has paths, in sync or not, {max(row['answered'] for row in rows):,} changes"


LOOPBACK = ("loopback for 1 Gbit/s; load and server on the same two cores, for two nodes of four; Redis with functions for the authors' module; "
            "our side also seals each message")
HOST = "one host with two cores for two nodes of twelve, with sources and sinks on it; 100 sessions, the paper names no number"

HITACHI_ROWS = [Row(HITACHI, place, value, "mail_queue", ours, terms) for place, value, ours, terms in (
    ("Figure 4, store and delete, 0.4 KB", "200,000/s, 2 times memcached", _stored(410), LOOPBACK),
    ("Figure 4, 1 KB", "100,000/s, 1.4 times memcached", _stored(1024), ABOVE),
    ("Figure 4, 2 KB", "in the figure only", _stored(2048), ABOVE),
    ("Figure 4, 4 KB", "bound by 1 Gbit/s, as memcached is", _stored(4096), "no such bound on loopback"),
    ("Figure 4, 10 KB", "the same", _stored(10240), ABOVE),
    ("Figure 4, 20 KB", "the same", _stored(20480), ABOVE),
    ("Figure 4, what the gateway needs of it", "11,000 transactions/s of a module at 3,600 mails/s: 3.1 for each mail", _changes,
     "changes of one Redis server, until all mails are delivered: a store and a delete for each, where nothing is tried again"),
    ("Figure 5, the gateway with two backups", "3,600 mails/s; reply after 14 ms", _accepted("CSSL"), HOST),
    ("Figure 5, reply time at 3,600 mails/s", "14 ms", _at_paper_s_rate, ABOVE),
    ("Figure 5, a gateway that writes to a RAID", "some 818 mails/s (a 4.4th); some 70 ms", _accepted("Postfix on disk"),
     "theirs cannot be had: Postfix with its queue on a disk"),
    ("Figure 5, the gateway beside that one", "4.4 times its mails in a fifth of its time", _beside_relay_of("Postfix on disk"), ABOVE),
    ("Figure 5, the same", "none", _beside_relay_of("Postfix in tmpfs"), "not in the paper: Postfix with its queue in memory"),
    ("earlier experiment (2009), Postfix", "80 mails/s", _accepted("Postfix on disk"), "its terms are not known"),
    ("Figure 6, 500,000 mails of 1 KB, 1,000 in a block", "5.9 s", _read_back(1000), "from one Redis server; the mails are also opened"),
    ("Figure 6, 100 in a block", "in the figure only", _read_back(100), ABOVE),
    ("Figure 6, 10 in a block", "in the figure only", _read_back(10), ABOVE),
    ("Figure 6, 1 in a block", "14 times as long", _read_back(1), "Redis gives a few more than asked for"),
    ("Table I", "a row for each queue and backup: module, paths, in sync, transactions", _copies, "paths are of the backup, for all its queues"),
)] + [
    Row(HITACHI, "earlier experiment (2009), sendmail", "below 20 mails/s", "", "not measured", "its terms are not known, and no target is about it"),
    Row(HITACHI, "targets", "above 1,000 mails/s, reply below 100 ms, recovery in seconds", "", "in the rows of Figures 5 and 6", "-"),
    Row(HITACHI, "limits", "1,000 queues, 1,000,000 mails and more in one", "", "not measured; `queue.destinations` is 100,000, and at most 1,000,000", "-"),
    Row(HITACHI, "MMS and IMAP of mobile operators", "named", "", "cannot be had: this project speaks SMTP only", "-"),
]


# --- go-smtp-source

def _source(name, sessions=1000, keep=False):
    def ours(report):
        rows = _of(report["runs"], source=name, sink="Postfix", sessions=sessions, keep=keep)
        if not rows:
            return f"{name} was not there"
        user, system, seconds, peak = (_median(rows, key) for key in ("user_s", "system_s", "seconds", "peak_kb"))
        return f"{user:.2f} s user, {system:.2f} s system, {seconds:.2f} s, {peak:,.0f} KB"
    return ours


def _beside_postfix(key):
    def ours(report):
        def rows(name):
            return _of(report["runs"], source=name, sink="Postfix", sessions=1000, keep=False)
        found = {name: _times_text(rows(name), rows("Postfix"), key) for name in
                 ("go-smtp-source-2015-pool", "go-smtp-source-2015", "go-smtp-source", "cssl-bench")}
        return "; ".join(f"{name} {times}" for name, times in found.items() if times)
    return ours


def _elapsed(sessions, keep):
    def ours(report):
        found = {name: _of(report["runs"], source=name, sink="Postfix", sessions=sessions, keep=keep) for name in
                 ("Postfix", "go-smtp-source", "cssl-bench")}
        return "; ".join(f"{name} {_median(rows, 'seconds'):.2f} s" for name, rows in found.items() if rows)
    return ours


GO_TERMS = "Debian 12's Postfix for 3.0; two cores, shared with the sink; a sink that takes 2,000 connections at a time, for 100"
NEWER = (((1, False), "14.88 / 3.31 s"), ((100, False), "2.16 / 3.35 s"), ((1000, False), "44.61 / 3.35 s"), ((1, True), "7.96 / 8.46 s"),
         ((100, True), "1.07 / 0.91 s"), ((1000, True), "4.36 / 0.89 s"))

GO_ROWS = [Row(GO, place, value, "mail-sources", ours, terms) for place, value, ours, terms in (
    ("table, smtp-source, first run", "0.60 s user, 2.31 s system, 2.93 s, 3,028 KB", _source("Postfix"), GO_TERMS),
    ("table, go-smtp-source without a pool", "0.58, 4.30, 4.45 s, 31,828 KB", _source("go-smtp-source-2015"), "built by the Go of today"),
    ("table, smtp-source, second run", "0.50, 1.93, 2.44 s, 2,872 KB", _source("Postfix"), "the runs of the first"),
    ("table, go-smtp-source with a pool", "0.37, 4.01, 3.91 s, 12,244 KB", _source("go-smtp-source-2015-pool"), "built by the Go of today"),
    ("the same, go-smtp-source of today", "none", _source("go-smtp-source"), "not in the article"),
    ("the same, ours", "none", _source("cssl-bench"), "not in the article"),
    ("elapsed time, to Postfix's", "1.60 times with a pool, 1.52 without", _beside_postfix("seconds"),
     "-2015-pool is with a pool, -2015 without; ratios of the same rounds, whose intervals are on the page"),
    ("memory, to Postfix's", "4.3 times with a pool, 10.5 without", _beside_postfix("peak_kb"),
     "read 50 times a second; Postfix's takes far more here, perhaps because our sink takes more connections at a time"),
    *((f"table of its README, {sessions:,} session{'s' * (sessions > 1)}{', connections kept' if keep else ''}: smtp-source / go-smtp-source", value,
       _elapsed(sessions, keep), "containers there") for (sessions, keep), value in NEWER),
)] + [
    Row(GO, "future work: detailed times", "named, not built", "", "percentiles of each phase in `cssl-bench smtp-source`", "-"),
    Row(GO, "future work: several generators as one", "named, not built", "", "`cssl-bench smtp-source --processes`, `cssl-bench merge` (doc/mail.md)", "-"),
]

ROWS = [*WARP_ROWS, *PMAIL_ROWS, *HITACHI_ROWS, *GO_ROWS]

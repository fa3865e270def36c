"""The page of ./cssl bench paper: its tables and pictures next to those of the paper, for readers who do not have the paper."""

import statistics

from bench.experiments import paper_unequal, plot, ratios
from bench.experiments.compare_systems import LINKS, MEMORY
from bench.experiments.report import machine_lines, terms_line

# name: (its name in the paper, requests/s, full handshakes made); None: the paper has no such row
PAPER = {
    "A": {
        "LB-IP": ("LB-IP", 179.5, 2100),
        "one reverse proxy": ("Pound-IP", 108.2, 2100),
        "DNS round robin": None,
        "CSSL-SF, migration off": ("CSSL-SF, disabled", 184.7, 2100),
        "CSSL-SF, migration on": ("CSSL-SF, enabled", 223.4, 2100),
        "one server": ("one Apache/mod_ssl", 100.5, 2100),
    },
    "B": {
        "LB-RR": ("LB-RR", 441.2, 1893),
        "LB-RR, one ticket key": None,
        "DNS round robin": None,
        "one reverse proxy": ("Pound-RR", 142.3, 1000),
        "reverse proxies, RR": None,
        "hitches, RR": None,
        "CSSL-SL, migration off": ("CSSL-SL, disabled", 389.6, 2883),
        "CSSL-SL, migration on": ("CSSL-SL, enabled", 638.3, 1124),
        "one server": ("one Apache/mod_ssl", 319.1, None),
    },
}

OF_THE_PAPER = 5  # runs, of which its figures are means

# The paper's figures 11 to 14, in pairs: without CSSL, and with it.
FIGURES = [("A", "LB-IP", "11"), ("A", "CSSL-SF, migration on", "12"), ("B", "LB-RR", "13"), ("B", "CSSL-SL, migration on", "14")]
BESIDE = [("A", "CSSL-SF, migration on", "LB-IP"), ("A", "CSSL-SF, migration on", "CSSL-SF, migration off"),
          ("B", "CSSL-SL, migration on", "LB-RR"), ("B", "CSSL-SL, migration on", "CSSL-SL, migration off")]
EVEN = 0.05  # so much may the agents' shares of the work differ

INTRODUCTION = """\
R. Hatsugai and T. Saito, "Load-balancing SSL Cluster by Using Session Migration" (2007), asked what a cluster of TLS servers gains
when a session made by one server can be used by another. This page is their experiment with this software and today's servers;
the paper's figures stand beside ours. Its machines were others, so only proportions can be compared: how many times the requests
of **one server** each system makes, how many handshakes were full, and how evenly two servers share the work.
In the paper's scenario A, PHP made the file of each answer. Here it is a static file, which takes the servers less work beside their
handshakes.

| here | what it is | in the paper |
| --- | --- | --- |
| one server | one nginx, no balancer | one Apache 2.0.54 with mod_ssl |
| LB-IP, LB-RR | HAProxy hands TCP to two nginxes: by the client's address, or in turn | a TMX3000 balancer, two Apaches |
| LB-RR, one ticket key | the same nginxes with a common ticket key | - |
| DNS round robin | no balancer: a name has both nginxes, and each client address keeps the one that it got first | named, not measured |
| one reverse proxy | one HAProxy ends TLS for everybody | Pound before two Apaches |
| reverse proxies, RR | HAProxy hands TCP to two HAProxies in turn, which end TLS | - |
| hitches, RR | the same with two hitches | - |
| CSSL-SF, migration on | RAgent and two SSLAgents: handshakes go in turn, the connection then moves to the agent of the client's address | the same |
| CSSL-SF, migration off | the same, all at the agent of the client's address | the same |
| CSSL-SL, migration on | HAProxy hands TCP to two SSLAgents in turn, which tell each other their sessions | TMX3000 or RAgent, two SSLAgents |
| CSSL-SL, migration off | the same, of two clusters: neither knows the other's sessions | the same |

With DNS round robin an address keeps its server because resolvers cache the answer. So few resolvers with many clients share the work
badly, and if a server dies, its clients come to it until the answer is too old.
"""

BESIDE_NOTE = """\
*times its requests*: the ratio of the two systems in the same round. *by means*: the mean of the one, to the mean of the other, as the
paper's figures are. The page of 28 November 2026 had 1.47, 1.18, 1.23 and 1.23 in these four rows: ratios of medians of rounds that were
no pairs."""

SETTING = """\
- servers: {servers}
- TLS: {tls} (the paper: RSA 1024, RC4)
- clients: 99 at a time, with DNS round robin in scenario B 50 for each server, one request a connection (the paper: at most 100)
- wire: {wires} (the paper: 30 ms by a NIST Net router)
- rounds: {rounds}, in each all systems one after the other, {order}: medians, and beside them means of the first {means} rounds (the paper: means of 5)"""

QUOTA = "each web server, reverse proxy or agent has {percent:.0f} % of a core, by a cgroup quota, in the place of a machine of its own"
NO_QUOTA = "they share the cores of this host without a quota, so that an uneven split costs little"

TEXT = {
    "A": ("Scenario A: many clients behind few addresses (the paper's Table 2)",
          "{count} full handshakes, 5,120 bytes on each connection, a third of them from each of three addresses. Where the address\n"
          "decides, two of the addresses lead to the same server. That server then has two thirds of the work, and the other is idle\n"
          "at the end. With migration on, handshakes go to the servers in turn, and they are most of the work."),
    "B": ("Scenario B: clients that come back (the paper's Table 3)",
          "{count} connections, 1,024 bytes on each: a third are to be full handshakes, the others offer the session of the connection\n"
          "before. Where a balancer sends a client to a server that does not know its session, one more handshake has to be full."),
}

READING = """\
**One ticket key.** LB-RR with one ticket key makes {shared} the
requests of CSSL-SL with migration (in brackets the intervals). The client brings its session along in a ticket, so the servers tell each
other nothing. And nginx answers from its own files, while agents ask a file server. What it costs does not show here: all servers have the
same key, and who has that key can open every recorded session of TLS 1.2 that it sealed. It does nothing for connections: they end with
their server.

**DNS round robin.** Scenario B is its best case. There are two addresses, and each server gets one of them. So the work is even, every
client comes back to the server that knows its session, and no balancer is in between. In scenario A, with three addresses, one server
has two thirds of the work.

**Migration off.** In the paper, CSSL-SL without migration makes 2,883 full handshakes of 3,000; here it makes some 2,000. A third is
to be full. Of the rest, half should meet the server that knows their session, if they come to the servers in turn without a pattern.
2,883 means that nearly none did. That happens if the connections of each client go to the servers in strict turns: then a session is
always offered to the other server. The paper does not say how its balancer chose, so this is only a likely reason.

**Who is inside the quota.** The servers: each web server, reverse proxy or agent that ends TLS. Outside are the clients, the balancer in
front (HAProxy, RAgent), and the file server behind reverse proxies and agents. So requests/s show how well a system uses its servers, and
not what its balancer costs; *CPU us* has all processes. Web servers read their files within the quota. Agents and reverse proxies do not,
but they pay for the connection to the file server."""

COLUMNS = """\
*mean*: of the first {means} rounds, as in the paper. *split*: CPU of the one server and of the other; a mean, too. All else is of medians.
*x one server*: how many times the requests of one server, the median of the ratios of the rounds. *full*: full handshakes really made.
*CPU us*: of all that runs on the server side, for each request."""


def _of(runs, wire, scenario, system):
    return [r for r in runs if (r["wire"], r["scenario"], r["system"]) == (wire, scenario, system)]


def _median(rows, key):
    return statistics.median(r[key] for r in rows)


def _wires(report):
    return list(dict.fromkeys(r["wire"] for r in report["runs"]))


def _order(runs):
    first = {}
    for run in runs:
        first.setdefault((run["wire"], run["scenario"], run["round"]), run["system"])
    return "beginning with another one each time" if len(set(first.values())) > len({run["scenario"] for run in runs}) else "always in the same order"


def _split(rows):
    """Each server's share of the work; the mean of the rounds."""
    return [statistics.mean(r["shares"][name] for r in rows) for name in rows[0]["shares"]]


def _split_text(rows):
    shares = _split(rows)
    return " : ".join(f"{100 * share:.0f}" for share in shares) if len(shares) > 1 else ""


def _pairs(runs, wire, scenario, name, reference):
    """How many times the requests of the other system, in each round."""
    rates = ({run["round"]: run["per_s"] for run in _of(runs, wire, scenario, system)} for system in (name, reference))
    ours, its = rates
    return [ours[number] / its[number] for number in sorted(ours)]


def _times(runs, wire, scenario, name, reference="one server"):
    return statistics.median(_pairs(runs, wire, scenario, name, reference))


def _times_over(runs, wires, scenario, name, reference):
    """The same over each wire, with its interval."""
    def text(wire):
        pairs = _pairs(runs, wire, scenario, name, reference)
        return "{:.2f} times ({:.2f}-{:.2f})".format(statistics.median(pairs), *ratios.interval(pairs))
    last, *others = reversed(wires)
    return " and, over loopback, ".join([text(last), *map(text, others)])


def mean(runs, wire, scenario, name):
    """As the paper has it."""
    rows = sorted(_of(runs, wire, scenario, name), key=lambda run: run["round"])[:OF_THE_PAPER]
    return statistics.mean(run["per_s"] for run in rows)


def _paper_times(scenario, name, reference="one server"):
    rows = PAPER[scenario]
    return rows[name][1] / rows[reference][1] if rows[name] else None


def _table(runs, wire, scenario):
    yield ("| system | requests/s | mean | least-most | x one server | full | split | CPU us | the paper: | requests/s | x one server "
           "| full |")
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for name, paper in PAPER[scenario].items():
        rows = _of(runs, wire, scenario, name)
        rate = [r["per_s"] for r in rows]
        said = f"{paper[0]} | {paper[1]} | {_paper_times(scenario, name):.2f} | {paper[2] or ''}" if paper else "| | |"
        yield (f"| {name} | {_median(rows, 'per_s'):.0f} | {mean(runs, wire, scenario, name):.0f} | {min(rate):.0f}-{max(rate):.0f} | "
               f"**{_times(runs, wire, scenario, name):.2f}** | {_median(rows, 'full'):.0f} | {_split_text(rows)} | "
               f"{_median(rows, 'cpu_us'):.0f} | {said} |")


def beside_table(runs, wire):
    """The systems that the paper is about, beside those that it holds them against."""
    yield "| | beside | times its requests, median | interval | by means | the paper, by means |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for scenario, name, reference in BESIDE:
        pairs = _pairs(runs, wire, scenario, name, reference)
        low, high = ratios.interval(pairs)
        by_means = mean(runs, wire, scenario, name) / mean(runs, wire, scenario, reference)
        yield (f"| {scenario}: {name} | {reference} | **{statistics.median(pairs):.2f}** | {low:.2f}-{high:.2f} | {by_means:.2f} | "
               f"{_paper_times(scenario, name, reference):.2f} |")


def _findings(runs, wire):
    on, by_ip = "CSSL-SF, migration on", "LB-IP"
    apart = abs(_split(_of(runs, wire, "A", on))[0] - 0.5) * 2
    yield (f"- A: the agents of {on}, split the work {_split_text(_of(runs, wire, 'A', on))}, {100 * apart:.1f} % apart (wanted: within "
           f"{100 * EVEN:.0f} %, {'met' if apart <= EVEN else 'missed'}); LB-IP splits it {_split_text(_of(runs, wire, 'A', by_ip))}.")
    on = "CSSL-SL, migration on"
    full = {name: _median(_of(runs, wire, "B", name), "full") for name in (on, "LB-RR")}
    asked = _median(_of(runs, wire, "B", "one server"), "full")
    yield (f"- B: {on}, makes {full[on]:,.0f} full handshakes where {asked:,.0f} were to be full (the paper: 1,124 of 1,000), LB-RR "
           f"{full['LB-RR']:,.0f} (1,893).")


def _figure_name(number):
    return f"paper-figure-{number}.svg"


def markdown(report):
    runs, wires = report["runs"], _wires(report)
    servers = QUOTA.format(percent=100 * report["part"]) if report["part"] < 1 else NO_QUOTA
    lines = ["# The experiments of the paper", "", INTRODUCTION]
    lines += ["## What came out", "", f"Over the wire with the {wires[-1]}:" if len(wires) > 1 else f"{wires[0]}:", ""]
    lines += [*beside_table(runs, wires[-1]), "", *_findings(runs, wires[-1]), "", BESIDE_NOTE, ratios.NOTE + ratios.of_few(report["rounds"]), ""]
    lines += ["Over loopback:", "", paper_unequal.finding(report["unequal"]), "", "## How to read it", "",
              READING.format(shared=_times_over(runs, wires, "B", "LB-RR, one ticket key", "CSSL-SL, migration on")), ""]
    lines += ["## Where and with what", "", *machine_lines(report["machine"])]
    lines += [SETTING.format(servers=servers, tls=report["tls"], wires="; ".join(wires), rounds=report["rounds"], order=_order(runs),
                             means=min(OF_THE_PAPER, report["rounds"])),
              terms_line(LINKS[MEMORY]), ""]
    for scenario, (title, text) in TEXT.items():
        first = _of(runs, wires[0], scenario, "one server")[0]
        lines += [f"## {title}", "", text.format(count=f"{first['full'] + first['resumed']:,}"), "",
                  COLUMNS.format(means=min(OF_THE_PAPER, report["rounds"])), ""]
        for wire in wires:
            lines += [f"### {scenario}, {wire}", "", *_table(runs, wire, scenario), ""]
        lines += [f"![{title}](paper-{scenario.lower()}.svg)", ""]
    lines += [f"## {paper_unequal.TITLE}", "", paper_unequal.TEXT.format(count=f"{report['unequal'][0]['full']:,}"), "",
              *paper_unequal.table(report["unequal"]), ""]
    lines += ["## CPU of both servers over time (the paper's figures 11 to 14)", "",
              f"Of the last round; {wires[-1]}.", ""]
    lines += [f"![Scenario {scenario}, {system}]({_figure_name(number)})\n" for scenario, system, number in FIGURES]
    return "\n".join(lines).rstrip() + "\n"


def _bars(report, scenario):
    runs = report["runs"]
    rows = {name: {"the paper": _paper_times(scenario, name),
                   **{wire.split(",")[0].split(" by ")[0]: _times(runs, wire, scenario, name) for wire in _wires(report)}}
            for name in PAPER[scenario]}
    return plot.bars(f"Scenario {scenario}: requests/s, one server = 1", "times the requests of one server", rows, "{:.2f}".format)


def figures(report):
    """{file name: SVG}: how many requests each system made, and the paper's figures 11 to 14. These are from the last round over
    the longest wire; both of a scenario have the same time scale."""
    out = {f"paper-{scenario.lower()}.svg": _bars(report, scenario) for scenario in PAPER}
    wire = _wires(report)[-1]
    y_title = "CPU, % of a server's part" if report["part"] < 1 else "CPU, % of a core"
    shown = [(scenario, system, number, _of(report["runs"], wire, scenario, system)[-1]["samples"])
             for scenario, system, number in FIGURES]
    for scenario, system, number, samples in shown:
        longest = max((x for s, _, _, others in shown if s == scenario for row in others.values() for x, _ in row), default=1)
        out[_figure_name(number)] = plot.lines(f"Scenario {scenario}, {system} (the paper's figure {number})", "seconds", y_title,
                                               samples, 110, longest)
    return out

"""python3 -m bench.experiments NAME [OPTIONS]; ./cssl bench runs this."""

import argparse
import dataclasses
import functools
import importlib
import pathlib
import signal
import sys
import tempfile

from bench.experiments import papers, papers_table
from bench.experiments.cluster import build_folder
from bench.experiments.course import Course, duration
from bench.experiments.report import keep, say

EXPERIMENTS = {
    "compare": "CPU per unit of work and memory per connection, beside HAProxy, hitch and nginx",
    "paper": "the paper's two scenarios, tables and figures, with today's servers, and servers of unequal power",
    "scaling": "what the broadcast of sessions and live parts costs, and the load of clusters of up to 1,000 agents",
    "chaos": "what clients notice when a server is killed or stopped, or the dispatcher killed",
    "storm": "how long established clients wait while more handshakes come than can be made",
    "mail": "sending mail: our tools, STARTTLS beside other servers, and smtpproxy beside Postfix as a relay",
    "mail_queue": "a mail gateway with a queue, by the figures of its paper: beside memcached, beside Postfix as a relay, recovery, memory",
    "change": "what a change costs: this checkout beside another one of this project, or beside itself without a keeper of RAgent",
}

PARTS = {
    "mail": {
        "tools": "smtp-source and smtp-sink beside Postfix's, and STARTTLS beside nginx mail and stunnel (default)",
        "congestion": "smtpproxy and Postfix as relay while one receiver is a tarpit",
        "resources": "CPU, disk and memory of smtpproxy and of Postfix as relay",
        "fairness": "three senders that share one receiver, through smtpproxy and through Postfix as relay",
        "sources": "smtp-source beside Postfix's and go-smtp-source: CPU, time and memory of 10,000 mails, as in the article on the latter",
        "parallel": "mails of a serial sender through a queue with 30 and 50 deliveries at a time, as PMailServer2's developers measured",
    },
}

@dataclasses.dataclass(frozen=True)
class Size:
    rounds: int
    minutes: float        # on two cores that do nothing else
    quick_minutes: float  # with QUICK_ROUNDS


SIZES = {
    "compare": Size(9, 38, 2),
    "paper": Size(9, 52, 2),
    "scaling": Size(5, 2, 0.2),
    "chaos": Size(2, 8, 2),
    "storm": Size(9, 8, 0.4),
    "mail": Size(9, 38, 1),
    "mail-congestion": Size(2, 45, 2),
    "mail-resources": Size(3, 28, 1),
    "mail-fairness": Size(6, 40, 1),
    "mail-parallel": Size(3, 20, 1),
    "mail-sources": Size(9, 10, 0.5),
    "mail_queue": Size(6, 29, 1),
    "change": Size(5, 4, 0.5),
}
QUICK_ROUNDS = 1


def parse(words=None):
    parser = argparse.ArgumentParser(prog="./cssl bench", allow_abbrev=False)
    names = parser.add_subparsers(dest="name", required=True, metavar="EXPERIMENT")
    for name, text in EXPERIMENTS.items():
        sub = names.add_parser(name, help=text, description=text, allow_abbrev=False,
                               formatter_class=argparse.RawDescriptionHelpFormatter)
        if name in PARTS:
            add_parts(sub, PARTS[name])
        sub.add_argument("--rounds", type=int, help=f"interleaved repetitions ({rounds_text(name)}; with --quick {QUICK_ROUNDS})")
        sub.add_argument("--quick", action="store_true", help="tiny counts: does everything run? The figures mean nothing")
        sub.add_argument("--out", help="where results go (build/results/ and the name of the experiment)")
        if name == "paper":
            add_paper(sub)
        if name == "change":
            add_change(sub)
    options = parser.parse_args(words)
    options.name = full_name(options.name, getattr(options, "part", None))
    if options.rounds is None:
        options.rounds = QUICK_ROUNDS if options.quick else SIZES[options.name].rounds
    options.out = options.out or build_folder() / "results" / options.name
    if options.rounds < 1:
        parser.error("--rounds is a number from 1")
    return options


def full_name(name, part):
    """The first part has the name of the experiment."""
    return name if part is None or part == next(iter(PARTS[name])) else f"{name}-{part}"


def rounds_text(name):
    if name not in PARTS:
        return SIZES[name].rounds
    return ", ".join(f"{part}: {SIZES[full_name(name, part)].rounds}" for part in PARTS[name])


def announcement(options):
    """How long it will take, and how long it would take otherwise."""
    size, command = SIZES[options.name], "./cssl bench " + options.name.replace("-", " ")
    full, quick = f"about {duration(60 * size.minutes)}", f"about {duration(60 * size.quick_minutes)}"
    if options.quick:
        return f"{command} --quick takes {quick} for a round; without --quick {full}"
    if options.rounds != size.rounds:
        full = f"about {duration(60 * size.minutes * options.rounds / size.rounds)}"
    return f"{command} takes {full}, if this machine does nothing else; with --quick {quick}"


def add_parts(sub, parts):
    sub.add_argument("part", nargs="?", choices=parts, default=next(iter(parts)), help="a part of this list, with a page of its own")
    sub.epilog = "parts:\n" + "\n".join(f"  {name:<12} {text}" for name, text in parts.items())


def add_change(sub):
    other = sub.add_mutually_exclusive_group(required=True)
    other.add_argument("--before", metavar="CHECKOUT", help="the other checkout, built by its own ./cssl build")
    other.add_argument("--no-keeper", action="store_true",
                       help="compare with this checkout without a keeper of RAgent and without the memory that outlives RAgent: the price of "
                            "connections that go on when RAgent dies")


def add_paper(sub):
    sub.add_argument("--tls", choices=("1.2", "1.3"), default="1.2",
                     help="1.2 with RSA, in which a full handshake costs much, as in the paper (default); 1.3 with ECDSA")
    sub.add_argument("--machine", type=float, default=0.15, metavar="PART",
                     help="the part of a core that each server has, by a cgroup quota, which needs root (0.15); 1: no limit")
    sub.add_argument("--wires", nargs="+", choices=("none", "delayed"), default=("none", "delayed"),
                     help="none: loopback; delayed: a round trip of 30 ms, which needs root (default: both)")


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # so that servers and namespaces end, too
    say(announcement(options))
    experiment = importlib.import_module(f"bench.experiments.{options.name.replace('-', '_')}")
    # Short, because UNIX sockets lie in it, and open to the users as whom the servers run.
    with tempfile.TemporaryDirectory(prefix="cssl-bench-", dir="/tmp") as folder:
        pathlib.Path(folder).chmod(0o755)
        options.folder, options.course = folder, Course(functools.partial(keep, options))
        experiment.main(options)
        options.course.check_end()
    if pathlib.Path(options.out).resolve() == papers_table.RESULTS:
        papers.write()


if __name__ == "__main__":
    main()

"""python3 -m bench.experiments NAME [OPTIONS]; ./cssl bench runs this."""

import argparse
import importlib
import pathlib
import tempfile

from bench.experiments.cluster import build_folder

EXPERIMENTS = {
    "compare": "CPU per unit of work and memory per connection, beside HAProxy, hitch and nginx",
    "paper": "the paper's two scenarios, tables and figures, with today's servers",
    "scaling": "what the broadcast of sessions costs, and clusters of up to 1,000 agents, simulated",
    "chaos": "what clients notice when a server is killed or stopped, or the dispatcher killed",
    "mail": "sending mail: our tools beside Postfix's, and STARTTLS beside nginx mail and stunnel",
    "mail_queue": "a mail gateway with a queue, beside Postfix as a relay: throughput, reply time, recovery, memory",
    "change": "what a change costs: this checkout beside another one of this project",
}


ROUNDS = {"compare": 9, "paper": 3, "scaling": 5, "chaos": 2, "mail": 7, "mail_queue": 5, "change": 5}


def parse():
    parser = argparse.ArgumentParser(prog="./cssl bench")
    names = parser.add_subparsers(dest="name", required=True, metavar="EXPERIMENT")
    for name, text in EXPERIMENTS.items():
        sub = names.add_parser(name, help=text, description=text)
        sub.add_argument("--rounds", type=int, default=ROUNDS[name], help=f"interleaved repetitions ({ROUNDS[name]})")
        sub.add_argument("--quick", action="store_true", help="tiny counts: does everything run? The figures mean nothing")
        sub.add_argument("--out", default=build_folder() / "results" / name, help=f"where results go (build/results/{name})")
        if name == "paper":
            add_paper(sub)
        if name == "change":
            sub.add_argument("--before", required=True, metavar="CHECKOUT", help="the other checkout, built by its own ./cssl build")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds is a number from 1")
    return options


def add_paper(sub):
    sub.add_argument("--tls", choices=("1.2", "1.3"), default="1.2",
                     help="1.2 with RSA, in which a full handshake costs much, as in the paper (default); 1.3 with ECDSA")
    sub.add_argument("--machine", type=float, default=0.15, metavar="PART",
                     help="the part of a core that each server has, by a cgroup quota, which needs root (0.15); 1: no limit")
    sub.add_argument("--wires", nargs="+", choices=("none", "delayed"), default=("none", "delayed"),
                     help="loopback, and a round trip of 30 ms, which needs root (both)")


def main():
    options = parse()
    experiment = importlib.import_module(f"bench.experiments.{options.name}")
    # Short, because UNIX sockets lie in it, and open to the users as whom the servers run.
    with tempfile.TemporaryDirectory(prefix="cssl-bench-", dir="/tmp") as folder:
        pathlib.Path(folder).chmod(0o755)
        options.folder = folder
        experiment.main(options)


main()

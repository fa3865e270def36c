"""python3 -m bench.experiments NAME [OPTIONS]; ./cssl bench runs this."""

import argparse
import importlib
import pathlib
import tempfile

EXPERIMENTS = {
    "compare": "CPU per unit of work and memory per connection, beside HAProxy, hitch and nginx",
}


def parse():
    parser = argparse.ArgumentParser(prog="./cssl bench")
    names = parser.add_subparsers(dest="name", required=True, metavar="EXPERIMENT")
    for name, text in EXPERIMENTS.items():
        sub = names.add_parser(name, help=text, description=text)
        sub.add_argument("--rounds", type=int, default=5, help="interleaved repetitions (5)")
        sub.add_argument("--quick", action="store_true", help="tiny counts: does everything run? The figures mean nothing")
        sub.add_argument("--out", default=f"results/{name}", help=f"where results go (results/{name})")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds is a number from 1")
    return options


def main():
    options = parse()
    experiment = importlib.import_module(f"bench.experiments.{options.name}")
    # Short, as UNIX sockets lie in it, and open to the users as whom the servers run.
    with tempfile.TemporaryDirectory(prefix="cssl-bench-", dir="/tmp") as folder:
        pathlib.Path(folder).chmod(0o755)
        options.folder = folder
        experiment.main(options)


main()

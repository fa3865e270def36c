"""The options of ./cssl soak. They are read before anything is installed or built, so this needs nothing but Python."""

import argparse
import random

ABOUT = """\
A cluster under a standing load of every kind, to which one fault after another happens at random for a long time.

Prints the seed, what each fault cost, and one line of sums. Fails if a client was lied to, if anything was lost that the fault
does not excuse, if the cluster did not heal, if memory or descriptors grow, if a process crashed, or if the nonce audit finds
that one key and nonce sealed two records.
"""


def parse():
    parser = argparse.ArgumentParser(prog="./cssl soak", description=ABOUT, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60, help="how long faults happen (60)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32),
                        help="a printed seed: the same faults and victims in the same order (by chance)")
    parser.add_argument("--agents", type=int, default=3, help="SSLAgents (3)")
    parser.add_argument("--workers", type=int, default=1, help="worker threads of each daemon (1)")
    parser.add_argument("--fault-seconds", type=float, default=12, help="seconds from the beginning of a fault to its end (12)")
    parser.add_argument("--only", type=lambda text: {int(n) for n in text.split(",")}, default=None, metavar="N,N",
                        help="only faults with these numbers, which each run prints")
    return parser.parse_args()


if __name__ == "__main__":
    parse()

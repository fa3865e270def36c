"""The options of ./cssl soak. They are read before anything is installed or built, so this needs nothing but Python."""

import argparse
import random

ABOUT = """\
A cluster under a standing load of every kind, to which one fault after another happens at random for a long time.

Prints what each fault cost, and ends with one line of sums; fails when a client was lied to, when anything was lost that the fault does
not excuse, when the cluster did not heal, when memory or descriptors grow, when a process crashed or the nonce audit finds a
reuse. The seed is printed; --seed repeats the order of faults and victims.
"""


def parse():
    parser = argparse.ArgumentParser(prog="./cssl soak", description=ABOUT, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--agents", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1, help="of each daemon")
    parser.add_argument("--fault-seconds", type=float, default=12, help="how long a fault lasts; it heals, and others follow")
    parser.add_argument("--only", type=lambda text: {int(n) for n in text.split(",")}, default=None, metavar="N,N",
                        help="of the list of faults")
    return parser.parse_args()


if __name__ == "__main__":
    parse()

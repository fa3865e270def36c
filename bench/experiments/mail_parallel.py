"""./cssl bench mail parallel: mails a second with so many sessions at a time, as the developers of PMailServer2 measured in 2009:
each session connects, sends one mail, and quits."""

import pathlib
import time

from bench.experiments.load import same
from bench.experiments.mail_bed import RECEIVERS, Bed
from bench.experiments.mail_hosts import Proxy, Sink, facts, relay, running, send, sent, stop_all
from bench.experiments.mail_parallel_page import figures, markdown
from bench.experiments.report import save, say

SHAPES = ((30, 21377), (30, 603), (50, 603))  # sessions, bytes of a mail
MAILS, QUICK_MAILS = 10000, 50
SYSTEMS = ("direct", "smtpproxy", "Postfix relay")
LONGEST_S = 900


def aggregators(bed, name, sessions):
    """None or one. Each may have as many connections to the receiver as the sender has sessions."""
    if name == "smtpproxy":
        return [Proxy(bed, stop_timeout="1s", connections_per_destination=sessions)]
    if name == "Postfix relay":
        return [relay(bed, f"default_destination_concurrency_limit = {sessions}\ninitial_destination_concurrency = {sessions}\n")]
    return []


def measure(bed, name, sessions, length, mails):
    sink, through = Sink(bed, RECEIVERS.format(1), "--mails", mails), aggregators(bed, name, sessions)
    with running(sink, *through):
        if through:
            bed.capture()
        else:
            bed.let_pass()
        begin = time.time()
        source = send(bed, RECEIVERS.format(1), mails, "-s", sessions, "-l", length, "-f", "from@msa1.example", "-t",
                      "to@mx1.example")
        try:
            taken = sent(source)
            result = sink.result(LONGEST_S)
        finally:
            stop_all([source])
        seconds = time.time() - begin
    same(name, result["counts"], {"mails": mails, "right": mails, "duplicates": 0})
    return {"system": name, "sessions": sessions, "bytes": length, "mails": mails, "seconds": seconds, "taken_s": taken["seconds"]}


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick."""
    where, runs = facts("postfix"), []
    with Bed(pathlib.Path(options.folder)) as bed:
        for number in range(options.rounds):
            first = number % len(SYSTEMS)
            for shape in SHAPES:
                for name in SYSTEMS[first:] + SYSTEMS[:first]:
                    runs.append({"round": number, **measure(bed, name, *shape, QUICK_MAILS if options.quick else MAILS)})
                    say(f"round {number + 1} of {options.rounds}: {shape[0]} sessions, {shape[1]} bytes, {name}: "
                        f"{runs[-1]['mails'] / runs[-1]['seconds']:.0f}/s")
    report = {"machine": where, "rounds": options.rounds, "quick": options.quick, "mails": runs[0]["mails"], "runs": runs}
    save(options, report, markdown(report, options.name), figures(report, options.name))

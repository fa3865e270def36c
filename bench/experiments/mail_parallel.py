"""./cssl bench mail parallel: the experiment of the developers of PMailServer2 (their blog, 19 December 2009). On MTA1 a sender makes
one session after another, each of which connects, sends one mail, and quits; the mail server of MTA1 puts the mails in a queue, and
delivers so many of them at a time to MTA2. Here that server is smtpproxy with deliver: queue, or Postfix."""

import contextlib
import dataclasses
import json
import pathlib
import time

from bench.experiments import machine, mail_cost
from bench.experiments.load import LoadError, same
from bench.experiments.mail_bed import CAPTURED, RECEIVERS, Bed
from bench.experiments.mail_hosts import BY_DOMAIN, Postfix, Sink, facts, running
from bench.experiments.mail_parallel_page import figures, markdown
from bench.experiments.mail_peers import source
from bench.experiments.mail_queue_systems import Gateway
from bench.experiments.report import save
from bench.experiments.waiting import wait_for

WIRE_MBIT = 100  # each second: 100BASE
SLOW_S = 0.15     # before the slow receiver's reply to the end of a mail
HEAD = 272        # bytes of the head of a mail of smtp-source, some more or less
LONGEST_S, LOOK_S = 600, 0.1
ENDING = 2        # times the connections: MTA2 may see all new ones before it sees the ends of the old ones

RELAY = ("mynetworks = 127.0.0.0/8\nsmtpd_relay_restrictions = permit_mynetworks, reject\nin_flow_delay = 0\n"
         "default_destination_concurrency_limit = {0}\ninitial_destination_concurrency = {0}\n")


@dataclasses.dataclass(frozen=True)
class Shape:
    deliveries: int  # at a time, at most
    bytes: int       # of a mail, head and body, to 2 %
    mails: int


SHAPES = Shape(30, 21377, 10000), Shape(30, 603, 10000), Shape(50, 603, 10000)
LONG = Shape(30, 21377, 50000)  # once
RECEIVERS_DELAY_S = {"fast": 0, "slow": SLOW_S}


class Queue(Gateway):
    """Of mail_queue, with MTA2 as its next hop."""
    name = "smtpproxy"

    def __init__(self, bed, deliveries):
        self._deliveries = deliveries
        super().__init__(bed.new_folder("gateway", bed.folder) / "smtpproxy", 25)

    def _write_config(self):
        super()._write_config()
        path = self.folder / "conf.yaml"
        config = json.loads(path.read_text())
        config["queue"] |= {"next_hop": f"{RECEIVERS.format(1)}:25", "deliveries": self._deliveries}
        config["limits"]["connections_per_destination"] = self._deliveries
        path.write_text(json.dumps(config))

    def processes(self):
        return {"server": [self.process.pid], "redis": [redis.process.pid for redis in self.backups]}


class Relay(Postfix):
    def __init__(self, bed, name, deliveries):
        self.name = name
        super().__init__(bed, bed.router, "relay", "127.0.0.1", RELAY.format(deliveries) + BY_DOMAIN, CAPTURED, name == "Postfix on disk")

    def source_options(self):
        return []

    def is_empty(self):
        return self.queue("maildrop", "incoming", "active", "deferred") == 0

    def processes(self):
        return {"server": [self.process.pid], "redis": []}


SYSTEMS = ("smtpproxy", "Postfix on disk", "Postfix in tmpfs")


@contextlib.contextmanager
def server(bed, name, deliveries):
    """The mail server of MTA1."""
    if name != "smtpproxy":
        with running(Relay(bed, name, deliveries)) as (relay,):
            yield relay
        return
    with bed.router.entered():
        gateway = Queue(bed, deliveries)
    try:
        yield gateway
    finally:
        gateway.end()


def _cpu_s(system):
    return {kind: sum(map(mail_cost.cpu_s, pids)) for kind, pids in system.processes().items()}


def check_sender(shape, counts):
    """LoadError: it did not make a session for each mail, or the mails were not as long as said."""
    same("the sender", counts, {"connected": shape.mails})
    if abs(counts["bytes"] / shape.mails / shape.bytes - 1) > 0.02:
        raise LoadError(f"the sender: {counts['bytes']} bytes in {shape.mails} mails of {shape.bytes}")


def _deliver(bed, system, shape):
    """Seconds until the sender had its last reply, and until the queue was empty; CPU seconds of MTA1's server and of its Redis servers."""
    before, begin = _cpu_s(system), time.monotonic()
    with bed.router.entered():
        sent = source(system.port, shape.mails, "-s", 1, "-l", shape.bytes - HEAD, "-f", "from@msa1.example", "-t", "to@mx1.example",
                      *system.source_options(), seconds=LONGEST_S)
    check_sender(shape, sent["counts"])
    wait_for(system.is_empty, LONGEST_S, f"{system.name} has delivered all mails", LOOK_S)
    seconds, after = time.monotonic() - begin, _cpu_s(system)
    return {"taken_s": sent["seconds"], "seconds": seconds, **{f"{kind}_cpu_s": after[kind] - before[kind] for kind in after}}


def check(name, receiver, shape, result):
    """LoadError: MTA2 did not get each mail once, byte for byte, from smtpproxy over at most so many connections at a time (Postfix keeps
    connections behind their delivery for the next one, so it may have more); or it was not as slow as said, or, in a run that is long
    enough for that, not so slow that smtpproxy makes as many deliveries at a time as it may."""
    wanted = {"mails": shape.mails, "right": shape.mails, "duplicates": 0, "delayed": shape.mails if RECEIVERS_DELAY_S[receiver] else 0}
    same(name, result["counts"], wanted)
    if name != "smtpproxy":
        return
    must = shape.deliveries if receiver == "slow" and shape.mails >= 20 * shape.deliveries else 1
    if not must <= result["most_open"] <= ENDING * shape.deliveries:
        raise LoadError(f"{name}: {result['most_open']} deliveries at a time instead of {shape.deliveries}")


def measure(bed, name, receiver, shape):
    delay_s = RECEIVERS_DELAY_S[receiver]
    sink = Sink(bed, RECEIVERS.format(1), *(["--delay", f"end:{delay_s}"] if delay_s else []))
    with running(sink), server(bed, name, shape.deliveries) as system:
        times = _deliver(bed, system, shape)
        sink.end()
        result = sink.result(LONGEST_S)
    check(name, receiver, shape, result)
    return {"system": name, "receiver": receiver, **dataclasses.asdict(shape), **times, "most_open": result["most_open"],
            "connections": result["counts"]["connections"]}


def works(rounds):
    """(round, system, receiver, shape): the systems in turning order. What takes longest, once."""
    for number in range(rounds):
        for receiver in RECEIVERS_DELAY_S:
            for shape in SHAPES:
                for name in SYSTEMS[number % 3:] + SYSTEMS[:number % 3]:
                    if number == 0 or receiver == "fast":
                        yield number, name, receiver, shape
    yield 0, "smtpproxy", "fast", LONG


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick, course."""
    where = {**facts("postfix"), "redis": machine.redis()}
    all_works, runs = list(works(options.rounds)), []
    options.course.plan(*((1, shape.mails) for *_, shape in all_works))
    with Bed(pathlib.Path(options.folder)) as bed:
        bed.router.pace("outside", f"{WIRE_MBIT}mbit")
        bed.receivers.pace("out", f"{WIRE_MBIT}mbit")
        for number, name, receiver, shape in all_works:
            if options.quick:
                shape = dataclasses.replace(shape, mails=shape.mails // 200)
            runs.append({"round": number, **measure(bed, name, receiver, shape)})
            options.course.done(f"{name}, {receiver} receiver, {shape.deliveries} deliveries, {shape.mails:,} mails of {shape.bytes:,} bytes: "
                                f"{runs[-1]['mails'] / runs[-1]['seconds']:.0f}/s", runs=runs)
    report = {"machine": where, "rounds": options.rounds, "quick": options.quick, "wire_mbit": WIRE_MBIT, "slow_s": SLOW_S, "runs": runs}
    save(options, report, lambda found: markdown(found, options.name), lambda found: figures(found, options.name))

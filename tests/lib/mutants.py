"""The mistakes that test builds can make on purpose (net/points/mutant.h), the law that each breaks (doc/laws.md), and the situation
(tests/lib/in_doubt.py) in which the nonce audit must see it. `sees` matches what the audit says then, `ci`: the usual test runs it.

    python3 tests/lib/mutants.py RESULTS.xml        a table of what was seen, from the results of test_mutants.py"""

import pathlib
import sys
import xml.etree.ElementTree
from collections import namedtuple

Mutant = namedtuple("Mutant", "name laws mistake situation suite carrier sees ci", defaults=(False,))

GCM, CHACHA20, TLS13 = "1.2 AES-GCM", "1.2 ChaCha20", "1.3"
REPEATED = r"repeated in epoch \d+ by application data"
REPEATED_AT_ALL = r"nonces repeated across epochs: [1-9]"  # by a KeyUpdate, where the connection had to end
ACCEPTED_TWICE = "2 different ciphertexts were accepted"
AFTER_LEAVING = "sealed after the agent had left it"
TOO_EARLY = "a record was sealed behind a KeyUpdate that was not committed"
MISDIRECTED = "requests at the backend of another listener"
UNPROVEN = "an agent adopted a connection without its copy"
FOREIGN = "a stream went on at a RAgent that has not the proof"
SEALED_MEANWHILE = "a stream sealed while it had no link"
OF_ANOTHER_EPOCH = "a stream went on under another epoch than its own"
WRONGED = "a client got "
# no error of the audit: seen in what clients, backends and RAgents get, or in a count where there should be none
BESIDE_THE_AUDIT = (MISDIRECTED, UNPROVEN, FOREIGN, SEALED_MEANWHILE, WRONGED, REPEATED_AT_ALL)

MUTANTS = [
    Mutant("epoch-dropped", "1 and 2", "an agent makes nonces of TLS 1.2 without the epoch",
           "answer in doubt", GCM, "memory", REPEATED, ci=True),
    Mutant("tickets-uncounted", "1", "an agent begins with the number that OpenSSL's ticket had",
           "moved", TLS13, "memory", "used by OpenSSL"),
    Mutant("epoch-unchecked", "2", "an agent takes an epoch that it has heard of",
           "epoch not raised", GCM, "memory", r"2 ciphertexts in epoch \d+", ci=True),
    Mutant("stale-stream-heard", "2", "RAgent takes records from the stream of a former owner",
           "frozen owner talks", GCM, "socket", "a record of 37 bytes was accepted that nobody sealed"),
    Mutant("records-miscounted", "3", "RAgent counts a frame of records as one",
           "answer in doubt", TLS13, "memory", ACCEPTED_TWICE),
    Mutant("position-ignored", "3", "an agent begins where the sealed copy was made, and not where RAgent says",
           "part of an answer in doubt", TLS13, "sealed", ACCEPTED_TWICE),
    Mutant("generation-ignored", "3", "an agent takes the keys of a copy as they are, however old",
           "copy of an older generation", TLS13, "memory", ACCEPTED_TWICE),
    Mutant("record-not-handed-over", "3", "RAgent tells its successor of one record less than it has counted",
           "answer in doubt behind a new RAgent", TLS13, "memory", ACCEPTED_TWICE),
    Mutant("sequence-unchecked", "3", "an agent begins with a record that others told it was sealed, if RAgent says so",
           "frozen and not heard, the live part lost", TLS13, "memory", REPEATED_AT_ALL),
    Mutant("position-unchecked", "3", "an agent begins with a record that the sealed copy says was sealed, if RAgent says so",
           "position before that of a copy nobody was told of", TLS13, "memory", ACCEPTED_TWICE),
    Mutant("confirmed-forgotten", "3", "an owner that lost its link forgets what RAgent has confirmed",
           "position before what was confirmed", TLS13, "memory", ACCEPTED_TWICE),
    Mutant("freeze-untold", "3", "an owner that freezes does not tell the others where it stopped",
           "frozen and not heard", TLS13, "memory", REPEATED_AT_ALL),
    Mutant("commit-untold", "3", "an owner does not tell the others that its KeyUpdate was committed",
           "position before a KeyUpdate", TLS13, "memory", ACCEPTED_TWICE),
    Mutant("end-untold", "3", "an owner that ends a connection does not tell the others where it stopped",
           "position of an ended connection", TLS13, "memory", ACCEPTED_TWICE),
    Mutant("snapshot-without-marks", "3", "an agent tells one that joins nothing of connections",
           "position of an ended connection at an agent that came back", TLS13, "memory", ACCEPTED_TWICE),
    Mutant("doubt-unchecked", "5", "an agent takes a connection over in doubt at a second position",
           "in doubt at a second position", TLS13, "memory", ACCEPTED_TWICE),
    Mutant("doubt-untold", "5", "an agent does not tell the others that it takes over in doubt",
           "in doubt at a second agent", TLS13, "memory", ACCEPTED_TWICE),
    Mutant("snapshot-without-doubt", "5", "an agent does not tell one that joins which connections were in doubt",
           "in doubt at an agent that came back", TLS13, "memory", ACCEPTED_TWICE),
    Mutant("key-update-omitted", "5", "an agent that takes over goes on without a KeyUpdate",
           "answer in doubt", TLS13, "socket", REPEATED, ci=True),
    Mutant("key-update-forgotten", "5", "an agent that owes a KeyUpdate does not say so when it lets the connection go",
           "KeyUpdate owed at a move", TLS13, "memory", REPEATED),
    Mutant("freeze-not-proved", "5", "an agent believes RAgent that the last owner froze the connection",
           "loss called a rest", TLS13, "sealed", REPEATED),
    Mutant("chacha20-taken-over", "5", "an agent takes over TLS 1.2 with ChaCha20",
           "part of an answer in doubt", CHACHA20, "memory", REPEATED),
    Mutant("commit-not-awaited", "6", "an agent goes on behind its KeyUpdate at once",
           "KeyUpdate in doubt", TLS13, "sealed", TOO_EARLY, ci=True),
    Mutant("commit-promised", "6", "RAgent confirms a KeyUpdate that it has not got",
           "KeyUpdate in doubt amid acknowledgements", TLS13, "memory", TOO_EARLY),
    Mutant("listener-unchecked", "13", "an agent serves a connection as one of whatever listener RAgent names",
           "another listener", TLS13, "memory", MISDIRECTED),
    Mutant("frozen-owner-seals", "7", "an agent that froze a connection seals one more record",
           "moved", TLS13, "socket", AFTER_LEAVING, ci=True),
    Mutant("lost-owner-seals", "7", "an agent that lost its link seals one more record",
           "owner alive and lost", GCM, "socket", AFTER_LEAVING),
    Mutant("later-owner-ignored", "3 and 5", "an agent continues from a state that another owner has continued",
           "copy that had a later owner", TLS13, "memory", REPEATED, ci=True),
    Mutant("forgetting-ignored", "2 and 5", "an agent takes a connection that it has forgotten for a new one",
           "forgotten copy", TLS13, "memory", REPEATED),
    Mutant("epoch-claimed-first", "2", "an agent claims an epoch for a RAgent that has proved nothing",
           "epoch burnt", GCM, "memory", WRONGED, ci=True),
    Mutant("parked-owner-seals", "7", "an agent seals answers for a stream that has no link",
           "answer while parked", TLS13, "memory", SEALED_MEANWHILE),
    Mutant("sealed-in-ring", "12", "an agent seals straight in the ring that it shares with RAgent",
           "moved", TLS13, "memory", "were sealed in memory that another process can write"),
    Mutant("token-unchecked", "2", "an agent adopts for a RAgent that shows no copy",
           "no copy shown", GCM, "memory", UNPROVEN),
    Mutant("copy-not-renewed", "6", "an owner sends a KeyUpdate without a copy of the next keys",
           "KeyUpdate in doubt", TLS13, "memory", "sealed before a copy of the keys behind them"),
    Mutant("proof-unchecked", "2 and 7", "an agent goes on with a stream for a link that shows another proof",
           "stream of another RAgent", TLS13, "memory", FOREIGN),
    Mutant("stream-epoch-unchecked", "2 and 7", "an agent goes on with a stream under an epoch that it has not",
           "stream of another epoch", TLS13, "socket", r"accepted that was sealed in epochs \[1\]"),
    Mutant("frame-taken-twice", "3", "the next process of RAgent takes frames that the dead one had taken",
           "answer held when RAgent dies", TLS13, "memory", WRONGED),
    Mutant("record-not-restored", "3", "the next process of RAgent counts one record less than the dead one",
           "answer in doubt behind a RAgent that died", TLS13, "memory", ACCEPTED_TWICE),
]


def table(path):
    """From the tests that passed: the findings of the audit, one row for each mutant that it had to notice."""
    rows = []
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        said = {p.get("name"): p.get("value") for p in case.iter("property")}
        bad = any(child.tag in ("failure", "error") for child in case)
        if "mutant" in said:
            rows.append((said["mutant"], said["laws"], said["situation"], "SURVIVES" if bad else said["seen"]))
    widths = [max(len(row[i]) for row in rows) for i in range(3)] if rows else []
    for row in rows:
        yield "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths)), row[3]])


if __name__ == "__main__":
    print("\n".join(table(pathlib.Path(sys.argv[1]))))

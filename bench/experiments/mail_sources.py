"""./cssl bench mail sources: three programs that send mails, beside each other as in the article on go-smtp-source (2015): 10,000 mails
with 1,000 sessions at a time to smtp-sink; CPU, elapsed time and memory. go-smtp-source takes part if it can be had."""

import os
import pathlib
import re
import shutil
import subprocess

from bench.experiments import machine
from bench.experiments.cluster import ROOT
from bench.experiments.load import same
from bench.experiments.mail import check_connections, pair_options
from bench.experiments.mail_peers import MailPlace, debian_version, own_source, unpacked, timed
from bench.experiments.mail_sources_page import GO, GOS, OF_ARTICLE, OURS, OURS_TWICE, POSTFIX, SINKS, figures, markdown
from bench.experiments.report import save

MAILS, QUICK_MAILS = 10000, 100
SESSIONS = (1, 100, 1000)


def find(name):
    """The program of one of GOS, or None."""
    return shutil.which(name, path=f"{pathlib.Path(unpacked(name)).parent}:{os.environ.get('PATH', os.defpath)}")


def version(program):
    """As a program of Go has it in itself."""
    if not program:
        return "not there"
    try:
        text = subprocess.run(["go", "version", "-m", program], text=True, check=False, capture_output=True).stdout
    except OSError:
        return "of unknown version"
    module, go = re.search(r"^\s*mod\s+\S+\s+(\S+)", text, re.M), re.search(r": (go\S+)", text)
    return f"{module[1] if module else 'of unknown version'}, built by {go[1]}" if go else "of unknown version"


def sources():
    """{name: command}"""
    found = {OURS: own_source(), OURS_TWICE: [*own_source(), "--processes", "2"], POSTFIX: [unpacked("smtp-source")]}
    for name in GOS:
        if find(name):
            found[name] = [find(name), *(["-resolve-once"] if name == GO else [])]
    return found


def shapes(name):
    """(sink, sessions, keep) of all runs of a source: the article's first, of which alone are those of 2015."""
    others = [(SINKS[0], sessions, keep) for keep in (False, True) for sessions in SESSIONS
              if (sessions, keep) != OF_ARTICLE and (name != OURS_TWICE or sessions > 1)]
    return [(sink, *OF_ARTICLE) for sink in SINKS] + (others if name not in GOS[1:] else [])


def check(place, command, name, sessions, keep, mails):
    """Postfix's sink tells no counts, so before it is timed a source shows to our sink that it does what the others do."""
    port, pids = place.sink("sink-of-check")
    timed(*command, *pair_options(sessions, keep, mails), f"{place.host}:{port}")
    place.end(pids)
    counts = place.counts("sink-of-check")
    same(f"{name}, {sessions} sessions", counts, {"mails": mails})
    check_connections(counts, sessions, keep, mails)


def measure(place, command, name, shape, mails):
    sink, sessions, keep = shape
    port, pids = place.sink("sink-of-pair") if sink == SINKS[1] else place.postfix_sink()
    cost = timed(*command, *pair_options(sessions, keep, mails), f"{place.host}:{port}")
    place.end(pids)
    if sink == SINKS[1]:
        same(f"{name}, {sessions} sessions", place.counts("sink-of-pair"), {"mails": mails})
    return {"source": name, "sink": sink, "sessions": sessions, "keep": keep, "mails": mails, **cost}


def main(options):
    """`options`: name, folder (for the running processes), out, rounds, quick, course."""
    found, mails = sources(), QUICK_MAILS if options.quick else MAILS
    where = {**machine.facts(ROOT), "postfix": debian_version("postfix"), **{name: version(find(name)) for name in GOS}}
    del where["haproxy"], where["hitch"], where["nginx"], where["openssl"]
    runs = []
    options.course.plan(options.rounds)
    with MailPlace(pathlib.Path(options.folder) / "sources") as place:
        for name, command in found.items():
            for shape in sorted({shape[1:] for shape in shapes(name)}):
                check(place, command, name, *shape, mails)
        for number in range(options.rounds):
            names = list(found)[number % len(found):] + list(found)[:number % len(found)]
            for shape in shapes(OURS):
                runs += [{"round": number, **measure(place, found[name], name, shape, mails)} for name in names if shape in shapes(name)]
            options.course.done("all programs", runs=runs)
    report = {"machine": where, "rounds": options.rounds, "quick": options.quick, "mails": mails, "runs": runs}
    save(options, report, lambda found: markdown(found, options.name), lambda found: figures(found, options.name))

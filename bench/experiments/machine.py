"""The machine and the programs of a measurement."""

import datetime
import os
import platform
import re
import subprocess


def _first_line(*command):
    done = subprocess.run(command, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.splitlines()[0].strip() if done.stdout else "not there"


def _cpu():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        return next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())


def facts(root):
    """A dict of strings."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": f"{len(os.sched_getaffinity(0))} x {_cpu()}",
        "kernel": platform.release(),
        "load when begun": " ".join(f"{x:.2f}" for x in os.getloadavg()),
        "cssl": _first_line("git", "-C", str(root), "log", "-1", "--format=%h %cs"),
        "openssl": _first_line("openssl", "version"),
        "haproxy": re.sub(r" - .*", "", _first_line("haproxy", "-v")),
        "nginx": _first_line("nginx", "-v"),
        "hitch": _first_line("hitch", "--version"),
    }

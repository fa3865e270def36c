"""The machine and the programs of a measurement."""

import datetime
import os
import platform
import re
import subprocess
import sys

# A process for each core does the same work again and again, and says how much CPU the quickest and the slowest time took.
STEADINESS_S = 3
SAME_WORK = f"""
import time
times, end = [], time.monotonic() + {STEADINESS_S}
while time.monotonic() < end:
    begin = time.process_time()
    sum(range(400000))
    times.append(time.process_time() - begin)
times.sort()
print(times[len(times) // 20], times[-len(times) // 20])
"""


def _first_line(*command):
    done = subprocess.run(command, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.splitlines()[0].strip() if done.stdout else "not there"


def _cpu():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        return next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())


def steadiness():
    """Least and most milliseconds of CPU that the same work takes here, without the least and the most twentieth. On a machine of its
    own they are nearly the same; whoever shares its cores with others, which no figure of the kernel tells, sees it here."""
    workers = [subprocess.Popen([sys.executable, "-c", SAME_WORK], text=True, stdout=subprocess.PIPE) for _ in os.sched_getaffinity(0)]
    times = [float(time) * 1000 for worker in workers for time in worker.communicate()[0].split()]
    return min(times), max(times)


def redis():
    return _first_line("redis-server", "--version").split()[2]


def facts(root):
    """A dict of strings."""
    least, most = steadiness()
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": f"{len(os.sched_getaffinity(0))} x {_cpu()}",
        "kernel": platform.release(),
        "load when begun": " ".join(f"{x:.2f}" for x in os.getloadavg()),
        "the same work": f"{least:.1f} to {most:.1f} ms of CPU" + (" (shared cores: ratios scatter)" if most > 1.25 * least else ""),
        "cssl": _first_line("git", "-C", str(root), "log", "-1", "--format=%h %cs"),
        "openssl": _first_line("openssl", "version"),
        "haproxy": re.sub(r" - .*", "", _first_line("haproxy", "-v")),
        "nginx": _first_line("nginx", "-v"),
        "hitch": _first_line("hitch", "--version"),
    }

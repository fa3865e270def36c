"""The operator's tool, run as an operator would.

    run = csslctl("--socket", path, "drain", "a1")       run.code, run.out, run.err
    csslctl_json(...)                                    the JSON it prints, after exit code 0
"""

import json
import os
import subprocess
from dataclasses import dataclass

from tests.lib.build import binary, patience

DONE, REFUSED, USAGE, UNREACHABLE = range(4)


@dataclass
class Run:
    code: int
    out: str
    err: str

    @property
    def lines(self):
        return self.out.splitlines()

    def table(self, title):
        """The rows below the line that begins with that title, each as a dict by column title; cells have no blanks inside, or
        stand in the last column."""
        lines = self.lines
        start = next(i for i, line in enumerate(lines) if line.startswith(title))
        names = lines[start].split()
        rows = []
        for line in lines[start + 1:]:
            if not line:
                break
            rows.append(dict(zip(names, line.split(None, len(names) - 1))))
        return rows

    @property
    def facts(self):
        """The lines "name value" as a dict."""
        return {name.strip(): value.strip() for name, _, value in (line.strip().partition("  ") for line in self.lines)}


def environment(**env):
    """An environment without variables that would select a cluster or colours."""
    clean = {k: v for k, v in os.environ.items() if k not in ("CSSL_DIR", "NO_COLOR")}
    return dict(clean, **env)


def csslctl(*arguments, env=None):
    done = subprocess.run([binary("csslctl/csslctl"), *map(str, arguments)], env=environment(**(env or {})), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=patience(30))
    return Run(done.returncode, done.stdout.decode(), done.stderr.decode())


def csslctl_json(*arguments, env=None):
    run = csslctl("--json", *arguments, env=env)
    assert run.code == DONE, run
    return json.loads(run.out)

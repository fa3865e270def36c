"""Many TLS clients that come back (tests/lib/resume_storm.c has the commands).

    with Storm(cluster.sl, clients=1000, version="1.3", ca=cluster.ca) as storm:
        assert storm("storm 2") == {"full": 1000, "resumed": 2000, "failed": 0}
"""

import json
import subprocess

from tests.lib.build import binary, patience


class Storm:
    def __init__(self, *to, ca, **options):
        """Clients of these (host, port)s; each connection of a client goes to the next one. Options as on the command line."""
        command = [binary("tests/lib/resume_storm"), "--ca", ca, "--timeout-ms", str(patience(20) * 1000)]
        for host, port in to:
            command += ["--to", f"{host}:{port}"]
        for name, value in options.items():
            command += [f"--{name.replace('_', '-')}", str(value)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def to(self, where):
        """From now on all connections go to this (host, port)."""
        self._process.stdin.write("to %s:%d\n" % where)

    def start(self, command):
        """Begin without waiting for the end. finish() returns the answer."""
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def finish(self):
        line = self._process.stdout.readline()
        assert line, f"resume_storm ended with {self._process.wait()}"
        answer = json.loads(line)
        errors = answer.pop("errors")
        self.ms = answer.pop("ms")
        assert bool(errors) == bool(answer["failed"]), errors
        if errors:
            answer["errors"] = errors
        return answer

    def __call__(self, command):
        self.start(command)
        return self.finish()

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

"""Thousands of TLS clients that check every byte and count every end (tests/lib/tlsload/main.c has the commands).

    with Load(cluster) as load:
        load.add("idle", count=500, run="waits")
        load.add("get", count=16, path="/64k", to=cluster.sl)
        load.mark("a1"), cluster.kill("a1")
        check_unharmed(load.stop("get"))
        check_unharmed(load.ask("idle"))
"""

import json
import subprocess

from tests.lib.build import patience, tool
from tests.lib.waiting import wait_until

BY_CHOICE = {"ours"}


class LoadError(Exception):
    pass


class Load:
    def __init__(self, cluster):
        self._cluster, self._commands, self._answers = cluster, 0, {}
        self._process = subprocess.Popen([tool("tests/lib/tlsload"), "--ca", cluster.ca], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)

    def start(self, verb, **args):
        """Begin a command without waiting for its end. Pass the result to finish() to get the answer."""
        line = " ".join([verb] + [f'{key}="{value}"' for key, value in args.items()])
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        self._commands += 1
        return self._commands

    def finish(self, number):
        while number not in self._answers:
            line = self._process.stdout.readline()
            if not line:
                raise LoadError(f"tlsload ended with {self._process.wait()}")
            answer = json.loads(line)
            self._answers[answer.pop("number")] = answer
        answer = self._answers.pop(number)
        if "wrong" in answer:
            raise LoadError(answer["wrong"])
        return answer

    def __call__(self, verb, **args):
        return self.finish(self.start(verb, **args))

    def start_add(self, name, to=None, **settings):
        host, port = to or self._cluster.sf
        settings.setdefault("timeout_ms", patience(20) * 1000)
        return self.start("add", name=name, to=f"{host}:{port}", **settings)

    def add(self, name, to=None, **settings):
        """Adds a group of clients, by default to the SF listener. Returns when all have finished or failed their handshakes."""
        return self.finish(self.start_add(name, to, **settings))

    def ask(self, name):
        return self("ask", name=name)

    def stop(self, name):
        """Stops new requests. Returns when every answer has come."""
        return self("stop", name=name)

    def close(self, name):
        return self("close", name=name)

    def report(self):
        """{group: ...}, now."""
        return self("report")

    def wait_for_first_answers(self):
        """Each client has one: before, an agent may take a handshake with it that it has told nobody of (doc/promises.md)."""
        wait_until(lambda: all(group["first_us"]["count"] == group["clients"] for group in self.report().values()), patience(60), "first answers")

    def mark(self, agent=None):
        """An event happens now: pauses are measured from here. `agent`: the agent of the event."""
        self("mark", **({"agent": agent} if agent else {}))

    def end(self):
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        status = self.end()
        assert kind or status == 0, f"tlsload ended with {status}"


def lost(report):
    """How many connections ended before their client was finished: {"reset idle": 2, ...}."""
    return {f"{end} {place}": count for end, places in report["ends"].items() if end not in BY_CHOICE
            for place, count in places.items()}


def refused(report):
    """Complete answers other than 200: {"502": 3}."""
    return {status: count for status, count in report["statuses"].items() if status != "200"}


def say(report):
    """A text for assertion messages."""
    return json.dumps(report, indent=1)


def check_unharmed(report):
    """No connection was lost; every answer came, complete and correct."""
    assert not lost(report) and not refused(report), say(report)
    assert report["answers"] == report["requests"] and report["under_way"] == 0, say(report)
    return report


def check_honest(report):
    """Whatever was lost, no client was deceived: no wrong byte, no invalid TLS, no close_notify inside an answer, no hang."""
    for end in ("wrong", "garbled", "timeout"):
        assert end not in report["ends"], say(report)
    assert "midway" not in report["ends"].get("close_notify", {}), say(report)
    return report

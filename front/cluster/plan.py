"""The settings of `up`, and DIR/plan, which has its decisions for later commands: lines of `KEY VALUE`."""

import os
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAUSE_S = 0.01
MAIL_LISTENERS = {"smtp": "offer", "submission": "require", "smtps": "implicit"}  # with their `starttls`
SETTINGS = {"dir": "", "agents": "3", "workers": "1", "backend": "", "link": "trusted", "migration": "on", "handshake": "round-robin",
            "resumption": "round-robin", "affinity_bound": "off", "tls12_tickets": "off", "keeper": "on", "smtp_backend": "",
            "smtp_sink": "", "smtp_proxy_v2": "off", "mail": "", "mail_to": "", "mail_queue": "", "stage": "all"}


def front_door(*words):
    """A command of the front door, as it can be pasted where this one was given."""
    import shlex  # pylint: disable=import-outside-toplevel  # only messages need it
    return shlex.join(["./cssl" if os.environ.get("PWD") == ROOT else os.path.join(ROOT, "cssl"), *words])


class Failure(Exception):
    """A command ends with this message and exit status."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


class Cluster:
    """What all parts of a command know: the folder, its plan, the environment of the daemons, and where messages go."""

    def __init__(self, folder, env, write):
        self.dir, self.plan, self.write = folder, {}, write
        self.env = {**env, "PATH": env.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin", "CSSL_CLUSTER": folder}

    def path(self, name):
        return os.path.join(self.dir, name)

    def say(self, message):
        self.write(f"cssl: {message}\n")

    def mail_port(self):
        """Where smtpproxy listens, if there is one."""
        return self.plan.get("mail_queue") or self.plan.get("mail_relay")

    def stores(self):
        """The names of the Redis servers."""
        return [name for name in ("redis1", "redis2") if name in self.plan]

    def daemons(self):
        """All names, in the order in which they stop."""
        more = {"backend": "embedded" in self.plan, "mail": self.mail_port(), "smtp-sink": self.plan.get("smtp_sink") == "yes"}
        return ["r1", *self.plan["agents"], *(name for name, present in more.items() if present), *self.stores()]

    def seconds(self, name):
        """A time limit from the environment, as CSSL_READY_SECONDS."""
        return self.env.get(name) or {"CSSL_LEAVE_SECONDS": "90"}.get(name, "20")  # to leave takes longer than moves.drain_timeout


def wait_for(seconds, condition, *arguments):
    """Whether the condition holds within this time."""
    end = time.monotonic() + float(seconds)
    while not condition(*arguments):
        if time.monotonic() >= end:
            return False
        time.sleep(PAUSE_S)
    return True


def write_file(path, text, mode=0o666):
    """Writes a file anew."""
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
    except OSError as e:
        e.filename = path  # a full disk does not tell
        raise


def replace_file(path, text, mode=0o666):
    """Writes a file complete or not at all."""
    write_file(f"{path}.new", text, mode)
    os.rename(f"{path}.new", path)


def read_lines(path):
    """No line if there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readlines()
    except FileNotFoundError:
        return []


def read_word(path):
    """The first line of a file, or None."""
    return "".join(read_lines(path)[:1]).strip() or None


def output_of(cluster, *command, said=b""):
    """Of a program that must succeed."""
    import subprocess  # pylint: disable=import-outside-toplevel  # slow to import
    try:
        return subprocess.run(command, cwd=cluster.dir, env=cluster.env, input=said, check=True, capture_output=True).stdout
    except subprocess.CalledProcessError as e:
        raise Failure(e.stderr.decode(errors="replace").strip() or str(e)) from e


def remove(*paths):
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


def read_plan(cluster):
    """Reads the plan. Its `agents` are the list of their names."""
    rows = [line.rstrip("\n").partition(" ")[::2] for line in read_lines(cluster.path("plan"))]
    if not rows:
        raise Failure(f"{cluster.path('plan')} is missing or empty")
    cluster.plan = {**dict(rows), "agents": [value for key, value in rows if key == "agent"]}


def _mail_rows(settings, ports):
    """`ports`: of the listeners for mail, and of what is behind them."""
    if settings["mail_queue"]:
        behind = ("mail_queue", "redis1", "redis2")
    elif settings["mail_to"]:
        behind = ("mail_gateway", "mail_relay")
    else:
        behind = ("mail_relay",) if settings["mail"] else ()
    return {"smtp_backend": settings["smtp_backend"] or f"127.0.0.1:{ports[3]}", "smtp_sink": settings["smtp_sink"] or "no",
            **dict(zip((*MAIL_LISTENERS, *behind), ports))}


def write_plan(cluster, settings, free_ports):
    """Writes the plan from the settings and fresh ports, and reads it."""
    names = [f"a{number}" for number in range(1, int(settings["agents"]) + 1)]
    sf, sl, backend, control, control_plain, *ports = free_ports(11 + 2 * len(names))
    rows = {"build": settings["build"], "keeper": settings["keeper"], "sf": sf, "sl": sl, "control": control, "control_plain": control_plain,
            "backend": settings["backend"] or f"127.0.0.1:{backend}", **({} if settings["backend"] else {"embedded": "yes"})}
    if settings["smtp_backend"] or settings["smtp_sink"] or settings["mail"]:
        rows.update(_mail_rows(settings, ports))
    lines = [f"{key} {value}\n" for key, value in rows.items()]
    lines += [f"agent {name}\n{name}.peer {peer}\n{name}.tls {tls}\n" for name, peer, tls in zip(names, ports[6::2], ports[7::2])]
    write_file(cluster.path("plan"), "".join(lines))
    read_plan(cluster)

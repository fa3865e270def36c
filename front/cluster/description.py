"""DIR/cluster.json, which describes a running cluster: from the plan and the process ids of the daemons."""

import fcntl
import os

from .plan import MAIL_LISTENERS, read_word, replace_file


def daemon_pid(cluster, name):
    """0 if it has none."""
    return int(read_word(cluster.path(f"{name}.pid")) or 0)


def child_of(pid):
    """The first child of a process, or None: it has none, or the kernel does not list children."""
    try:
        children = read_word(f"/proc/{pid}/task/{pid}/children")
    except OSError:  # the process ended
        return None
    return int(children.split()[0]) if children else None


def _at(port):
    return {"host": "127.0.0.1", "port": int(port)}


def _mail(cluster):
    plan = cluster.plan
    mail = {"pid": daemon_pid(cluster, "mail")}
    if "mail_relay" in plan:
        mail["relay"] = _at(plan["mail_relay"])
    if "mail_queue" in plan:
        backups = [{**_at(plan[name]), "pid": daemon_pid(cluster, name)} for name in ("redis1", "redis2")]
        mail["queue"] = {**_at(plan["mail_queue"]), "backups": backups}
    if "mail_gateway" in plan:
        mail["gateway"] = _at(plan["mail_gateway"])
    return {"mail": {**mail, "control": {"socket": cluster.path("smtpproxy.sock")}}}


def _describe(cluster):
    """The supervisor started the keeper, whose child is RAgent proper."""
    plan, keeper = cluster.plan, daemon_pid(cluster, "r1")
    return {"listeners": {name: _at(plan[name]) for name in ("sf", "sl", *MAIL_LISTENERS) if name in plan},
            "control": {"socket": cluster.path("ragent/control.sock"), "url": f"https://localhost:{plan['control']}/",
                        "token_file": cluster.path("control.token")},
            **(_mail(cluster) if cluster.mail_port() else {}),
            "ragent": {"pid": child_of(keeper) or keeper, "keeper": keeper},
            "agents": [{"name": name, "pid": daemon_pid(cluster, name), "tls": _at(plan[f"{name}.tls"])} for name in plan["agents"]],
            "ca": cluster.path("ca.pem")}


def write_description(cluster):
    """One writer at a time, or an older look at the daemons could be the last one."""
    import json  # pylint: disable=import-outside-toplevel  # slow to import, and most supervisors never need it
    lock = os.open(cluster.dir, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        replace_file(cluster.path("cluster.json"), json.dumps(_describe(cluster), separators=(",", ":")) + "\n")
    finally:
        os.close(lock)

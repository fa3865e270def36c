"""The daemons of a cluster in the background. Each has DIR/NAME.pid, DIR/NAME.log, and after its end DIR/NAME.exit with its status."""

import os
import re
import signal

from .description import child_of, daemon_pid
from .keys import ragent_user
from .plan import Failure, read_lines, read_word, remove, wait_for

KILLED = "was killed (SIGKILL) before"
LAST_LINES = 15


def has_ended(cluster, name):
    return os.path.exists(cluster.path(f"{name}.exit"))


def any_ended(cluster):
    return any(has_ended(cluster, name) for name in cluster.daemons())


def running(cluster, name):
    """Its process id, or 0."""
    return next(_processes(cluster, name), 0)


def _processes(cluster, name):
    """The process ids of a daemon. More than one, if somebody has started another one past these commands."""
    noted = _noted(cluster, name)
    if noted:
        yield noted
    yield from _strays(cluster, name)


def _noted(cluster, name):
    """A pid file alone proves nothing: another process may have the number by now."""
    pid = 0 if has_ended(cluster, name) else daemon_pid(cluster, name)
    folder = os.fsencode(cluster.dir)
    words = [word for what in ("environ", "cmdline") for word in _said_of(pid, what).split(b"\0")]
    return pid if any(word in (folder, b"CSSL_CLUSTER=" + folder) or word.startswith(folder + b"/") for word in words) else 0


def _strays(cluster, name):
    """Those that run, whatever the pid file says: RAgent proper, after its keeper was killed."""
    if name in ("backend", "smtp-sink", *cluster.stores()):
        return
    program, file = {"r1": (b"ragent", "cluster.yaml"), "mail": (b"smtpproxy", "smtpproxy.yaml")}.get(name, (b"sslagent", "cluster.yaml"))
    wanted = {os.fsencode(cluster.path(file)), *([] if name == "mail" else [name.encode()])}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        first, *words = _said_of(pid, "cmdline").split(b"\0")
        if first.endswith(b"/" + program) and wanted <= set(words) and b"--check" not in words and process_runs(pid) and _may_be_ours(cluster, pid):
            yield int(pid)


def _may_be_ours(cluster, pid):
    """Anybody can give a process the words of a daemon, and the folder may be another one for a process with another root directory."""
    users = re.findall(rb"\d+", _said_of(pid, "status").partition(b"\nUid:")[2].partition(b"\n")[0])
    ours = {os.geteuid()} if os.geteuid() else {0, os.stat(cluster.dir).st_uid, getattr(ragent_user(), "pw_uid", 0)}
    try:
        return bool(users) and ours >= set(map(int, users)) and os.path.samefile(f"/proc/{pid}/root", "/")
    except OSError as e:  # only root sees the root directory of every process
        return isinstance(e, PermissionError)


def _said_of(pid, what):
    try:
        with open(f"/proc/{pid}/{what}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def _state_and_parent(pid):
    """As letter and number. Read at once: a zombie at a first look may be gone at a second."""
    return _said_of(pid, "stat").rpartition(b")")[2].split()[:2] or [b"X", b"0"]


def process_runs(pid):
    return _state_and_parent(pid)[0] not in (b"Z", b"X")


def _supervisor(pid):
    """Of a daemon; 0 if it was killed."""
    parent = int(_state_and_parent(pid)[1])
    return parent if b"supervise" in _said_of(parent, "cmdline") else 0


def launch(cluster, supervisor, name, command):
    """Starts a daemon and does not wait for it."""
    remove(cluster.path(f"{name}.exit"), cluster.path(f"{name}.pid"))
    supervisor.launch(name, command)


def have_started(cluster, *names):
    """Whether they have processes, soon."""
    return wait_for(cluster.seconds("CSSL_READY_SECONDS"), lambda: all(os.path.exists(cluster.path(f"{name}.pid")) for name in names))


def start(cluster, supervisor, name, command, port=None):
    """Until it has a process, and listens at 127.0.0.1:PORT."""
    launch(cluster, supervisor, name, command)
    if not have_started(cluster, name):
        raise Failure(f"{name} did not start")
    seconds = cluster.seconds("CSSL_READY_SECONDS")
    if port and (not wait_for(seconds, lambda: has_ended(cluster, name) or _listens(int(port))) or has_ended(cluster, name)):
        raise Failure(f"{name} does not listen")


def _listens(port):
    """Whether a process listens there. This reads the kernel's table, because a mail server would count a connection."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        return f": 0100007F:{port:04X} 00000000:0000 0A " in table.read()


def _program(cluster, name):
    return os.path.join(cluster.plan["build"], name)


def start_backend(cluster, supervisor):
    """The embedded one, if the cluster has it."""
    if "embedded" not in cluster.plan:
        return
    address = cluster.plan["backend"]
    names = [word for number, name in enumerate(cluster.plan["agents"], 1) for word in ("--agent", f"{name}=127.0.1.{number}")]
    start(cluster, supervisor, "backend", [_program(cluster, "bench/cssl-bench"), "serve", "--listen", address, "--proxy-protocol",
                                           "accept", *names], address.rpartition(":")[2])


def start_sink(cluster, supervisor):
    """The agents give their transactions names, by which it remembers them (doc/xcssltx.md)."""
    if cluster.plan.get("smtp_sink") != "yes":
        return
    address = cluster.plan["smtp_backend"]
    start(cluster, supervisor, "smtp-sink", [_program(cluster, "bench/cssl-bench"), "smtp-sink", "--proxy", "--xcssltx", "127.0.0.0/8", address],
          address.rpartition(":")[2])


def start_redis(cluster, supervisor):
    """Those that do not run. They keep nothing on disk, and evict nothing. Their titles must not hide the folder from running()."""
    for name in cluster.stores():
        if running(cluster, name):
            continue
        note_end(cluster, name)
        port = cluster.plan[name]
        start(cluster, supervisor, name, ["redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", cluster.dir, "--save", "", "--appendonly",
                                          "no", "--maxmemory", "256mb", "--maxmemory-policy", "noeviction", "--set-proc-title", "no"], port)


def start_mail(cluster, supervisor):
    """A gateway that finds only one of its Redis servers waits ten seconds for the other one."""
    if cluster.mail_port():
        start_redis(cluster, supervisor)
        start(cluster, supervisor, "mail", [_program(cluster, "smtpproxy/smtpproxy"), "--config", cluster.path("smtpproxy.yaml")],
              cluster.mail_port())


def launch_agent(cluster, supervisor, name):
    launch(cluster, supervisor, name, [_program(cluster, "sslagent/sslagent"), "--config", cluster.path("cluster.yaml"), "--name", name])


def _ragent_command(cluster):
    return [_program(cluster, "ragent/ragent"), "--config", cluster.path("cluster.yaml"), "--name", "r1",
            *(["--no-keeper"] if cluster.plan.get("keeper") == "off" else [])]


def start_ragent(cluster, supervisor):
    start(cluster, supervisor, "r1", _ragent_command(cluster))


def replace_ragent(cluster, supervisor):
    """The supervisor of the one before then reports no end."""
    supervisor.launch("r1", [*_ragent_command(cluster), "--replace"])


def show_last_lines(cluster):
    """Of every log."""
    for name in cluster.daemons():
        lines = read_lines(cluster.path(f"{name}.log"))
        if lines:
            cluster.say(f"the last lines of {cluster.path(name)}.log:")
            cluster.write("".join(lines[-LAST_LINES:]))


def ended_in_order(cluster, name, write):
    """Tells how a daemon ended if it was not by itself. A kill by hand is no fault."""
    status = read_word(cluster.path(f"{name}.exit"))
    if status not in ("0", "137"):
        how = f"with exit status {status}" if status else "without an exit status"
        write(f"cssl: {name} ended {how}; its log is {cluster.path(name)}.log\n")
    elif status == "137":
        write(f"cssl: {name} {KILLED}\n")
    return status in ("0", "137")


def note_end(cluster, name):
    """Before a daemon starts again, remembers a bad end of the one before; `down` reports it."""
    if has_ended(cluster, name):
        with open(cluster.path("unclean"), "a", encoding="utf-8") as file:
            ended_in_order(cluster, name, file.write)


def _signal(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def end(cluster, name, pid, seconds):
    """Asks this process of a daemon to end. Whether it did within this time. A supervisor that was killed notes no end."""
    supervisor = _supervisor(pid)
    _signal(pid, signal.SIGTERM)
    if not wait_for(seconds, lambda: not process_runs(pid)):
        return False
    wait_for(seconds, lambda: has_ended(cluster, name) or not process_runs(supervisor))
    return True


def _stop_process(cluster, name, pid):
    """Whether it stopped in time."""
    seconds = cluster.seconds("CSSL_STOP_SECONDS")
    if end(cluster, name, pid, seconds):
        return True
    cluster.say(f"{name} did not stop within {seconds} s, so it was killed")
    _signal(child_of(pid) or pid, signal.SIGKILL)  # first that of ragent
    _signal(pid, signal.SIGKILL)
    wait_for(5, has_ended, cluster, name)
    return False


def _stop(cluster, name):
    """Whether the daemon stopped in order. The others have to stop, whatever keeps this one from it."""
    note = cluster.path(f"{name}.pid")
    try:
        in_time = [_stop_process(cluster, name, pid) for pid in _processes(cluster, name)]
        if not in_time and not os.path.exists(note):
            return True
        remove(note)
        return all(in_time) and ended_in_order(cluster, name, cluster.write)
    except (OSError, ValueError) as e:
        cluster.say(f"{name}: {e}")
        return False


def stop_all(cluster):
    """RAgent first, because clients come through it; the backend last. Whether all stopped in order."""
    faults = sum(not _stop(cluster, name) for name in cluster.daemons())
    unclean = [line for line in read_lines(cluster.path("unclean")) if KILLED not in line]
    cluster.write("".join(unclean))
    remove(cluster.path("unclean"))
    return not faults and not unclean

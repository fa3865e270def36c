"""The commands up, down, agent, mail, reload and rolling. front/help says what they do."""

import contextlib
import fcntl
import os
import re
import time

from . import daemons
from .config import write_cluster_file, write_mail_file
from .control_api import agents_are_ready
from .description import write_description
from .keys import RAGENT_USER, make_certificates, make_keys, make_ragent_folder, make_ragent_user, ragent_user_reaches
from .plan import (ROOT, SETTINGS, Cluster, Failure, front_door, output_of, read_lines, read_plan, read_word, remove, replace_file, wait_for,
                   write_file, write_plan)
from .ports import free_ports as ports_of_all
from .supervisor import Supervisor

FOLDER_MAX = 70  # bytes: UNIX sockets are in it
VALUES = ("--dir", "--agents", "--workers", "--backend", "--smtp-backend", "--mail-to", "--link", "--handshake", "--resumption",
          "--affinity-bound")
FLAGS = {
    "--no-migration": {"migration": "off"}, "--tls12-tickets": {"tls12_tickets": "on"}, "--no-keeper": {"keeper": "off"},
    "--smtp-proxy-v2": {"smtp_proxy_v2": "on"}, "--mail": {"mail": "yes", "smtp_proxy_v2": "on"},
    "--mail-queue": {"mail": "yes", "mail_queue": "yes", "smtp_proxy_v2": "on"},
    "--smtp-sink": {"smtp_sink": "yes", "smtp_proxy_v2": "on"},
    "--prepare": {"stage": "prepare"}, "--prepared": {"stage": "prepared"},
}
NUMBER, LINK, ADDRESS = "[1-9][0-9]?", "trusted|sealed", r"[0-9.]+:[0-9]+|\[[0-9A-Fa-f:.]+\]:[0-9]+"


def _usage(command, message):
    return Failure(f"{command}: {message} ({front_door(command, '--help')})", 2)


def _parse(command, arguments, values=("--dir",), flags=(), words=False):
    """({setting: value}, [word])"""
    settings, names, rest = {}, [], list(arguments)
    while rest:
        option = rest.pop(0)
        if option in values:
            if not rest or not rest[0]:
                raise Failure(f"{option} needs a value", 2)
            settings[option[2:].replace("-", "_")] = rest.pop(0)
        elif option in flags:
            settings.update(flags[option])
        elif words and not option.startswith("-"):
            names.append(option)
        else:
            raise _usage(command, f"unknown option '{option}'")
    return settings, names


def _check(settings, env):
    """This checks only the form; the reader of the cluster file checks the numbers."""
    address, to, sink, mail, queue = (settings[key] for key in ("smtp_backend", "mail_to", "smtp_sink", "mail", "mail_queue"))
    for wrong, message in (
            (not settings["dir"], "--dir is needed"),
            (not re.fullmatch(NUMBER, settings["agents"]), "--agents is a number from 1 to 99"),
            (not re.fullmatch(NUMBER, settings["workers"]), "--workers is a number from 1 to 99"),
            (not re.fullmatch(LINK, settings["link"]), "--link is trusted or sealed"),
            (address and sink, "--smtp-sink and --smtp-backend cannot be combined: each is the mail server"),
            (mail and (address or sink), "--mail cannot be combined with --smtp-backend or --smtp-sink: it starts a mail server of its own"),
            (to and not mail, "--mail-to needs --mail"),
            (queue and not to, "--mail-queue needs --mail-to"),
            (to and not re.fullmatch(ADDRESS, to), f"--mail-to is ADDR:PORT, as 192.0.2.1:25 or [2001:db8::1]:25, not '{to}'"),
            (settings["smtp_proxy_v2"] == "on" and not (mail or address or sink), "--smtp-proxy-v2 needs --smtp-backend"),
            (address and not re.fullmatch(ADDRESS + r'|unix:/[^"\\]+', address),
             f"--smtp-backend is ADDR:PORT, as 192.0.2.1:25 or [2001:db8::1]:25, or unix:/path, not '{address}'")):
        if wrong:
            raise _usage("up", message)
    folders = env.get("PATH", "").split(":") + ["/usr/sbin", "/sbin"]
    if queue and not any(os.access(os.path.join(folder, "redis-server"), os.X_OK) for folder in folders):
        raise Failure(f"--mail-queue needs redis-server, which root can install: {front_door('packages', 'redis-server')}")


def _build(arguments):
    """Brings build/ up to date, and ends if it cannot: the reason has been said."""
    import subprocess  # pylint: disable=import-outside-toplevel  # slow to import
    script = 'root=$0 command_line=$1; for part in say build; do . "$root/front/$part.sh"; done; build_release'
    status = subprocess.call(["bash", "-euo", "pipefail", "-c", script, ROOT, " ".join(["./cssl", "up", *arguments])])
    if status != 0:
        raise SystemExit(status)


@contextlib.contextmanager
def _turn(cluster, words):
    """One command at a time: what it finds in the folder stays so until its end. Daemons do not inherit it."""
    path = cluster.path("turn")
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError:  # of another user: the command tells what it may not do
        if not os.path.exists(path):
            raise
        lock = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            cluster.say(f"waiting for {read_word(path) or 'another command'}, which uses {cluster.dir}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(OSError):  # a full disk keeps nobody from stopping a cluster
            write_file(path, f"`{front_door(*words)}` (process {os.getpid()})\n")
        yield
    finally:
        os.close(lock)


def _check_folder(cluster):
    if len(os.fsencode(cluster.dir)) > FOLDER_MAX:
        raise Failure(f"{cluster.dir}: too long for the UNIX sockets in it")
    make_ragent_user(cluster)
    if not ragent_user_reaches(cluster):
        raise Failure(f"{cluster.dir}: ragent, which runs as {RAGENT_USER}, cannot get there; take another folder")
    if any(name.endswith(".pid") for name in os.listdir(cluster.dir)):
        raise Failure(f"a cluster runs in {cluster.dir} ({front_door('down', '--dir', cluster.dir)})")


def _prepare(cluster, settings, free_ports):
    """Makes all files of the folder, and starts nothing."""
    for name in ("links", "peers"):
        os.makedirs(cluster.path(name), exist_ok=True)
    make_ragent_folder(cluster)
    make_certificates(cluster)
    make_keys(cluster, settings)
    write_plan(cluster, settings, free_ports)
    write_cluster_file(cluster, settings)
    write_mail_file(cluster, settings)
    if settings["smtp_backend"] and settings["smtp_proxy_v2"] == "off":
        cluster.say("warning: the mail server is not told the clients' addresses, and takes every client for this host."
                    " If it relays for this host, it is an open relay now (--smtp-proxy-v2 tells it the addresses)")


def _check_file(cluster):
    """What is wrong with the options is said by a reader of the configuration, before anything runs."""
    file = cluster.path("cluster.yaml")
    try:
        output_of(cluster, os.path.join(cluster.plan["build"], "sslagent/sslagent"), "--config", file, "--name", "a1", "--check")
    except Failure as e:
        cluster.write(f"{e}\n")
        raise Failure(f"{file} is refused") from e


def _are_ready(cluster, names):
    return agents_are_ready(cluster.path("ragent/control.sock"), names)


def _start(cluster, supervisor):
    names, seconds = cluster.plan["agents"], cluster.seconds("CSSL_READY_SECONDS")
    remove(cluster.path("cluster.json"), cluster.path("unclean"), *(cluster.path(f) for f in os.listdir(cluster.dir) if f.endswith(".exit")))
    daemons.start_backend(cluster, supervisor)
    daemons.start_sink(cluster, supervisor)
    daemons.start_mail(cluster, supervisor)
    for name in names:
        daemons.launch_agent(cluster, supervisor, name)
    daemons.have_started(cluster, *names)
    daemons.start_ragent(cluster, supervisor)
    if not wait_for(seconds, lambda: daemons.any_ended(cluster) or _are_ready(cluster, names)):
        raise Failure(f"not ready within {seconds} s")
    if daemons.any_ended(cluster):
        raise Failure("a daemon ended at once")
    write_description(cluster)


def _start_or_stop(cluster):
    """All of it, or nothing that runs; also if somebody does not wait for the end."""
    supervisor = Supervisor(cluster)
    try:
        with supervisor:
            _start(cluster, supervisor)
    except BaseException as e:
        cluster.say(str(e) or "interrupted")
        daemons.have_started(cluster, *supervisor.launched)  # those that the supervisor was just about to start
        daemons.show_last_lines(cluster)
        daemons.stop_all(cluster)
        raise Failure("the cluster did not start") from e


def _up(arguments, env, write, free_ports):
    given, _ = _parse("up", arguments, VALUES, FLAGS)
    settings = {**SETTINGS, "build": env.get("CSSL_BUILD_DIR") or os.path.join(ROOT, "build"), **given}
    _check(settings, env)
    if not env.get("CSSL_BUILD_DIR"):
        _build(arguments)
    os.makedirs(settings["dir"], exist_ok=True)
    cluster = Cluster(os.path.realpath(settings["dir"]), env, write)
    with _turn(cluster, ["up", *arguments]):
        _up_there(cluster, settings, free_ports)


def _up_there(cluster, settings, free_ports):
    _check_folder(cluster)
    if settings["stage"] == "prepared":
        read_plan(cluster)
    else:
        _prepare(cluster, settings, free_ports)
    if settings["stage"] == "all":
        _check_file(cluster)
    if settings["stage"] == "prepare":
        return
    _start_or_stop(cluster)
    plan = cluster.plan
    if "smtp_backend" in plan:
        cluster.say(f"mail: localhost:{plan['smtp']} (STARTTLS offered), localhost:{plan['submission']} (STARTTLS required),"
                    f" localhost:{plan['smtps']} (TLS at once)")
    cluster.say(f"up: https://localhost:{plan['sf']} (SF) https://localhost:{plan['sl']} (SL), CA {cluster.path('ca.pem')}")


def _existing(command, arguments, env, write):
    """The cluster of --dir, and the words."""
    given, names = _parse(command, arguments, words=command in ("agent", "rolling"))
    demo = f"{env.get('TMPDIR') or '/tmp'}/cssl-demo-{os.geteuid()}" if command == "down" else ""
    folder = given.get("dir", demo)
    if not folder or not os.path.exists(os.path.join(folder, "plan")):
        raise Failure(f"there is no cluster in {folder}") if demo else _usage(command, "--dir names the folder of a cluster")
    cluster = Cluster(os.path.realpath(folder), env, write)
    read_plan(cluster)
    for name in names or [""] * (command == "agent"):
        if name not in cluster.plan["agents"]:
            raise _usage(command, f"'{name}' is no agent of this cluster")
    return cluster, names


def _down(cluster, _):
    if not daemons.stop_all(cluster):
        raise Failure(f"not all daemons stopped in order; their logs are in {cluster.dir}")
    remove(cluster.path("cluster.json"))
    cluster.say(f"the cluster in {cluster.dir} is down")


def _start_agent(cluster, name, needed):
    """Until the `needed` agents are ready."""
    with Supervisor(cluster) as supervisor:
        daemons.launch_agent(cluster, supervisor, name)
        daemons.have_started(cluster, name)
    if not wait_for(cluster.seconds("CSSL_READY_SECONDS"), _are_ready, cluster, needed):
        daemons.show_last_lines(cluster)
        raise Failure(f"{name} did not become ready")


def _agent(cluster, names):
    name = names[-1]
    if daemons.running(cluster, name):
        raise Failure(f"{name} is running")
    daemons.note_end(cluster, name)
    _start_agent(cluster, name, [name])
    write_description(cluster)
    cluster.say(f"{name} is up again, process {daemons.running(cluster, name)}")


def _mail(cluster, _):
    if not cluster.mail_port():
        raise _usage("mail", "this cluster has no smtpproxy: it was not started with --mail")
    mail_runs = daemons.running(cluster, "mail")
    if mail_runs and all(daemons.running(cluster, name) for name in cluster.stores()):
        raise Failure("smtpproxy is running")
    with Supervisor(cluster) as supervisor:
        if mail_runs:  # with a queue: those of its Redis servers that ended
            daemons.start_redis(cluster, supervisor)
        else:
            daemons.note_end(cluster, "mail")
            daemons.start_mail(cluster, supervisor)
    write_description(cluster)
    cluster.say(f"smtpproxy is up, process {daemons.running(cluster, 'mail')}")


def _undo_reload(cluster, notes):
    """The old process goes on, so the files say what they said before. The whole log is read: under load, other lines come after a
    complaint."""
    for path, lines in notes.items():
        if lines:
            replace_file(path, "".join(lines))
        else:
            remove(path)
    daemons.show_last_lines(cluster)
    cluster.write("".join([line for line in read_lines(cluster.path("r1.log")) if re.search(" (warning|error) ", line)][-5:]))
    raise Failure("ragent was not replaced; the old process goes on serving")


def _reload(cluster, _):
    old = daemons.running(cluster, "r1")
    if not old:
        raise Failure(f"no ragent runs in {cluster.dir}")
    notes = {path: read_lines(path) for path in map(cluster.path, ("r1.pid", "r1.exit", "unclean"))}
    daemons.note_end(cluster, "r1")  # of a keeper that was killed
    remove(cluster.path("r1.exit"))
    with Supervisor(cluster) as supervisor:
        daemons.replace_ragent(cluster, supervisor)
    if not wait_for(cluster.seconds("CSSL_READY_SECONDS"), lambda: daemons.has_ended(cluster, "r1") or not daemons.process_runs(old)):
        cluster.say("the old ragent is still running")
    if daemons.process_runs(old):
        _undo_reload(cluster, notes)
    if daemons.has_ended(cluster, "r1"):
        daemons.show_last_lines(cluster)
        raise Failure("ragent was replaced, and then the new process ended")
    write_description(cluster)
    cluster.say(f"ragent {daemons.running(cluster, 'r1')} has replaced {old}")


def _roll_one(cluster, name):
    pid, seconds, began = daemons.running(cluster, name), cluster.seconds("CSSL_LEAVE_SECONDS"), time.monotonic()
    if not pid:
        raise Failure(f"{name} is not running")
    if not daemons.end(cluster, name, pid, seconds):
        raise Failure(f"{name} did not leave within {seconds} s")
    if not daemons.ended_in_order(cluster, name, cluster.write):
        raise Failure(f"{name} did not leave in order")
    left = time.monotonic()
    _start_agent(cluster, name, cluster.plan["agents"])
    cluster.say(f"{name}: left in {(left - began) * 1000:.0f} ms, ready again after {(time.monotonic() - left) * 1000:.0f} ms")


def _rolling(cluster, names):
    if not wait_for(2, _are_ready, cluster, cluster.plan["agents"]):
        raise Failure("not every agent is up, so no other one may be stopped now")
    for name in names or cluster.plan["agents"]:
        _roll_one(cluster, name)
    write_description(cluster)


COMMANDS = {"down": _down, "agent": _agent, "mail": _mail, "reload": _reload, "rolling": _rolling}


def run(command, arguments, env, write, free_ports=ports_of_all):
    """Runs a command. `env`: for it and its daemons; `write` takes text for people. Returns the exit status."""
    try:
        if command == "up":
            _up(arguments, env, write, free_ports)
        else:
            cluster, names = _existing(command, arguments, env, write)
            with _turn(cluster, [command, *arguments]):
                COMMANDS[command](cluster, names)
        return 0
    except (Failure, OSError, ValueError) as e:
        write(f"cssl: {e}\n")
        return getattr(e, "status", 1)

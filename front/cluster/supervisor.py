"""The process that starts the daemons of one command and outlives it: `front/cluster/__main__.py supervise DIR`. It waits for their
ends and notes them: a daemon in the background has nobody else who could ask for its exit status. While RAgent's keeper lives, it writes
DIR/cluster.json anew whenever another RAgent proper serves: nobody else who reads the file would know that its process id has changed."""

import _signal  # `signal` without its enumerations, which take longer to load than all else here
import os
import select

from .description import child_of, write_description
from .plan import ROOT, Cluster, read_plan, read_word, replace_file

LOOK_AGAIN_MS = 20
END = b"\0\n"  # of a request, whose words have zeros between them


class Supervisor:
    """The side of the command: use it as a context. The process starts with the first daemon."""

    def __init__(self, cluster):
        self._cluster, self._requests, self._pid, self.launched = cluster, None, None, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._requests is not None:
            os.close(self._requests)
            os.waitpid(self._pid, 0)

    def launch(self, name, command):
        """Starts a daemon and does not wait for it."""
        if self._requests is None:
            self._start()
        os.write(self._requests, os.fsencode("\0".join([name, *command])) + END)
        self.launched.append(name)

    def _start(self):
        """In a program of its own: a fork of a large command would cost more, and look like that command."""
        requests, end = os.pipe()
        log = self._cluster.path("r1.log")
        files = [(os.POSIX_SPAWN_DUP2, requests, 0), (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666),
                 (os.POSIX_SPAWN_DUP2, 1, 2)]
        command = ["python3", "-IS", os.path.join(ROOT, "front/cluster/__main__.py"), "supervise", self._cluster.dir]
        self._pid = os.posix_spawn("/usr/bin/python3", command, self._cluster.env, file_actions=files, setsid=True)
        os.close(requests)
        self._requests = end


def supervise(_, arguments, env, write):
    """The process, which gets the requests at its standard input. It leaves the command, and what that has open."""
    os.closerange(3, 1 << 20)
    if os.fork() > 0:
        os._exit(0)
    cluster = Cluster(*arguments, env, write)
    os.chdir(cluster.dir)
    requests = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    read_plan(cluster)
    _Process(cluster, requests).run()


class _Process:
    def __init__(self, cluster, requests):
        self._cluster, self._poll, self._text = cluster, select.poll(), b""
        self._reactions = {}  # descriptor: function
        self._keeper = self._proper = None  # process ids: of the keeper while it runs, and of the last RAgent proper
        self._watch(requests, self._take_requests)

    def _watch(self, fd, reaction):
        self._reactions[fd] = reaction
        self._poll.register(fd, select.POLLIN)

    def _forget(self, fd):
        del self._reactions[fd]
        self._poll.unregister(fd)
        os.close(fd)

    def run(self):
        """Until no request can come and no daemon runs."""
        while self._reactions:
            looks = self._keeper and self._forget not in self._reactions.values()
            for fd, _ in self._poll.poll(LOOK_AGAIN_MS if looks else None):
                self._try(self._reactions[fd], fd)
            if looks:
                self._try(self._find_proper)

    def _try(self, reaction, *arguments):
        """A full disk, or a machine that has no process left, must not end this one."""
        try:
            reaction(*arguments)
        except Exception:  # pylint: disable=broad-except
            pass

    def _take_requests(self, fd):
        text = os.read(fd, 65536)
        if not text:
            self._forget(fd)
        *requests, self._text = (self._text + text).split(END)
        for request in requests:
            self._try(self._start, *os.fsdecode(request).split("\0"))

    def _start(self, name, *command):
        pid = os.fork()
        if pid == 0:
            _become(name, command)
        self._watch(os.pidfd_open(pid), lambda fd: self._note_end(fd, name, pid))
        if name == "r1" and self._cluster.plan.get("keeper") != "off" and os.path.exists("/proc/thread-self/children"):
            self._keeper = pid

    def _note_end(self, fd, name, pid):
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self._forget(fd)
        if pid == self._keeper:
            self._keeper = None
        if read_word(f"{name}.pid") == str(pid):  # else another process has its place: this end is nothing to tell
            replace_file(f"{name}.exit", f"{status if status >= 0 else 128 - status}\n")

    def _find_proper(self):
        """Finds the child of the keeper that serves now. The file exists from when the cluster is up until it goes down."""
        child = child_of(self._keeper)
        if child in (None, self._proper):
            return
        if self._proper and os.path.exists("cluster.json"):
            write_description(self._cluster)
        self._watch(os.pidfd_open(child), self._forget)
        self._proper = child


def _become(name, command):
    """Notes the process id before the program does anything: one that takes over from another may end that at once, and the other's
    supervisor looks here."""
    try:
        os.setsid()
        log = os.open(f"{name}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.dup2(log, 1)
        os.dup2(log, 2)
        for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them
            _signal.signal(number, _signal.SIG_DFL)
        replace_file(f"{name}.pid", f"{os.getpid()}\n")
        os.execvp(command[0], command)
    except OSError as e:
        os.write(2, f"cssl: {e}: {command[0]}\n".encode())
    finally:
        os._exit(127)

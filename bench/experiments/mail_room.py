"""A room: mail servers run in it as if they were installed, with users, configuration and spools of their own.

Debian's packages are unpacked in build-tools (front/packages.sh: mail_get). A room is a mount namespace in which they lie
over this machine's /usr and /etc, and a PID namespace whose end is the end of all that runs in it. The network is the machine's.

The namespace's first process is a shell that waits. It dies with whoever started it; the kernel forgets such a wish of a process that
changes its user, as mail servers do.
"""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]

# name: (user id, group id), beside the users of this machine. Where this machine has a user of one of these names, or of these numbers,
# the room does not.
USERS = {"postfix": (64981, 64981), "postdrop": (64982, 64982), "Debian-exim": (64983, 64983), "opensmtpd": (64984, 64984),
         "opensmtpq": (64985, 64985)}

ENTER = """\
set -e
mount -t overlay room -o lowerdir={tools}/usr:/usr /usr
mount -t overlay room -o lowerdir={room}/etc:{tools}/etc:/etc /etc
mount --bind {room}/spool /var/spool
mount --bind {room}/lib /var/lib
mount -t tmpfs room /run
"$@"
exit
"""


def tools():
    """Where the packages are unpacked; None where they are not."""
    place = ROOT / "build-tools" / "mail"
    return place if (place / "packages").exists() else None


def obstacle():
    """The reason why no room can be made here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    if tools() is None:
        return "needs the mail servers of mail_get (front/packages.sh)"
    usr = f"mount -t overlay room -o lowerdir={tools()}/usr:/usr /usr"
    can = subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", usr], stderr=subprocess.DEVNULL, check=False)
    return None if can.returncode == 0 else "needs leave to make mount and PID namespaces, and overlays in them"


def with_rows(text, rows):
    """The text of /etc/passwd or /etc/group with these rows in the place of others with the same name or number: of two with the same
    name the first would count. `rows`: {name: (number, row)}."""
    numbers = {str(number) for number, _ in rows.values()}

    def is_other(line):
        name, *fields = line.split(":")
        return name not in rows and (len(fields) < 2 or fields[1] not in numbers)
    return "\n".join([*filter(is_other, text.splitlines()), *(row for _, row in rows.values()), ""])


class Room:
    """Made once, entered by each command. Its folder's `spool` is /var/spool within, `lib` is /var/lib."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.spool = self._folder("spool")
        self._folder("lib")
        self._folder("etc")
        self._add_users()

    def _folder(self, name):
        path = self.folder / name
        path.mkdir(parents=True)
        path.chmod(0o755)
        return path

    def _add_users(self):
        users = {name: (uid, f"{name}:x:{uid}:{gid}::/nonexistent:/usr/sbin/nologin") for name, (uid, gid) in USERS.items()}
        groups = {name: (gid, f"{name}:x:{gid}:") for name, (_, gid) in USERS.items()}
        self.etc("passwd", with_rows(pathlib.Path("/etc/passwd").read_text(), users))
        self.etc("group", with_rows(pathlib.Path("/etc/group").read_text(), groups))

    def etc(self, name, text, mode=0o644):
        """A file of /etc in the room."""
        path = self.folder / "etc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return pathlib.Path("/etc") / name

    def postfix_main(self, text):
        """main.cf, with the last row of each name. Of two different rows, each program of Postfix warns. So does the one that writes
        the log, through the socket that it reads: if ten lines of others are there before, it and they wait for ever."""
        rows = {line.partition("=")[0].strip(): line for line in text.splitlines()}
        return self.etc("postfix/main.cf", "\n".join([*rows.values(), ""]))

    def make(self, name, owner=None, group=None, mode=0o755):
        """Make a folder of /var/spool or /var/lib in the room: "spool/x"."""
        path = self.folder / name
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
        os.chown(path, USERS[owner][0] if owner else 0, USERS[group or owner][1] if group or owner else 0)
        return pathlib.Path("/var") / name

    def copy(self, source, name, mode=0o644):
        """Copy a text of this machine to a file of /etc in the room."""
        return self.etc(name, pathlib.Path(source).read_text(), mode)

    def own(self, name, owner):
        """Give a file of /etc in the room to one of USERS."""
        os.chown(self.folder / "etc" / name, *USERS[owner])

    def reason_of_postfix(self):
        """Why Postfix ended and logged nothing: what is wrong in its configuration, its servers tell syslog only, and its commands us."""
        return self.run("postqueue", "-p")[1]

    def start(self, *command, prefix=(), **options):
        """Returns a Popen. Its kill() ends all processes of the command, a little later."""
        enter = ENTER.format(tools=tools(), room=self.folder)
        return subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", enter, "room",
                                 *prefix, *map(str, command)], stdin=subprocess.DEVNULL, **options)

    def run(self, *command, **options):
        """Returns its output, followed by its errors."""
        process = self.start(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        output, _ = process.communicate(**options)
        return process.returncode, output

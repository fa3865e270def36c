"""When mail servers took their mails, from their logs."""

import contextlib
import re
import time

# The alphabet of Postfix's long queue ids: six digits of seconds, four of microseconds.
DIGITS = {c: value for value, c in enumerate("0123456789BCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz")}
QUEUED = re.compile(rb"postfix/qmgr\[\d+\]: (\w{11,}): from=<([^>]*)>", re.A)
ARRIVED = re.compile(rb"postfix/cleanup\[\d+\]: (\w{11,}): message-id=<([^>]*)>", re.A)
TOOK = re.compile(rb"^(\S+ \S+)(\.\d+) (\S+) <= .* id=(\S+)", re.A | re.M)


def queue_id_time(queue_id):
    """When Postfix made the file of this message: seconds since 1970."""
    def number(text):
        value = 0
        for c in text:
            value = 52 * value + DIGITS[c]
        return value
    time_part = queue_id[:queue_id.rindex("z")]
    return number(time_part[:-4]) + number(time_part[-4:]) / 1e6


def made_at(message_id):
    """When cssl-bench smtp-source made this mail: seconds since 1970."""
    return int(message_id[message_id.index(".") + 1:message_id.index("@")]) / 1e6


# What a LogReader finds in new lines of a log: [(id of the server, what, seconds since 1970)].

def senders_in_postfix(lines):
    """`what`: the sender. An id may come several times."""
    found = ((m[1].decode(), m[2].decode()) for m in QUEUED.finditer(lines))
    return [(queue_id, sender, queue_id_time(queue_id)) for queue_id, sender in found]


def mails_in_postfix(lines):
    """`what`: the Message-Id."""
    found = ((m[1].decode(), m[2].decode()) for m in ARRIVED.finditer(lines))
    return [(queue_id, message_id, queue_id_time(queue_id)) for queue_id, message_id in found]


def mails_in_exim(lines):
    """`what`: the Message-Id."""
    return [(m[3].decode(), m[4].decode(), time.mktime(time.strptime(m[1].decode(), "%Y-%m-%d %H:%M:%S")) + float(m[2]))
            for m in TOOK.finditer(lines)]


class LogReader:
    """What a server took, from the lines that its log got since the last look."""

    def __init__(self, host, read):
        self._host, self._read, self._at, self._seen = host, read, 0, {}

    def look(self):
        """{id: (what, seconds since 1970)} of all so far."""
        new = b""
        with contextlib.suppress(FileNotFoundError), open(self._host.log_file, "rb") as log:  # it comes with the first line
            log.seek(self._at)
            new = log.read()
        whole = new[:new.rfind(b"\n") + 1]
        self._at += len(whole)
        for key, what, when in self._read(whole):
            self._seen.setdefault(key, (what, when))
        return self._seen

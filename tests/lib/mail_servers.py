"""Postfix, Exim and OpenSMTPD as real peers, each in a room of its own (bench/experiments/mail_room.py), on a loopback port.

    with Postfix(folder, relay=sink.address, relay_tls="encrypt", ca=certificate, certificate=(certificate, key)) as server:
        source(server.address, "-m", "10")
    server.log()

Each takes mail from this machine for anybody, offers STARTTLS if it has a certificate, and hands all mail to `relay`, one mail on each
connection. `relay_tls`: "none", or "encrypt", which verifies the chain against `ca`. A server with `proxied` wants a PROXY header
of everybody who connects.
"""

import pathlib
import re
import socket
import subprocess

from bench.experiments.mail_room import Room
from bench.experiments.ports import free_ports
from tests.lib.build import patience
from tests.lib.smtp_talk import proxy_v2
from tests.lib.waiting import wait_until

MAIL_MAX = 200_000_000  # bytes


class MailServer:
    name = command = None
    knows_proxy = True
    not_verified = None  # a pattern of the log line when the relay's certificate is not good

    def __init__(self, folder, relay, relay_tls="none", ca=None, certificate=None, options="", version="1.3", proxied=False,
                 port=None):
        """`certificate`: (certificate, key) as PEM files; `options`: further lines of the main configuration; `version`: the TLS
        version of the connections to the relay, "1.2" or "1.3"."""
        self.room = Room(pathlib.Path(folder) / self.name)
        self.relay, self.relay_tls, self.options, self.version, self.proxied = relay, relay_tls, options, version, proxied
        self.address = "127.0.0.1", port or free_ports(1)[0]
        self.room.make("spool/log", mode=0o777)
        self.room.etc("resolv.conf", "nameserver 127.0.0.1\noptions attempts:1 timeout:1\n")
        self.room.etc("hosts", "127.0.0.1 localhost\n")
        self.room.etc("mailname", f"{self.name}.example\n")
        self.ca = self.room.copy(ca, "mail/ca.pem") if ca else None
        self.certificate = certificate and (self.room.copy(certificate[0], "mail/cert.pem"), self._key(certificate[1]))
        self._process = None

    def _key(self, path):
        return self.room.copy(path, "mail/key.pem", 0o600)

    def configure(self):
        raise NotImplementedError

    def log(self):
        files = sorted((self.room.spool / "log").iterdir())
        return "".join(path.read_text(errors="replace") for path in files)

    def wait_for_log(self, part):
        wait_until(lambda: part in self.log(), patience(30), part)

    def wait_for_lines(self, pattern, count):
        """Waits until exactly so many lines of the log match the pattern."""
        found = re.compile(pattern, re.M)
        wait_until(lambda: len(found.findall(self.log())) >= count, patience(30), f"{count} times {pattern}")
        assert len(found.findall(self.log())) == count, self.log()

    def _listens(self):
        assert self._process.poll() is None, f"{self.name} ended:\n{self.log()}"
        try:
            with socket.create_connection(self.address, 1) as client:
                client.settimeout(patience(10))
                client.sendall(proxy_v2() if self.proxied else b"")
                return client.recv(3) == b"220"
        except ConnectionRefusedError:
            return False

    def __enter__(self):
        self.configure()
        output = open(self.room.spool / "log" / "output", "wb")  # pylint: disable=consider-using-with
        with output:
            self._process = self.room.start(*self.command, stdout=output, stderr=output)
        try:
            wait_until(self._listens, patience(30))
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """Until its port is free: the room ends some time after its first process."""
        self._process.kill()
        self._process.wait()
        wait_until(self._is_gone, patience(10), f"end of {self.name}")

    def _is_gone(self):
        with socket.socket() as s:
            return s.connect_ex(self.address) != 0


def wait_for_end(sink, *servers):
    """Waits until the sink has all mails. If that fails, the servers' logs are shown."""
    try:
        sink.wait()
    except subprocess.TimeoutExpired as late:
        raise AssertionError("not all mails came:\n" + "".join(server.log()[-3000:] for server in servers)) from late


POSTFIX_MAIN = """\
compatibility_level = 3.6
myhostname = postfix.example
mydestination =
mynetworks = 127.0.0.0/8
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
smtpd_relay_restrictions = permit_mynetworks, reject
maillog_file = /var/spool/log/postfix.log
relayhost = [{relay[0]}]:{relay[1]}
disable_dns_lookups = yes
smtp_host_lookup = native
message_size_limit = {size}
mailbox_size_limit = 0
queue_minfree = 0
in_flow_delay = 0
smtp_line_length_limit = 0
smtpd_client_connection_count_limit = 0
# Later releases are strict of themselves. Here nobody but the cluster may stop a mail in a mail.
smtpd_forbid_bare_newline = no
smtpd_forbid_unauth_pipelining = no
smtp_connection_cache_on_demand = no
smtp_tls_loglevel = 1
smtp_tls_session_cache_database = btree:${{data_directory}}/client
{tls}
{options}
"""

POSTFIX_MASTER = """\
127.0.0.1:{port} inet n - n - 200 smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
showq unix n - n - - showq
error unix - - n - - error
retry unix - - n - - error
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""


class Postfix(MailServer):
    name = "postfix"
    not_verified = "not verified"
    command = "postfix", "start-fg"

    def _tls(self):
        lines = [f"smtp_tls_security_level = {'verify' if self.relay_tls == 'encrypt' and self.ca else self.relay_tls}"]
        if self.relay_tls != "none":
            lines += [f"smtp_tls_mandatory_protocols = TLSv{self.version}"]
        if self.ca:
            lines += [f"smtp_tls_CAfile = {self.ca}", "smtp_tls_verify_cert_match = localhost"]
        if self.certificate:
            lines += ["smtpd_tls_security_level = may", f"smtpd_tls_cert_file = {self.certificate[0]}",
                      f"smtpd_tls_key_file = {self.certificate[1]}",
                      "smtpd_tls_session_cache_database = btree:${data_directory}/server", "smtpd_tls_loglevel = 1"]
        return "\n".join(lines)

    def configure(self):
        proxied = "smtpd_upstream_proxy_protocol = haproxy\n" if self.proxied else ""
        self.room.postfix_main(POSTFIX_MAIN.format(relay=self.relay, size=MAIL_MAX, tls=self._tls(),
                                                             options=proxied + self.options))
        self.room.etc("postfix/master.cf", POSTFIX_MASTER.format(port=self.address[1]))
        self.room.make("spool/postfix")
        self.room.make("lib/postfix", "postfix", "postfix")


EXIM = """\
primary_hostname = exim.example
local_interfaces = 127.0.0.1
daemon_smtp_ports = {port}
exim_path = /usr/sbin/{program}
spool_directory = /var/spool/exim4
log_file_path = /var/spool/log/exim-%slog
log_selector = +smtp_connection +tls_cipher +tls_resumption
message_size_limit = {size}
check_spool_space = 0
check_spool_inodes = 0
check_log_space = 0
check_log_inodes = 0
smtp_accept_max = 300
smtp_accept_queue_per_connection = 0
remote_max_parallel = 10
host_lookup =
rfc1413_query_timeout = 0s
acl_smtp_rcpt = all
smtp_connect_backlog = 300
notifier_socket =
{tls}
{options}
begin acl
all:
  accept
begin routers
relay:
  driver = manualroute
  route_list = * {relay[0]}
  self = send
  transport = relay
begin transports
relay:
  driver = smtp
  port = {relay[1]}
  allow_localhost
  connection_max_messages = 1
  message_linelength_limit = 1000000
  hosts_try_dane =
{relay_tls}
begin retry
* * F,1h,5s
"""

EXIM_RELAY_TLS = {"none": "  hosts_avoid_tls = *", "encrypt": """\
  hosts_require_tls = *
  tls_resumption_hosts = *
  tls_sni = localhost
  tls_require_ciphers = NORMAL:-VERS-ALL:+VERS-TLS{version}
"""}


class Exim(MailServer):
    """Debian's exim4-daemon-light is built without the PROXY protocol."""

    knows_proxy = False
    name = "exim"
    not_verified = "certificate invalid"
    program = "exim4"

    @property
    def command(self):
        return self.program, "-bdf", "-q1s"

    def _tls(self):
        if not self.certificate:
            return "tls_advertise_hosts ="
        return (f"tls_advertise_hosts = *\ntls_certificate = {self.certificate[0]}\ntls_privatekey = {self.certificate[1]}\n"
                "tls_resumption_hosts = *")

    def _key(self, path):
        copy = super()._key(path)
        self.room.own("mail/key.pem", "Debian-exim")
        return copy

    def _options(self):
        return self.options

    def configure(self):
        relay_tls = EXIM_RELAY_TLS[self.relay_tls].format(version=self.version)
        if self.ca:
            relay_tls += f"  tls_verify_certificates = {self.ca}\n  tls_verify_hosts = *\n  tls_verify_cert_hostnames =\n"
        self.room.etc("exim4/exim4.conf", EXIM.format(port=self.address[1], size=MAIL_MAX, relay=self.relay, tls=self._tls(),
                                                      relay_tls=relay_tls, options=self._options(), program=self.program))
        for name in ("", "/db", "/input", "/msglog"):
            self.room.make(f"spool/exim4{name}", "Debian-exim")


class EximHeavy(Exim):
    """Debian's exim4-daemon-heavy is built with it."""

    name = "exim-heavy"
    knows_proxy = True
    program = "exim4-heavy"

    def _options(self):
        return self.options + ("\nhosts_proxy = 127.0.0.0/8" if self.proxied else "")


OPENSMTPD = """\
smtp max-message-size "{size}"
{options}
{tls}
listen on 127.0.0.1 port {port} hostname opensmtpd.example {proxied}
action "relay" relay host "{scheme}://localhost:{relay[1]}" {verify}
match from any for any action "relay"
"""


class OpenSMTPD(MailServer):
    """Debian 12's cannot make a handshake as a server (its key process fails with OpenSSL 3), so it offers no STARTTLS here."""

    name = "opensmtpd"
    not_verified = "certificate (check|verification) failed"  # of Debian 12, and of 13
    command = "smtpd", "-d"

    def configure(self):
        assert not self.certificate
        self.room.etc("smtpd.conf", OPENSMTPD.format(
            size=MAIL_MAX, options=self.options, port=self.address[1], relay=self.relay, proxied="proxy-v2" if self.proxied else "",
            tls=f'ca "relay" cert "{self.ca}"' if self.ca else "", scheme="smtp+tls" if self.relay_tls == "encrypt" else "smtp+notls",
            verify='tls ca "relay"' if self.ca else ""))
        self.room.make("spool/smtpd", mode=0o711)
        self.room.make("lib/opensmtpd", mode=0o755)
        self.room.make("lib/opensmtpd/empty", mode=0o755)


SERVERS = {server.name: server for server in (Postfix, Exim, OpenSMTPD)}

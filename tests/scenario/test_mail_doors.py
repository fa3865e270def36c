"""Whose mail the listeners of smtpproxy take: what a stranger finds who scans all ports, and of which recipients a queue asks their mail
server first (doc/mail.md)."""

import collections
import contextlib
import json
import re
import socket
import struct
import subprocess

import pytest

from bench.experiments.network_space import GATEWAY, Space, run
from bench.experiments.ports import free_ports
from tests.lib.build import ROOT, binary, patience
from tests.lib.edits import edits
from tests.lib.mail import Sink, source
from tests.lib.mail_cluster import mail_listener
from tests.lib.network_space import RECEIVERS, SENDERS, routed, use_example
from tests.lib.picky_receiver import PickyReceiver
from tests.lib.queued_proxy import QueuedProxy, Stores
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.smtp_control import ask
from tests.lib.smtp_proxy import Proxy, text_of
from tests.lib.smtp_talk import Talk, proxy_v2
from tests.lib.waiting import wait_until

# --- the port scan ---

INSIDE, OUTSIDE = SENDERS[0].format(7), RECEIVERS[0].format(25)
OURS, UNKNOWN, OTHERS = "a@ours.example", "unknown@ours.example", "a@elsewhere.example"

# What is said to a client that comes to the port itself from inside and from outside, in place of a banner; "": it is closed.
# What is said to RCPT for OURS, UNKNOWN and OTHERS by who is captured, or whom a PROXY header of the cluster names; None: nobody is.
Row = collections.namedtuple("Row", ["direct", "captured", "headed_inside", "headed_outside"])
TAKEN, DENIED, REFUSED = "250", "550 5.7.1", "550 5.1.1"
CLIENTS, STRANGERS = (TAKEN, TAKEN, TAKEN), (TAKEN, REFUSED, DENIED)
BY_RECEIVER = (TAKEN, REFUSED, TAKEN)

# (example of conf/, port, original_destination) of its listeners, and the row of each. The queue's example shows one listener and tells of
# captured ones: they have made-up ports here.
LISTENERS = {
    ("smtpproxy.yaml", 2525, "redirect"): Row("421 4.3.5", BY_RECEIVER, None, None),
    ("smtpproxy.yaml", 2526, "tproxy"): Row("421 4.3.5", BY_RECEIVER, None, None),
    ("smtpproxy.yaml", 2527, "proxy"): Row("", None, BY_RECEIVER, BY_RECEIVER),
    ("smtpproxy.yaml", 2528, "proxy"): Row("", None, BY_RECEIVER, BY_RECEIVER),
    ("mail-gateway-queue.yaml", 2525, "proxy"): Row("", None, CLIENTS, STRANGERS),
    ("captured into the queue", 2625, "redirect"): Row("421 4.3.5", CLIENTS, None, None),
    ("captured into the queue", 2626, "tproxy"): Row("421 4.3.5", CLIENTS, None, None),
    ("not clients of the queue", 2627, "redirect"): Row("421 4.3.5", STRANGERS, None, None),
}


def listeners_of(example):
    """(port, original_destination) of the listeners of an example."""
    text = (ROOT / "conf" / example).read_text(encoding="utf-8").split("\nlisteners:\n")[1]
    found = re.findall(r"^  - address: \S+:(\d+)\"?\n(?:    [^\n]*\n)*?    original_destination: (\w+)$", text, re.M)
    return {(example, int(port), how) for port, how in found}


def said_to(space, address):
    """The first line that a client hears there which says EHLO at once; nothing if it is closed."""
    with space.entered(), contextlib.suppress(ConnectionResetError), socket.create_connection(address, patience(10)) as client:
        client.sendall(b"EHLO client.example\r\n")
        return client.makefile("rb").readline().decode("latin-1")
    return ""


def said_to_recipients(space, address, header=b""):
    with space.entered(), Talk(address, header=header) as client:
        client.ehlo()
        assert client.say("MAIL FROM:<a@sender.example>").startswith("250 ")
        return tuple(client.say(f"RCPT TO:<{to}>") for to in (OURS, UNKNOWN, OTHERS))


def capture(router, how, port):
    """What comes from inside goes to that port."""
    rule = {"redirect": f"type nat hook prerouting priority dstnat; iifname inside tcp dport 25 redirect to :{port}",
            "tproxy": "type filter hook prerouting priority mangle; meta l4proto tcp socket transparent 1 meta mark set 1 accept; "
                      f"meta nfproto ipv4 iifname inside tcp dport 25 tproxy ip to :{port} meta mark set 1 accept"}[how]
    run(*router.within, "nft", "flush", "ruleset")
    router.rules(f"table inet cssl {{ chain prerouting {{ {rule}; }}; }}")


def assert_says(found, wanted, where):
    if wanted is None:
        return
    assert all(said.startswith(begin) for said, begin in zip(found, wanted)), (where, found)


def scan(router, senders, receivers, own, row, where):
    """Each way to one listener of smtpproxy, at the address `own`."""
    _, port, how = where
    for space, network in (senders, SENDERS), (receivers, RECEIVERS):
        said = said_to(space, (network[0].format(GATEWAY), port))
        assert said.startswith(row.direct) and bool(said) == bool(row.direct), (where, said)
    if row.captured:
        capture(router, how, port)
        assert_says(said_to_recipients(senders, (OUTSIDE, 25)), row.captured, where)
    for source, wanted in (INSIDE, row.headed_inside), (OUTSIDE, row.headed_outside):
        if wanted:
            header = proxy_v2(source=source, destination=(OUTSIDE, 25))
            assert_says(said_to_recipients(router, (own, port), header), wanted, (where, source))


def replies(line):
    return "550 5.1.1 Nobody has this name" if line.startswith("RCPT") and "unknown@" in line else None


def door(port, how, **keys):
    return {"address": f"0.0.0.0:{port}", "original_destination": how, **keys}


@pytest.mark.root
@pytest.mark.tool("ip", "nft", "redis-server", "redis-cli")
def test_a_scan_of_all_ports_finds_what_the_pages_say(tmp_path):
    """`inside` is the network of the clients. The cluster is in the router itself."""
    assert listeners_of("smtpproxy.yaml") | listeners_of("mail-gateway-queue.yaml") == {
        row for row in LISTENERS if row[0].endswith(".yaml")}
    trusted, own = {"trusted": ["127.0.0.0/8"]}, "127.0.0.1"
    takes = {"accept": ["ours.example"], "clients": ["198.51.100.0/24"]}
    queue_doors = [door(3525, "proxy", **trusted, **takes), door(2625, "redirect", **takes), door(2626, "tproxy", **takes),
                   door(2627, "redirect", accept=["ours.example"])]
    with routed() as (senders, router, receivers), contextlib.ExitStack() as stack:
        with receivers.entered():
            stack.enter_context(PickyReceiver(replies, port=25, host=OUTSIDE))
        with router.entered():
            stores = stack.enter_context(Stores(tmp_path))
        (tmp_path / "queue").mkdir()
        relay_doors = [door(2525, "redirect"), door(2526, "tproxy"), door(2527, "proxy", **trusted),
                       door(2528, "proxy", **trusted, next_hop=f"{OUTSIDE}:25")]
        stack.enter_context(Proxy(tmp_path, within=router.within, listeners=relay_doors, outward={"ports": [25]}))
        queue = stack.enter_context(QueuedProxy(tmp_path / "queue", stores, (OUTSIDE, 25), within=router.within, listeners=queue_doors))
        wait_until(lambda: "is=active" in queue.log(), patience(20), "an active queue")
        for where, row in LISTENERS.items():
            port = 3525 if where[0] == "mail-gateway-queue.yaml" else where[1]
            scan(router, senders, receivers, own, row, (where[0], port, where[2]))


# What is said to a client of a RAgent listener that says EHLO at once ("": it is closed), and to its recipients in clear. The cluster of
# `./cssl up --mail-queue` has clients on its own host only.
FRONTS = {"smtp": ("220 ", (DENIED,) * 3), "submission": ("220 ", None), "smtps": ("", None), "redirect": ("421 4.3.5 ", None),
          "tproxy": ("421 4.3.5 ", None), "balanced": ("", None)}
STARTS = {"offer": "smtp", "require": "submission", "implicit": "smtps"}
# (example of conf/, listener): the row above that tells of it
EXAMPLES = {("mail-outbound.yaml", "redirected"): "redirect", ("mail-outbound.yaml", "delivered"): "tproxy",
            ("mail-gateways.yaml", "smtp"): "smtp", ("mail-gateways.yaml", "submission"): "submission",
            ("mail-gateways.yaml", "submissions"): "smtps", ("example.yaml", "submission"): "balanced"}


def fronts_of(example):
    """The listeners for mail of a cluster file, each with its row."""
    rows = {}
    for text in re.split(r"^  - name: ", (ROOT / "conf" / example).read_text(encoding="utf-8"), flags=re.M):
        if "\n    service: smtp\n" in text:
            captured = re.search(r"^    original_destination: (\w+)", text, re.M)
            rows[example, text.split()[0]] = captured.group(1) if captured else "balanced" if "\n    proxy_protocol: on" in text else \
                STARTS[re.search(r"^      starttls: (\w+)", text, re.M).group(1)]
    return rows


@pytest.mark.root
@pytest.mark.tool("ip", "nft", "redis-server", "redis-cli")
def test_a_scan_of_a_clusters_ports_finds_what_the_pages_say(start_cluster):
    """From outside of its host, and from its own address, where its clients are."""
    assert {key: row for path in (ROOT / "conf").glob("*.yaml") for key, row in fronts_of(path.name).items()} == EXAMPLES
    keys = {"redirect": ["original_destination: redirect"], "tproxy": ["original_destination: tproxy"],
            "balanced": ["proxy_protocol: on", "trusted: [192.0.2.0/28]"]}
    ports = dict(zip(keys, free_ports(len(keys))))
    more = [mail_listener(name, None, policy="offer", above=(f"listen: [0.0.0.0:{ports[name]}]", *keys[name])) for name in keys]

    def on_all_addresses(text):
        head, mail = text.split("  - name: smtp\n")
        return head + "  - name: smtp\n" + mail.replace("listen: [127.0.0.1:", "listen: [0.0.0.0:")

    with routed() as (senders, router, receivers), contextlib.ExitStack() as stack:
        with receivers.entered():
            stack.enter_context(PickyReceiver(replies, port=25, host=OUTSIDE))
        with router.entered():
            cluster = start_cluster("--agents", "1", "--mail-queue", "--mail-to", f"{OUTSIDE}:25", edit=edits(on_all_addresses, *more))
        listeners = cluster.description()["listeners"]
        for name, (word, recipients) in FRONTS.items():
            own = ports.get(name) or listeners[name]["port"]
            for space, host in (senders, SENDERS[0].format(GATEWAY)), (receivers, RECEIVERS[0].format(GATEWAY)), (router, "127.0.0.1"):
                said = said_to(space, (host, own))
                assert said.startswith(word) and bool(said) == bool(word), (name, host, said)
                if recipients:
                    said = said_to_recipients(space, (host, own))
                    assert_says(said, CLIENTS if space is router else recipients, (name, host))
        with senders.entered(), Talk((SENDERS[0].format(GATEWAY), listeners["submission"]["port"])) as client:
            client.ehlo()
            assert client.say("MAIL FROM:<a@sender.example>").startswith("530 ")
        with router.entered():
            cluster.stop()


# --- rules ---

@pytest.mark.root
@pytest.mark.tool("ip", "nft")
@pytest.mark.parametrize("example", ["smtpproxy.yaml", "mail-outbound.yaml"])
@pytest.mark.parametrize("hook", ["nat", "filter"])
def test_while_nobody_listens_the_rules_of_the_example_let_no_mail_past(hook, example):
    with routed() as (senders, router, receivers), contextlib.ExitStack() as stack:
        with receivers.entered():
            for network, family in zip(RECEIVERS, (socket.AF_INET, socket.AF_INET6)):
                stack.enter_context(socket.create_server((network.format(25), 25), family=family))
        use_example(router, hook, example)
        with senders.entered():
            for network in RECEIVERS:
                with pytest.raises((ConnectionRefusedError, TimeoutError)):
                    socket.create_connection((network.format(25), 25), 0.5)
            run(*router.within, "nft", "flush", "ruleset")
            for network in RECEIVERS:  # it is the rules
                socket.create_connection((network.format(25), 25), patience(5)).close()


# --- recipients of strangers ---

STRANGER, CLIENT = "203.0.113.9", "198.51.100.9"
DOOR = {"accept": ["ours.example", "*.ours.example"], "clients": ["198.51.100.0/24"]}


def envelope(proxy, *recipients, source=STRANGER):
    """The replies to these recipients, in one group of commands; the message is sent if one of them is taken."""
    proxy.wait_open()
    with Talk(proxy.address, source=source) as client:
        client.ehlo()
        client.send("MAIL FROM:<a@sender.example>\r\n" + "".join(f"RCPT TO:<{to}>\r\n" for to in recipients))
        said = [client.reply() for _ in range(len(recipients) + 1)][1:]
        if any(reply.startswith("250 ") for reply in said):
            assert client.say("DATA").startswith("354 ")
            assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")
        return said


class Hop(PickyReceiver):
    """A mail server that knows all names but `unknown`, and puts `later` off. It notes what it is asked."""

    def __init__(self, **keys):
        self.asked = []
        super().__init__(self._reply, **keys)

    def _reply(self, line):
        if line.startswith("RCPT"):
            self.asked.append(line[9:].partition(">")[0])
        return "450 4.2.1 Try later" if "later@" in line else replies(line)


@pytest.mark.tool("redis-server", "redis-cli")
def test_a_strangers_recipient_is_refused_as_its_mail_server_does(tmp_path, stores):
    """Its reply, its answer remembered, and no notice to anybody. A client's recipient is taken: it gets a notice."""
    with Hop() as hop, QueuedProxy(tmp_path, stores, hop.address, listener=DOOR) as proxy:
        known, unknown = "k@ours.example", "unknown@x.ours.example"
        assert envelope(proxy, known, unknown, OTHERS) == [
            "250 2.1.5 Ok", "550 5.1.1 Nobody has this name", "550 5.7.1 No mail for this recipient is taken from you"]
        assert envelope(proxy, unknown, "unknown%x@ours.example", "k%elsewhere.example@ours.example")[0].startswith("550 5.1.1 ")
        stores.wait_empty()
        assert hop.asked == [known, unknown, known]  # twice before, once with the message
        assert [mail[:2] for mail in hop.mails] == [("a@sender.example", [known])]
        assert envelope(proxy, "later@ours.example") == ["250 2.1.5 Ok"]
        assert envelope(proxy, "postmaster") == ["250 2.1.5 Ok"]
        assert envelope(proxy, unknown, source=CLIENT) == ["250 2.1.5 Ok"]
        wait_until(lambda: ("", ["a@sender.example"]) in [mail[:2] for mail in hop.mails], patience(20), "a notice for the client")
        metrics = ask(proxy, "/metrics").decode()
        assert "recipients_unknown_total 2" in metrics and "recipients_denied_total 3" in metrics
        record = proxy.events()[0]
        assert [(row["to"], row["code"]) for row in record["recipients"]] == [(known, 250), (unknown, 550), (OTHERS, 550)]


@pytest.mark.tool("redis-server", "redis-cli")
def test_while_the_mail_server_is_away_its_recipients_are_taken(tmp_path, stores):
    port, = free_ports(1)
    with QueuedProxy(tmp_path, stores, ("127.0.0.1", port), listener=DOOR) as proxy:
        assert envelope(proxy, "k@ours.example", "unknown@ours.example", OTHERS)[:2] == ["250 2.1.5 Ok"] * 2
        assert proxy.log().count("recipients not verified line=") == 1
        with Hop(port=port) as hop:
            wait_until(lambda: len(hop.mails) == 2, patience(20), "the mail, and the notice")


@pytest.mark.tool("redis-server", "redis-cli")
def test_a_next_hop_with_names_of_transactions_is_asked_with_its_header(tmp_path, stores):
    with ScriptedReceiver({"RCPT TO:<unknown": "550 5.1.1 Nobody"}, proxied=True) as hop:
        with QueuedProxy(tmp_path, stores, hop.address, listener=DOOR, queue={"xcssltx": "on"}) as proxy:
            assert envelope(proxy, UNKNOWN, UNKNOWN) == ["550 5.1.1 Nobody"] * 2
        assert len(hop.facts) == 1


@pytest.mark.tool("redis-server", "redis-cli")
def test_the_answer_for_who_has_left_counts_for_the_next_one(tmp_path, stores):
    with ScriptedReceiver({"RCPT TO:<unknown": "{gate}550 5.1.1 Nobody"}) as hop:
        with QueuedProxy(tmp_path, stores, hop.address, listener=DOOR) as proxy:
            proxy.wait_open()
            client = Talk(proxy.address, source=STRANGER)
            client.ehlo()
            client.say("MAIL FROM:<a@sender.example>")
            client.send(f"RCPT TO:<{UNKNOWN}>\r\n")
            wait_until(lambda: f"RCPT TO:<{UNKNOWN}>" in [line for _, line in hop.heard], patience(20), "the question")
            client.reset()
            wait_until(lambda: "smtpproxy_sessions_now 0\n" in ask(proxy, "/metrics").decode(), patience(20), "nobody is left")
            hop.open_gate()
            wait_until(lambda: "RSET" in [line for _, line in hop.heard], patience(20), "the answer was taken")
            assert envelope(proxy, UNKNOWN) == ["550 5.1.1 Nobody"]
        assert [line for _, line in hop.heard].count(f"RCPT TO:<{UNKNOWN}>") == 1


# --- domains beside a next hop ---

@pytest.mark.tool("redis-server", "redis-cli")
def test_a_domain_of_the_file_has_its_own_next_hop_beside_that_of_all_others(tmp_path, stores):
    with Hop() as all_others, Hop() as own:
        domains = [{"domain": domain, "next_hop": text_of(own.address)} for domain in ("ours.example", "*.ours.example")]
        queue = {"domains": [*domains, {"domain": "partner.example", "tls": "none"}]}
        with QueuedProxy(tmp_path, stores, all_others.address, ports=(own.address[1],), queue=queue) as proxy:
            envelope(proxy, OURS, "a@x.ours.example", "a@partner.example", OTHERS)
            stores.wait_empty()
    assert sorted(mail[1] for mail in own.mails) == [[OURS], ["a@x.ours.example"]]
    assert sorted(mail[1] for mail in all_others.mails) == [[OTHERS], ["a@partner.example"]]


# --- TLS ---

def header_with_tls(source=STRANGER):
    """As the cluster tells of a client with TLS (PP2_TYPE_SSL with its version)."""
    version = b"TLSv1.3"
    inner = b"\x01\0\0\0\0" + struct.pack("!BH", 0x21, len(version)) + version
    plain = proxy_v2(source=source)
    body = plain[16:] + struct.pack("!BH", 0x20, len(inner)) + inner
    return plain[:14] + struct.pack("!H", len(body)) + body


@pytest.mark.tool("redis-server", "redis-cli")
def test_mail_that_came_with_tls_waits_for_a_receiver_with_tls(tmp_path, stores):
    """Unless the row of the receiver says that it is in clear."""
    with Hop() as clear, Hop() as exempt, contextlib.ExitStack() as stack:
        domains = [{"domain": "clear.example", "next_hop": text_of(clear.address)},
                   {"domain": "exempt.example", "next_hop": text_of(exempt.address), "tls": "none"}]
        proxy = stack.enter_context(QueuedProxy(tmp_path, stores, exempt.address, ports=(clear.address[1],), queue={"domains": domains},
                                                outward={"keep_tls": "on"}))
        proxy.wait_open()
        for header, to in (header_with_tls(), "tls"), (proxy_v2(source=STRANGER), "plain"):
            with Talk(proxy.address, header=header) as client:
                client.ehlo()
                client.mail(recipients=(f"{to}@clear.example", f"{to}@exempt.example"))
                assert client.say("Subject: x\r\n\r\nx\r\n.").startswith("250 ")
        wait_until(lambda: len(clear.mails) == 1 and len(exempt.mails) == 2, patience(20), "what may go in clear")
        wait_until(lambda: re.search(r"delivery_retries_total [1-9]", ask(proxy, "/metrics").decode()), patience(20), "an attempt")
        assert "sent_in_clear_total 1\n" in ask(proxy, "/metrics").decode()
    assert [mail[1] for mail in clear.mails] == [["plain@clear.example"]]
    words = {mail[1][0]: mail[2].split(" with ")[1].split()[0] for mail in exempt.mails}
    assert words == {"tls@exempt.example": "ESMTPS", "plain@exempt.example": "ESMTP"}


# --- files ---

def judged(folder, **keys):
    """What --check and the start say of a file; both refuse it, or neither is asked to start."""
    config = folder / "smtpproxy.yaml"
    config.write_text(json.dumps({"name": "m.example", "user": "nobody", **keys}))
    program = binary("smtpproxy/smtpproxy")
    check, start = (subprocess.run([program, "--config", config, *option], text=True, check=False, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, timeout=patience(20)) for option in (["--check"], []))
    assert check.returncode == start.returncode == 1 and check.stderr.strip() in start.stderr, (check, start)
    return check.stderr


@pytest.mark.parametrize("keys,complaint", [
    ({"deliver": "queue", "queue": {"keys": "/k", "backups": [{"paths": ["127.0.0.1:1"]}, {"paths": ["127.0.0.1:2"]}]}},
     "key 'accept': found nothing, expected domains of recipients, or networks of senders in 'clients'"),
    ({"outward": {"sources": [{"address": "127.0.0.1"}, {"address": "192.0.2.77"}]}},
     "key 'outward.sources.address': found '192.0.2.77:0', expected an address of this host"),
    ({"queue": {"name": "a"}}, "key 'queue': found a map, expected none, or the key 'deliver: queue'")],
    ids=["a queue for everybody", "an address that is not here", "a queue without deliver"])
def test_check_and_start_refuse(tmp_path, keys, complaint):
    door = {"address": f"127.0.0.1:{free_ports(1)[0]}", "trusted": ["127.0.0.0/8"]}
    assert complaint in judged(tmp_path, listeners=[door], **keys)


@pytest.mark.root
@pytest.mark.tool("ip")
def test_a_source_that_has_left_the_host_is_named(open_folder):
    """The other one of the pool still serves."""
    with Space() as space, space.entered(), Sink() as sink:
        for address in ("192.0.2.8", "192.0.2.9"):
            space.address(address, "lo")
        pool = [{"address": "192.0.2.8"}, {"address": "192.0.2.9"}]
        with Proxy(open_folder, next_hop=sink.address, outward={"messages": 1, "sources": pool}) as proxy:
            assert "TLS may end here cause=\"outward.keep_tls: off, by default" in proxy.log()
            space.ip("address", "del", "192.0.2.9", "dev", "lo")
            source(proxy.address, "-m", "4", "-d", "--proxy", "v2")
            assert f"no connection to a receiver to={text_of(sink.address)} from=192.0.2.9:0 cause=" in proxy.log()
            proxy.settings["outward"]["keep_tls"] = "off"
            proxy.write_config()
            proxy.reload("configuration stays as it was")
            assert "found '192.0.2.9:0', expected an address of this host" in proxy.log()

"""./cssl up --smtp-backend: three listeners for mail in front of a mail server of your own."""

import re
import smtplib
import socket
import subprocess

import pytest

from tests.lib.build import binary, patience
from tests.lib.mail import Sink, source
from tests.lib.mail_front_door import MAIL_LISTENERS, mail_door, mail_options
from tests.scenario.test_front_door import cssl, folder

HOST = "mx.cssl.test"
MAIL = "Subject: through the cluster\r\n\r\n.dot\r\n..two\r\nend\r\n"
__all__ = ["folder"] # pytest finds this fixture by its name
CLEAR, STARTTLS, IMPLICIT = [], ["--starttls"], ["--tls"]


def test_the_cluster_file_and_its_description_have_them(start_cluster):
    with Sink() as sink:
        cluster = start_cluster("--agents", "1", *mail_options(sink))
        description = cluster.description()
        assert set(description["listeners"]) == {"sf", "sl"} | set(MAIL_LISTENERS)
        for listener in description["listeners"].values():
            socket.create_connection((listener["host"], listener["port"]), patience(5)).close()
        assert {one["name"] for one in cluster.status()["listeners"]} == {"control", "sf", "sl"} | set(MAIL_LISTENERS)


def test_a_mail_server_that_learns_no_addresses_is_warned_of(folder):
    """Without --smtp-proxy-v2. The cluster file says it, too, and is refused without that."""
    for name, options in ("hidden", ()), ("told", ("--smtp-proxy-v2",)):
        done = cssl("up", "--prepare", "--dir", str(folder / name), "--agents", "1", "--smtp-backend", "192.0.2.1:25", *options)
        assert done.returncode == 0, done.stderr
        text = (folder / name / "cluster.yaml").read_text()
        assert [words in said for words, said in (("open relay", done.stderr), ("client_address: hidden", text))] == [not options] * 2
    refused = folder / "hidden" / "cluster.yaml"
    refused.write_text(re.sub(".*client_address: hidden\n", "", refused.read_text()))
    check = subprocess.run([binary("sslagent/sslagent"), "--config", refused, "--name", "a1", "--check"], text=True, check=False,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert check.returncode and check.stdout.count("must know its clients") == 3, check.stdout


@pytest.mark.parametrize("proxied", [False, True], ids=["plain", "PROXY v2"])
def test_smtp_source_sends_through_each(start_cluster, proxied):
    ways = {"smtp": (CLEAR, STARTTLS), "submission": (STARTTLS,), "smtps": (IMPLICIT,)}
    with Sink(*(["--proxy"] if proxied else [])) as sink:
        cluster = start_cluster("--agents", "2", *mail_options(sink, proxied))
        for name, options in ((name, options) for name, each in ways.items() for options in each):
            tls = ["--ca", cluster.ca] if options else []
            result = source(mail_door(cluster, name), *options, *tls, "-s", "5", "-m", "25", "-l", "3000")
            assert result.counts["sent"] == 25, (name, options, result.errors)
    assert sink.counts["mails"] == sink.counts["right"] == 100
    assert sink.counts["proxied"] == (100 if proxied else 0)


def test_smtplib_sends_through_each(start_cluster, tmp_path):
    dump = tmp_path / "dump"
    with Sink("--dump", str(dump)) as sink:
        cluster = start_cluster("--agents", "2", *mail_options(sink))
        context = cluster.context(alpn=())
        for name in ("smtp", "submission"):
            with smtplib.SMTP(*mail_door(cluster, name), timeout=patience(20)) as client:
                assert client.ehlo()[1].decode().splitlines()[0] == HOST
                client._host = HOST  # pylint: disable=protected-access  # the name that is verified
                client.starttls(context=context)
                client.sendmail("a@x.example", ["b@x.example"], MAIL)
        with smtplib.SMTP_SSL(*mail_door(cluster, "smtps"), context=context, timeout=patience(20)) as client:
            client.sendmail("a@x.example", ["b@x.example"], MAIL)
    assert sink.counts["mails"] == 3 and dump.read_bytes().count(MAIL.encode()) == 3


def test_submission_takes_no_mail_in_clear(start_cluster):
    with Sink() as sink:
        cluster = start_cluster("--agents", "1", *mail_options(sink))
        with smtplib.SMTP(*mail_door(cluster, "submission"), timeout=patience(20)) as client:
            with pytest.raises(smtplib.SMTPSenderRefused) as refusal:
                client.sendmail("a@x.example", ["b@x.example"], MAIL)
        assert refusal.value.smtp_code == 530
    assert sink.counts["mails"] == 0


@pytest.mark.parametrize("name, options", [("smtp", ["-starttls", "smtp"]), ("submission", ["-starttls", "smtp"]), ("smtps", [])],
                         ids=MAIL_LISTENERS)
def test_openssl_verifies_the_name_of_each(start_cluster, name, options):
    with Sink() as sink:
        cluster = start_cluster("--agents", "1", *mail_options(sink))
        done = subprocess.run(["openssl", "s_client", *options, "-quiet", "-no_ign_eof", "-CAfile", cluster.ca, "-verify_return_error",
                               "-servername", HOST, "-verify_hostname", HOST, "-connect", "{}:{}".format(*mail_door(cluster, name))],
                              input="", text=True, check=False, timeout=patience(20), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0 and re.search(r"^depth=0 .*\nverify return:1$", done.stdout, re.M), done.stdout


def test_a_mail_server_with_an_ipv6_address(start_cluster):
    """The web keeps its agents' own source addresses beside it."""
    with Sink(listen="[::1]:0") as sink:
        cluster = start_cluster("--agents", "1", *mail_options(sink))
        result = source(mail_door(cluster, "smtps"), "--tls", "--ca", cluster.ca)
        assert result.counts["sent"] == 1, result.errors
        web = cluster.http()
        web.request("GET", "/5")
        assert web.getresponse().headers["X-CSSL-Agent"] == "a1"
        web.close()
    assert sink.counts["right"] == 1


@pytest.mark.parametrize("address", ["localhost:25", "192.0.2.1", "::1:25", "[::1]", "25", "unix:mail.sock", '192.0.2.1:25"'])
def test_an_address_that_is_none_is_named(tmp_path, address):
    done = cssl("up", "--dir", str(tmp_path), "--smtp-backend", address)
    assert done.returncode == 2 and f"not '{address}'" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_sink_of_the_cluster_s_own(start_cluster):
    cluster = start_cluster("--agents", "1", "--smtp-sink")
    for name, how in (("smtp", []), ("smtps", ["--tls", "--ca", cluster.ca])):
        assert source(mail_door(cluster, name), *how, "-m", "5").counts["sent"] == 5
    cluster.stop()
    counts = dict(line.split()[:2] for line in cluster.log("smtp-sink").splitlines() if line[:1].isalpha())
    assert (counts["mails"], counts["connections"], counts["proxied"]) == ("10", "10", "10")


@pytest.mark.tool("redis-server", "redis-cli")
def test_a_mail_gateway_has_two_redis_servers_that_evict_and_save_nothing(start_cluster):
    """What a full server evicted would be lost, and what it loaded from a disk would be delivered again."""
    cluster = start_cluster("--agents", "1", "--mail-queue", "--mail-to", "127.0.0.1:9")
    queue = cluster.description()["mail"]["queue"]
    socket.create_connection((queue["host"], queue["port"]), patience(5)).close()
    backups = queue["backups"]
    assert len({backup["port"] for backup in backups}) == 2
    for backup in backups:
        socket.create_connection((backup["host"], backup["port"]), patience(5)).close()
        for key, value in (("maxmemory-policy", "noeviction"), ("maxmemory", str(256 << 20)), ("appendonly", "no"), ("save", "")):
            said = subprocess.run(["redis-cli", "-h", backup["host"], "-p", str(backup["port"]), "CONFIG", "GET", key], text=True, check=True,
                                  timeout=patience(10), stdout=subprocess.PIPE)
            assert said.stdout.splitlines()[:2] == [key, value]


def test_one_mail_server_is_enough(tmp_path):
    done = cssl("up", "--dir", str(tmp_path), "--smtp-sink", "--smtp-backend", "192.0.2.1:25")
    assert done.returncode == 2 and "--smtp-sink" in done.stderr


def test_a_proxy_header_needs_somebody_who_gets_it(tmp_path):
    done = cssl("up", "--dir", str(tmp_path), "--smtp-proxy-v2")
    assert done.returncode == 2 and "--smtp-backend" in done.stderr

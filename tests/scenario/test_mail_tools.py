"""smtp-source and smtp-sink: against each other, and against peers that are known to be right."""

import contextlib
import os
import pathlib
import re
import select
import signal
import smtplib
import socket
import ssl
import subprocess
import time

import pytest

from bench.experiments.ports import free_ports
from tests.lib.build import patience, scaled, tool
from tests.lib.mail import Result, Sink, merged, source, source_command
from tests.lib.processes import stop
from tests.lib.scripted_receiver import ScriptedReceiver
from tests.lib.tls_server import self_signed
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.sanitized_tools

MAIL = "From: <a@b>\r\nSubject: x\r\n\r\n.one\r\n..\r\n.\r\nlast\r\n"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return self_signed(tmp_path_factory.mktemp("certificate"))


def tls_options(certificate):
    return "--cert", str(certificate[0]), "--key", str(certificate[1])


def assert_all_came(result, sink, mails):
    assert result.status == 0, (result.seen(), result.errors)
    assert result.counts["sent"] == mails and not result.errors
    assert sink.counts["mails"] == sink.counts["right"] == mails and sink.counts["duplicates"] == 0, sink.result.seen()


# against each other

@pytest.mark.parametrize("options", [
    ["-s", "1"], ["-s", "20"], ["-s", "20", "-d"], ["-s", "7", "--per-connection", "3"], ["-s", "5", "-d", "--pipelining"],
    ["-s", "5", "--chunking"], ["-s", "5", "--chunking", "--chunk", "100"], ["-s", "5", "-d", "--chunking", "--pipelining"],
    ["-o"], ["--helo"], ["-r", "5"], ["-s", "3", "-r", "5", "--pipelining", "-N"], ["-l", "100000", "-s", "3"], ["-l", "1"]], ids=" ".join)
def test_every_mail_arrives_once_and_whole(options):
    mails = scaled(200, 20)
    with Sink() as sink:
        result = source(sink.address, "-m", str(mails), *options)
    assert_all_came(result, sink, mails)
    assert sink.counts["recipients"] == result.counts["recipients"] == mails * (5 if "-r" in options else 1)
    assert sink.counts["bytes"] == result.counts["bytes"]


@pytest.mark.parametrize("how", [["--starttls"], ["--tls"]], ids=" ".join)
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_tls_handshakes_are_counted_full_and_resumed(certificate, how, version):
    with Sink(*tls_options(certificate), *(["--tls"] if how == ["--tls"] else [])) as sink:
        result = source(sink.address, *how, "--resume", "--ca", str(certificate[0]), "--tls-version", version, "-s", "4", "-m", "40")
    assert_all_came(result, sink, 40)
    assert (result.counts["full"], result.counts["resumed"]) == (4, 36)
    assert (sink.counts["full"], sink.counts["resumed"]) == (4, 36)
    assert result.latency["handshake_full"]["count"] == 4 and result.latency["handshake_resumed"]["count"] == 36


def test_a_server_that_is_not_verified_gets_no_mail(certificate, tmp_path):
    other, _ = self_signed(tmp_path)
    with Sink(*tls_options(certificate)) as sink:
        result = source(sink.address, "--starttls", "--ca", str(other))
    assert result.status == 1 and result.counts["handshake_failed"] == 1 and result.counts["sent"] == 0
    assert sink.counts["mails"] == 0


def test_without_starttls_nothing_is_sent_in_clear():
    with Sink() as sink:
        result = source(sink.address, "--starttls")
    assert result.counts["not_offered"] == 1 and result.counts["failed"] == 1
    assert sink.counts["mails"] == 0


@pytest.mark.parametrize("options", [["--tls"], []], ids=["tls", "starttls"])
def test_large_mails_go_through_tls(certificate, options):
    with Sink(*tls_options(certificate), *options) as sink:
        result = source(sink.address, "--tls" if options else "--starttls", "-l", "3000000", "-m", "4", "-s", "2", "-d")
    assert_all_came(result, sink, 4)


def replies_of(*sinks):
    """As a source has them that got all of them."""
    return {f"{code} {sink.address[0]}:{sink.address[1]}": count for sink in sinks for code, count in sink.result.replies.items()}


def test_several_processes_are_one_load():
    with Sink() as sink:
        result = source(sink.address, "--processes", "3", "-s", "7", "-m", "50", "-N", "--source", "127.0.5.1-127.0.5.7")
    assert_all_came(result, sink, 50)
    assert {name: phase["count"] for name, phase in result.latency.items()} == dict.fromkeys(
        ("connect", "banner", "ehlo", "mail", "rcpt", "data", "end", "message"), 50)
    assert sink.result.replies == {"220": 50, "221": 50, "250": 200, "354": 50} and result.replies == replies_of(sink)


def test_the_first_failure_of_one_process_ends_all():
    with Sink("--reply", "end:451 4.3.0 No:1", "--seed", "4") as sink:
        result = source(sink.address, "--processes", "3", "-s", "6", "-m", "1000000000", "-d")
    assert result.status == 1 and result.counts["failed"] >= 1
    assert result.counts["sent"] <= sink.counts["mails"] <= result.counts["sent"] + 6  # those under way are given up


@pytest.mark.parametrize("processes", ["1", "3"])
def test_a_load_that_cannot_begin_ends_and_tells_why(processes):
    done = subprocess.run(source_command(("127.0.0.1", 1), "--processes", processes, "-s", "3", "-m", "3", "--tls", "--ca", "/nowhere"),
                          text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=patience(20))
    assert done.returncode == 1 and not done.stdout and "smtp-source: cannot start\n" in done.stderr


def test_replies_are_counted_by_receiver_and_code():
    with Sink("--reply", "rcpt:450 4.7.1 Later:30") as one, Sink("--reply", "mail:550 5.7.1 No:30", "--tarpit", "data:0.001:20") as two:
        result = source(one.address, "-s", "4", "-m", "60", "--keep-going", "--processes", "2", "{}:{}".format(*two.address))
    assert result.replies == replies_of(one, two)
    assert one.result.replies["450"] == one.counts["by_rule"] > 0 and two.result.replies["550"] == two.counts["by_rule"] > 0
    assert one.counts["connections"] + two.counts["connections"] == 60 > one.counts["connections"] > 0


def test_the_results_of_several_hosts_are_added_up(tmp_path):
    files = tmp_path / "one", tmp_path / "two"
    with Sink("--reply", "rcpt:450 4.7.1 Later:20") as sink:
        results = [source(sink.address, "-s", "3", "-m", mails, "--keep-going", "--save", str(file), *options)
                   for file, mails, options in zip(files, ("40", "30"), ((), ("--helo", "--processes", "2")))]
    status, total, _ = merged(*files)
    assert status == 1  # as of each
    assert total["counts"] == {name: count + results[1].counts[name] for name, count in results[0].counts.items()}
    assert total["replies"] == replies_of(sink) and total["errors"]["RCPT: 450 4.7.1 Later"] == sink.counts["by_rule"]
    assert total["latency"]["rcpt"]["count"] == 70
    assert total["latency"]["rcpt"]["max_us"] == max(result.latency["rcpt"]["max_us"] for result in results)
    assert results[0].seconds + results[1].seconds <= total["seconds"] < results[0].seconds + results[1].seconds + patience(10)
    assert total["mails_per_s"] == pytest.approx(total["counts"]["sent"] / total["seconds"], rel=1e-6)
    alone = merged(files[0])[1]
    assert {key: alone[key] for key in ("counts", "errors", "replies", "latency")} == {
        key: getattr(results[0], key) for key in ("counts", "errors", "replies", "latency")}
    assert alone["seconds"] == pytest.approx(results[0].seconds)


def test_files_that_are_no_results_are_refused(tmp_path):
    for name, text in (("empty", b""), ("text", b"250 Ok\n"), ("old", b"cssl-bench 0.0.1, a result of smtp-source\n")):
        (tmp_path / name).write_bytes(text)
    with Sink() as sink:
        source(sink.address, "--save", str(tmp_path / "right"))
    (tmp_path / "cut").write_bytes((tmp_path / "right").read_bytes()[:-1])
    subprocess.run([tool("bench/cssl-bench"), "https", "--connect", "127.0.0.1:1", "--connections", "1", "--quiet", "--save", tmp_path / "https"],
                   check=False, stdout=subprocess.DEVNULL, timeout=patience(20))
    for names, complaint in ((["empty"], "empty: something else; expected a whole result of https or smtp-source by cssl-bench "),
                             (["text"], "text: something else"), (["old"], "old: something else"), (["cut"], "cut: something else"),
                             (["right", "https"], "https: something else; expected a whole result of smtp-source"),
                             (["https", "right"], "right: something else; expected a whole result of https by"),
                             (["right", "nothing"], "nothing: No such file or directory; expected")):
        status, total, complaints = merged(*(tmp_path / name for name in names))
        assert status == 1 and total is None and complaint in complaints and complaints.endswith("save it with this one (--save)\n"), complaints


@pytest.mark.parametrize("file,reason,sent", [("/nowhere/at/all", "No such file or directory", 0), ("/dev/full", "No space left on device", 1)])
def test_a_result_that_cannot_be_saved_is_told(file, reason, sent):
    with Sink() as sink:
        done = subprocess.run(source_command(sink.address, "--save", file), text=True, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=patience(20))
    assert (done.returncode, done.stderr) == (1, f"smtp-source: {file}: {reason}\n")
    assert sink.counts["mails"] == sent and bool(done.stdout) == bool(sent)  # before the load, if it can be known


def test_failures_are_counted_and_the_rest_arrives():
    with Sink("--reply", "rcpt:450 4.7.1 Later:20", "--drop", "data:10", "--reply", "connect:421 4.3.2 No:10") as sink:
        result = source(sink.address, "-s", "10", "-m", "300", "--keep-going")
    assert result.status == 1 and result.counts["sent"] + result.counts["failed"] == 300
    assert result.counts["sent"] == sink.counts["mails"] == sink.counts["right"]
    assert result.errors["banner: 421 4.3.2 No"] + result.errors["RCPT: 450 4.7.1 Later"] == sink.counts["by_rule"]
    assert result.errors["DATA: end"] == sink.counts["dropped"]


def test_without_keep_going_the_first_failure_ends_all():
    with Sink("--reply", "end:451 4.3.0 No") as sink:
        result = source(sink.address, "-s", "4", "-m", "1000")
    assert result.status == 1 and result.counts["sent"] == 0 and 1 <= result.counts["failed"] <= 4
    assert sink.counts["mails"] == 0


def test_refusals_inside_a_group_keep_it_in_step():
    with Sink("--reply", "mail:450 4.7.1 Later:30", "--reply", "rcpt:550 5.1.1 Nobody:30") as sink:
        result = source(sink.address, "-s", "5", "-m", "200", "-d", "-r", "2", "--pipelining", "--keep-going")
    assert result.counts["sent"] + result.counts["failed"] == 200 and result.counts["lost"] == 0
    assert sink.counts["right"] == result.counts["sent"] and sink.counts["recipients"] == result.counts["recipients"]


def test_a_mail_whose_end_was_not_answered_is_undecided():
    with Sink("--drop", "end") as sink:
        result = source(sink.address, "-m", "3", "--keep-going")
    assert result.counts["undecided"] == result.counts["failed"] == 3


def test_a_connect_is_tried_as_often_as_wanted():
    port, = free_ports(1)
    result = source(("127.0.0.1", port), "--connect-tries", "3", "-m", "2", "--keep-going")
    assert result.status == 1 and result.counts["failed"] == 2
    assert result.counts["connections"] == result.counts["connect_failed"] == 6
    assert result.errors == {"connect: connection refused": 6}


def test_progress_is_shown_while_it_runs():
    with Sink() as sink:
        result = source(sink.address, "-m", "4", "-w", "0.5", "-c")
    assert re.search(r"^ +1 s  \d of 4 mails  ", result.complaints, re.M)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_a_signal_ends_the_load_in_order(processes):
    with Sink() as sink:
        load = subprocess.Popen(source_command(sink.address, "-s", "5", "-m", "1000000000", "-c", "--processes", processes), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        load.stderr.readline()
        load.terminate()
        output, complaints = load.communicate(timeout=patience(20))
    result = Result(load.returncode, output, complaints)
    assert_all_came(result, sink, result.counts["sent"])
    assert result.counts["sent"] > 0 and sink.counts["cut"] == 0


def test_delays_and_tarpits_take_their_time():
    with Sink("--delay", "mail:0.2", "--tarpit", "rcpt:0.02") as sink:
        result = source(sink.address)
    assert_all_came(result, sink, 1)
    assert result.latency["mail"]["min_us"] >= 200000
    assert result.latency["rcpt"]["min_us"] >= 20000 * len("250 2.0.0 Ok\r")


@pytest.mark.parametrize("server,options", [(["--delay", "rcpt:0.1"], ["-r", "20", "--pipelining"]), (["--tarpit", "mail:0.15"], [])],
                         ids=["one reply after another", "byte by byte"])
def test_a_server_that_answers_slowly_is_not_given_up(server, options):
    with Sink(*server) as sink:
        result = source(sink.address, "--timeout", "1", *options)
    assert_all_came(result, sink, 1)
    assert result.counts["timeouts"] == 0 and result.seconds > 1.5


def test_a_server_that_does_not_answer_is_given_up():
    with Sink("--delay", "rcpt:1000") as sink:
        result = source(sink.address, "--timeout", "0.3")
    assert result.counts["timeouts"] == result.counts["failed"] == 1 and result.errors == {"RCPT: no progress": 1}


def test_connections_above_the_limit_are_told_or_wait():
    with Sink("--max-connections", "3") as told:
        result = source(told.address, "-s", "8", "-m", "8", "-d", "--keep-going", "-w", "0.2")
    assert told.counts["over"] == result.errors["banner: 421 4.7.0 Too many connections"] > 0
    with Sink("--max-connections", "3", "--over", "wait") as waited:
        result = source(waited.address, "-s", "8", "-m", "40")
    assert_all_came(result, waited, 40)
    assert waited.result.most_open == 3


def test_a_source_has_its_own_limit():
    with Sink("--max-per-source", "1") as sink:
        one = source(sink.address, "-s", "4", "-m", "4", "-d", "--keep-going", "--source", "127.0.0.2", "-w", "0.2")
        four = source(sink.address, "-s", "4", "-m", "4", "-d", "--keep-going", "--source", "127.0.0.2-127.0.0.5")
    assert one.counts["failed"] > 0
    assert four.counts["sent"] == 4 and four.counts["failed"] == 0


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_proxy_headers_stand_in_front(version):
    with Sink("--proxy") as sink:
        result = source(sink.address, "--proxy", version, "--proxy-source", "192.0.2.1-192.0.2.9", "-s", "3", "-m", "30")
    assert_all_came(result, sink, 30)
    assert sink.counts["proxied"] == 30
    with Sink("--proxy") as sink:
        with socket.create_connection(sink.address, timeout=patience(10)) as client:
            client.sendall(b"EHLO a\r\n")
            assert client.recv(1000) == b""
    assert sink.counts["proxy_bad"] == 1


def test_sizes_are_declared_and_refused():
    with Sink("--size", "1000") as sink:
        assert source(sink.address, "-l", "2000", "-A").errors == {"MAIL: 552 5.3.4 Message is too big": 1}
        assert source(sink.address, "-l", "2000", "-A", "--helo").errors == {"end of data: 552 5.3.4 Message is too big": 1}
        assert source(sink.address, "-l", "200").status == 0
    assert sink.counts["mails"] == 1 and sink.counts["too_big"] == 1


def test_an_open_loop_keeps_its_rate():
    with Sink() as sink:
        result = source(sink.address, "-s", "50", "-m", "300", "--rate", "300")
    assert_all_came(result, sink, 300)
    assert 0.9 <= result.seconds <= patience(3)
    assert result.latency["late_start"]["count"] == 300


def test_a_duration_ends_the_load():
    with Sink() as sink:
        result = source(sink.address, "-s", "2", "-m", "1000000000", "--duration", "0.5")
    assert_all_came(result, sink, result.counts["sent"])
    assert result.counts["sent"] > 0


def test_duplicates_and_wrong_bodies_are_found(tmp_path):
    dump = tmp_path / "dump"
    with Sink("--dump", str(dump)) as sink:
        source(sink.address, "-l", "300")
    text = dump.read_text()
    mail = text[text.index("X-CSSL-Mail"):].rstrip("\n") + "\r\n"
    assert "X-Mail-Args: <foo@smtp-source.localdomain>" in text and "X-Rcpt-Args: TO:<foo@" in text
    with Sink() as sink:
        for body in (mail, mail, mail.replace("XX", "XY", 1)):
            with smtplib.SMTP(*sink.address, timeout=patience(10)) as client:
                client.sendmail("a@b", ["c@d"], body)
    assert sink.counts["duplicates"] == 2 and sink.counts["wrong"] == 1 and sink.counts["right"] == 2
    assert sink.result.status == 1
    assert sink.result.senders["a@b"]["mails"] == 3


FLAGS = {  # of smtp-source, and what the sink's dump has then
    "-S": (["-S", "hello there"], "\nSubject: hello there\n"), "-t": (["-t", "to@x.example"], "\nX-Rcpt-Args: TO:<to@x.example>"),
    "-f": (["-f", "from@x.example"], "X-Mail-Args: <from@x.example>\n"), "-M": (["-M", "host.example"], "X-Mail-Args: <foo@host.example>\n"),
    "-r": (["-r", "2", "-t", "to@x.example"], "\nX-Rcpt-Args: TO:<2to@x.example>"),
    "-4": (["-4"], "\nX-CSSL-Mail: "), "-o": (["-o"], "\nX-CSSL-Mail: "), "-F": (["-F", __file__], "\nFLAGS = {"),
}


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_has_its_effect_at_the_server(flag, tmp_path):
    options, expected = FLAGS[flag]
    dump = tmp_path / "dump"
    with Sink("--dump", str(dump)) as sink:
        result = source(sink.address, "-m", "3", *options)
    assert_all_came(result, sink, 3)
    assert dump.read_text().replace("\r", "").count(expected) == 3


def test_a_random_pause_takes_its_time():
    """Between two mails up to 0.2 s, so 3.9 s in the mean."""
    with Sink() as sink:
        result = source(sink.address, "-m", "40", "-R", "0.2")
    assert_all_came(result, sink, 40)
    assert 2 < result.seconds < 39 * 0.2 + patience(5)


@pytest.mark.tool("ss")
def test_a_window_bounds_the_receive_buffer():
    """Linux takes twice of what is asked for (socket(7))."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def buffers():
            told = subprocess.run(["ss", "-tnmH", f"dport = :{port}"], stdout=subprocess.PIPE, text=True, check=True).stdout
            return re.findall(r"skmem:\(r\d+,rb(\d+)", told)

        with subprocess.Popen(source_command(server.getsockname(), "-T", "4096"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as load:
            try:
                assert wait_until(buffers, patience(10), "its connection") == ["8192"]
            finally:
                load.kill()


def test_a_name_is_looked_up_in_the_family_that_is_wanted():
    with Sink() as sink:
        assert source(("localhost", sink.address[1]), "-4").counts["sent"] == 1
    for wanted in ["-6", "127.0.0.1:25"], ["-4", "[::1]:25"], ["no-such-name.invalid:25"]:
        done = subprocess.run([*source_command(("", 0))[:-1], *wanted], stderr=subprocess.PIPE, text=True, check=False, timeout=patience(30))
        assert done.returncode == 2 and "bad address" in done.stderr


def test_mails_go_over_ipv6():
    with Sink(listen="[::1]:0") as sink:
        assert source(("[::1]", sink.address[1]), "-6").counts["sent"] == 1
    assert sink.counts["right"] == 1


def test_verbose_shows_both_sides():
    with Sink("-v") as sink:
        result = source(sink.address, "-v", "-m", "2")
    assert result.complaints.count(" > DATA\n") == result.complaints.count(" < 354 ") == 2
    assert sink.result.complaints.count("DATA") >= 2


def test_a_refused_connect_is_tried_again_by_postfixs_flag():
    port, = free_ports(1)
    assert source(("127.0.0.1", port), "-C", "4").counts["connect_failed"] == 4


def test_a_group_is_the_one_of_the_handshake(certificate):
    """The sink offers OpenSSL's usual ones, among them P-384 but not secp256k1."""
    with Sink(*tls_options(certificate)) as sink:
        assert source(sink.address, "--starttls", "--group", "P-384").counts["full"] == 1
        refused = source(sink.address, "--starttls", "--group", "secp256k1")
    assert refused.counts["handshake_failed"] == 1 and sink.counts["right"] == 1


def test_a_backlog_bounds_connections_that_wait():
    """Of a sink that accepts none. Linux keeps one more than the backlog."""
    def connected(*options):
        with Sink(*options) as sink, contextlib.ExitStack() as clients:
            stop(sink.pid)
            try:
                sockets = [clients.enter_context(socket.socket()) for _ in range(10)]
                for client in sockets:
                    client.setblocking(False)
                    client.connect_ex(sink.address)  # over loopback, a server's SYN ACK is there at once or never
                return len(select.select([], sockets, [], 0)[1])
            finally:
                os.kill(sink.pid, signal.SIGCONT)

    assert (connected("--backlog", "3"), connected()) == (4, 10)


def test_a_sink_that_needs_tls_takes_nothing_in_clear(certificate):
    with Sink("--need-tls", *tls_options(certificate)) as sink:
        refused = source(sink.address)
        assert source(sink.address, "--starttls").counts["sent"] == 1
    assert refused.errors == {"MAIL: 530 5.7.0 Must issue a STARTTLS command first": 1}
    assert sink.counts["mails"] == sink.counts["right"] == 1


def test_in_lmtp_each_recipient_has_its_reply():
    """RFC 2033 4.2. The mail counts for the recipients that got it; one that nobody got has failed."""
    script = {"LHLO": "250-lmtp\r\n250 PIPELINING", "RCPT TO:<3": "550 5.1.1 no",
              "content": ("250 2.0.0 one\r\n450 4.2.2 full", "450 4.2.2 full\r\n550 5.7.1 no", "250 2.0.0 one\r\n250 2.0.0 two")}
    with ScriptedReceiver(script) as receiver:
        result = source(receiver.address, "-L", "-r", "3", "-m", "3", "-d", "-A")
    assert result.counts["sent"] == 2 and result.counts["failed"] == 1 and result.counts["recipients"] == 3, result.seen()
    assert result.errors == {"RCPT: 550 5.1.1 no": 3, "end of data: 450 4.2.2 full": 2, "end of data: 550 5.7.1 no": 1}
    assert result.counts["connections"] == 1 and receiver.heard[0] == (0, "LHLO smtp-source.localdomain")


def test_it_ends_after_so_many_mails():
    with Sink("--mails", "5") as sink:
        source(sink.address, "-m", "5", "-s", "5")
        sink.wait()
    assert sink.counts["mails"] == 5


def test_silent_clients_are_sent_away():
    with Sink("--idle", "0.1") as sink:
        with socket.create_connection(sink.address, timeout=patience(10)) as client:
            said = b"".join(iter(lambda: client.recv(1000), b""))
    assert said.endswith(b"421 4.4.2 Timed out\r\n") and sink.counts["idle"] == 1


def say_slowly(address, *pieces):
    """Begins a mail, sends pieces 0.3 s apart, and returns all that the server says until its end."""
    with socket.create_connection(address, timeout=patience(10)) as client:
        client.sendall(b"EHLO a\r\nMAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n")
        for piece in pieces:
            client.sendall(piece)
            time.sleep(0.3)
        return b"".join(iter(lambda: client.recv(1000), b"")).decode()


@pytest.mark.parametrize("pieces", [
    [b"DATA\r\n", *[b"line\r\n"] * 5, b".\r\nQUIT\r\n"], [b"BDAT 30 LAST\r\n", *[b"line\r\n"] * 5, b"QUIT\r\n"],
    [b"DATA\r\n", b"line\r\n.\r\n", b"N", b"O", b"O", b"P", b"\r\nQUIT\r\n"]], ids=["DATA", "BDAT", "a command"])
def test_clients_that_send_slowly_are_not_silent(pieces):
    with Sink("--idle", "1") as sink:
        said = say_slowly(sink.address, *pieces)
    assert said.endswith("221 2.0.0 Bye\r\n"), said
    assert sink.counts["mails"] == 1 and sink.counts["idle"] == sink.counts["cut"] == 0


@pytest.mark.parametrize("pieces", [[b"DATA\r\n", b"line\r\n"], [b"BDAT 30 LAST\r\n", b"line\r\n"]], ids=["DATA", "BDAT"])
def test_clients_that_fall_silent_in_a_mail_are_told(pieces):
    with Sink("--idle", "0.5") as sink:
        said = say_slowly(sink.address, *pieces)
    assert said.endswith("421 4.4.2 Timed out\r\n"), said
    assert sink.counts["mails"] == 0 and sink.counts["idle"] == sink.counts["cut"] == 1


# what a client may do wrong

def talk(address, *pieces):
    """Sends pieces, each once something more was answered; returns all that came."""
    said = b""
    with socket.create_connection(address, timeout=patience(10)) as client:
        said += client.recv(1000)
        for piece in pieces:
            client.sendall(piece)
            said += client.recv(1000)
        client.sendall(b"QUIT\r\n")
        with contextlib.suppress(ConnectionResetError):
            said += b"".join(iter(lambda: client.recv(1000), b""))
    return said.decode()


@pytest.mark.parametrize("end", ["\n.\n", "\n.\r", "\r.\n", "\r.\r", "\n.\r\n", "\r.\r\n", "\r\n\0.\r\n", "\r\n.\n", "\r\n.\r",
                                 "\r\n.\0\r\n", "\r\n.\r\r\n", "\r\r\n.\r\r\n"], ids=repr)
@pytest.mark.parametrize("refuse", [[], ["--refuse-line-ends"]], ids=["taken", "refused"])
def test_nothing_is_smuggled_in(end, refuse):
    smuggled = f"a{end}MAIL FROM:<e@v>\r\nRCPT TO:<i@l>\r\nDATA\r\n\r\nb\r\n.\r\n"
    with Sink(*refuse) as sink:
        said = talk(sink.address, b"EHLO a\r\n", b"MAIL FROM:<a@b>\r\n", b"RCPT TO:<c@d>\r\n", b"DATA\r\n", smuggled.encode())
    assert re.findall(r"^(?:250 |354|550)", said.split("354")[1], re.M) == (["550"] if refuse else ["250 "])
    assert sink.counts["mails"] == (0 if refuse else 1) and sink.counts["smuggling"] == 1


def test_a_refused_chunk_is_no_command():
    with Sink() as sink:
        said = talk(sink.address, b"EHLO a\r\n", b"BDAT 6 LAST\r\nRSET\r\nNOOP\r\n")
    assert "503 5.5.1" in said and said.count("250 2.0.0 Ok") == 1
    assert sink.counts["mails"] == 0


def test_bytes_behind_starttls_are_no_commands(certificate):
    with Sink(*tls_options(certificate)) as sink:
        with socket.create_connection(sink.address, timeout=patience(10)) as client:
            client.recv(1000)
            client.sendall(b"EHLO a\r\nSTARTTLS\r\nMAIL FROM:<a@b>\r\n")
            with contextlib.suppress(ConnectionResetError):
                said = b"".join(iter(lambda: client.recv(1000), b""))
    assert b"220 2.0.0 Ready" in said and b"250 2.0.0" not in said
    assert sink.counts["handshake_failed"] == 1


# peers

@pytest.mark.tool("smtp-sink")
@pytest.mark.parametrize("options", [["-s", "10"], ["-s", "10", "-d", "--pipelining"], ["-o"], ["-r", "3", "-l", "5000"], ["-L", "-r", "3"],
                                     ["-L", "-r", "3", "-d", "--pipelining"]], ids=" ".join)
def test_postfix_takes_our_mails(options, tmp_path):
    port, = free_ports(1)
    os.chmod(tmp_path, 0o777)
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    lmtp = ["-L"] if "-L" in options else []
    with subprocess.Popen(["smtp-sink", *user, *lmtp, "-R", str(tmp_path), "-D", "dump", f"127.0.0.1:{port}", "100"]) as sink:
        try:
            wait_until(lambda: socket.create_connection(("127.0.0.1", port)).close() or True, patience(10))
            result = source(("127.0.0.1", port), "-m", "100", *options)
        finally:
            sink.kill()
    assert result.status == 0 and result.counts["sent"] == 100, result.errors
    dump = (pathlib.Path(tmp_path) / "dump").read_text()
    assert dump.count("X-Mail-Args:") == 100 and len(set(re.findall(r"^X-CSSL-Mail: (\S+)", dump, re.M))) == 100
    assert dump.count("X-Rcpt-Args:") == 100 * (3 if "-r" in options else 1)


@pytest.mark.tool("smtp-source")
@pytest.mark.parametrize("options", [[], ["-d"], ["-r", "3"], ["-l", "50000"], ["-o"]], ids=" ".join)
def test_we_take_mails_of_postfix(options):
    with Sink() as sink:
        subprocess.run(["smtp-source", "-s", "10", "-m", "100", *options, "{}:{}".format(*sink.address)], check=True,
                       timeout=patience(30))
    assert sink.counts["mails"] == sink.counts["unmarked"] == 100 and sink.counts["bad_commands"] == 0
    assert sink.counts["recipients"] == 100 * (3 if "-r" in options else 1)


@pytest.mark.parametrize("how", ["clear", "starttls", "tls"])
def test_smtplib_is_served(certificate, how, tmp_path):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    dump = tmp_path / "dump"
    options = {"clear": [], "starttls": tls_options(certificate), "tls": [*tls_options(certificate), "--tls"]}[how]
    with Sink("--dump", str(dump), *options) as sink:
        client = smtplib.SMTP_SSL(*sink.address, context=context) if how == "tls" else smtplib.SMTP(*sink.address)
        with client:
            if how == "starttls":
                client.starttls(context=context)
            client.ehlo()
            assert client.has_extn("pipelining") and not client.has_extn("starttls")
            assert client.sendmail("a@b", ["c@d", "e@f"], MAIL) == {}
            assert client.noop()[0] == 250 and client.vrfy("x")[0] == 252
    assert sink.counts["mails"] == 1 and sink.counts["recipients"] == 2
    assert MAIL in dump.read_bytes().decode()


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_openssl_speaks_starttls_to_the_sink(certificate, version):
    with Sink(*tls_options(certificate)) as sink:
        done = subprocess.run(["openssl", "s_client", "-starttls", "smtp", version, "-quiet", "-connect",
                               "{}:{}".format(*sink.address)], input=b"EHLO b\r\nQUIT\r\n", stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=patience(20), check=False)
    assert b"221 2.0.0 Bye" in done.stdout and b"STARTTLS" not in done.stdout
    assert sink.counts["full"] == 1


@pytest.mark.alone
@pytest.mark.quiet
@pytest.mark.plain
def test_a_thousand_sessions_need_little_memory():
    """The memory at 1,000 sessions compared with that at one, for both programs."""
    def peak(pid):
        return int(re.search(r"VmHWM:\s*(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) * 1024

    def held(sessions, *options):
        with Sink() as sink:
            load = subprocess.Popen(source_command(sink.address, "-s", str(sessions), "-m", "5005", "-d", *options),
                                    stdout=subprocess.DEVNULL)
            figures = []
            while load.poll() is None:
                with contextlib.suppress(OSError, TypeError):
                    figures.append((peak(load.pid), peak(sink.pid)))
                time.sleep(0.05)
        assert sink.result.most_open == sessions
        return max(f[0] for f in figures), max(f[1] for f in figures)

    one, thousand = held(1), held(1001, "-w", "0.2")
    assert (thousand[0] - one[0]) / 1000 < 3072 and (thousand[1] - one[1]) / 1000 < 3072, (one, thousand)

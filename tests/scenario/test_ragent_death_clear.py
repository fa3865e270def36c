"""RAgent proper dies, or its links break, while clients speak in clear: before STARTTLS, right behind it, and in mail without TLS. They go on."""

import concurrent.futures
import contextlib
import functools
import os
import signal
import ssl
import threading

import pytest

from tests.lib import edits
from tests.lib.build import patience
from tests.lib.mail_cluster import HOST, SharedMail
from tests.lib.processes import stop
from tests.lib.smtp_client import Client
from tests.lib.stepwise_tls import StepwiseTls
from tests.lib.waiting import wait_until

pytestmark = pytest.mark.limit(180)

LINKS = {"memory": ((), None), "sealed TCP, 2 workers": (("--workers", "2", "--link", "sealed"), edits.over_tcp),
         "trusted TCP": (("--link", "trusted"), edits.over_tcp)}
EACH_LINK = pytest.mark.parametrize("options,edit", LINKS.values(), ids=LINKS.keys())
READY = b"220 2.0.0 Ready to start TLS\r\n"
INJECTED = "EHLO inj\r\nMAIL FROM:<evil@x.example>\r\n"


def start(start_mail, options=(), edit=None, **more):
    mail = start_mail("--agents", "2", *options, edit=(edit,) if edit else (), **more)
    mail.versions = {version: mail.cluster.context(version, alpn=()) for version in ("1.2", "1.3")}
    return mail


@pytest.fixture(scope="module")
def shared(start_module_cluster):
    """One for each kind of links, in which only RAgent dies. It has served for a while, as a short life may be followed by a pause."""
    made = {}

    def again(options=(), edit=None, sink=()):
        key = options, edit
        if key not in made:
            made[key] = start(functools.partial(SharedMail, start_module_cluster), options, edit)
        mail = made[key]
        wait_until(lambda: "ragent died" not in mail.cluster.log("r1") or mail.cluster.status()["uptime_s"] >= 2, patience(10), "two seconds of service")
        return mail.again(*sink)

    yield again
    for mail in made.values():
        mail.end()


def states(mail):
    return sorted(c["state"] for c in mail.cluster.connections())


@contextlib.contextmanager
def stopped(*pids):
    for pid in pids:
        stop(pid)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def agents(mail):
    return [mail.cluster.pid(name) for name in ("a1", "a2")]


def shake_hands(client, context):
    """TLS begins, and an agent owns it."""
    client.handshake(context)
    assert client.ask("EHLO client.example")[0] == f"250-{HOST}"


# --- before STARTTLS, and behind it ---

def at_the_banner(client):
    assert client.code() == 220
    yield
    assert client.ask("EHLO client.example")[0].startswith("250")
    yield


def behind_ehlo(client):
    client.greet()
    yield
    assert client.ask("NOOP") == ["250 2.0.0 Ok"]
    yield


def amid_a_command(client):
    client.greet()
    client.send("NO")
    yield
    client.send("OP\r\nHEL")
    assert client.reply() == ["250 2.0.0 Ok"]
    yield
    client.send("P\r\n")
    assert client.code() == 214


def amid_starttls(client):
    client.greet()
    client.send("START")
    yield
    client.send("TLS")
    yield
    client.send("\r\n")
    assert client.code() == 220


def with_unread_replies(client):
    client.greet()
    client.send("NOOP\r\nHELP\r\nNOOP\r\n")
    yield
    client.send("NOOP\r\n")
    yield
    assert [client.code() for _ in range(4)] == [250, 214, 250, 250]


def behind_starttls(client):
    client.greet()
    assert client.ask("STARTTLS")[0].startswith("220")
    yield
    yield


STAGES = (at_the_banner, behind_ehlo, amid_a_command, amid_starttls, with_unread_replies, behind_starttls)


def has_had_220(stage):
    return stage in (amid_starttls, behind_starttls)


@EACH_LINK
@pytest.mark.parametrize("deaths", [1, 2])
def test_clients_before_starttls_go_on(shared, options, edit, deaths):
    """Each says its next words behind each death. Then TLS begins, of both versions."""
    mail = shared(options, edit)
    with contextlib.ExitStack() as stack:
        clients = []
        for version in mail.versions:
            for stage in STAGES:
                client = stack.enter_context(Client(mail.mail))
                clients.append((client, stage, stage(client), version))
                next(clients[-1][2])
        wait_until(lambda: states(mail) == ["hello"] * 2 + ["preamble"] * 10, patience(10), "all are under way")
        for _ in range(deaths):
            mail.cluster.kill_ragent()
            if deaths == 2:
                for _, _, steps, _ in clients:
                    next(steps, None)
        for client, stage, steps, version in clients:
            for _ in steps:
                pass
            if not has_had_220(stage):
                assert client.ask("STARTTLS")[0].startswith("220"), stage
            shake_hands(client, mail.versions[version])
    fates = mail.fates()
    assert (fates["reset"], fates["went_on"]) == (0, deaths * len(clients))
    assert mail.count("starttls_injections") == mail.count("preambles_lost") == mail.count("preambles_restarted") == 0


@EACH_LINK
def test_a_client_amid_its_hello_goes_on(shared, options, edit):
    mail = shared(options, edit)
    with contextlib.ExitStack() as stack:
        shaking = []
        for context in mail.versions.values():
            client = stack.enter_context(Client(mail.mail))
            client.greet()
            assert client.ask("STARTTLS")[0].startswith("220")
            shaking.append(StepwiseTls(context, client.sock))
            shaking[-1].begin()
            shaking[-1].say(0.5)
        wait_until(lambda: states(mail) == ["hello"] * 2, patience(10), "half a hello came")
        mail.cluster.kill_ragent()
        mail.cluster.kill_ragent()
        for tls in shaking:
            tls.shake_hands()
            assert tls.talk(b"EHLO client.example\r\n").startswith(b"250-")
    assert mail.fates()["reset"] == 0


@EACH_LINK
@pytest.mark.parametrize("words", ["NOOP\r\n", "STARTTLS\r\n"])
def test_words_that_no_agent_has_answered_are_answered_once(shared, options, edit, words):
    """The agents stand while they come and while RAgent dies: RAgent has them, its links, or its agent."""
    mail = shared(options, edit)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(mail.mail)) for _ in range(6)]
        for client in clients:
            client.greet()
        with stopped(*agents(mail)):
            for client in clients:
                client.send(words)
            wait_until(lambda: all(c["client_bytes"] == len("EHLO client.example\r\n" + words) for c in mail.cluster.connections()), patience(10), "they came")
            mail.cluster.kill_ragent()
        for client, context in zip(clients, 3 * list(mail.versions.values())):
            assert client.reply()[0].startswith("220" if "TLS" in words else "250")
            if "TLS" not in words:
                assert client.ask("STARTTLS")[0].startswith("220")
            shake_hands(client, context)
    assert mail.fates()["reset"] == 0
    assert mail.count("starttls_done") == len(clients)


def test_a_client_that_waits_for_its_banner_gets_it(shared):
    mail = shared()
    with contextlib.ExitStack() as stack:
        with stopped(*agents(mail)):
            clients = [stack.enter_context(Client(mail.mail)) for _ in range(4)]
            for client in clients[2:]:
                client.send("EHLO client.example\r\n")
            wait_until(lambda: states(mail) == ["preamble"] * 4, patience(10), "they came")
            mail.cluster.kill_ragent()
        for client in clients[:2]:
            client.greet()
        for client in clients[2:]:
            assert [client.code(), client.code()] == [220, 250]
        for client in clients:
            assert client.ask("STARTTLS")[0].startswith("220")
            shake_hands(client, mail.context)
    assert mail.fates()["reset"] == 0


# --- injection ---

def test_what_was_injected_is_not_read_by_the_next_process(shared):
    """It came with STARTTLS, and the agent has not answered that yet."""
    mail = shared()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(mail.mail)) for _ in range(4)]
        for client in clients:
            client.greet()
        with stopped(*agents(mail)):
            for client in clients:
                client.send("STARTTLS\r\n" + INJECTED)
            wait_until(lambda: all(c["client_bytes"] > len(INJECTED) for c in mail.cluster.connections()), patience(10), "they came")
            mail.cluster.kill_ragent()
            clients[0].send("x")
        for client in clients:
            assert client.ends() == ("reset", b"")
    assert mail.count("starttls_injections") == len(clients)
    assert mail.fates()["reset"] == 0
    assert mail.agent_count("backend_connects") == 0


def test_what_comes_between_the_death_and_the_answer_is_injected(shared):
    """The agent's answer was lost with RAgent, and goes out again. The client cannot know of it, and sends something."""
    mail = shared()
    with Client(mail.mail) as text, Client(mail.mail) as hello:
        shaking = StepwiseTls(mail.context, hello.sock)
        for client in text, hello:
            client.greet()
        with stopped(*agents(mail)):
            for client in text, hello:
                client.send("STARTTLS\r\n")
            wait_until(lambda: all(c["client_bytes"] > 30 for c in mail.cluster.connections()), patience(10), "they came")
            mail.cluster.kill_ragent()
            text.send(INJECTED)
            shaking.begin()
            shaking.say()
            wait_until(lambda: all(c["client_bytes"] > 50 for c in mail.cluster.connections()), patience(10), "that came, too")
        for client in text, hello:
            assert client.ends() == ("reset", b"")
    assert mail.count("starttls_injections") == 2


@pytest.mark.usefixtures("test_points")
@pytest.mark.parametrize("says", ["text", "a hello", "nothing"])
def test_a_hello_that_comes_before_the_answer_is_out_is_injected(shared, says):
    """RAgent has the answer, and has not written it when it dies. Its next process does, unless the client has said something."""
    mail = shared()
    with Client(mail.mail) as client:
        client.greet()
        shaking = StepwiseTls(mail.context, client.sock)
        mail.cluster.faults("client.write drop on r1")
        mail.cluster.settle_faults()
        client.send("STARTTLS\r\n")
        wait_until(lambda: states(mail) == ["hello"], patience(10), "STARTTLS is answered")
        stop(mail.cluster.pid("r1")) # or it would write the answer before it dies
        if says == "text":
            client.send(INJECTED)
        elif says == "a hello":
            shaking.begin()
            shaking.say(0.5)
        mail.cluster.clear_faults() # the next process reads no rule
        mail.cluster.kill_ragent()
        if says == "nothing":
            assert client.reply()[0].startswith("220")
            shake_hands(client, mail.context)
        else:
            assert client.ends() == ("reset", b"")
    assert mail.count("starttls_injections") == (0 if says == "nothing" else 1)


def test_text_behind_a_death_in_the_place_of_the_hello_is_injected(shared):
    mail = shared()
    with Client(mail.mail) as client:
        client.greet()
        assert client.ask("STARTTLS")[0].startswith("220")
        mail.cluster.kill_ragent()
        client.send(INJECTED)
        assert client.ends() == ("reset", b"")
    assert mail.count("starttls_injections") == 1


# --- mail in clear ---

def before_mail(client):
    yield
    assert client.ask("MAIL FROM:<a@x.example>")[0].startswith("250")
    assert client.ask("RCPT TO:<b@x.example>")[0].startswith("250")
    assert client.ask("DATA")[0].startswith("354")


def behind_mail(client):
    assert client.ask("MAIL FROM:<a@x.example>")[0].startswith("250")
    yield
    assert client.ask("RCPT TO:<b@x.example>")[0].startswith("250")
    assert client.ask("DATA")[0].startswith("354")


def amid_rcpt(client):
    assert client.ask("MAIL FROM:<a@x.example>")[0].startswith("250")
    client.send("RCPT TO:<b@x.")
    yield
    client.send("example>\r\n")
    assert client.code() == 250
    assert client.ask("DATA")[0].startswith("354")


def behind_data(client):
    for _ in before_mail(client):
        pass
    yield


def amid_content(client):
    for _ in before_mail(client):
        pass
    client.send("Subject: half\r\n\r\n" + 1000 * "words\r\n" + "hal")
    yield
    client.send("f a line\r\n.")
    yield


def second_mail(client):
    for _ in before_mail(client):
        pass
    client.send(".\r\n")
    assert client.code() == 250
    yield from behind_mail(client)


MAIL_STAGES = (before_mail, behind_mail, amid_rcpt, behind_data, amid_content, second_mail)


@EACH_LINK
def test_mail_in_clear_goes_on(shared, options, edit):
    mail = shared(options, edit)
    with contextlib.ExitStack() as stack:
        clients = []
        for stage in MAIL_STAGES:
            client = stack.enter_context(Client(mail.offer))
            client.greet()
            clients.append((client, stage, stage(client)))
            next(clients[-1][2])
        wait_until(lambda: states(mail) == ["preamble"] + ["relayed"] * 5, patience(10), "all are under way")
        mail.cluster.kill_ragent()
        for client, stage, steps in clients:
            for _ in steps:
                pass
            client.send("\r\n" if stage is amid_content else "Subject: x\r\n\r\nx\r\n.\r\n")
            assert client.reply()[0].startswith("250"), stage
            assert client.ask("QUIT")[0].startswith("221")
            assert client.ends() == ("fin", b"")
    fates = mail.fates()
    assert (fates["reset"], fates["went_on"]) == (0, len(clients))
    counts = mail.end()
    assert counts["mails"] == len(clients) + 1


@EACH_LINK
def test_a_mail_in_clear_whose_end_is_not_answered_arrives_once(shared, options, edit):
    """The mail server stands while RAgent dies."""
    mail = shared(options, edit)
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(Client(mail.offer)) for _ in range(4)]
        for client in clients:
            client.greet()
            for _ in before_mail(client):
                pass
        with stopped(mail.sink.pid):
            for client in clients:
                client.send("Subject: x\r\n\r\nx\r\n.\r\n")
            mail.cluster.kill_ragent()
        for client in clients:
            assert client.reply()[0].startswith("250")
    assert mail.fates()["reset"] == 0
    counts = mail.end()
    assert counts["mails"] == len(clients)


def test_a_large_mail_in_clear_arrives_whole(shared, tmp_path):
    """RAgent dies twice while its bytes are on their way both ways."""
    mail = shared(sink=("--dump", str(tmp_path / "mails")))
    lines = b"".join(b"line %07d of a large mail\r\n" % n for n in range(200_000))
    with Client(mail.offer) as client, concurrent.futures.ThreadPoolExecutor(1) as pool:
        client.greet()
        for _ in before_mail(client):
            pass
        sent = pool.submit(client.send, lines + b".\r\n")
        for least in (500_000, 2_000_000):
            wait_until(lambda least=least: mail.cluster.connections()[0]["client_bytes"] > least or sent.done(), patience(20), "it is on its way")
            mail.cluster.kill_ragent()
        sent.result()
        assert client.reply()[0].startswith("250")
    counts = mail.end()
    assert counts["mails"] == 1
    assert (tmp_path / "mails").read_bytes().replace(b"\r\n", b"\n").count(b" of a large mail\n") == 200_000
    assert mail.fates()["reset"] == 0


# --- agents that do not go on ---

def kill_with_ragent(mail, *names):
    """RAgent's first process does not see that they die."""
    stop(mail.cluster.pid("r1"))
    mail.cluster.kill(*names)
    mail.cluster.kill_ragent()


def test_without_their_agents_they_are_told_421(start_mail):
    mail = start(start_mail)
    with Client(mail.mail) as client, Client(mail.offer) as mailing:
        client.greet()
        mailing.greet()
        next(behind_mail(mailing))
        kill_with_ragent(mail, "a1", "a2")
        for one in client, mailing:
            assert one.reply() == ["421 4.3.2 Service is shutting down, try again"]
            assert one.ends() == ("fin", b"")
    assert mail.count("preambles_lost") == 2
    assert mail.cluster.status()["at_deaths"]["reset"] == 0


# --- broken links, and another process ---

@pytest.mark.usefixtures("test_points")
@pytest.mark.parametrize("link", ["sealed", "trusted"])
def test_a_broken_link_costs_them_nothing(start_mail, link):
    mail = start(start_mail, ("--link", link), edits.over_tcp)
    with contextlib.ExitStack() as stack:
        clients = []
        for stage in STAGES:
            client = stack.enter_context(Client(mail.mail))
            clients.append((client, stage, stage(client)))
            next(clients[-1][2])
        mailing = []
        for stage in MAIL_STAGES:
            client = stack.enter_context(Client(mail.offer))
            client.greet()
            mailing.append((client, stage, stage(client)))
            next(mailing[-1][2])
        before = mail.count("reattached")
        mail.cluster.faults(*(f"link.read cut on r1 peer {agent} times 1" for agent in ("a1", "a2")))
        wait_until(lambda: mail.count("reattached") >= before + 11, patience(20), "both links came again")
        mail.cluster.clear_faults()
        for client, stage, steps in clients:
            for _ in steps:
                pass
            if not has_had_220(stage):
                assert client.ask("STARTTLS")[0].startswith("220"), stage
            shake_hands(client, mail.context)
        for client, stage, steps in mailing:
            for _ in steps:
                pass
            client.send("\r\n" if stage is amid_content else "Subject: x\r\n\r\nx\r\n.\r\n")
            assert client.reply()[0].startswith("250"), stage
    assert mail.end()["mails"] == len(mailing) + 1
    assert mail.count("preambles_lost") == 0


@EACH_LINK
def test_what_was_taken_over_goes_on_after_a_death(start_mail, options, edit):
    """The new process of --replace dies."""
    mail = start(start_mail, options, edit)
    with Client(mail.mail) as client, Client(mail.mail) as answered, Client(mail.offer) as mailing:
        for one in client, answered, mailing:
            one.greet()
        client.send("NO")
        assert answered.ask("STARTTLS")[0].startswith("220")
        steps = amid_rcpt(mailing)
        next(steps)
        mail.cluster.replace()
        mail.cluster.kill_ragent()
        client.send("OP\r\n")
        assert client.reply() == ["250 2.0.0 Ok"]
        mail.cluster.replace()
        assert client.ask("STARTTLS")[0].startswith("220")
        for one in client, answered:
            shake_hands(one, mail.context)
        for _ in steps:
            pass
        mailing.send("Subject: x\r\n\r\nx\r\n.\r\n")
        assert mailing.reply()[0].startswith("250")
    assert mail.cluster.status()["at_deaths"]["reset"] == 0
    assert mail.end()["mails"] == 1


# --- deaths at named points ---

POINTS = ("clear.said", "starttls.answered", "slot.saving", "slot.saved", "records.read", "records.came", "slot.kept", "client.write", "link.write", "client.accepted")


def one_session(mail, context):
    """None; or how it failed."""
    try:
        with Client(mail.mail) as client:
            client.greet()
            assert client.ask("NOOP")[0].startswith("250")
            assert client.ask("STARTTLS")[0].startswith("220")
            shake_hands(client, context)
        with Client(mail.offer) as client:
            client.greet()
            for _ in before_mail(client):
                pass
            client.send("Subject: x\r\n\r\nx\r\n.\r\n")
            assert client.reply()[0].startswith("250")
    except (OSError, EOFError, AssertionError, ssl.SSLError) as failure:
        return repr(failure)
    return None


@pytest.mark.usefixtures("test_points")
@pytest.mark.parametrize("point,link", [(point, list(LINKS)[n % 2]) for n, point in enumerate(POINTS)])
def test_a_death_at_a_named_point_costs_one_client_at_most(shared, point, link):
    options, edit = LINKS[link]
    mail, deaths = shared(tuple(o for o in options if o not in ("--workers", "2")), edit), 2
    over = threading.Event()

    def sessions(context):
        ends = []
        while not over.is_set():
            ends.append(one_session(mail, context))
        return ends

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        running = [pool.submit(sessions, context) for context in 2 * list(mail.versions.values())]
        for n in range(deaths):
            mail.cluster.faults(f"{point} kill on r1 after 50 times 1")
            wait_until(lambda n=n: mail.log("r1").count("ragent died") > n, patience(20), "a death")
            mail.cluster.clear_faults()
            mail.cluster.settle_faults()
            wait_until(lambda n=n: mail.log("r1").count("running again") > n, patience(20), "the next RAgent")
        over.set()
        ends = [end for each in running for end in each.result()]
    harmed = [end for end in ends if end]
    assert len(harmed) <= deaths and len(ends) >= 4, harmed
    assert one_session(mail, mail.context) is None

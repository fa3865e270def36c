"""conf/mail-gateways.yaml: every program takes it, and a cluster of it on loopback takes mail on its three ports."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

from bench.experiments.ports import free_ports
from front.cluster.control_api import agents_are_ready
from tests.lib.build import ROOT, binary, patience
from tests.lib.mail import Sink, source
from tests.lib.reports import check_log
from tests.lib.tls_server import self_signed
from tests.lib.waiting import wait_until

EXAMPLE = ROOT / "conf" / "mail-gateways.yaml"
AGENTS = ["a1", "a2", "a3", "a4"]
RAGENTS = ["r1", "r2"]
PORTS = {"smtp": 25, "submission": 587, "submissions": 465}
WAYS = {"smtp": ([], ["--starttls"]), "submission": (["--starttls"],), "submissions": (["--tls"],)}


@pytest.fixture(name="folder")
def make_folder():
    """With all files that the example names, where RAgent's user can reach them."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cssl-", dir="/tmp"))
    folder.chmod(0o755)
    for name in ("run", "log", "tls"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    for name in ("link.key", "agents.key"):
        (folder / name).write_text(f"k1 {os.urandom(32).hex()}\n")
        (folder / name).chmod(0o600)
    certificate, key = self_signed(folder)
    for kind in ("ecdsa", "rsa"):
        shutil.copy(certificate, folder / "tls" / f"mail-{kind}.pem")
        shutil.copy(key, folder / "tls" / f"mail-{kind}.key")
    yield folder
    shutil.rmtree(folder)


def with_folders_of(text):
    return re.sub(r"/run/cssl(-ragent)?/|/var/log/cssl-ragent/", "run/", text).replace("user: cssl-ragent", "user: nobody")


def on_loopback(text, sink):
    """(text, {listener of r1 and r2: [(host, port), ...]}): the example with loopback ports, a file for each RAgent."""
    text = text.replace("192.0.2.30:10025", "{}:{}".format(*sink)).replace("192.0.2.30:10587", "{}:{}".format(*sink))
    for port in free_ports(len(re.findall(r"192\.0\.2\.1[12]:\d+", text))):
        text = re.sub(r"192\.0\.2\.1[12]:7\d+", f"127.0.0.1:{port}", text, count=1)
    return text


def for_ragent(text):
    """(text, {name: (host, port)}): two hosts listen on the same ports; here each RAgent has ports of its own."""
    ports = dict(zip(PORTS, free_ports(len(PORTS))))
    for name, port in PORTS.items():
        text = text.replace(f'[ 0.0.0.0:{port}, "[::]:{port}" ]', f"[ 127.0.0.1:{ports[name]} ]")
    return text, {name: ("127.0.0.1", port) for name, port in ports.items()}


def check(program, name, config):
    return subprocess.run([binary(program), "--config", config, "--name", name, "--check"], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.parametrize("program, names", [("ragent/ragent", RAGENTS), ("sslagent/sslagent", AGENTS)], ids=["RAgent", "agents"])
def test_every_program_takes_it(folder, program, names):
    config = folder / "cluster.yaml"
    config.write_text(with_folders_of(EXAMPLE.read_text()))
    for name in names:
        done = check(program, name, config)
        assert done.returncode == 0, done.stdout
        for listener, port in PORTS.items():
            assert re.search(rf"^listener {listener}: .*; 0\.0\.0\.0:{port} ", done.stdout, re.M), done.stdout


@contextlib.contextmanager
def running(folder, program, name, config):
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen([binary(program), "--config", config, "--name", name], stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=output)
    try:
        yield process
        assert process.poll() is None, log.read_text()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(patience(15)) == 0, log.read_text()
        check_log(log.name, log.read_text(errors="replace"))


def is_ready(folder, name):
    return agents_are_ready(str(folder / "run" / f"{name}.sock"), AGENTS)


@pytest.fixture(name="doors")
def start_all(folder):
    """{RAgent: {listener: (host, port)}}, and the sink as mail server."""
    with Sink("--proxy") as sink, contextlib.ExitStack() as stack:
        text, doors = on_loopback(with_folders_of(EXAMPLE.read_text()), sink.address), {}
        for name in RAGENTS:
            mine, doors[name] = for_ragent(text)
            (folder / f"{name}.yaml").write_text(mine)
        for name in AGENTS:
            stack.enter_context(running(folder, "sslagent/sslagent", name, folder / "r1.yaml"))
        for name in RAGENTS:
            stack.enter_context(running(folder, "ragent/ragent", name, folder / f"{name}.yaml"))
        for name in RAGENTS:
            wait_until(lambda name=name: is_ready(folder, name), patience(15), f"all agents at {name}")
        yield doors, sink


def test_a_cluster_of_it_takes_mail(folder, doors):
    doors, sink = doors
    for ragent in RAGENTS:
        for listener, ways in WAYS.items():
            for options in ways:
                tls = ["--ca", str(folder / "server.pem")] if options else []
                result = source(doors[ragent][listener], *options, *tls, "-m", "5", "-s", "2", "-l", "2000")
                assert result.counts["sent"] == 5, (ragent, listener, options, result.errors)
        assert source(doors[ragent]["submission"]).errors == {"MAIL: 530 5.7.0 Must issue a STARTTLS command first": 1}
    with sink:
        pass
    assert sink.counts["right"] == sink.counts["proxied"] == 2 * 4 * 5

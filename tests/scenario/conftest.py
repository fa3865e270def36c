"""Fixtures of the scenarios: clusters that are checked when they stop, time limits, and skips that name what is missing."""

import collections
import fcntl
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.lib import build, profiles
from tests.lib.build import FULL, SANITIZED, SLOWER, TEST_POINTS, patience  # noqa: E402
from tests.lib.cluster import Cluster  # noqa: E402
from tests.lib.mail_cluster import Mail  # noqa: E402
from tests.lib.mail_fronts import FRONTS, ClusterFronts, sink_front  # noqa: E402
from tests.lib.mover import Mover  # noqa: E402
from tests.lib.queue_room import Room  # noqa: E402
from tests.lib.queued_proxy import Stores  # noqa: E402
from tests.lib.tlsload import Load  # noqa: E402
from tests.lib.waiting import wait_until  # noqa: E402
from tests.lib.selection import selected  # noqa: E402
from tests.lib.work_order import UNKNOWN_S, function_of, group_of, known_seconds, longest_first  # noqa: E402

# Measurements of sanitized programs beside servers that are not: slow, and nothing that the other scenarios do not run.
collect_ignore = ["test_experiments.py"] if SANITIZED else []

TEST_SECONDS = 120


_reporting = None  # the configuration of the process that reports
_stretched = collections.Counter()  # tests whose time limits were longer for other work on the machine, by how many times


def pytest_configure(config):
    global _reporting  # pylint: disable=global-statement
    if not hasattr(config, "workerinput"):
        _reporting = config
    config.addinivalue_line("markers", "root: needs root; skipped, by name, for ordinary users")
    config.addinivalue_line("markers", "tool(name, ...): needs these programs")
    config.addinivalue_line("markers", "alone: asserts a figure that load on the machine changes: no other scenario runs beside it, but "
                            "in a sanitized build, whose figures say nothing")
    config.addinivalue_line("markers", "quiet: beside `alone`: it needs a small part of the processors, and its limits allow for another such test "
                            "beside it")
    config.addinivalue_line("markers", "plain: asserts what a sanitizer changes, and runs nothing else: not in a sanitized build")
    config.addinivalue_line("markers", "sanitized_with(why, name=value): in a sanitized build only this value of the parameter runs, because the "
                            "others take other ways only through code that other scenarios run sanitized")
    config.addinivalue_line("markers", "sanitized_tools: in a sanitized build, clients and backends are sanitized, too: it is about them")
    config.addinivalue_line("markers", "wide(why): it may run in many variants (tests/lib/selection.py)")
    config.addinivalue_line("markers", "every_combination(why): all combinations of its parameters run, where others run each pair of values")
    config.addinivalue_line("markers", "cluster_of(parameter, ...): tests with the same values of these use one cluster of the module")
    config.addinivalue_line("markers", "limit(seconds): a time limit other than the usual one")


def _limit(item):
    marker = item.get_closest_marker("limit")
    return marker.args[0] if marker else TEST_SECONDS


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups when it is its turn
def pytest_collection_modifyitems(items):
    items[:] = selected(items, full=FULL)
    groups, seconds = {item: group_of(item) for item in items}, known_seconds()
    for item, group in groups.items():
        if group != item.nodeid:
            item.add_marker(pytest.mark.xdist_group(group))
    items[:] = longest_first(items, groups.get, lambda item: seconds.get(function_of(item.nodeid), UNKNOWN_S))


@pytest.hookimpl(tryfirst=True)  # before the fixtures start anything
def pytest_runtest_setup(item):
    profiles.write_to(item.module.__name__.rpartition(".")[2])
    build.plain_tools = not item.get_closest_marker("sanitized_tools")
    if item.get_closest_marker("root") and os.geteuid() != 0:
        pytest.skip("needs root")
    for marker in item.iter_markers("tool"):
        missing = [name for name in marker.args if not shutil.which(name)]
        if missing:
            pytest.skip(f"needs {', '.join(missing)}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """A test that hangs fails by itself, and its cluster is still stopped and looked at."""
    seconds = patience(_limit(item))

    def expired(*_):
        raise TimeoutError(f"the test took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(int(seconds))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pytest_runtest_logreport(report):
    """The name of a test that failed is shown at once, not when all are through. It is not called FAILED before its second look."""
    if report.when == "teardown":
        _stretched.update(value for name, value in report.user_properties if name == "patience")
    if report.failed and _reporting:
        second_look = report.when == "call" and os.environ.get("CSSL_SECOND_LOOK") == "follows"
        line = f"wants a second look: {report.nodeid}" if second_look else f"FAILED {report.nodeid}"
        _reporting.pluginmanager.get_plugin("terminalreporter").write_line(f"\n{line}" + ("" if report.when == "call" else f" ({report.when})"))


def pytest_terminal_summary(terminalreporter):
    if _stretched:
        terminalreporter.write_line(f"patience: for other work on this machine, time limits of {sum(_stretched.values())} tests were longer, "
                                    f"at most {max(_stretched)} times")


@pytest.fixture(autouse=True)
def say_patience(request):
    """A limit that was stretched is no secret: a test that is only in time on a patient machine may hide something slow."""
    build.patience_used = 1
    yield
    if build.patience_used > SLOWER:
        request.node.user_properties.append(("patience", build.patience_used // SLOWER))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Lets fixtures see whether their test failed, and puts the logs of its clusters into the report."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        item.failed = True
        for cluster in getattr(item, "clusters", []) + getattr(item.getparent(pytest.Module), "clusters", []):
            report.sections += cluster.log_sections()


def _stop_all(clusters, failed):
    """Stops every cluster and judges each, unless their test failed already: then its own words are enough."""
    errors = []
    for cluster in clusters:
        try:
            cluster.stop()
        except AssertionError as e:
            errors.append(e)
    if errors and not failed:
        raise errors[0]
    if not errors and not failed:
        for cluster in clusters:
            cluster.remove()


@pytest.fixture
def open_folder():
    """A folder that the user of smtpproxy reaches, too."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o777)
        yield folder


@pytest.fixture
def start_cluster(request):
    """start_cluster("--agents", "2", faults=True, ...) starts a cluster that is stopped and checked at the end of the test:
    every process ends in order, no sanitizer reports, the nonce audit is clean."""
    request.node.clusters = clusters = []

    def start(*options, **settings):
        cluster = Cluster(*options, **settings)
        clusters.append(cluster)
        cluster.start()
        return cluster

    yield start
    _stop_all(clusters, getattr(request.node, "failed", False))


@pytest.fixture
def start_mail(start_cluster):
    """start_mail("--agents", "2", keys=(...)) starts a cluster with mail listeners (tests/lib/mail_cluster.py: Mail)."""
    started = []

    def start(*options, **more):
        started.append(Mail(start_cluster, *options, **more))
        return started[-1]

    yield start
    for mail in started:
        mail.end()


@pytest.fixture(scope="module")
def start_module_cluster(request):
    """The same, for one cluster that all tests of a module use."""
    request.node.clusters = clusters = []

    def start(*options, **settings):
        cluster = Cluster(*options, **settings)
        clusters.append(cluster)
        cluster.start()
        return cluster

    yield start
    _stop_all(clusters, failed=False)


@pytest.fixture(scope="module")
def kept_cluster(start_module_cluster):
    """kept_cluster("--agents", "2", edit=edit) for tests in which nothing but RAgent dies: one cluster for each configuration, at rest. Its
    RAgent has served for a while, because a short life may be followed by a pause."""
    kept = {}

    def cluster_of(*options, **settings):
        key = options, tuple(settings.items())
        if key not in kept:
            kept[key] = start_module_cluster(*options, **settings)
        else:
            kept[key].clear_faults()
            wait_until(lambda: not kept[key].connections() and kept[key].status()["uptime_s"] >= 2, patience(20), "a cluster at rest")
        return kept[key]

    return cluster_of


@pytest.fixture(scope="module")
def cluster_fronts(start_module_cluster):
    """One cluster of a module in front of one smtp-sink after another."""
    return ClusterFronts(start_module_cluster)


@pytest.fixture(params=FRONTS)
def start_front(request, tmp_path):
    """start_front(*options of the sink) is a context with a Front (tests/lib/mail_fronts.py), for each kind of them."""
    if request.param == "cluster":
        return request.getfixturevalue("cluster_fronts").start
    folder = tmp_path / "front"
    folder.mkdir()
    return lambda *options: sink_front(folder, *options)


@pytest.fixture
def stores(tmp_path):
    """Two Redis servers for a smtpproxy with deliver: queue (tests/lib/queued_proxy.py)."""
    with Stores(tmp_path) as made:
        yield made


@pytest.fixture
def room(tmp_path):
    """Two Redis servers, and the gateways of one test (tests/lib/queue_room.py)."""
    made = Room(tmp_path)
    yield made
    made.close()


@pytest.fixture
def host_network():
    """For tests that add or remove interfaces of this host, and for browsers, which give up loading when that happens
    (ERR_NETWORK_CHANGED): one such test at a time."""
    with open(pathlib.Path(tempfile.gettempdir()) / f"cssl-host-network-{os.geteuid()}", "w", encoding="ascii") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


@pytest.fixture(params=[0, 1, 2], ids=["stays", "moves once", "moves twice"])
def mover(request):
    """A test with this fixture runs three times. Where it calls mover(cluster, socket or Probe), that connection moves to
    another agent not at all, once or twice (tests/lib/mover.py)."""
    return Mover(request.param)


@pytest.fixture
def test_points():
    """For scenarios that need fault points."""
    if not TEST_POINTS:
        pytest.skip("needs a build with -Dtest_points=true")


# Load and chance


@pytest.fixture
def load(cluster):
    """Clients of the test's `cluster` (tests/lib/tlsload.py)."""
    with Load(cluster) as made:
        yield made


@pytest.fixture
def dice():
    """Chance that CSSL_SEED repeats."""
    seed = int(os.environ.get("CSSL_SEED", random.randrange(1 << 32)))
    print(f"CSSL_SEED={seed}")
    return random.Random(seed)

"""./cssl on a machine where nothing is installed yet: what it says can be pasted, and what is wrong is refused before anything is installed."""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess

import pytest

from front.cluster.plan import front_door, write_file
from tests.lib.build import BUILD, ROOT, binary
from tests.lib.reachable import reachable_copy
from tests.scenario.test_front_door import NOBODY, cssl, folder
from tests.soak.faults import FAULTS
from tests.soak.soak import Soak, is_possible

__all__ = ["folder"] # pytest finds this fixture by its name
pytestmark = pytest.mark.plain  # a sanitizer changes nothing here
INSTALLERS = ("dpkg-query", "apt-get", "meson", "ninja", "sudo")
PROGRAMS = ("ragent/ragent", "sslagent/sslagent", "smtpproxy/smtpproxy", "csslctl/csslctl", "csslctl/csslctl status", "bench/cssl-bench",
            *(f"bench/cssl-bench {name}" for name in ("serve", "https", "broadcast", "delay", "smtp-source", "smtp-sink")))
NEEDS = 'packages_need() { echo "needs $*"; }; build_turn() { :; }; build_run() { :; }; llhttp_get() { :; }; '


@pytest.fixture
def bare(tmp_path):
    """The environment of a machine where nothing is installed. `called` is what was to be installed or built."""
    for name in INSTALLERS:
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >>"$CALLED"\nexit 1\n')
        (tmp_path / name).chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLED": str(tmp_path / "called"), "CSSL_BUILD_DIR": ""}


def bash(text, *arguments, root=ROOT, **more):
    """Of the front door's parts."""
    begin = 'set -euo pipefail; root=$0; . "$root/front/say.sh"; . "$root/front/packages.sh"; '
    return subprocess.run(["bash", "-c", begin + text, str(root), *arguments], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, **more)


@pytest.mark.parametrize("option", ["--help", "-h"])
@pytest.mark.parametrize("command", ["demo", "test", "test --full", "bench", "bench mail", "soak", "up", "down", "reload", "agent", "mail", "rolling",
                                     "build", "packages"])
def test_every_command_has_help_and_installs_nothing_for_it(bare, command, option):
    done = cssl(*command.split(), option, **bare)
    assert done.returncode == 0 and f"./cssl {command.split()[0]}" in done.stdout, done
    assert not os.path.exists(bare["CALLED"])


def test_every_program_has_help_by_its_letter():
    for words in map(str.split, PROGRAMS):
        done = subprocess.run([binary(words[0]), *words[1:], "-h"], text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert done.returncode == 0 and done.stdout and not done.stderr, done


def test_a_full_disk_is_told_with_the_file():
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write_file("/dev/full", "text")


@pytest.mark.parametrize("arguments", ["bench nope", "bench compare --bogus", "bench mail bogus", "bench storm --qui", "soak --bogus", "soak --min 5",
                                       "soak --minutes x", "build now", "demo --bogus", "packages", "packages -y nginx",
                                       "test " + "no_such" + "_pattern", "up --bogus", "agent --bogus"])
def test_wrong_use_is_refused_before_anything_is_installed(bare, arguments):
    done = cssl(*arguments.split(), **bare)
    assert done.returncode == 2 and "--help" in done.stderr or "usage:" in done.stderr, done
    assert not os.path.exists(bare["CALLED"])


@pytest.mark.root
def test_lists_of_packages_that_cannot_be_had_are_told(bare, tmp_path):
    """apt-get says so only if it is asked to take them for an error. Packages may be there all the same."""
    (tmp_path / "apt-get").write_text('#!/bin/sh\ncase "$*" in *Error-Mode=any*) echo "E: no list" >&2; exit 100;; esac\n')
    done = bash('packages_install() { echo "installs $*"; }; packages_need one', env=bare)
    assert done.returncode == 0 and done.stdout == "installs one\n"
    assert "E: no list\ncssl: not all lists of packages are fresh" in done.stderr


APT = """\
#!/bin/sh
for name; do :; done
[ -e "$CALLED.lists" ] || { case $* in update*) touch "$CALLED.lists";; *) exit 100;; esac; }
[ "$1" != install ] || printf 'Inst libc6 [2.36] (2.37 Debian)\\nInst lib%s (1.0 Debian)\\nInst %s (1.0 Debian)\\n' "$name" "$name"
"""


@pytest.mark.root
def test_a_tree_is_unpacked_once_with_what_apt_would_install_besides(bare, tmp_path):
    """What is installed stays as it is. Lists of packages that are missing are fetched."""
    (tmp_path / "apt-get").write_text(APT)
    unpack = 'packages_unpack() { echo "unpacks $1: ${*:3}"; mkdir -p "$2"/{usr,sbin,lib}; touch "$2/sbin/serve"; }; '
    get = 'tree_get "two servers" "$1" serve one two; '
    done = bash(unpack + get + get, str(tmp_path / "tree"), env=bare)
    assert (done.returncode, done.stdout) == (0, "unpacks two servers: libone libtwo one two\n"), done.stderr
    assert (tmp_path / "tree/usr/sbin/serve").exists() and not (tmp_path / "tree/lib").exists()


def test_unpacked_programs_find_their_libraries_where_they_are(tmp_path):
    """Also in a copy of the folder."""
    tree = tmp_path / "tools" / "peers"
    (tree / "usr/lib/x86_64-linux-gnu").mkdir(parents=True)
    (tree / "usr/sbin").mkdir()
    (tree / "usr/sbin/serve").write_text('#!/bin/sh\necho "$LD_LIBRARY_PATH: $*"\n')
    (tree / "usr/sbin/serve").chmod(0o755)
    assert bash('tree_programs "$1" serve', str(tree)).returncode == 0
    done = bash('tree_programs "$1" other', str(tree))
    assert done.returncode == 1 and "no other was unpacked" in done.stderr
    copied = shutil.copytree(tmp_path / "tools", tmp_path / "copy of tools")
    said = subprocess.run([copied / "serve", "a", "b c"], text=True, check=True, stdout=subprocess.PIPE).stdout
    assert said == f"{copied}/peers/usr/lib:{copied}/peers/usr/lib/x86_64-linux-gnu: a b c\n"


@pytest.mark.root
@pytest.mark.parametrize("without", ["", "sudo"])
def test_another_user_is_told_what_to_paste(bare, folder, tmp_path, without):
    """Whatever the path of the clone, and wherever the user stands; `su` where there is no sudo. Root then installs without starting daemons."""
    clone, tools = reachable_copy(folder / "it's a \"clone\""), folder / "tools"
    shutil.copytree(tmp_path, tools)
    tools.chmod(0o755)
    if without:
        (tools / "sudo").unlink()
    path = ":".join([str(tools), *([] if without else ["/usr/bin"])])
    for name in ("dirname", "readlink", "setpriv", "cat", "env", "bash") if without else ():
        (tools / name).symlink_to(shutil.which(name))
    done = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", clone / "cssl", "packages", "haproxy", "nginx"],
                          cwd="/", env={**bare, "PATH": path}, text=True, check=False, stderr=subprocess.PIPE)
    words = shlex.split(done.stderr.splitlines()[-1])
    if without:
        assert words[:2] == ["su", "-c"] and len(words) == 3, done.stderr
        words = ["sudo", *shlex.split(words[2])]
    assert done.returncode == 1 and words == ["sudo", str(clone / "cssl"), "packages", "haproxy", "nginx"], done.stderr


def test_a_command_that_a_cluster_needs_can_be_pasted(monkeypatch):
    """From wherever the user is."""
    for place, first in (str(ROOT), "./cssl"), ("/", str(ROOT / "cssl")):
        monkeypatch.setenv("PWD", place)
        assert shlex.split(front_door("down", "--dir", "/it's odd")) == [first, "down", "--dir", "/it's odd"]


def test_no_line_tells_to_install_by_apt():
    """It would start daemons, and fail where the lists of packages are old."""
    files = [ROOT / "cssl", *(ROOT / "front").rglob("*.sh"), *(ROOT / "front").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]
    assert len(files) > 30
    found = [path.name for path in files if re.search(r"apt(-get)? install", path.read_text()) and path.name != "packages.sh"]
    assert not found and not re.search(r"(say|die|echo) .*apt-get install", (ROOT / "front/packages.sh").read_text())


@pytest.mark.parametrize("command", ["demo", "up --dir {0}/cluster"])
def test_a_folder_for_temporary_files_that_is_missing_is_told(folder, command):
    done = cssl(*command.format(folder).split(), TMPDIR=str(folder / "nowhere"))
    assert done.returncode == 1 and "No such file or directory" in done.stderr and "nowhere" in done.stderr, done.stderr


# Parts of the tests

PART = '. "$root/front/test_part.sh"; while IFS= read -r name; do name=$(part_name "$name"); part_is_known "$name" && echo "$name" || echo; done <<<"$1"'


def test_every_unit_is_known():
    """Of those that begin with the same word, one stands for all."""
    names = {test["name"].partition("_")[0]: test["name"] for test in json.loads((BUILD / "meson-info/intro-tests.json").read_text())}
    assert {"agent", "cluster", "fuzz", "ragent", "smtpproxy"} < set(names)
    assert bash(PART, "\n".join(names.values())).stdout.split() == list(names.values())


@pytest.mark.parametrize("printed,name", [
    ("cssl:unit+smtpproxy / smtpproxy_tx_ledger", "smtpproxy_tx_ledger"), ("proxy_tx_led", ""), ("nonce_audit", ""), ("fuzz_tx_message", ""),
    ("tests.house.test_ratios::test_of_few[1]", "tests/house/test_ratios.py::test_of_few[1]"), ("test_ratios.py::test_of_few[1]", ""),
    ("tests/house/test_ratios.py::test_of_few[a@b / c]@test_ratios x=[1]", "tests/house/test_ratios.py::test_of_few[a@b / c]"),
    ("tests/house/test_ratios.py::test_of_few@host_network", "tests/house/test_ratios.py::test_of_few"),
    ("test_every_unit_is_known[1.3-sealed]", ""), ("1.3-sealed", ""), ("drain and not slow", ""),
    ("no_such" + "_pattern", None), ("test_dri" + "an.py", None), ("no_such" + "_test[1.3]", None)])
def test_what_a_failed_run_prints_is_known(printed, name):
    done = bash(PART, printed)
    assert (done.returncode, done.stdout.strip()) == (0, "" if name is None else name or printed), done


# What is built


def test_a_soak_builds_in_the_same_way_as_the_tests(tmp_path):
    """It may be the first to use that folder."""
    begin = f'. "$root/front/$1.sh"; root={tmp_path}; quietly() {{ mkdir -p "$root/build-test"; echo "${{@:1:2}}" "${{@:5}}"; }}; {NEEDS}'
    soak = bash(begin + "soak_build", "soak").stdout.splitlines()
    assert {"check", "ccache", "python3-pytest"} <= set(soak[0].split())
    assert soak[1:] == bash(f"{begin} configure_build_test", "test").stdout.splitlines() and "-Dwerror=true" in soak[1]


def test_a_soak_of_another_user_may_look_at_its_daemons_and_does_nothing_to_the_network(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    soak = Soak(argparse.Namespace(seed=1, fault_seconds=1, agents=1, workers=1))
    soak.cluster.remove()
    assert soak.cluster.env["CSSL_TRACEABLE"] and {bool(fault.needs): bool(is_possible(fault)) for fault in FAULTS} == {True: False, False: True}


def test_a_folder_is_configured_again_when_its_options_have_changed(tmp_path):
    """Such as that of an earlier release, or of a soak; with tests also for another compiler, which takes a folder without meson's files. Not
    for a machine with more processors. A folder that somebody else has configured is not taken without a word."""
    for name in ("build.ninja", "turn"):
        (tmp_path / name).touch()
    (tmp_path / "meson-private").mkdir()
    threads = "-Db_lto_threads="
    text = (f'. "$root/front/build.sh"; {NEEDS} quietly() {{ echo "$CC ${{*:5}}"; [[ ! -e $folder/build.ninja ]]; mkdir "$folder/meson-private"; '
            'touch "$folder/build.ninja"; }; while read -r CC options; do build_configure "$1" $options; done <<<"$2"')
    asked = [f"gcc -Done=1 {threads}2", f"gcc -Done=1 {threads}4", f"clang -Done=1 {threads}4", "gcc -Dtwo=2", "gcc -Dtests=true",
             "gcc -Dtests=true", "clang -Dtests=true"]
    done = bash(text, str(tmp_path), "\n".join(asked))
    assert done.stdout.splitlines() == [asked[number] for number in (0, 3, 4, 6)] and (tmp_path / "turn").exists(), done
    assert done.stderr == f"cssl: {tmp_path} was not configured by this command, and is configured anew: -Done=1\n"


def test_everything_that_the_release_build_calls_is_installed():
    """gcc takes several processes to link if there is make, and warns else. protoc-c says on Debian 13 that it is out of date."""
    for release in (12, 13):
        said = bash('. "$root/front/build.sh"; echo "${packages_build[*]}"').stdout if release == 12 else bash(
            'text=$(sed "s/^debian_release=.*/debian_release=13/" "$root/front/packages.sh"); eval "$text"; echo "${packages_build[*]}"').stdout
        assert "make" in said.split() and (release == 12 or "protobuf-compiler" in said.split())


CROSS = """\
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'armv8'
endian = 'little'
[binaries]
c = 'gcc'
pkgconfig = 'pkg-config'
pkg-config = 'pkg-config'
"""


def test_plain_meson_builds_the_programs(tmp_path):
    """Without tests and their packages; also for another machine, on which the programs cannot write their own manuals here."""
    (tmp_path / "protoc").write_text('#!/bin/sh\nexit 1\n')
    (tmp_path / "protoc").chmod(0o755)
    (tmp_path / "cross").write_text(CROSS)
    for build, options in ("here", []), ("cross", ["--cross-file", str(tmp_path / "cross")]):
        llhttp = [] if (ROOT / "build/llhttp").exists() else ["-Dllhttp=/usr"]
        place, path = tmp_path / f"for-{build}", f"{tmp_path}:{os.environ['PATH']}"
        done = subprocess.run(["meson", "setup", place, ROOT, *llhttp, *options], env={**os.environ, "PATH": path, "CC": "gcc"}, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
        rules = (place / "build.ninja").read_text()
        assert "build ragent/ragent:" in rules and "tests/" not in rules
        assert ("build ragent/ragent.8:" in rules) == (build == "here")
        assert f"{tmp_path}/protoc" in rules


def test_no_path_of_the_clone_is_text_in_an_option_of_the_compiler():
    """A quote in the path would end it: tests/source_root.h has the path as C has it."""
    files = [path for path in ROOT.rglob("meson.build") if "build" not in path.parts]
    assert len(files) > 30 and not [path for path in files if re.search(r"-D\w+=\"' \+ meson", path.read_text())]


@pytest.mark.skipif(os.path.exists("/usr/include/llhttp.h"), reason="llhttp is a library here")
def test_meson_says_in_one_line_that_llhttp_is_missing(tmp_path):
    done = subprocess.run(["meson", "setup", str(tmp_path), str(ROOT), "-Dllhttp=/nonexistent"], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={**os.environ, "CC": "gcc"})
    assert done.returncode == 1 and re.search(r"ERROR: .*llhttp is missing: install .*, or run \./cssl build", done.stdout), done.stdout

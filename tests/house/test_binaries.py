"""The protections against memory errors that every built program must have, read from the program itself."""

import json
import os
import pathlib
import platform
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ["ragent/ragent", "sslagent/sslagent", "smtpproxy/smtpproxy", "csslctl/csslctl", "bench/cssl-bench"]


def _option(build, name):
    options = json.loads((build / "meson-info" / "intro-buildoptions.json").read_text())
    return next(o["value"] for o in options if o["name"] == name)


def _builds():
    """The release build and the tested build, if they exist."""
    builds = {ROOT / "build", pathlib.Path(os.environ.get("CSSL_BUILD_DIR", ROOT / "build-test")).resolve()}
    return [build for build in sorted(builds) if all((build / program).exists() for program in PROGRAMS)
            and _option(build, "b_sanitize") == "none"]


def _readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], text=True, check=True, stdout=subprocess.PIPE).stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_is_hardened(program):
    builds = _builds()
    if not builds:
        pytest.skip("no program is built")
    for build in builds:
        path = build / program
        assert "Position-Independent Executable" in _readelf(path, "-h")
        segments = _readelf(path, "-l")
        assert "GNU_RELRO" in segments
        assert re.search(r"GNU_STACK .* RW +0x", segments), "its stack can be executed"
        assert re.search(r"FLAGS_1.*\bNOW\b", _readelf(path, "-d")), "functions are resolved late"
        symbols = _readelf(path, "--dyn-syms")
        assert "__stack_chk_fail@" in symbols
        assert re.search(r"__(memcpy|snprintf|vsnprintf|fprintf)_chk@", symbols), "_FORTIFY_SOURCE is off"
        if platform.machine() == "x86_64":
            # Not the note of the whole program: Debian's start files have none, so the linker leaves it out.
            main = subprocess.run(["objdump", "--disassemble=main", path], text=True, check=True, stdout=subprocess.PIPE).stdout
            assert re.search(r"<main>:\n.*endbr64", main), "-fcf-protection is off"

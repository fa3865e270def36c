"""The manual pages, made from the tables that drive the programs: roff has no complaint, and nothing is missing."""

import re
import subprocess

import pytest

from tests.lib.build import BUILD

PAGES = {
    "ragent(8)": ("ragent/ragent", "--manual"),
    "sslagent(8)": ("sslagent/sslagent", "--manual"),
    "smtpproxy(8)": ("smtpproxy/smtpproxy", "--manual"),
    "cssl.yaml(5)": ("sslagent/sslagent", "--manual-config"),
    "csslctl(1)": ("csslctl/csslctl", "help", "--man"),
    "cssl-bench(1)": ("bench/cssl-bench", "--manual"),
}


def output(program, *arguments):
    return subprocess.run([str(BUILD / program), *arguments], text=True, check=True, stdout=subprocess.PIPE).stdout


def page(name):
    """As a reader gets it."""
    program, *arguments = PAGES[name]
    done = subprocess.run(["groff", "-ww", "-man", "-Tascii", "-rLL=200n", "-P-cbou"], input=output(program, *arguments), text=True,
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.tool("groff")
@pytest.mark.parametrize("name", PAGES)
def test_roff_has_no_complaint(name):
    text = page(name)
    assert text.startswith(name.upper())
    for section in ("NAME", "SEE ALSO"):
        assert re.search(rf"^{section}$", text, re.MULTILINE)


@pytest.mark.tool("groff")
@pytest.mark.parametrize("name", ["ragent(8)", "sslagent(8)", "smtpproxy(8)"])
def test_a_daemon_s_page_has_every_option_of_its_help(name):
    options = set(re.findall(r"--[a-z-]+", output(PAGES[name][0], "--help")))
    assert options <= set(re.findall(r"--[a-z-]+", page(name))) and len(options) > 5


@pytest.mark.tool("groff")
def test_the_page_of_the_cluster_file_has_every_key_of_the_help():
    keys = set(re.findall(r"^ *([a-z0-9_]+): (?:an? |one of |text)", output("sslagent/sslagent", "--help-config"), re.MULTILINE))
    assert keys <= set(re.findall(r"^ +([a-z0-9_]+)\b", page("cssl.yaml(5)"), re.MULTILINE)) and len(keys) > 90


@pytest.mark.tool("groff")
def test_the_page_of_the_load_generator_has_every_command():
    for name in re.findall(r"^  ([a-z-]+) ", output("bench/cssl-bench", "--help"), re.MULTILINE):
        assert re.search(rf"^ +{name}\b", page("cssl-bench(1)"), re.MULTILINE), name

"""What the units of systemd may do. smtpproxy talks with strangers on both sides, and needs no right for it."""

import re

import pytest

from test_rules import ROOT

SMTPPROXY = (ROOT / "conf/systemd/cssl-smtpproxy.service.in").read_text()


def values_of(unit, key):
    """All values that the unit gives the key; lines behind # are none."""
    return re.findall(rf"^[ \t]*{key}[ \t]*=[ \t]*(.*?)[ \t]*$", unit, re.MULTILINE)


def rights(unit):
    """What this unit gives its process that smtpproxy does without: "key: values" each."""
    wanted = {"CapabilityBoundingSet": [""], "AmbientCapabilities": [], "NoNewPrivileges": ["yes"]}
    return [f"{key}: {values_of(unit, key)}" for key, values in wanted.items() if values_of(unit, key) != values]


def test_smtpproxy_has_no_rights():
    assert not rights(SMTPPROXY), rights(SMTPPROXY)


@pytest.mark.parametrize("line,planted", [
    ("#CapabilityBoundingSet=CAP_NET_ADMIN", "CapabilityBoundingSet=CAP_NET_ADMIN"), ("\nCapabilityBoundingSet=\n", "\n"),
    ("#AmbientCapabilities=CAP_NET_ADMIN", " AmbientCapabilities = CAP_NET_ADMIN"), ("NoNewPrivileges=yes", "NoNewPrivileges=no"),
    ("NoNewPrivileges=yes", "#NoNewPrivileges=yes")])
def test_a_planted_right_is_found(line, planted):
    assert SMTPPROXY.count(line) == 1
    assert rights(SMTPPROXY.replace(line, planted))


@pytest.mark.parametrize("unit", sorted(path.name for path in (ROOT / "conf/systemd").glob("*.service.in")))
def test_files_of_a_daemon_are_its_own(unit):
    """What else may connect to a socket or read a file, the daemon says by its mode."""
    assert values_of((ROOT / "conf/systemd" / unit).read_text(), "UMask") == ["0077"]


def test_who_needs_net_admin_finds_it_in_the_unit():
    """For `tproxy` and `as_sender`: both lines are there, and the empty set comes before them."""
    assert "CapabilityBoundingSet=\n#CapabilityBoundingSet=CAP_NET_ADMIN\n#AmbientCapabilities=CAP_NET_ADMIN\n" in SMTPPROXY


@pytest.mark.parametrize("name,folder", [("cssl-ragent", "/var/log/cssl-ragent"), ("cssl-sslagent@", "/var/log/cssl-agent")])
def test_access_logs_have_a_folder_that_can_be_written(name, folder):
    """Whoever reads the unit finds how it is made."""
    unit = (ROOT / f"conf/systemd/{name}.service.in").read_text()
    assert values_of(unit, "ProtectSystem") == ["strict"] and values_of(unit, "ReadWritePaths") == [f"-{folder}"]
    assert f"-m 0750 {folder} " in unit

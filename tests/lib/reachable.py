"""A copy of the front door and of the programs in a folder that every user can reach: only root can reach a clone in root's home."""

import shutil

from tests.lib.build import BUILD, ROOT

PROGRAMS = ("ragent/ragent", "sslagent/sslagent", "smtpproxy/smtpproxy", "csslctl/csslctl", "bench/cssl-bench")


def reachable_copy(folder):
    """Makes `folder`, which others may enter."""
    shutil.copytree(ROOT / "front", folder / "front")
    shutil.copy(ROOT / "cssl", folder / "cssl")
    for program in PROGRAMS:
        (folder / "build" / program).parent.mkdir(parents=True)
        shutil.copy(BUILD / program, folder / "build" / program)
    return folder

"""Where the counters of a build for coverage go (./cssl test --coverage): a folder for each file of scenarios, and one for units.

    profiles.py FOLDER         makes FOLDER, in which every user's processes may write each other's files
"""

import os
import pathlib
import struct
import sys

FOLDER = os.environ.get("CSSL_PROFILES")
# %m: one file for each program, which all its processes share; %c: written while they run
NAME = "%m%c.profraw"


def write_to(part):
    """Processes that start from now on count for `part`."""
    if FOLDER:
        pathlib.Path(FOLDER, part).mkdir(exist_ok=True)
        os.environ["LLVM_PROFILE_FILE"] = f"{FOLDER}/{part}/{NAME}"


def _open_to_all(folder):
    """A default ACL (acl(5)): files in it get mode 0666 whatever the umask of their maker, because daemons change their user."""
    owner, group, others, nobody = 0x01, 0x04, 0x20, 0xffffffff
    everything = 0x7
    entries = b"".join(struct.pack("<HHI", tag, everything, nobody) for tag in (owner, group, others))
    os.setxattr(folder, "system.posix_acl_default", struct.pack("<I", 2) + entries)
    folder.chmod(0o777)


if __name__ == "__main__":
    made = pathlib.Path(sys.argv[1])
    made.mkdir(parents=True)
    _open_to_all(made)

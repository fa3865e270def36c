"""The page that keeps the last result of README's commands on each bare Debian release."""

import pathlib
import subprocess

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "lib" / "distributions_page.py"


def keep(folder, *row):
    subprocess.run(["/usr/bin/python3", str(PROGRAM), str(folder), *row], check=True)
    return [line for line in (folder / "distributions.md").read_text().splitlines() if line.startswith(("| bookworm", "| trixie"))]


def test_each_command_has_its_last_result_with_date_and_commit(tmp_path):
    keep(tmp_path, "trixie", "./cssl test", "failed", "41")
    keep(tmp_path, "bookworm", "./cssl demo", "passed", "2")
    old, new = keep(tmp_path, "trixie", "./cssl test", "passed", "44")
    assert old.startswith("| bookworm | `./cssl demo` | passed |") and "| 2 min |" in old
    assert new.startswith("| trixie | `./cssl test` | passed |") and "| 44 min |" in new
    date, commit = new.split(" | ")[3:5]
    assert date.count("-") == 2 and len(commit) == 10

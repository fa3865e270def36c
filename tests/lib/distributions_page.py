"""Keeps the last result of README's commands on each bare Debian release (./cssl test --distributions), with date and commit:

    distributions_page.py FOLDER RELEASE COMMAND OUTCOME MINUTES      updates FOLDER/distributions.json, and writes distributions.md"""

import datetime
import json
import pathlib
import sys

from full_page import commit, machine

HEAD = """\
# README's two commands on bare Debian releases

`./cssl test --distributions` makes a root of each release with debootstrap, clones the last commit into it, and runs the two commands
there as root, with the packages that they install, and a soak of a minute; the demo also as another user. This page has the last result
of each, with its commit.

| release | command | result | date | commit | time | machine |
| --- | --- | --- | --- | --- | ---: | --- |
"""


def page(kept):
    return HEAD + "".join(f"| {row['release']} | `{row['command']}` | {row['outcome']} | {row['date']} | {row['commit']} | "
                          f"{row['minutes']} min | {row['machine']} |\n" for _, row in sorted(kept.items()))


def main(folder, release, command, outcome, minutes):
    folder = pathlib.Path(folder)
    data = folder / "distributions.json"
    kept = json.loads(data.read_text()) if data.exists() else {}
    # The root has a clone of the last commit: other changes are not in it.
    kept[f"{release} {command}"] = {
        "release": release, "command": command, "outcome": outcome, "minutes": int(minutes), "commit": commit().rstrip("*"),
        "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}", "machine": machine()}
    data.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    (folder / "distributions.md").write_text(page(kept))


if __name__ == "__main__":
    main(*sys.argv[1:])

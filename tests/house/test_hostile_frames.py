"""The hostile RAgent of the scenarios forges every frame that there is."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.lib.hostile import FRAMES, LINK_BEATS  # noqa: E402


def test_its_frames_are_those_of_the_protocol():
    header = (ROOT / "proto/frame.h").read_text()
    declared = {name: int(value, 16) for name, value in re.findall(r"^\tX\((\w+), (0x[0-9a-f]+), ", header, re.MULTILINE)}
    assert len(declared) > 20
    assert {name: value for name, value in declared.items() if name not in LINK_BEATS} == FRAMES

"""No unit runs only where sanitizers change what it is about."""

import re

from test_rules import ROOT, _files

PLAIN = re.compile(r"'folder': '?([\w/' ]+?)'?, [^\n]*'plain': (true|folder == '(\w+)')")


def plain_folders(text):
    """Folders of tests/unit whose units run plain, too, as a meson.build says it."""
    return {folder.replace("' / folder", "/" + only) if only else folder for folder, _, only in PLAIN.findall(text)}


def test_units_that_a_sanitizer_changes_run_plain_too():
    plain = set().union(*(plain_folders(f.read_text()) for f in _files("meson.build") if f.is_relative_to(ROOT / "tests/unit")))
    places = {str(f.parent.relative_to(ROOT)).removeprefix("tests/unit/") for f in _files(".c")
              if re.search(r"\bCSSL_SANITIZED\b", f.read_text()) and f.relative_to(ROOT).parts[:2] != ("tests", "lib")}
    assert len(places) > 3
    assert not places - plain, places - plain


def test_a_planted_folder_is_read():
    assert plain_folders("  'folder': 'net', 'prefix': '', 'plain': true,") == {"net"}
    assert plain_folders("'folder': 'ragent' / folder, 'prefix': 'ragent_', 'plain': folder == 'keeper',") == {"ragent/keeper"}
    assert plain_folders("  'folder': 'net', 'prefix': '',") == set()

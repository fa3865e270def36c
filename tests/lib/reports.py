"""Texts that a log must never contain."""

import re

REPORTS = re.compile(
    r"AddressSanitizer|LeakSanitizer|UndefinedBehaviorSanitizer|runtime error:|Assertion .* failed|"
    r"double free|corrupted|stack smashing")


def check_log(name, text):
    """Fails if `text` contains one, and shows the lines around it."""
    match = REPORTS.search(text)
    if match:
        lines = text[max(0, match.start() - 200):match.start() + 4000]
        raise AssertionError(f"{name} reported:\n{lines}")

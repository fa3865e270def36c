"""What ./cssl bench says while it runs: how long an experiment takes, which step of how many is done, and the time that is left."""

import ast
import importlib
import re

import pytest

from bench.experiments import __main__ as command
from bench.experiments import course
from test_rules import ROOT


@pytest.fixture
def clock(monkeypatch, capsys):
    """A Course whose clock is moved by hand: f(seconds, text) is a step; said() has all lines so far."""
    now = [0.0]
    running = course.Course(now=lambda: now[0])

    def step(seconds, text):
        now[0] += seconds
        running.done(text)
    step.course, step.said = running, lambda: capsys.readouterr().err.splitlines()
    return step


def test_a_step_says_which_it_is_and_what_is_left(clock):
    clock.course.plan(4)
    clock(60, "first")
    clock(60, "second")
    assert clock.said() == ["bench: step 1 of 4, 3 min left: first", "bench: step 2 of 4, 2 min left: second"]


def test_a_long_step_counts_for_the_time_and_not_for_the_number(clock):
    clock.course.plan(2, (1, 8))
    clock(10, "short")
    clock(10, "short")
    clock(80, "long")
    assert clock.said() == ["bench: step 1 of 3, 2 min left: short", "bench: step 2 of 3, 80 s left: short",
                            "bench: step 3 of 3, 0 s left: long"]
    clock.course.check_end()


def test_a_plan_with_other_steps_is_an_error(clock):
    clock.course.plan(2)
    clock(1, "one")
    with pytest.raises(AssertionError, match="1 steps were made of 2"):
        clock.course.check_end()


def test_all_that_is_measured_so_far_is_kept_after_each_step():
    kept, runs = [], [1]
    running = course.Course(lambda measured: kept.append({name: list(rows) for name, rows in measured.items()}))
    running.plan(2)
    running.done("one", runs=runs)
    runs.append(2)
    running.done("two", memory=[3])
    assert kept == [{"runs": [1]}, {"runs": [1, 2], "memory": [3]}]


def names():
    return [command.full_name(name, part) for name in command.EXPERIMENTS for part in command.PARTS.get(name, [None])]


def test_each_experiment_says_how_long_it_takes():
    assert set(names()) == set(command.SIZES)
    words = ["mail", "parallel"]
    assert command.announcement(command.parse(words)) == (
        "./cssl bench mail parallel takes about 20 min, if this machine does nothing else; with --quick about 60 s")
    assert command.announcement(command.parse([*words, "--rounds", "6"])).startswith("./cssl bench mail parallel takes about 40 min,")
    assert "--quick takes about 60 s for a round; without --quick about 20 min" in command.announcement(command.parse([*words, "--quick"]))


@pytest.mark.parametrize("name", names())
def test_each_experiment_plans_its_steps_and_has_no_other_words_for_them(name):
    module = importlib.import_module(f"bench.experiments.{name.replace('-', '_')}")
    text = (ROOT / module.__file__).read_text()
    assert "options.course.plan(" in text and re.search(r"course\.done\(", text)
    assert not re.search(r"\bsay\(", text)
    # Each step keeps what was measured. scaling is short.
    steps = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "done"]
    assert name == "scaling" or all(step.keywords for step in steps)


def test_each_page_of_the_results_has_the_time_of_its_command():
    table = dict(re.findall(r"\| `\./cssl bench ([a-z_ -]+?)(?: --[a-z].*?)?` \| about (\d+) min \|", (ROOT / "bench/results/README.md").read_text()))
    wanted = {name.replace("-", " "): f"{size.minutes:.0f}" for name, size in command.SIZES.items() if name != "change"}
    assert {name: minutes for name, minutes in table.items() if name != "change"} == wanted

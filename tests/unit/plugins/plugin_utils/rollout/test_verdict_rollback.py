# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which rollout a fleet goes back from, whatever its nodes and clocks say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.rollout.verdict import Choice, choose_rollout

FIRST, SECOND, THIRD = "2026-11-01T09:30:00", "2026-11-02T09:30:00.000001", "2026-11-02T09:30:00.000002"
NOW, LATER, SOON = "2026-11-03T12:00:00.500000", "2026-11-03T12:00:01", "2026-11-03T12:00:00.500001"


NAME_IT = "name the rollout to go back from with -e kubelet_rollback_of=TIME"
STAY = "; nodes with another last rollout, or none, stay as they are: "


def node(last: object = None, interrupted: object = None, undone: object = None) -> dict[str, Any]:
    """Return what rollout_info says of a node that names these rollouts."""
    facts = {name: value for name, value in (("rollout", last), ("undone", undone)) if value is not None}
    return {
        "node": "worker",
        "last": {"facts": facts} if facts else None,
        "journal": None if interrupted is None else {"facts": {"rollout": interrupted}},
    }


def choose(*nodes: dict[str, Any], named: str = "") -> Choice:
    return choose_rollout(dict(zip("abcdef", nodes)), NOW, named)


def test_the_newest_counts_wherever_it_was_interrupted() -> None:
    assert choose(node(FIRST), node(THIRD), node(THIRD)).rollout == THIRD
    assert choose(node(FIRST, interrupted=SECOND), node(SECOND), node(FIRST)).rollout == SECOND
    assert choose(node(FIRST), node(FIRST)) == Choice(FIRST, "on a, b", "")
    # A whole second is written without its fraction, and comes before what has one.
    whole = "2026-11-02T09:30:00"
    assert choose(node(whole), node(SECOND), node(SECOND), node(whole)).rollout == SECOND


def test_a_fleet_of_one_node() -> None:
    assert choose(node(SECOND)).rollout == SECOND
    assert choose(node(FIRST, interrupted=SECOND)).rollout == SECOND
    # Nobody names another.
    assert choose(node(), node(SECOND), node()).rollout == SECOND


def test_a_first_rollout_that_ended_before_it_changed_anything_can_be_gone_back_from() -> None:
    """It has only cordoned a node, whose journal names the run, and that is undone."""
    drained = {"node": "worker", "last": None, "journal": {"phase": "draining", "facts": {"node": "b"}, "run": SECOND}}
    choice = choose(node(), drained, node())
    assert choice == Choice(SECOND, "on b" + STAY + "none on a, c", "")
    # Who has had a rollout names it.
    assert choose(node(FIRST), drained, node(FIRST)).rollout == FIRST
    for run in (SOON, "", "x\x1b", None, ["a"]):
        assert choose(node(), {**drained, "journal": {"facts": {}, "run": run}}).rollout == ""


@pytest.mark.parametrize("future", [SOON, LATER, "9999-01-01T00:00:00"])
def test_a_rollout_whose_time_is_to_come_is_a_stop_that_names_its_nodes(future: str) -> None:
    for nodes in ((node(FIRST), node(future), node(FIRST)), (node(future), node(future)), (node(interrupted=future),)):
        choice = choose(*nodes)
        assert choice.rollout == ""
        assert "is still to come" in choice.problem
        assert "no node was changed" in choice.problem
    assert "%s (on b)" % future in choose(node(FIRST), node(future)).problem
    assert choose(node(FIRST), node(future), named=future).rollout == future
    assert choose(node(FIRST), node(undone=future)).rollout == ""
    assert choose(node(NOW)).rollout == NOW


@pytest.mark.parametrize(
    "name", ["9999", "", "yesterday", "2026-13-01T00:00:00", ["a"], 7, True, "\x1b[2J" * 99, FIRST * 9]
)
def test_what_is_no_time_is_a_stop_that_names_its_node(name: object) -> None:
    choice = choose(node(FIRST), node(name), node(FIRST))
    assert choice.rollout == ""
    assert "is no time of a rollout: b;" in choice.problem
    # Of what it is, nothing is shown.
    assert len(choice.problem) < 400
    assert choose(node(FIRST), node(name), named=FIRST) == Choice(FIRST, "on a" + STAY + "none on b", "")


def test_without_a_rollout_nothing_is_planned() -> None:
    for nodes in ((), (node(),), (node(), node())):
        assert choose(*nodes).rollout == ""
        assert choose(*nodes).problem.startswith("no node has had a rollout that it could go back from; no node was")


def test_what_a_single_node_names_alone_does_not_decide_for_others() -> None:
    """A node that somebody has taken over names a moment ago; so does a canary that was interrupted."""
    for alone in (node(SECOND), node(FIRST, interrupted=SECOND), node(undone=SECOND)):
        choice = choose(node(FIRST), alone, node(FIRST))
        assert choice.rollout == ""
        assert choice.problem.startswith("only b names the last rollout, and others name another")
        for part in ("-e kubelet_rollback_of=TIME", "--limit", "%s (on a, " % FIRST, SECOND):
            assert part in choice.problem
        assert choose(node(FIRST), alone, node(FIRST), named=FIRST).rollout == FIRST


def test_what_some_nodes_name_is_told_with_what_the_others_name() -> None:
    few, many = [node(SECOND)] * 2, [node(FIRST)] * 3
    told = "on a, b%s%s on c, d, e, none on f" % (STAY, FIRST)
    assert choose(*few, *many, node()) == Choice(SECOND, told, "")
    # The operator leaves them out, or names another rollout.
    assert choose(*many).rollout == FIRST
    assert choose(*few, *many, named=FIRST) == Choice(FIRST, "on c, d, e%s%s on a, b" % (STAY, SECOND), "")


def test_a_second_rollback_goes_back_no_further() -> None:
    """The mark of the first stays, whatever rollout some nodes still have."""
    choice = choose(node(undone=SECOND), node(FIRST), node(undone=SECOND))
    assert (choice.rollout, choice.problem) == (SECOND, "")
    assert "taken back already on a, c" in choice.told
    assert choice.told.endswith("%s%s on b; to go further back, %s" % (STAY, FIRST, NAME_IT))
    assert choose(node(undone=SECOND), node(FIRST), node(undone=SECOND), named=FIRST).rollout == FIRST
    # One that was taken back on some of its nodes goes on.
    told = "on b; taken back already on a%s%s on c" % (STAY, FIRST)
    assert choose(node(undone=SECOND), node(SECOND), node(FIRST)).told == told
    # After it comes the next rollout.
    assert choose(node(THIRD), node(THIRD), node(undone=SECOND)).rollout == THIRD
    assert choose(node(FIRST, undone=SECOND), node(FIRST, undone=SECOND)).rollout == SECOND


def test_a_rollout_that_the_operator_names_is_one_that_a_node_has() -> None:
    choice = choose(node(FIRST), node(SECOND), named="2026-11-01T09:30")
    assert choice.problem.startswith("no node names the rollout 2026-11-01T09:30; no node was changed")
    assert "%s (on b), %s (on a)" % (SECOND, FIRST) in choice.problem


def test_nodes_that_are_not_known() -> None:
    choice = choose(node(FIRST), {}, {"failed": True, "msg": "no \x1b[2J {{{ lookup('pipe', 'id') }} {%"})
    assert "cannot be reached or planned: b, c; no \\x1b[2J { { { lookup('pipe', 'id') }} { %" in choice.problem
    assert choose(node(FIRST), {}, named=FIRST).rollout == FIRST


_ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.sampled_from([FIRST, SECOND, LATER])),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.sampled_from(["facts", "rollout", "undone"]), inner)),
)


@given(
    st.dictionaries(st.sampled_from("abc"), st.dictionaries(st.sampled_from(["node", "journal", "last"]), _ANYTHING))
)
def test_any_answer_is_a_choice_or_a_problem(plans: dict[str, dict[str, Any]]) -> None:
    choice = choose_rollout(plans, NOW)
    assert bool(choice.rollout) != bool(choice.problem)
    assert choice.rollout in ("", FIRST, SECOND)

# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, RefusedError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._host.kernel_line import (
    DEFAULT_FEATURES,
    DOMAIN,
    FEATURES,
    KTHREADS,
    MANAGED_IRQ,
    MARK,
    NAMES,
    RCU,
    SYSTEMD_AFFINITY,
    TICK,
    Argument,
    ArgumentRow,
    Word,
    block_on,
    block_text,
    compare,
    default_features,
    isolated,
    line_problems,
    managed_on,
    parse_line,
    same_value,
    split_words,
    still_wanted,
    value_on,
    wanted_arguments,
)
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet

cpus = CPUSet.parse


def arguments(*pairs: str) -> tuple[Argument, ...]:
    return tuple(Argument(name, value, "why") for name, _equals, value in (pair.partition("=") for pair in pairs))


# --- what is wanted ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "texts"),
    [
        (DEFAULT_FEATURES, ["irqaffinity=0-1", "rcu_nocbs=2-7", "isolcpus=managed_irq,2-7"]),
        ((TICK,), ["nohz_full=2-7"]),
        ((KTHREADS, SYSTEMD_AFFINITY), ["systemd.cpu_affinity=0-1", "kthread_cpus=0-1"]),
        ((), []),
    ],
)
def test_wanted(features: tuple[str, ...], texts: list[str]) -> None:
    found = wanted_arguments(cpus("0-1"), cpus("0-7"), features)
    assert [argument.text for argument in found] == texts
    assert all(argument.reason for argument in found)


def test_domain_without_a_shared_pool() -> None:
    found = wanted_arguments(cpus("0"), cpus("0-3"), (MANAGED_IRQ, DOMAIN), has_shared_pool=False)
    assert [argument.text for argument in found] == ["isolcpus=domain,managed_irq,1-3"]


def test_domain_is_refused_with_the_reason() -> None:
    with pytest.raises(RefusedError, match="CPUs 1-3 out of the scheduler's load balancing") as caught:
        wanted_arguments(cpus("0"), cpus("0-3"), (DOMAIN,))
    assert caught.value.where == "kernel argument isolcpus=domain"
    assert "managed_irq" in caught.value.remedy


@pytest.mark.parametrize(
    ("reserved", "possible", "features", "where"),
    [
        ("", "0-3", (), "the reserved CPUs (none)"),
        ("0-3", "0-3", (), "the reserved CPUs 0-3"),
        ("4", "0-3", (), "the reserved CPUs 4"),
        ("0", "0-3", ("nohz", "nohz_full"), "kernel argument 'nohz'"),
    ],
)
def test_wrong_wishes(reserved: str, possible: str, features: tuple[str, ...], where: str) -> None:
    with pytest.raises(InputError) as caught:
        wanted_arguments(cpus(reserved), cpus(possible), features)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("version", "vendor", "more"),
    [(2, False, ()), (1, False, (SYSTEMD_AFFINITY,)), (1, True, (SYSTEMD_AFFINITY, KTHREADS)), (2, True, (KTHREADS,))],
)
def test_default_features(version: int, vendor: bool, more: tuple[str, ...]) -> None:
    assert default_features(version, vendor) == DEFAULT_FEATURES + more


SETS = st.sets(st.integers(0, 70), min_size=2, max_size=70).map(CPUSet)


@given(SETS, st.data(), st.sets(st.sampled_from(sorted(set(FEATURES) - {DOMAIN}))))
def test_every_cpu_is_on_one_side(possible: CPUSet, data: st.DataObject, features: set[str]) -> None:
    reserved = possible.take(data.draw(st.integers(1, len(possible) - 1)))
    for argument in wanted_arguments(reserved, possible, features):
        found = CPUSet.parse(argument.value.replace("managed_irq,", ""))
        assert found in (reserved, possible - reserved)
        assert found == (possible - reserved if argument.name in (RCU, TICK, "isolcpus") else reserved)


# --- reading ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \n\t", []),
        ("ro quiet", [("ro", None), ("quiet", None)]),
        ("a=b=c", [("a", "b=c")]),
        ("a=", [("a", "")]),
        ("=a", [("=a", None)]),
        ("==", [("=", "")]),
        ('dyndbg="file a.c +p" x', [("dyndbg", "file a.c +p"), ("x", None)]),
        ('"a=b c" x', [("a", "b c"), ("x", None)]),
        ('"a b"', [("a b", None)]),
        ('a="b c', [("a", "b c")]),
        ('a=b"c d"e', [("a", 'b"c d"e')]),
        ('a="', [("a", "")]),
        ('"', [("", None)]),
        ('a=""', [("a", "")]),
        ("a\xa0b", [("a", None), ("b", None)]),
        ("a -- b=1", [("a", None)]),
        ("a --x b", [("a", None), ("--x", None), ("b", None)]),
        ("a\0b", [("a", None)]),
    ],
)
def test_parse_line(text: str, words: list[Any]) -> None:
    assert parse_line(text) == [Word(*word) for word in words]


@given(st.text(alphabet=' a=",\t\n\0-b', max_size=30))
def test_a_line_never_fails_and_no_word_has_its_blanks(text: str) -> None:
    for word in parse_line(text):
        assert word.name or '"' in text
        assert '"' in text or not set(word.name + (word.value or "")) & set(" \t\n\0")


WORDS = st.lists(
    st.tuples(st.sampled_from(["ro", "a", "rcu_nocbs", "x.y"]), st.none() | st.text(alphabet="0-9,x= ", max_size=5)),
    max_size=6,
)


@given(WORDS)
def test_what_is_written_is_read(words: list[tuple[str, str | None]]) -> None:
    line = " ".join(name if value is None else '%s="%s"' % (name, value) for name, value in words)
    assert parse_line(line) == [Word(*word) for word in words]


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("nohz_full=1 nohz_full=2", "nohz_full", "1"),
        ("isolcpus=1 isolcpus=2", "isolcpus", "1"),
        ("rcu_nocbs=1 rcu_nocbs=2", "rcu_nocbs", "2"),
        ("irqaffinity=1 irqaffinity=2", "irqaffinity", "2"),
        ("rcu-nocbs=1", "rcu_nocbs", "1"),
        ("rcu_nocbs", "rcu_nocbs", ""),
        ("xrcu_nocbs=1", "rcu_nocbs", None),
    ],
)
def test_which_counts(line: str, name: str, value: str | None) -> None:
    assert value_on(parse_line(line), name) == value


@pytest.mark.parametrize(
    ("value", "flags", "found"),
    [
        ("2-3", {"domain"}, "2-3"),
        ("managed_irq,2-3,5", {"managed_irq"}, "2-3,5"),
        ("nohz,domain,1", {"nohz", "domain"}, "1"),
        ("later,1", {"domain"}, "1"),
        ("managed_irq", {"managed_irq"}, None),
        ("managed_irq,1-", {"managed_irq"}, None),
        ("", {"domain"}, None),
    ],
)
def test_isolated(value: str, flags: set[str], found: str | None) -> None:
    assert isolated(value) == (frozenset(flags), None if found is None else cpus(found))


@pytest.mark.parametrize(
    ("name", "left", "right", "same"),
    [
        ("rcu_nocbs", "2,3", "2-3", True),
        ("rcu_nocbs", "2", "2-3", False),
        ("rcu_nocbs", "all", "all", True),
        ("rcu_nocbs", "all", "0-3", False),
        ("rcu_nocbs", "all", "some", False),
        ("isolcpus", "domain,2-3", "2,3", True),
        ("isolcpus", "managed_irq,2-3", "2-3", False),
        ("isolcpus", "x", "y", False),
        ("rcu_nocbs", None, "2", False),
        ("rcu_nocbs", None, None, True),
    ],
)
def test_same_value(name: str, left: str | None, right: str | None, same: bool) -> None:
    assert same_value(name, left, right) == same


# --- what was written here --------------------------------------------------------------------------


def test_block() -> None:
    assert block_text(()) == ""
    block = block_text(arguments("irqaffinity=0-1", "isolcpus=managed_irq,2-7"))
    assert block == "kubenode.housekeeping=irqaffinity,isolcpus irqaffinity=0-1 isolcpus=managed_irq,2-7"
    words = parse_line("ro irqaffinity=3 %s irqaffinity=5 quiet" % block)
    assert block_on(words) == block
    assert split_words(words)[0] == parse_line("ro irqaffinity=3 irqaffinity=5 quiet")
    assert block_on(parse_line("ro quiet")) == ""


def test_a_mark_claims_no_more_than_is_written_here() -> None:
    line = "kubenode.housekeeping=root,init,rcu_nocbs root=/dev/x init=/x rcu_nocbs=1"
    assert split_words(parse_line(line))[1] == [Word(MARK, "root,init,rcu_nocbs")]
    line = 'kubenode.housekeeping=rcu_nocbs rcu_nocbs="1 2" x'
    assert split_words(parse_line(line))[1] == [Word(MARK, "rcu_nocbs")]
    line = 'kubenode.housekeeping="rcu_nocbs x" rcu_nocbs=1'
    assert split_words(parse_line(line))[1] == []


@pytest.mark.parametrize("argument", ["rcu_nocbs=$(x)", 'rcu_nocbs=1"', "rcu_nocbs=1 2", "rcu_nocbs=", "init=/bin/sh"])
def test_a_block_is_plain(argument: str) -> None:
    with pytest.raises(InputError, match="is not written"):
        block_text(arguments(argument))


@given(WORDS, WORDS, st.sets(st.sampled_from(NAMES), min_size=1))
def test_no_foreign_argument_is_lost(before: Any, after: Any, names: set[str]) -> None:
    ours = parse_line(block_text(arguments(*("%s=1" % name for name in NAMES if name in names))))
    foreign = [Word(*word) for word in before + after]
    found = split_words([*(Word(*word) for word in before), *ours, *(Word(*word) for word in after)])
    assert found == (foreign, ours)


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("ro quiet", ["irqaffinity=0", "rcu_nocbs=1-3"]),
        ("rcu-nocbs=1,2-3", ["irqaffinity=0"]),
        ("irqaffinity=0 rcu_nocbs=1-3", []),
        ("%s=rcu_nocbs rcu_nocbs=2" % MARK, ["irqaffinity=0", "rcu_nocbs=1-3"]),
    ],
)
def test_still_wanted(line: str, left: list[str]) -> None:
    found = still_wanted(line, arguments("irqaffinity=0", "rcu_nocbs=1-3"), "file")
    assert [argument.text for argument in found] == left


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("irqaffinity=1", "has irqaffinity=1, which somebody else sets, and irqaffinity=0 is wanted"),
        ("irqaffinity=0 irqaffinity=1", "has irqaffinity=1, which"),
        ("irqaffinity", "has irqaffinity, which"),
        ('x="a', "has a quote without its end"),
        ("x -- y", "has --, after which all is for init"),
        ("x " * 300 + "y=" + "z" * 1600, "would have more than 1900 characters"),
    ],
)
def test_nothing_can_be_added(line: str, what: str) -> None:
    with pytest.raises(RefusedError, match=what) as caught:
        still_wanted(line, arguments("irqaffinity=0"), "file")
    assert caught.value.where == "file"


# --- comparing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("booted", "configured", "wanted", "rows"),
    [
        ("ro", "ro", [], []),
        ("ro", "ro", ["rcu_nocbs=1"], [("rcu_nocbs", None, None, "1", True, False)]),
        ("ro", "rcu_nocbs=1", ["rcu_nocbs=1"], [("rcu_nocbs", None, "1", "1", False, True)]),
        ("rcu_nocbs=1", "rcu_nocbs=1", ["rcu_nocbs=1"], [("rcu_nocbs", "1", "1", "1", False, False)]),
        ("rcu_nocbs=1,2", "rcu_nocbs=1-2", [], [("rcu_nocbs", "1,2", "1-2", "", False, False)]),
        ("ro", None, ["rcu_nocbs=1"], [("rcu_nocbs", None, None, "1", True, True)]),
        ("rcu_nocbs=1", None, ["rcu_nocbs=1"], [("rcu_nocbs", "1", None, "1", False, False)]),
        ("rcu_nocbs=1", None, [], [("rcu_nocbs", "1", None, "", False, False)]),
        # Taken out, and not booted since.
        ("rcu_nocbs=1", "ro", [], [("rcu_nocbs", "1", None, "", False, True)]),
        # Written here, and no longer wanted.
        ("ro", MARK + "=rcu_nocbs rcu_nocbs=1", [], [("rcu_nocbs", None, "1", "", True, True)]),
    ],
)
def test_compare(booted: str, configured: str | None, wanted: list[str], rows: list[Any]) -> None:
    expected = []
    for name, is_now, will_be, value, changes, reboots in rows:
        expected.append(ArgumentRow(name, is_now, will_be, value, "why" if value else "", changes, reboots))
    assert compare(booted, configured, arguments(*wanted)) == expected


@pytest.mark.parametrize(
    ("line", "problems"),
    [
        ("ro irqaffinity=0-1 rcu_nocbs=2-7 nohz_full=2-7 isolcpus=managed_irq,2-7", []),
        ("isolcpus=1-3", ["isolcpus=1-3 takes the CPUs 2-3 out of the scheduler's load balancing"]),
        ("isolcpus=domain,0-1", []),
        ("nohz_full=2 nohz_full=3", ["nohz_full stands there 2 times, and the first counts"]),
        ("rcu_nocbs=2 rcu_nocbs=3", ["rcu_nocbs stands there 2 times, and the last counts"]),
        ("rcu_nocbs=2,3 rcu_nocbs=2-3", []),
        ("rcu_nocbs=x", ["rcu_nocbs=x has no list of CPUs that can be read"]),
        ("nohz_full=1-2", ["nohz_full=1-2 has the reserved CPUs 1"]),
        ("irqaffinity=1-2", ["irqaffinity=1-2 has the CPUs 2, which are not reserved"]),
    ],
)
def test_line_problems(line: str, problems: list[str]) -> None:
    found = line_problems(line, cpus("0-1"), cpus("0-7"))
    assert [text[: len(problem)] for text, problem in zip(found, problems)] == problems
    assert len(found) == len(problems)


def test_domain_is_no_problem_without_pods() -> None:
    assert line_problems("isolcpus=2-7", cpus("0-1"), cpus("0-7"), has_shared_pool=False) == []


@pytest.mark.parametrize(
    ("line", "managed"),
    [
        ("isolcpus=nohz,domain,managed_irq,1-23,25-47 nohz_full=1-23", "1-23,25-47"),
        ("ro isolcpus=managed_irq,2-3 isolcpus=domain,4", "2-3"),
        ("isolcpus=2-3", ""),
        ("isolcpus=managed_irq,a", ""),
        ("managed_irq=2", ""),
        ("", ""),
    ],
)
def test_cpus_of_managed_irq(line: str, managed: str) -> None:
    assert str(managed_on(line)) == managed

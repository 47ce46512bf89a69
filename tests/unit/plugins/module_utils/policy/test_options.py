# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests of plugins/module_utils/policy/options.py."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError, KubeletError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.policy.options import (
    StaticOptions,
    check_machine,
    parse_static_options,
)

from .static_kubelet import machine

FULL = "full-pcpus-only"
NUMA = "distribute-cpus-across-numa"
SOCKET = "align-by-socket"
CORES = "distribute-cpus-across-cores"
STRICT = "strict-cpu-reservation"
UNCORE = "prefer-align-cpus-by-uncorecache"

OPTIONS = (FULL, NUMA, SOCKET, CORES, STRICT, UNCORE)

# Level of each of OPTIONS: unknown, alpha, beta, generally available.
LEVELS = [
    (22, "A - - - - -"),
    (23, "B A - - - -"),
    (24, "B A - - - -"),
    (25, "B A A - - -"),
    (26, "B A A - - -"),
    (27, "B A A - - -"),
    (28, "B A A - - -"),
    (29, "B A A - - -"),
    (30, "B A A - - -"),
    (31, "B A A A - -"),
    (32, "B A A A A A"),
    (33, "G B A A B A"),
    (34, "G B A A B B"),
    (35, "G B A A G B"),
    (36, "G B A A G G"),
]


@pytest.mark.parametrize("alpha", [False, True])
@pytest.mark.parametrize("beta", [False, True])
@pytest.mark.parametrize(("minor", "levels"), LEVELS)
def test_version_and_gates(minor: int, levels: str, alpha: bool, beta: bool) -> None:
    for name, level in zip(OPTIONS, levels.split()):
        if {"A": alpha, "B": beta, "G": True, "-": False}[level]:
            found = parse_static_options({name: "true"}, minor, alpha, beta)
            assert found == StaticOptions()._replace(**{name.replace("-", "_"): True})
            continue
        with pytest.raises(InputError) as caught:
            parse_static_options({name: "true"}, minor, alpha, beta)
        if level == "-":
            message = 'unknown CPU Manager Policy option: "%s"' % name
            assert str(caught.value).startswith("%s; the kubelet 1.%d has " % (message, minor))
        else:
            word = {"A": "Alpha", "B": "Beta"}[level]
            message = 'CPU Manager Policy %s-level Options not enabled, but option "%s" provided' % (word, name)
            gate = "CPUManagerPolicy%sOptions" % word
            hint = "set the feature gate %s in the kubelet's configuration first" % gate
            assert str(caught.value) == "%s; %s" % (message, hint)


def test_gates_that_nobody_set() -> None:
    """Beta options are on, alpha options are off."""
    assert parse_static_options({NUMA: "true"}, 33).distribute_cpus_across_numa
    with pytest.raises(InputError, match="Alpha-level Options not enabled"):
        parse_static_options({NUMA: "true"}, 32)


def test_unknown_option() -> None:
    with pytest.raises(InputError) as caught:
        parse_static_options({"full-pcpu-only": "true"}, 31, alpha_enabled=True)
    assert str(caught.value) == (
        'unknown CPU Manager Policy option: "full-pcpu-only"; the kubelet 1.31 has'
        " align-by-socket, distribute-cpus-across-cores, distribute-cpus-across-numa, full-pcpus-only"
    )


def test_an_option_without_its_gate_is_refused_even_when_false() -> None:
    with pytest.raises(InputError, match='Alpha-level Options not enabled, but option "align-by-socket" provided'):
        parse_static_options({SOCKET: "false"}, 36)


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_true(text: str) -> None:
    assert parse_static_options({FULL: text}, 36) == StaticOptions(full_pcpus_only=True)


@pytest.mark.parametrize("text", ["0", "f", "F", "FALSE", "false", "False"])
def test_false(text: str) -> None:
    assert parse_static_options({FULL: text}, 36) == StaticOptions()


@pytest.mark.parametrize("text", ["", "yes", "on", "tRUE", "truE", " true", "true ", "2", "-1", "01", "none"])
def test_neither_true_nor_false(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_static_options({FULL: text}, 36)
    assert str(caught.value) == (
        'bad value for option "full-pcpus-only": strconv.ParseBool: parsing "%s": invalid syntax;'
        ' write "true" or "false"' % text
    )


def test_no_options() -> None:
    assert parse_static_options({}, 36) == StaticOptions(False, False, False, False, False, False)


# In the order in which the kubelet looks at them.
EXCLUSIONS = [(FULL, CORES), (NUMA, CORES), (UNCORE, CORES), (UNCORE, NUMA)]


@pytest.mark.parametrize("pair", list(combinations(OPTIONS, 2)))
def test_pairs(pair: tuple[str, str]) -> None:
    def parse(first: str, second: str) -> StaticOptions:
        return parse_static_options({pair[0]: first, pair[1]: second}, 36, alpha_enabled=True)

    excluded = [(first, second) for first, second in EXCLUSIONS if {first, second} == set(pair)]
    if excluded:
        with pytest.raises(InputError) as caught:
            parse("true", "true")
        assert str(caught.value) == (
            "static policy options %s and %s can not be used at the same time; drop one of the two" % excluded[0]
        )
    else:
        assert sum(parse("true", "true")) == 2
    # What is off disturbs nothing.
    assert sum(parse("true", "false")) == 1
    assert sum(parse("false", "false")) == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [((FULL, NUMA, CORES, UNCORE), 0), ((NUMA, CORES, UNCORE), 1), ((CORES, UNCORE), 2), ((NUMA, UNCORE, FULL), 3)],
)
def test_of_several_exclusions_the_kubelets_first_is_told(options: tuple[str, ...], told: int) -> None:
    with pytest.raises(InputError, match="static policy options %s and %s can not" % EXCLUSIONS[told]):
        parse_static_options(dict.fromkeys(options, "true"), 36, alpha_enabled=True)


def test_align_by_socket_and_the_machine() -> None:
    socket = StaticOptions(align_by_socket=True)
    with pytest.raises(KubeletError) as caught:
        check_machine(socket, machine("2s1n2c"), "single-numa-node")
    assert caught.value.text == (
        "Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option"
    )
    assert str(caught.value) == caught.value.text + "; drop one of the two"
    with pytest.raises(KubeletError) as caught:
        check_machine(socket, machine("1n2s2c"), "none")
    assert caught.value.text == (
        "Align by socket is not compatible with hardware where number of sockets are more than number of NUMA"
    )
    assert str(caught.value) == (
        caught.value.text + "; drop align-by-socket: the node has more sockets (2) than NUMA nodes (1)"
    )
    # As many, or fewer.
    for name in ("2s1n2c", "1s2n2c", "2s2n1c"):
        check_machine(socket, machine(name), "restricted")
    # Without it, nothing is looked at.
    check_machine(StaticOptions(True, True, False, True, True, True), machine("1n2s2c"), "single-numa-node")


def test_what_the_kubelet_says_is_told_apart_from_what_to_do() -> None:
    with pytest.raises(KubeletError) as caught:
        parse_static_options({FULL: "yes"}, 36)
    assert caught.value.text == (
        'bad value for option "full-pcpus-only": strconv.ParseBool: parsing "yes": invalid syntax'
    )
    with pytest.raises(KubeletError) as caught:
        parse_static_options({SOCKET: "true"}, 36)
    assert caught.value.text == (
        'CPU Manager Policy Alpha-level Options not enabled, but option "align-by-socket" provided'
    )
    with pytest.raises(KubeletError) as caught:
        parse_static_options({"x": "true"}, 36)
    assert caught.value.text == 'unknown CPU Manager Policy option: "x"'


@pytest.mark.parametrize("order", list(permutations([FULL, "bad", STRICT])))
def test_of_several_failures_the_first_name_is_told(order: tuple[str, ...]) -> None:
    """Where the kubelet tells any of them, the same one each time."""
    values = {FULL: "maybe", "bad": "true", STRICT: "perhaps"}
    with pytest.raises(InputError, match='unknown CPU Manager Policy option: "bad"'):
        parse_static_options({name: values[name] for name in order}, 36)


@given(st.dictionaries(st.sampled_from(OPTIONS), st.sampled_from(["true", "false"])), st.integers(33, 36))
def test_what_is_accepted_is_what_was_asked_for(options: dict[str, str], minor: int) -> None:
    try:
        found = parse_static_options(options, minor, alpha_enabled=True)
    except InputError:
        on = {name for name, text in options.items() if text == "true"}
        assert any(set(pair) <= on for pair in EXCLUSIONS)
        return
    assert found == StaticOptions(*(options.get(name) == "true" for name in OPTIONS))

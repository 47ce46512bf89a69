# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any, Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._base.errors import InputError
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import (
    MAX_CPUS,
    CPUSet,
    count_bits,
    iterate_bits,
    lowest_bits,
)
from ansible_collections.kubenode.cpu_manager.tests.machines.counted import lines_run
from ansible_collections.kubenode.cpu_manager.tests.machines.strategies import cpusets

LAST = MAX_CPUS - 1

LISTS = [
    ("", [], ""),  # empty
    ("\n", [], ""),  # an empty kernel file
    ("0", [0], "0"),  # one CPU
    ("5\n", [5], "5"),  # one trailing newline
    ("0,1", [0, 1], "0-1"),  # two neighbours are a range
    ("3-3", [3], "3"),  # a range of one
    ("0-3", [0, 1, 2, 3], "0-3"),  # a range
    ("8,0-3", [0, 1, 2, 3, 8], "0-3,8"),  # out of order
    ("0-3,2-5", [0, 1, 2, 3, 4, 5], "0-5"),  # overlapping
    ("1,1,1", [1], "1"),  # repeated
    ("007,010", [7, 10], "7,10"),  # leading zeros are no octal
    ("0-7:1/2", [0, 2, 4, 6], "0,2,4,6"),  # every second
    ("0-31:2/8", [0, 1, 8, 9, 16, 17, 24, 25], "0-1,8-9,16-17,24-25"),  # the first two of every eight
    ("4-11:3/4", [4, 5, 6, 8, 9, 10], "4-6,8-10"),  # counted from the range's begin
    ("0-9:3/8", [0, 1, 2, 8, 9], "0-2,8-9"),  # the last group is cut off
    ("0-3:4/4", [0, 1, 2, 3], "0-3"),  # all of each group
    ("0-3:1/100", [0], "0"),  # a group larger than the range
    ("5:1/2", [5], "5"),  # a stride on one CPU, which the kernel takes too
    ("0-4095:1/1024,7", [0, 7, 1024, 2048, 3072], "0,7,1024,2048,3072"),  # among others
    ("%d" % LAST, [LAST], "%d" % LAST),  # the highest CPU
]


@pytest.mark.parametrize(("text", "cpus", "canonical"), LISTS)
def test_parse_list(text: str, cpus: list[int], canonical: str) -> None:
    found = CPUSet.parse(text)
    assert list(found) == cpus
    assert str(found) == canonical
    assert CPUSet(cpus) == found


BAD_LISTS = [
    # not a number where one must be
    ("a", 1, "expected a CPU id, found 'a'"),
    (" ", 1, "expected a CPU id, found ' '"),
    ("0-3 ", 4, "expected ',', found ' '"),
    ("0, 1", 3, "expected a CPU id, found ' '"),
    ("-1", 1, "expected a CPU id, found '-'"),
    ("+1", 1, "expected a CPU id, found '+'"),
    ("0x1", 2, "expected ',', found 'x'"),
    ("1.5", 2, "expected ',', found '.'"),
    ("1_0", 2, "expected ',', found '_'"),
    ("\u0663", 1, "expected a CPU id, found '\u0663'"),  # a digit elsewhere, not here
    ("1\u00b2", 2, "expected ',', found '\u00b2'"),
    ("all", 1, "expected a CPU id, found 'a'"),
    # something is missing
    (",", 1, "expected a CPU id, found ','"),
    ("0,", 3, "expected a CPU id, found the end"),
    ("0,,1", 3, "expected a CPU id, found ','"),
    ("0-", 3, "expected the end of a range, found the end"),
    ("0-,1", 3, "expected the end of a range, found ','"),
    ("0--1", 3, "expected the end of a range, found '-'"),
    ("0-3-5", 4, "expected ',', found '-'"),
    # ranges
    ("3-1", 1, "the range 3-1 runs backwards"),
    ("0,12-9,3", 3, "the range 12-9 runs backwards"),
    # strides
    ("0-3:", 5, "expected the used part of a stride, found the end"),
    ("0-3:1", 6, "expected '/', found the end"),
    ("0-3:1/", 7, "expected the group size of a stride, found the end"),
    ("0-3:/2", 5, "expected the used part of a stride, found '/'"),
    ("0-3:0/2", 1, "the stride 0-3:0/2 uses none or too many of its group"),
    ("0-3:3/2", 1, "the stride 0-3:3/2 uses none or too many of its group"),
    ("9,0-3:0/0", 3, "the stride 0-3:0/0 uses none or too many of its group"),
    ("0-3/2", 4, "expected ',', found '/'"),
    # too large
    ("65536", 1, "65536 is out of range: CPU ids go from 0 to 65535"),
    ("0-65536", 3, "65536 is out of range: CPU ids go from 0 to 65535"),
    ("0-3:1/65536", 7, "65536 is out of range: CPU ids go from 0 to 65535"),
    ("1,9999999999", 3, "9999999999 is out of range: CPU ids go from 0 to 65535"),
    # more than one newline, or one elsewhere
    ("0\n\n", 2, "expected ',', found '\\n'"),
    ("0\n1", 2, "expected ',', found '\\n'"),
    ("0\r\n", 2, "expected ',', found '\\r'"),
    ("0\0", 2, "expected ',', found '\\x00'"),
]


@pytest.mark.parametrize(("text", "position", "what"), BAD_LISTS)
def test_bad_list(text: str, position: int, what: str) -> None:
    with pytest.raises(InputError) as caught:
        CPUSet.parse(text)
    shown = text[:-1] if text.endswith("\n") else text
    assert str(caught.value) == "CPU list %r, position %d: %s" % (shown, position, what)


@pytest.mark.parametrize(("text", "written"), [("0-3:1/2", "0,2"), ("0-3\n", "0-3"), ("\n", "")])
def test_what_only_the_kernel_reads(text: str, written: str) -> None:
    with pytest.raises(InputError) as caught:
        CPUSet.parse_plain(text)
    assert str(caught.value) == (
        "CPU list %r: the kubelet reads neither strides nor line ends; write %r" % (text, written)
    )


def test_what_the_kubelet_reads_too() -> None:
    assert CPUSet.parse_plain("0-3,8") == CPUSet([0, 1, 2, 3, 8])
    assert CPUSet.parse_plain("") == CPUSet()


def test_error_of_a_long_list_stays_short() -> None:
    with pytest.raises(InputError) as caught:
        CPUSet.parse("0," * 90_000 + "x")
    assert str(caught.value).endswith("...', position 180001: expected a CPU id, found 'x'")
    assert len(str(caught.value)) < 200


def test_no_text_is_looked_at_that_is_longer_than_any_set() -> None:
    longest = ",".join(map(str, range(1, MAX_CPUS, 2)))
    assert str(CPUSet.parse(longest)) == longest
    with pytest.raises(InputError, match=r"\.\.\.', position 196609: is longer than 196608 characters$"):
        CPUSet.parse("0-65535:1/1," * 100_000)


@pytest.mark.parametrize(("item", "count"), [("0-65535:1/1", 2000), ("0-65535:1/2", 2000), ("65535", 2000)])
def test_each_item_takes_few_steps_however_many_cpus_it_has(item: str, count: int) -> None:
    """A stride of 1 was as many steps as it has CPUs."""

    def steps(text: str) -> int:
        return lines_run(lambda: CPUSet.parse(text))

    few, many = (steps(",".join([item] * number)) for number in (count // 4, count))
    assert few < many < 5 * few
    assert many < 300 * count


def test_number_of_very_many_digits_is_an_error_and_quick() -> None:
    with pytest.raises(InputError, match="is out of range"):
        CPUSet.parse("9" * 100_000)


MASKS = [
    ("0", [], "0"),  # empty
    ("1", [0], "1"),
    ("f\n", [0, 1, 2, 3], "f"),  # a trailing newline
    ("0xff", [0, 1, 2, 3, 4, 5, 6, 7], "ff"),  # as taskset prints it
    ("0XFF", [0, 1, 2, 3, 4, 5, 6, 7], "ff"),
    ("0f", [0, 1, 2, 3], "f"),  # padded
    ("00000000,00000003", [0, 1], "3"),
    ("1,00000000", [32], "1,00000000"),
    ("1,0", [32], "1,00000000"),  # a group counts 32 bits, however short
    ("ff,ffffffff", list(range(40)), "ff,ffffffff"),
    ("80000000,00000000,00000001", [0, 95], "80000000,00000000,00000001"),
    ("100000000", [32], "1,00000000"),  # one long number, as in /proc/irq on old kernels
]


@pytest.mark.parametrize(("text", "cpus", "canonical"), MASKS)
def test_parse_mask(text: str, cpus: list[int], canonical: str) -> None:
    found = CPUSet.parse_mask(text)
    assert list(found) == cpus
    assert found.to_mask() == canonical


BAD_MASKS = [
    ("", 1, "a group of digits is missing"),
    ("0x", 3, "a group of digits is missing"),
    ("f,", 3, "a group of digits is missing"),
    (",f", 1, "a group of digits is missing"),
    ("f,,f", 3, "a group of digits is missing"),
    ("g", 1, "'g' is not a hexadecimal digit"),
    ("f,0xf", 4, "'x' is not a hexadecimal digit"),
    ("0xf,z", 5, "'z' is not a hexadecimal digit"),
    ("-1", 1, "'-' is not a hexadecimal digit"),
    ("f_f", 2, "'_' is not a hexadecimal digit"),
    (" f", 1, "' ' is not a hexadecimal digit"),
    ("0,123456789", 3, "a group has more than 8 digits"),
]


@pytest.mark.parametrize(("text", "position", "what"), BAD_MASKS)
def test_bad_mask(text: str, position: int, what: str) -> None:
    with pytest.raises(InputError) as caught:
        CPUSet.parse_mask(text)
    assert str(caught.value) == "CPU mask %r, position %d: %s" % (text, position, what)


@pytest.mark.parametrize(
    "text",
    [
        "1" + "0" * (MAX_CPUS // 4),  # one CPU too many
        "1," + ",".join(["00000000"] * (MAX_CPUS // 32)),  # the same, in groups
        "f" * 1_000_000,
    ],
)
def test_mask_of_too_many_cpus(text: str) -> None:
    with pytest.raises(InputError, match="the mask is longer than 65536 CPUs"):
        CPUSet.parse_mask(text)


def test_longest_mask() -> None:
    everything = CPUSet(range(MAX_CPUS))
    assert CPUSet.parse_mask(everything.to_mask()) == everything
    assert CPUSet.parse_mask("f" * (MAX_CPUS // 4)) == everything


@pytest.mark.parametrize("value", [None, 3, b"0-3", ["0-3"], 1.5])
@pytest.mark.parametrize("parse", [CPUSet.parse, CPUSet.parse_mask])
def test_what_is_no_text(parse: Callable[[Any], CPUSet], value: object) -> None:
    with pytest.raises(InputError) as caught:
        parse(value)
    assert str(caught.value) == "a CPU list is a text such as '0-3,8', not %r" % (value,)


@pytest.mark.parametrize(
    ("cpus", "message"),
    [
        ([-1], "CPU -1 is out of range: CPU ids go from 0 to 65535"),
        ([0, MAX_CPUS], "CPU 65536 is out of range: CPU ids go from 0 to 65535"),
        ([True], "a CPU id is a whole number, not True"),
        (["1"], "a CPU id is a whole number, not '1'"),
        ("1", "a CPU id is a whole number, not '1'"),  # a list format must be parsed
        ([1.0], "a CPU id is a whole number, not 1.0"),
        ([None], "a CPU id is a whole number, not None"),
    ],
)
def test_bad_ids(cpus: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        CPUSet(cpus)
    assert str(caught.value) == message


def test_bad_bits() -> None:
    for mask in (-1, 1 << MAX_CPUS):
        with pytest.raises(InputError, match="a CPU mask has bits 0 to 65535 only"):
            CPUSet.from_mask(mask)


@given(cpusets())
@example(CPUSet())
@example(CPUSet([LAST]))
def test_texts_round_trip(cpus: CPUSet) -> None:
    assert CPUSet.parse(str(cpus)) == cpus
    assert CPUSet.parse(str(cpus) + "\n") == cpus
    assert CPUSet.parse_mask(cpus.to_mask()) == cpus
    assert CPUSet.parse_mask("0x" + cpus.to_mask()) == cpus
    assert eval(repr(cpus), {"CPUSet": CPUSet}) == cpus


@given(cpusets())
def test_text_is_canonical(cpus: CPUSet) -> None:
    ranges = list(cpus.ranges())
    assert [cpu for first, last in ranges for cpu in range(first, last + 1)] == sorted(set(cpus))
    assert all(last + 1 < first for (_first, last), (first, _last) in zip(ranges, ranges[1:]))
    assert str(cpus) == ",".join("%d" % a if a == b else "%d-%d" % (a, b) for a, b in ranges)
    groups = cpus.to_mask().split(",")
    assert all(len(group) == 8 for group in groups[1:])
    assert cpus.to_mask() == "0" or not groups[0].startswith("0")


def kernel_list(first: int, last: int, used: int, group: int) -> set[int]:
    """Return what the kernel's bitmap_parselist() sets for FIRST-LAST:USED/GROUP, said naively."""
    return {cpu for cpu in range(first, last + 1) if (cpu - first) % group < used}


@given(st.data(), st.integers(0, 300), st.integers(0, 300), st.integers(1, 80))
def test_strides_are_those_of_the_kernel(data: st.DataObject, first: int, length: int, group: int) -> None:
    used = data.draw(st.integers(1, group))
    text = "%d-%d:%d/%d" % (first, first + length, used, group)
    assert set(CPUSet.parse(text)) == kernel_list(first, first + length, used, group)


@given(st.lists(cpusets(), max_size=4), st.data())
def test_order_and_repetition_do_not_matter(parts: list[CPUSet], data: st.DataObject) -> None:
    texts = [str(part) for part in parts if part]
    shuffled = data.draw(st.permutations(texts + texts))
    union = {cpu for part in parts for cpu in part}
    assert set(CPUSet.parse(",".join(shuffled))) == union


@given(st.text(alphabet="0123456789-,:/x \n", max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (CPUSet.parse, CPUSet.parse_mask):
        try:
            found = parse(text)
        except InputError:
            continue
        assert CPUSet.parse(str(found)) == found


BINARY = [operator.or_, operator.and_, operator.sub, operator.xor]
COMPARISONS = [operator.eq, operator.ne, operator.le, operator.lt, operator.ge, operator.gt]


@given(cpusets(), cpusets())
def test_algebra_is_that_of_sets(a: CPUSet, b: CPUSet) -> None:
    for operation in BINARY:
        assert set(operation(a, b)) == operation(set(a), set(b)), operation
    for comparison in COMPARISONS:
        assert comparison(a, b) == comparison(set(a), set(b)), comparison
        assert comparison(a, a & b) == comparison(set(a), set(a) & set(b)), comparison
    assert a.isdisjoint(b) == set(a).isdisjoint(b)
    assert a.isdisjoint(a - a)


@given(cpusets())
def test_is_a_collection(cpus: CPUSet) -> None:
    members = set(cpus)
    assert list(cpus) == sorted(members)
    assert len(cpus) == len(members) == count_bits(cpus.mask) == len(list(iterate_bits(cpus.mask)))
    assert bool(cpus) == bool(members)
    assert [cpu in cpus for cpu in range(-1, 210)] == [cpu in members for cpu in range(-1, 210)]
    assert CPUSet(cpus) == cpus == CPUSet.from_mask(cpus.mask)


@given(cpusets(), st.integers(-1, 40))
@example(CPUSet(range(30)), 8)
@example(CPUSet(range(30)), 9)
def test_lowest_bits(cpus: CPUSet, count: int) -> None:
    assert list(iterate_bits(lowest_bits(cpus.mask, count))) == list(cpus)[: max(count, 0)]


def test_contains_only_numbers() -> None:
    cpus = CPUSet.parse("0-3")
    assert 3 in cpus
    assert 4 not in cpus
    assert -1 not in cpus
    assert "1" not in cpus
    assert None not in cpus


@given(cpusets(), st.integers(-2, 220))
def test_take(cpus: CPUSet, count: int) -> None:
    assert list(cpus.take(count)) == sorted(cpus)[: max(count, 0)]


@given(cpusets().filter(bool))
def test_first(cpus: CPUSet) -> None:
    assert cpus.first() == min(cpus)


def test_empty_has_no_first() -> None:
    with pytest.raises(InputError, match="the empty CPU set has no first CPU"):
        CPUSet().first()


@pytest.mark.parametrize("operation", BINARY + COMPARISONS[2:])
@pytest.mark.parametrize("stranger", [{1}, [1], 1, "1", None])
def test_only_with_its_kind(operation: Callable[[Any, Any], Any], stranger: object) -> None:
    for pair in ((CPUSet([1]), stranger), (stranger, CPUSet([1]))):
        with pytest.raises(TypeError):
            operation(*pair)


@pytest.mark.parametrize("stranger", [{1}, frozenset([1]), [1], 1, 2, "1", None])
def test_equals_only_its_kind(stranger: object) -> None:
    assert CPUSet([1]) != stranger


def test_cannot_be_changed() -> None:
    cpus = CPUSet([1])
    with pytest.raises(AttributeError, match="a CPUSet cannot be changed"):
        cpus.mask = 3
    with pytest.raises(AttributeError, match="a CPUSet cannot be changed"):
        del cpus.mask
    with pytest.raises(AttributeError):
        setattr(cpus, "name", "shared pool")  # noqa: B010 (mypy would refuse the statement)
    before = cpus
    cpus |= CPUSet([2])  # a new one
    assert (str(before), str(cpus)) == ("1", "1-2")


@given(cpusets(), cpusets())
def test_hash_and_copies(a: CPUSet, b: CPUSet) -> None:
    assert (hash(a) == hash(b)) or a != b
    assert hash(a) == hash(CPUSet(list(a)))
    assert len({a, CPUSet(list(a)), b}) == (1 if a == b else 2)
    for clone in (copy.copy(a), copy.deepcopy(a), *(pickle.loads(pickle.dumps(a, level)) for level in range(2, 6))):
        assert clone == a
        assert isinstance(clone, CPUSet)

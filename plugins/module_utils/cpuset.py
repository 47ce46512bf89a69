# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPUSet: the value that everything speaks.

The list format is the one of cpuset(7) with the strides that the kernel's bitmap_parselist() adds
(`0-31:2/8`: of every 8 CPUs the first 2); the mask format is comma separated groups of 32 bits in
hexadecimal, the highest first. Canonical text is the kubelet's: ascending, `a-b` from two CPUs on.
"""

from __future__ import annotations

from typing import Callable, Iterable, Iterator

from ._base.errors import InputError

# Above every kernel's CONFIG_NR_CPUS (8192), so a typing error cannot ask for gigabytes of bits.
MAX_CPUS = 1 << 16

# Of a list, more than that of any set as str() writes it. What is longer is not looked at.
_LONGEST_LIST = 3 * MAX_CPUS

# So many bits are found faster one by one than by halving.
_FEW = 8

_DIGITS = frozenset("0123456789")
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


class CPUSet:
    """An immutable set of CPU ids (0 to 65535), held as the bits of one integer."""

    __slots__ = ("mask",)

    mask: int

    def __init__(self, cpus: Iterable[int] = ()) -> None:
        mask = 0
        for cpu in cpus:
            if isinstance(cpu, bool) or not isinstance(cpu, int):
                raise InputError("a CPU id is a whole number, not %r" % (cpu,))
            if not 0 <= cpu < MAX_CPUS:
                raise InputError("CPU %d is out of range: CPU ids go from 0 to %d" % (cpu, MAX_CPUS - 1))
            mask |= 1 << cpu
        object.__setattr__(self, "mask", mask)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a CPUSet cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a CPUSet cannot be changed")

    def __reduce__(self) -> tuple[object, ...]:
        return (CPUSet.from_mask, (self.mask,))

    # --- reading ---------------------------------------------------------------------------------

    @classmethod
    def from_mask(cls, mask: int) -> CPUSet:
        """Return the set whose CPUs are the bits of the integer `mask`."""
        if mask < 0 or mask >> MAX_CPUS:
            raise InputError("a CPU mask has bits 0 to %d only" % (MAX_CPUS - 1))
        self = cls.__new__(cls)
        object.__setattr__(self, "mask", mask)
        return self

    @classmethod
    def parse(cls, text: str) -> CPUSet:
        """Read the list format: `0-3,8`, `0-31:2/8`, empty. One trailing newline is accepted, as in a kernel file.

        Raises InputError, which names the text and the position (from 1) of what is wrong.
        """
        return cls.from_mask(_ListReader(_without_newline(text)).mask())

    @classmethod
    def parse_plain(cls, text: str) -> CPUSet:
        """Read the list format as the kubelet does, without strides. Raises InputError, which says what to write."""
        cpus = cls.parse(text)
        if ":" in text or text.endswith("\n"):
            raise InputError(
                "the kubelet reads neither strides nor line ends",
                where="CPU list %r" % _shortened(text),
                remedy="write %r" % str(cpus),
            )
        return cpus

    @classmethod
    def parse_mask(cls, text: str) -> CPUSet:
        """Read the mask format: `ff,ffffffff`, also with a leading 0x. Raises InputError as parse() does."""
        return cls.from_mask(_parse_mask(_without_newline(text)))

    # --- writing ---------------------------------------------------------------------------------

    def __str__(self) -> str:
        return ",".join(str(first) if first == last else "%d-%d" % (first, last) for first, last in self.ranges())

    def __repr__(self) -> str:
        return "CPUSet.parse(%r)" % str(self)

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the runs of consecutive CPUs as (first, last), ascending."""
        start, bits = _bits(self.mask)
        first = bits.find("1")
        while first >= 0:
            end = bits.find("0", first)
            yield start + first, start + end - 1
            first = bits.find("1", end)

    def to_mask(self) -> str:
        """Return the mask format as the kernel prints it, in groups of 32 bits: `ff,ffffffff`; `0` when empty."""
        digits = "%x" % self.mask
        groups = []
        while digits:
            digits, group = digits[:-8], digits[-8:]
            groups.append(group)
        return ",".join(reversed(groups))

    # --- the set algebra -------------------------------------------------------------------------

    def __or__(self, other: CPUSet) -> CPUSet:
        return CPUSet.from_mask(self.mask | other.mask) if isinstance(other, CPUSet) else NotImplemented

    def __and__(self, other: CPUSet) -> CPUSet:
        return CPUSet.from_mask(self.mask & other.mask) if isinstance(other, CPUSet) else NotImplemented

    def __sub__(self, other: CPUSet) -> CPUSet:
        return CPUSet.from_mask(self.mask & ~other.mask) if isinstance(other, CPUSet) else NotImplemented

    def __xor__(self, other: CPUSet) -> CPUSet:
        return CPUSet.from_mask(self.mask ^ other.mask) if isinstance(other, CPUSet) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return self.mask == other.mask if isinstance(other, CPUSet) else NotImplemented

    def __hash__(self) -> int:
        return hash((CPUSet, self.mask))

    # As with Python's sets, the comparisons mean inclusion, a partial order; for sorting see first().
    def __le__(self, other: CPUSet) -> bool:
        return not self.mask & ~other.mask if isinstance(other, CPUSet) else NotImplemented

    def __lt__(self, other: CPUSet) -> bool:
        return self != other and self <= other if isinstance(other, CPUSet) else NotImplemented

    def __ge__(self, other: CPUSet) -> bool:
        return other <= self if isinstance(other, CPUSet) else NotImplemented

    def __gt__(self, other: CPUSet) -> bool:
        return other < self if isinstance(other, CPUSet) else NotImplemented

    def isdisjoint(self, cpus: CPUSet) -> bool:
        """Return True when no CPU is in both."""
        return not self.mask & cpus.mask

    def __len__(self) -> int:
        return count_bits(self.mask)

    def __bool__(self) -> bool:
        return self.mask != 0

    def __contains__(self, cpu: object) -> bool:
        return isinstance(cpu, int) and cpu >= 0 and bool(self.mask >> cpu & 1)

    def __iter__(self) -> Iterator[int]:
        return iterate_bits(self.mask)

    def first(self) -> int:
        """Return the lowest CPU id. Raises InputError when the set is empty."""
        if not self.mask:
            raise InputError("the empty CPU set has no first CPU")
        return _trailing_zeros(self.mask)

    def take(self, count: int) -> CPUSet:
        """Return the lowest `count` CPUs, or all when there are fewer."""
        return CPUSet.from_mask(lowest_bits(self.mask, count))


def _count_bits(mask: int) -> int:
    return bin(mask).count("1")


# How many bits of a mask are set. int.bit_count() is there from Python 3.10 on.
count_bits: Callable[[int], int] = getattr(int, "bit_count", _count_bits)


def iterate_bits(mask: int) -> Iterator[int]:
    """Yield the positions of the set bits, ascending."""
    start, bits = _bits(mask)
    at = bits.find("1")
    while at >= 0:
        yield start + at
        at = bits.find("1", at + 1)


def _bits(mask: int) -> tuple[int, str]:
    """Return the position of the lowest set bit, and from there the bits as "0" and "1", with a "0" behind the highest.

    In a text, unlike in a number, it takes no longer to find the next one the more bits there are.
    """
    start = max(_trailing_zeros(mask), 0)
    return start, bin(mask >> start)[:1:-1] + "0"


def lowest_bits(mask: int, count: int) -> int:
    """Return the lowest `count` set bits, or all when there are fewer."""
    if count_bits(mask) <= count:
        return mask
    if count == 1:
        return mask & -mask
    if count <= _FEW:
        rest = mask
        for _bit in range(count):
            rest &= rest - 1
        return mask ^ rest
    low, high = (mask & -mask).bit_length() - 1 + count, mask.bit_length()
    while low < high:
        middle = (low + high) // 2
        if count_bits(mask & (1 << middle) - 1) < count:
            low = middle + 1
        else:
            high = middle
    return mask & (1 << low) - 1


def _trailing_zeros(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _without_newline(text: str) -> str:
    if not isinstance(text, str):
        raise InputError("a CPU list is a text such as '0-3,8', not %r" % (text,))
    return text[:-1] if text.endswith("\n") else text


class _ListReader:
    """Reads one text in the list format from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def mask(self) -> int:
        if not self.text:
            return 0
        if len(self.text) > _LONGEST_LIST:
            raise self._error("is longer than %d characters" % _LONGEST_LIST, _LONGEST_LIST)
        mask = self._item()
        while self.at < len(self.text):
            self._expect(",")
            mask |= self._item()
        return mask

    def _item(self) -> int:
        start = self.at
        first = last = self._number("a CPU id")
        if self._accept("-"):
            last = self._number("the end of a range")
        if last < first:
            raise self._error("the range %s runs backwards" % self.text[start : self.at], start)
        if not self._accept(":"):
            return (1 << last + 1) - (1 << first)
        used = self._number("the used part of a stride")
        self._expect("/")
        group = self._number("the group size of a stride")
        if not 0 < used <= group:
            raise self._error("the stride %s uses none or too many of its group" % self.text[start : self.at], start)
        mask, width = (1 << used) - 1, group
        while width <= last - first:
            mask |= mask << width
            width *= 2
        return (mask << first) & (1 << last + 1) - 1

    def _number(self, what: str) -> int:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in _DIGITS:
            self.at += 1
        digits = self.text[start : self.at]
        if not digits:
            raise self._error("expected %s, found %s" % (what, self._found()), start)
        # The length first: int() of a text of many digits is slow and, since Python 3.11, refused.
        if len(digits) > 9 or int(digits) >= MAX_CPUS:
            raise self._error("%s is out of range: CPU ids go from 0 to %d" % (digits, MAX_CPUS - 1), start)
        return int(digits)

    def _accept(self, character: str) -> bool:
        if self.text.startswith(character, self.at):
            self.at += 1
            return True
        return False

    def _expect(self, character: str) -> None:
        if not self._accept(character):
            raise self._error("expected %r, found %s" % (character, self._found()), self.at)

    def _found(self) -> str:
        return repr(self.text[self.at]) if self.at < len(self.text) else "the end"

    def _error(self, what: str, position: int) -> InputError:
        return InputError(what, where="CPU list %r, position %d" % (_shortened(self.text), position + 1))


def _parse_mask(text: str) -> int:
    groups = (text[2:] if text[:2] in ("0x", "0X") else text).split(",")
    position = len(text) - len(",".join(groups)) + 1
    mask = 0
    for group in groups:
        for index, character in enumerate(group):
            if character not in _HEX_DIGITS:
                raise _mask_error(text, position + index, "%r is not a hexadecimal digit" % character)
        if not group:
            raise _mask_error(text, position, "a group of digits is missing")
        if len(group) > 8 and len(groups) > 1:
            raise _mask_error(text, position, "a group has more than 8 digits")
        # Above every legal mask's length: refused before int() looks at it.
        if len(text) > MAX_CPUS // 2:
            raise _mask_error(text, position, "the mask is longer than %d CPUs" % MAX_CPUS)
        mask = mask << 32 | int(group, 16)
        position += len(group) + 1
    if mask >> MAX_CPUS:
        raise _mask_error(text, 1, "the mask is longer than %d CPUs" % MAX_CPUS)
    return mask


def _mask_error(text: str, position: int, what: str) -> InputError:
    return InputError(what, where="CPU mask %r, position %d" % (_shortened(text), position))


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."

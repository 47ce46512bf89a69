# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's command line: which arguments a node with reserved CPUs is to boot with, and which it has. Pure.

Sources: Linux's next_arg() in lib/cmdline.c, kernel/sched/isolation.c, kernel/irq/irqdesc.c, kernel/rcu/tree_nocb.h.
"""

from __future__ import annotations

import re
from typing import Collection, Iterable, NamedTuple, Sequence

from .._base.errors import InputError, RefusedError
from ..cpuset import CPUSet

# What may be wanted. DOMAIN is refused where pods share CPUs; it has an id so that the refusal can say why.
IRQ_AFFINITY, RCU, TICK, MANAGED_IRQ = "irqaffinity", "rcu_nocbs", "nohz_full", "managed_irq"
SYSTEMD_AFFINITY, KTHREADS, DOMAIN = "systemd.cpu_affinity", "kthread_cpus", "domain"
DEFAULT_FEATURES = (IRQ_AFFINITY, RCU, MANAGED_IRQ)
FEATURES = (IRQ_AFFINITY, RCU, TICK, MANAGED_IRQ, DOMAIN, SYSTEMD_AFFINITY, KTHREADS)

ISOLCPUS = "isolcpus"
# The arguments that are looked at, in the order in which they are written.
NAMES = (IRQ_AFFINITY, RCU, TICK, ISOLCPUS, SYSTEMD_AFFINITY, KTHREADS)

# The argument that says which of those after it were written here. The kernel takes a name with a dot for one of a
# module's parameters, and leaves it alone where there is no such module.
MARK = "kubenode.housekeeping"

# Of an argument that is repeated, the kernel takes the first, where it takes the last of all others: what a later
# one says of the same kind of work is refused, unless it says the same.
_FIRST_COUNTS = (TICK, ISOLCPUS)
_FLAGS = ("nohz", "domain", "managed_irq")
_BLANKS = " \t\n\v\f\r\xa0"
# Neither quotes nor anything that a shell or a loader reads as more than text.
_PLAIN = re.compile(r"[a-z_.]+=[0-9a-z_,.:-]+", re.ASCII)
# Of the 2,048 bytes that Linux takes on x86 and ARM, what is left by the loader's own, such as root= and BOOT_IMAGE=.
_LONGEST = 1900

_REASONS = {
    IRQ_AFFINITY: "new interrupts begin on the reserved CPUs (and, as the kernel adds it, on the one that boots)",
    RCU: "the callbacks of RCU of all others are run by threads, which can be kept on the reserved CPUs",
    TICK: "a CPU that runs a single task is not interrupted by the clock; it costs time at each system call",
    MANAGED_IRQ: "interrupts that the kernel spreads itself stay on the reserved CPUs where their queue has some",
    DOMAIN: "the scheduler leaves all others alone",
    SYSTEMD_AFFINITY: "services start on the reserved CPUs, as version 1 of cgroups has no slices with CPUs",
    KTHREADS: "threads of the kernel start on the reserved CPUs",
}
_DOMAIN_HARM = (
    "takes the CPUs %s out of the scheduler's load balancing, and pods run on several of them: each of their threads"
    " would stay on the CPU that it began on, unless the container binds it itself: leave isolcpus= out, or give it"
    " managed_irq alone"
)


class Argument(NamedTuple):
    """An argument that is wanted, and why."""

    name: str
    value: str
    reason: str

    @property
    def text(self) -> str:
        """As it stands on the line."""
        return "%s=%s" % (self.name, self.value)


class Word(NamedTuple):
    """An argument as the kernel reads it from a line; value: None for a flag."""

    name: str
    value: str | None

    @property
    def key(self) -> str:
        """The name as the kernel compares it: a hyphen is an underscore."""
        return self.name.replace("-", "_")


class ArgumentRow(NamedTuple):
    """What one argument is, as the node has booted, as it will boot (None: it is not there), and as it is wanted.

    wanted: empty where it is not. needs_change: what is configured is not what is wanted. needs_reboot: the node runs
    with something else than it will boot with.
    """

    name: str
    booted: str | None
    configured: str | None
    wanted: str
    reason: str
    needs_change: bool
    needs_reboot: bool


def default_features(cgroup_version: int, has_kthread_cpus: bool = False) -> tuple[str, ...]:
    """Return what is wanted where nothing else is said."""
    found = DEFAULT_FEATURES + ((SYSTEMD_AFFINITY,) if cgroup_version == 1 else ())
    return found + ((KTHREADS,) if has_kthread_cpus else ())


def wanted_arguments(
    reserved: CPUSet, possible: CPUSet, features: Collection[str] = DEFAULT_FEATURES, has_shared_pool: bool = True
) -> tuple[Argument, ...]:
    """Return the arguments for a node that reserves these of its possible CPUs.

    has_shared_pool: whether a kubelet has pods without exclusive CPUs on the others, as each kubelet has.
    Raises RefusedError for DOMAIN where that is so, InputError for what is no such feature or no such CPUs.
    """
    wrong = sorted(set(features) - set(FEATURES))
    if wrong:
        raise InputError(
            "there is no such feature", "kernel argument %r" % wrong[0], "give some of %s" % ", ".join(FEATURES)
        )
    others = possible - reserved
    if not reserved or not reserved <= possible or not others:
        raise InputError(
            "are not a part of the possible CPUs %s" % (possible or "(none)"),
            "the reserved CPUs %s" % (reserved or "(none)"),
            "reserve some of them, and leave some",
        )
    if DOMAIN in features and has_shared_pool:
        raise RefusedError(
            "it %s" % _DOMAIN_HARM % others,
            "kernel argument isolcpus=domain",
            "take managed_irq, which moves interrupts alone, or an isolated partition for CPUs that no pod uses",
        )
    flags = [flag for flag in (DOMAIN, MANAGED_IRQ) if flag in features]
    values = {name: str(reserved) for name in (IRQ_AFFINITY, SYSTEMD_AFFINITY, KTHREADS) if name in features}
    values.update({name: str(others) for name in (RCU, TICK) if name in features})
    reasons = dict(_REASONS)
    if flags:
        values[ISOLCPUS] = ",".join([*flags, str(others)])
        reasons[ISOLCPUS] = "; ".join(_REASONS[flag] for flag in flags)
    return tuple(Argument(name, values[name], reasons[name]) for name in NAMES if name in values)


# --- reading ------------------------------------------------------------------------------------------


def parse_line(text: str) -> list[Word]:
    """Return the arguments on a line, as the kernel reads it: what is after a lone -- is not for the kernel."""
    text = text.partition("\0")[0]
    words: list[Word] = []
    at, end = 0, len(text)
    while True:
        while at < end and text[at] in _BLANKS:
            at += 1
        if at >= end:
            return words
        is_quoted = in_quote = text[at] == '"'
        start = at = at + is_quoted
        equals = 0
        while at < end and (in_quote or text[at] not in _BLANKS):
            if text[at] == "=" and not equals:
                equals = at - start
            elif text[at] == '"':
                in_quote = not in_quote
            at += 1
        word = _word(text[start:at], equals, is_quoted)
        if word == Word("--", None):
            return words
        words.append(word)


def _word(raw: str, equals: int, is_quoted: bool) -> Word:
    """Return a word without its quotes; only those at the ends of the whole or of the value go."""
    if not equals:
        return Word(raw[:-1] if is_quoted and raw.endswith('"') else raw, None)
    value = raw[equals + 1 :]
    has_end = raw.endswith('"') and (is_quoted or value.startswith('"'))
    if value.startswith('"'):
        value = value[1:]
    return Word(raw[:equals], value[:-1] if has_end and value else value)


def value_on(words: Iterable[Word], name: str) -> str | None:
    """Return what counts of an argument, "" for a flag; None where it is not there."""
    found = [word.value or "" for word in words if word.key == name]
    return (found[0] if name in _FIRST_COUNTS else found[-1]) if found else None


def managed_on(line: str) -> CPUSet:
    """Return the CPUs that a line keeps interrupts off which the kernel spreads itself, as far as it does."""
    value = value_on(parse_line(line), ISOLCPUS)
    flags, cpus = (frozenset[str](), None) if value is None else isolated(value)
    return cpus if cpus is not None and MANAGED_IRQ in flags else CPUSet()


def isolated(value: str) -> tuple[frozenset[str], CPUSet | None]:
    """Return what a value of isolcpus means: its flags, and its CPUs, None where these cannot be read."""
    parts = value.split(",")
    flags = []
    while parts and parts[0][:1].isalpha():
        flags.append(parts.pop(0))
    found = frozenset(flags) & frozenset(_FLAGS)
    return found or frozenset((DOMAIN,)), _cpus(",".join(parts))


def same_value(name: str, left: str | None, right: str | None) -> bool:
    """Return whether two values mean the same CPUs."""
    if left == right or left is None or right is None:
        return left == right
    if name == ISOLCPUS:
        return isolated(left) == isolated(right) and isolated(left)[1] is not None
    cpus = _cpus(left)
    return cpus is not None and cpus == _cpus(right)


def _cpus(text: str) -> CPUSet | None:
    try:
        return CPUSet.parse(text) if text else None
    except InputError:
        return None


# --- what was written here ----------------------------------------------------------------------------


def block_text(arguments: Sequence[Argument]) -> str:
    """Return what is written on a line for these arguments: the mark and they; empty for none. Raises InputError."""
    for argument in arguments:
        if _PLAIN.fullmatch(argument.text) is None or argument.name not in NAMES:
            raise InputError("is not written", "kernel argument %r" % argument.text, "give CPUs alone")
    if not arguments:
        return ""
    mark = "%s=%s" % (MARK, ",".join(argument.name for argument in arguments))
    return " ".join([mark, *(argument.text for argument in arguments)])


def split_words(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """Return the words of others, and those that were written here: each mark and what is right after it, as it says.

    Whatever a mark says, it claims no arguments but those that are written here.
    """
    foreign: list[Word] = []
    ours: list[Word] = []
    expected: list[str] = []
    for word in words:
        is_plain = _PLAIN.fullmatch("%s=%s" % (word.name, word.value or "")) is not None
        if is_plain and word.name == MARK:
            ours.append(word)
            expected = marked_names(word.value or "")
        elif is_plain and word.name in expected:
            ours.append(word)
            expected.remove(word.name)
        else:
            foreign.append(word)
            expected = []
    return foreign, ours


def marked_names(value: str) -> list[str]:
    """Return which arguments a mark claims."""
    return [name for name in NAMES if name in value.split(",", 2 * len(NAMES))]


def block_on(words: Sequence[Word]) -> str:
    """Return what was written here, as block_text() gives it; empty where nothing is."""
    ours = split_words(words)[1]
    return " ".join(map(_text, ours))


def _text(word: Word) -> str:
    return word.name if word.value is None else "%s=%s" % word


def still_wanted(line: str, arguments: Sequence[Argument], where: str) -> tuple[Argument, ...]:
    """Return those that a line, without what was written here, does not have already.

    where: what the line is from. Raises RefusedError where it has another value for one, or where nothing can be added.
    """
    words = split_words(parse_line(line))[0]
    for argument in arguments:
        found = [word for word in words if word.key == argument.name]
        wrong = [word for word in found if not same_value(argument.name, word.value, argument.value)]
        if wrong:
            raise RefusedError(
                "has %s, which somebody else sets, and %s is wanted" % (_text(wrong[0]), argument.text),
                where,
                "take that out, or this out of what is wanted",
            )
    if line.count('"') % 2 or re.search(r'(?:^|\s)"?--"?(?:\s|$)', line):
        raise RefusedError(
            "has %s: the kernel would not read what is added to it"
            % ("a quote without its end" if line.count('"') % 2 else "--, after which all is for init"),
            where,
            "take that out",
        )
    names = {word.key for word in words}
    left = tuple(argument for argument in arguments if argument.name not in names)
    if sum(len(word.name) + len(word.value or "") + 2 for word in words) + len(block_text(left)) > _LONGEST:
        raise RefusedError(
            "would have more than %d characters, and the kernel may cut it" % _LONGEST,
            where,
            "reserve CPUs whose list is short, or want fewer arguments",
        )
    return left


# --- comparing ----------------------------------------------------------------------------------------


def compare(booted: str, configured: str | None, wanted: Sequence[Argument]) -> list[ArgumentRow]:
    """Return the arguments that are wanted, or are there though they are not; configured: None where that is not
    known."""
    now = parse_line(booted)
    following = None if configured is None else parse_line(configured)
    reasons = {argument.name: argument for argument in wanted}
    ours = {word.name for word in split_words(following or [])[1]}
    rows = []
    for name in NAMES:
        argument = reasons.get(name)
        value = argument.value if argument else ""
        is_now = value_on(now, name)
        will_be = None if following is None else value_on(following, name)
        if argument is None and is_now is None and will_be is None:
            continue
        if following is None:
            is_wrong = argument is not None and not same_value(name, is_now, value)
            changes, reboots = is_wrong, is_wrong
        else:
            changes = not same_value(name, will_be, value) if argument else name in ours
            reboots = not same_value(name, is_now, will_be)
        rows.append(ArgumentRow(name, is_now, will_be, value, argument.reason if argument else "", changes, reboots))
    return rows


def line_problems(line: str, reserved: CPUSet, possible: CPUSet, has_shared_pool: bool = True) -> list[str]:
    """Return what is wrong with a line that a node has, as texts."""
    words = parse_line(line)
    pods = possible - reserved
    problems = []
    for name in NAMES:
        values = [word.value or "" for word in words if word.key == name]
        if any(not same_value(name, values[0], value) for value in values[1:]):
            counts = "first" if name in _FIRST_COUNTS else "last"
            problems.append("%s stands there %d times, and the %s counts" % (name, len(values), counts))
        value = value_on(words, name)
        if value is None:
            continue
        flags, cpus = isolated(value) if name == ISOLCPUS else (frozenset(), _cpus(value))
        if cpus is None:
            problems.append("%s=%s has no list of CPUs that can be read" % (name, value))
        elif DOMAIN in flags and has_shared_pool and not pods.isdisjoint(cpus):
            problems.append("%s=%s %s" % (name, value, _DOMAIN_HARM % (pods & cpus)))
        elif name in (RCU, TICK) and not reserved.isdisjoint(cpus):
            problems.append("%s=%s has the reserved CPUs %s" % (name, value, reserved & cpus))
        elif name in (IRQ_AFFINITY, SYSTEMD_AFFINITY, KTHREADS) and not pods.isdisjoint(cpus):
            problems.append("%s=%s has the CPUs %s, which are not reserved" % (name, value, pods & cpus))
    return problems

#!/usr/bin/env python
# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the page of errors, and the table with which a pasted line is explained.

The page has each refusal of the kubelet that is known, with its cause and remedy, to be searched; so has the table.

Texts, causes and remedies are read from the core, where they are predicted; the examples are what kubelets said in
tests/conformance/vectors, with the cause and the remedy that are predicted for them.
"""

from __future__ import annotations

import json
import re
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, Iterable, Iterator, NamedTuple, Sequence

HERE = Path(__file__).resolve().parent
PAGE = HERE / "docsite" / "rst" / "errors.rst"
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "tests"))

from error_sections import ADMISSIONS, EXPLAINED, SECTIONS, VALUES, Section
from placeholders import PLACEHOLDER, becomes, is_in, shown, words
from read_refusals import Refusal, refusals

import collection_path

collection_path.register()

from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start import other_fields
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.fields import NO_END, NumberRange
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._kubelet.start.findings import Finding
from ansible_collections.kubenode.cpu_manager.plugins.module_utils._node.start_check import MEMORY_LIST, predict_start
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.cpuset import CPUSet
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.assignments import State
from ansible_collections.kubenode.cpu_manager.plugins.module_utils.state.writing import write_checkpoint
from ansible_collections.kubenode.cpu_manager.plugins.plugin_utils.refusals import TABLE, plain
from ansible_collections.kubenode.cpu_manager.tests.conformance.read_vectors import rows
from ansible_collections.kubenode.cpu_manager.tests.conformance.start_case import StartCase

# Of these all have the same cause and remedy: the whole file is refused.
_ALIKE = ("StateError", "CheckpointError", "MemoryStateError", "MemoryJudgement")

_INSIDE = 1000

# How much of a line a reader is thought to search for.
SEARCHED = 40
_LONGEST_EXAMPLE = 400

STARTS = ("start-1.36", "start-1.33")
CHECKPOINTS = ("checkpoint-1.36", "checkpoint-1.35", "checkpoint-1.33")
POLICIES = ("policy-1.34-1.36", "policy-1.33")

HEAD = """\
..
  Copyright (c) 2026, the kubenode.cpu_manager developers
  GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
  SPDX-License-Identifier: GPL-3.0-or-later

.. docs/write_errors.py writes this page.

.. _ansible_collections.kubenode.cpu_manager.docsite.errors:

Errors of the kubelet
=====================

Each text with which a kubelet refuses to start or to admit a pod, as far as this collection predicts it; what causes
it, and what to do. Beside the fields that decide about CPUs, memory, NUMA nodes and cgroups, these are all others that
keep a kubelet of Kubernetes 1.33 to 1.36 from starting.

To find an error, paste the whole line of the log into the field above, with all that the journal, kubectl or JSON has
put around it. The field needs scripts, and no network. In a playbook, or where this page is not at hand,
:ansplugin:`kubenode.cpu_manager.start_check#module` with ``log_line`` gives the same answer. Or search this page with
your browser for the first 40 characters behind ``err="``, without the backslashes before quotation marks. ``<name>``
stands for what differs from node to node. The boxes show examples.

.. code-block:: shell

   journalctl -u kubelet -p err -n 20 --no-pager

:ansplugin:`kubenode.cpu_manager.start_check#module` says before a start which of these texts a kubelet would print, for
the node, its files and its flags as they are.

"""


# Configurations of which no kubelet was asked, for the cause and the remedy of what it would say.
PROBES = (
    'evictionHard: {memory.available: "0"}',
    "evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: -1s}",
    'evictionMinimumReclaim: {memory.available: "-1Gi"}',
    "evictionMinimumReclaim: {memory.available: 0%}",
    "evictionHard: {memory.available: 1e99%}",
    "evictionSoft: {memory.available: 5%}",
    'topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {no-such-option: "true"}',
    'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\ncpuManagerPolicyOptions: {full-pcpus-only: maybe}',
    'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\ncpuManagerPolicyOptions: {no-such-option: "true"}',
)
_PROBED = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
_PROBED_ON = "2s2n4c2t"
# With a checkpoint of fewer CPUs than the machine has.
_STATIC = 'cpuManagerPolicy: static\nreservedSystemCPUs: "0"'
_OUTDATED = write_checkpoint("static", State(CPUSet.parse("0-1"), {})).decode("ascii")


class Said(NamedTuple):
    """What a kubelet said, and what is predicted of it; empty where nothing is."""

    error: str
    text: str = ""
    cause: str = ""
    remedy: str = ""


class Entry:
    """One entry of the page."""

    def __init__(self, refusal: Refusal) -> None:
        self.place = refusal.place
        self.made = refusal.made
        self.texts = list(refusal.texts)
        self.causes = list(refusal.causes)
        self.remedies = list(refusal.remedies)
        self.examples: list[Said] = []

    @property
    def section(self) -> Section:
        """Where on the page it stands."""
        return next(
            section
            for section in (*(section for section in SECTIONS if section.made), *SECTIONS)
            if re.fullmatch("(%s)(:.*)?" % section.places, self.place) and re.fullmatch(section.made or ".*", self.made)
        )

    def match(self, said: Said) -> int:
        """Return how many letters of this entry's text are in what was said; 0 where it is another's."""
        text = folded(said.text or said.error)
        found = max((words(template) for template in self.texts if is_in(template, text)), default=0)
        if self.made in _ALIKE:
            # It stands inside of a longer text, which has the cause.
            manager = "memory" if "/memory" in self.place else "cpu"
            return found + _INSIDE if found and said.error.startswith("start %s manager" % manager) else 0
        if not found or not self.causes or not said.cause:
            # Where the cause is known elsewhere, the text alone decides.
            return found if found and not (self.causes and not said.text) else found // 2
        return found * _is_any(self.causes, said.cause) * _is_any(self.remedies, said.remedy)


def _is_any(templates: Iterable[str], text: str) -> bool:
    templates = list(templates)
    return not templates or any(becomes(template, folded(text)) for template in templates)


def folded(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())


# --- the entries -----------------------------------------------------------------------------------------------


def entries() -> list[Entry]:
    """Return all entries, those of the same text and cause as one, without examples."""
    found: dict[Any, Entry] = {}
    for refusal in [*refusals(), *_ranges()]:
        if not any(words(text) > 3 for text in refusal.texts) or _is_of_ranges(refusal):
            continue
        entry = Entry(refusal)
        # The same error of two managers has its cause where it is caught.
        is_caught = entry.made == "KubeletError"
        where = "" if is_caught else (entry.section, refusal.causes, refusal.remedies)
        key = (entry.made, entry.texts[0], where)
        if key in found:
            found[key].texts += [text for text in entry.texts if text not in found[key].texts]
            found[key].remedies += [text for text in entry.remedies if text not in found[key].remedies]
        else:
            found[key] = entry
    explained = {text for entry in found.values() if entry.causes for text in entry.texts}
    return [
        entry
        for entry in found.values()
        if entry.made != "KubeletError" or entry.causes or not explained.issuperset(entry.texts)
    ]


def _is_of_ranges(refusal: Refusal) -> bool:
    return refusal.place.startswith("_kubelet/start/fields.py:") and refusal.made == "invalid"


def _ranges() -> Iterator[Refusal]:
    """Yield a refusal for each number that has to be in a range."""
    for value in vars(other_fields).values():
        for limits in value if isinstance(value, tuple) else ():
            if isinstance(limits, NumberRange):
                text = "invalid configuration: %s (--%s) \ue000number\ue001 %s"
                text %= (limits.field, limits.flag, limits.text)
                end = "or more" if limits.most == NO_END else "to %d" % limits.most
                remedy = "write %d %s" % (limits.least, end)
                yield Refusal(
                    "_kubelet/start/other_fields.py:", 0, "refused", (text,), ("the number is out of range",), (remedy,)
                )


@lru_cache(maxsize=None)
def said_by_starts() -> tuple[Said, ...]:
    """Return what kubelets said that did not start."""
    return tuple(
        _said(row["error"], predict_start(StartCase(row["case"], name.partition("-")[2]).node).refusal)
        for name in STARTS
        for row in rows(name)
        if row["outcome"] != "ok"
    )


def _said(error: str, refusal: Finding | None) -> Said:
    if refusal is None or folded(refusal.text) not in folded(error):
        return Said(error)
    return said_of(error, refusal)


def said_of(error: str, finding: Finding) -> Said:
    """Return what was said with a finding; which list a node would take is of that node alone."""
    return Said(error, finding.text, finding.cause, finding.remedy.partition(MEMORY_LIST)[0])


def said_by_managers() -> Iterator[Said]:
    """Yield what the CPU manager said of checkpoints, of its options and of pods."""
    for name in CHECKPOINTS:
        for row in rows(name):
            if "error" in row["expect"]:
                yield Said("start cpu manager error: " + row["expect"]["error"])
    for name in POLICIES:
        for row in rows(name):
            if "error" in row["expect"]:
                text = row["expect"]["error"]
                is_early = text.startswith(("new ", "["))
                yield Said(("failed to run Kubelet: " if is_early else "start cpu manager error: ") + text)
            yield from _answers(row["expect"])


def predicted() -> Iterator[Said]:
    """Yield what a kubelet is predicted to say of the probes."""
    for number, probe in enumerate((_STATIC, *PROBES)):
        case = {"config": _PROBED + probe, "machine": _PROBED_ON, **({} if number else {"ckpt": _OUTDATED})}
        for finding in predict_start(StartCase(case, "1.36").node).findings:
            if finding.fatal:
                yield said_of(finding.context + finding.text, finding)


def _answers(expected: Any) -> Iterator[Said]:
    if isinstance(expected, list):
        for item in expected:
            yield from _answers(item)
    elif isinstance(expected, dict):
        if "message" in expected:
            yield Said(expected["message"], expected["message"], *ADMISSIONS[expected["reason"]])
        for value in expected.values():
            yield from _answers(value)


def best_entry(found: Iterable[Entry], said: Said) -> Entry | None:
    """Return the entry of what was said; None where there is none."""
    best = max(found, key=lambda entry: entry.match(said), default=None)
    return best if best is not None and best.match(said) else None


def with_examples() -> list[Entry]:
    """Return all entries, each with so many examples that everything that was said is found by its first characters."""
    found = entries()
    searched: set[str] = set()
    # Those of which a cause is predicted come first.
    for said in sorted(said_by_starts(), key=lambda said: not said.cause):
        heads = {folded(text)[:SEARCHED] for text in (said.error, said.text) if text}
        entry = best_entry(found, said)
        if entry is not None and (not entry.examples or not heads <= searched):
            searched |= heads
            entry.examples.append(said)
    for said in dict.fromkeys([*predicted(), *said_by_managers()]):
        entry = best_entry(found, said)
        if entry is not None and not any(example.cause or not said.cause for example in entry.examples):
            entry.examples.append(said)
    _explain(found)
    return found


def _explain(found: Sequence[Entry]) -> None:
    """Give causes and remedies to entries without: those of their examples, else of others of their kind."""
    for entry in found:
        explained = [said for said in entry.examples if said.cause]
        explained += [Said("", "", *EXPLAINED[start]) for start in EXPLAINED if entry.texts[0].startswith(start)]
        if not explained and entry.made in _ALIKE:
            explained = [
                said
                for alike in found
                if (alike.made, alike.section) == (entry.made, entry.section)
                for said in alike.examples
                if said.cause
            ]
        entry.causes = entry.causes or [said.cause for said in explained[:1]]
        entry.remedies = entry.remedies or [said.remedy for said in explained[:1]]


# --- the page --------------------------------------------------------------------------------------------------


def page(found: Sequence[Entry]) -> str:
    """Return the page of these entries, as RST."""
    parts = [HEAD]
    for section in SECTIONS:
        parts.append("%s\n%s\n\n%s\n" % (section.title, "-" * len(section.title), section.about))
        own = [entry for entry in found if entry.section == section]
        parts += [_of_entry(entry) for entry in sorted(own, key=_place_on_page)]
    return "\n".join(parts)


def _of_entry(entry: Entry) -> str:
    first, *others = [folded(shown(text)) for text in entry.texts]
    lines = [literal(first)]
    lines += ["   | " + literal(text) for text in others] + [""] * bool(others)
    for name, texts in (("Cause", entry.causes), ("Remedy", entry.remedies)):
        if any(words(text) for text in texts):
            lines.append("   :%s: %s." % (name, "; or ".join(escaped(shown(text)) for text in texts)))
    lines.append("")
    if entry.examples:
        lines += ["   .. code-block:: text", ""]
        lines += ["      " + _cut(folded(said.error)) for said in entry.examples]
        lines.append("")
    return "\n".join(lines)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_EXAMPLE else text[:_LONGEST_EXAMPLE] + " ..."


def literal(text: str) -> str:
    """Return a text in which every character counts."""
    return "``%s``" % text


def escaped(text: str) -> str:
    """Return prose in which no character has a meaning for RST."""
    return re.sub(r"([\\*`|_<>])", r"\\\1", text)


# --- the table -------------------------------------------------------------------------------------------------


def table(found: Sequence[Entry]) -> str:
    """Return what explains a pasted line, as JSON: a row for each entry, with the parts of its texts between
    placeholders."""
    rows = [
        {
            "section": entry.section.title,
            "forms": [{"text": folded(shown(text)), "parts": _parts(text)} for text in entry.texts],
            "cause": "; or ".join(map(shown, entry.causes)),
            "remedy": "; or ".join(map(shown, entry.remedies)),
            "check": entry.section.check,
            "within": entry.section.within if entry.made in _ALIKE else (),
            "is_value": entry.section.title == VALUES or entry.made in _ALIKE,
        }
        for entry in sorted(found, key=_place_on_page)
    ]
    return "[\n%s\n]\n" % ",\n".join(map(json.dumps, rows))


def _parts(text: str) -> list[str]:
    """Return what stands between the placeholders of a text, as a pasted line has it."""
    parts = [plain(part + "|")[:-1] for part in PLACEHOLDER.split(text)[::2]]
    return [part for part in parts if part]


def _place_on_page(entry: Entry) -> tuple[int, str]:
    return SECTIONS.index(entry.section), shown(entry.texts[0]).lower()


def main() -> None:
    """Write the page and the table."""
    found = with_examples()
    PAGE.write_text(page(found), encoding="utf-8")
    TABLE.write_text(table(found), encoding="utf-8")


if __name__ == "__main__":
    main()

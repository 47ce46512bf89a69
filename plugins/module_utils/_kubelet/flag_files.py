# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""With which flags a kubelet is started: by its command line, its unit, or the files of its distribution."""

from __future__ import annotations

import json
import posixpath
import re
from typing import Callable, Iterable, Iterator, NamedTuple, Sequence

from .._base.errors import ConfigurationError, Note
from .._base.tree import LARGEST_OF_KUBELET, Tree
from .._host.services import (
    command_words,
    read_environment,
    read_service,
    settings_of,
    split_words,
    start_lines,
    unit_command,
)
from .configuration import is_json, read_document
from .distributions import ENVIRONMENT, FLAGS, KUBELET_ARG, LINES, Distribution, service_of
from .effective import NAMES, GivenFlag, read_flags
from .flags import END_OF_FLAGS, HANDED_ON, split_flags
from .units import KUBELET, kubelet_words

# k3s' and RKE2's key; with the + its words are added to those of the files before.
_KEY, _ADDING_KEY = "kubelet-arg", "kubelet-arg+"
_KUBELET_ARG = re.compile(r"""(?m)^(["']?)kubelet-arg\+?\1[ \t]*:.*(?:\n(?:[] \t#-].*)?)*""")
# Where a document of YAML begins and ends.
_DOCUMENT, _END = re.compile(r"(?m)^---(?=\s|$)"), re.compile(r"(?m)^(?:---|\.\.\.)(?=\s|$)")
_NOTHING = re.compile(r"(?m)(?:^[ \t]*(?:#.*|%.*)?\n)*")
_KUBELET_ARG_HEADER = "# The kubelet's CPU settings, written by kubenode.cpu_manager.\n"


_SNAP = re.compile(r"\$(?:\{(SNAP_DATA|SNAP_COMMON|SNAP)\}|(SNAP_DATA|SNAP_COMMON|SNAP)\b)")
# How the names of variables with flags end, as in KUBELET_EXTRA_ARGS.
OF_FLAGS = ("ARGS", "FLAGS", "OPTIONS", "OPTS")


def environment_words(text: str) -> list[str]:
    """Return the words of those variables of an environment file that give a program flags, as far as that can be
    seen."""
    given = ((name, split_words(value)) for name, value in read_environment(text).items())
    return [
        word
        for name, words in given
        # Others are for the program's environment, such as HOME and PATH.
        if words and (words[0].startswith("-") or name.endswith(OF_FLAGS))
        for word in words
    ]


def line_words(text: str) -> list[str]:
    """Return the words of a file that has a flag, and its value, on each line. MicroK8s takes all quotes away."""
    lines = text.replace('"', "").replace("'", "").splitlines()
    return [word for line in lines if not line.strip().startswith("#") for word in line.split()]


def with_lines(text: str, fields: Iterable[str], arguments: Sequence[str]) -> str:
    """Return a file of flags with these arguments in place of those that give the fields; all other lines stay as
    they are."""
    names = {NAMES[field][len("--") :] for field in fields}
    kept: list[str] = []
    place = None
    has_ended = False
    for line in text.splitlines(keepends=True):
        flags = [] if has_ended else list(split_flags(line_words(line)))
        if ("", [END_OF_FLAGS]) in flags:
            # Behind it nothing is a flag.
            has_ended, place = True, len(kept) if place is None else place
        if not any(name in names for name, _words in flags):
            kept.append(line)
            continue
        place = len(kept) if place is None else place
        others = [word for name, words in flags if name not in names for word in words]
        kept += [" ".join(others) + "\n"] if others else []
    if place is None:
        place = len(kept)
        if kept and not kept[-1].endswith("\n"):
            kept[-1] += "\n"
    return "".join([*kept[:place], *(argument + "\n" for argument in arguments), *kept[place:]])


class ReplacedList(NamedTuple):
    """The list in one of k3s' or RKE2's files, by number, whose place that in a later file takes."""

    number: int
    by: int
    words: Sequence[str]


def kubelet_args(texts: Iterable[str]) -> list[list[str]]:
    """Return the kubelet's arguments in each of k3s' or RKE2's files, which are read in this order.

    A file's list takes the place of those before it, unless its key has a plus. Raises ValueError.
    """
    return _read_lists(texts)[0]


def replaced_lists(texts: Iterable[str]) -> list[ReplacedList]:
    """Return which of them do not count. Raises ValueError."""
    return _read_lists(texts)[1]


def _read_lists(texts: Iterable[str]) -> tuple[list[list[str]], list[ReplacedList]]:
    lists: list[list[str]] = []
    replaced: list[ReplacedList] = []
    for number, text in enumerate(texts):
        mine: list[str] = []
        for key, value in _kubelet_arg_members(text):
            mine += ["--" + str(word).lstrip("-") for word in (value if isinstance(value, list) else [value]) if word]
            if key == _KEY:
                replaced += [ReplacedList(earlier, number, words) for earlier, words in enumerate(lists) if words]
                lists = [[] for _file in lists]
        lists.append(mine)
    return lists, replaced


def _kubelet_arg_members(text: str) -> Iterator[tuple[str, object]]:
    text = _first_document(text.replace("\r\n", "\n"))
    if is_json(text):
        members = read_document(text).value
        yield from ((key, members[key]) for key in (_KEY, _ADDING_KEY) if key in members)
        return
    # Only this key: the rest of the file may be written in ways that the reader refuses.
    for block in _KUBELET_ARG.finditer(text):
        yield from read_document(block.group()).value.items()


def _first_document(text: str) -> str:
    """Return all that k3s and RKE2 read of a file."""
    # What stands before the sign are comments and directives, or a document of its own.
    begin = _DOCUMENT.match(text, _NOTHING.match(text).end())  # type: ignore[union-attr]
    text = text[begin.end() :] if begin else text
    end = _END.search(text)
    return text[: end.start()] if end else text


def kubelet_arg_file(arguments: Iterable[str]) -> str:
    """Return the text of such a file that adds these arguments."""
    lines = ["  - %s\n" % json.dumps(argument[len("--") :]) for argument in arguments]
    return _KUBELET_ARG_HEADER + (_ADDING_KEY + ":\n" + "".join(lines) if lines else "")


# Which flags the kubelet of a node is given: by its command line, else by the files of its distribution.


def find_flags(tree: Tree, distribution: Distribution, arguments: Sequence[str], pid: int | None) -> list[GivenFlag]:
    """Return the flags of a distribution's kubelet that was started with these arguments, none where that is not known.

    pid: of the one that runs. Raises NodeError for a file that cannot be read.
    """
    told = "its command line" if pid is None else "the command line of process %d" % pid
    from_files = [flag for path, words in _words_in_files(tree, distribution) for flag in read_flags(words, path)]
    # MicroK8s' command line names the file alone.
    if distribution.place == FLAGS:
        return from_files
    service = service_of(tree, distribution)
    if distribution.has_kubelet_args:
        # k3s and RKE2 give their kubelet what their files say, and then what they were given themselves. Of k3s that
        # cannot be seen, and RKE2's kubelet is another process.
        words = _kubelet_args_of(unit_command(tree, service) or arguments)
        given = from_files + _by_file(read_flags(words, _unit(service)), _in_unit(tree, service, _kubelet_args_of))
        names = {flag.name for flag in given}
        # What else a kubelet was started with it will be given again.
        others = read_flags(arguments, told) if _is_kubelet(arguments) else []
        return [flag for flag in others if flag.name not in names] + given
    if not arguments:
        arguments, told = unit_words(tree, distribution), _unit(service)
        if not arguments:
            return from_files
    # The files show where a flag comes from.
    return _by_file(read_flags(arguments, told), [*_in_unit(tree, service, list), *from_files])


def _by_file(flags: Sequence[GivenFlag], in_files: Sequence[GivenFlag]) -> list[GivenFlag]:
    """Return the flags, each with the last file that gives it so."""
    sources = {(flag.name, flag.value): flag.source for flag in in_files}
    return [flag._replace(source=sources.get((flag.name, flag.value), flag.source)) for flag in flags]


def _in_unit(tree: Tree, service: str, read: Callable[[Sequence[str]], list[str]]) -> list[GivenFlag]:
    """Return the flags in the drop-in and environment files of a unit. read: what of their words the kubelet is
    given."""
    return [
        flag
        for path, some in _words_of_unit(tree, service)
        if not path.endswith("/%s.service" % service)
        for flag in read_flags(read(some), tree.path(path))
    ]


def _words_of_unit(tree: Tree, service: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the words in each file of a unit, and in each of its environment files: (path on the node, words)."""
    for path, name, value in settings_of(tree, service):
        if name == "ExecStart":
            yield path, command_words(value) or []
    for given in read_service(tree, service).variables.values():
        yield given.path, split_words(given.value)


def place_of_flag(tree: Tree, distribution: Distribution, name: str) -> str:
    """Return the last file that gives a flag, by its path here; empty where none is seen."""
    places = [
        *((tree.path(path), words) for path, words in _words_of_unit(tree, service_of(tree, distribution))),
        *_words_in_files(tree, distribution),
    ]
    return next((path for path, words in reversed(places) if any(word.partition("=")[0] == name for word in words)), "")


def unset_variables(tree: Tree, distribution: Distribution, name: str) -> list[str]:
    """Return the variables in the value that a unit gives a flag which nothing sets."""
    service = service_of(tree, distribution)
    lines = start_lines(tree, service)
    words = command_words(lines[-1]) if lines else None
    given = read_service(tree, service).variables
    texts = [word for word in words or () if word.startswith(name + "=")]
    return [variable for text in texts for variable in re.findall(r"\$\{(\w+)\}", text) if variable not in given]


def writer_of(distribution: Distribution, path: str) -> str:
    """Return what of a distribution's own source writes the flags in this file again; empty where nothing does."""
    return next((file.writer for file in distribution.flag_files if path.endswith(file.path)), "")


def replaced_notes(tree: Tree, distribution: Distribution) -> list[str]:
    """Return what of the files does not count, as a later one has the same key or variable. Raises
    ConfigurationError."""
    if not distribution.has_kubelet_args:
        return _replaced_variables(tree, service_of(tree, distribution))
    paths, texts = _kubelet_arg_texts(tree, distribution.flag_files[0].path)
    given = {word.partition("=")[0] for words in kubelet_args(texts) for word in words}
    notes: list[str] = []
    for replaced in replaced_lists(texts):
        names = [flag.name for flag in read_flags(replaced.words, "") if flag.name not in given]
        if names:
            text = (
                "%s: its kubelet-arg takes the place of that of %s, so that %s there %s not count; write it as"
                " kubelet-arg+, which adds to it"
            )
            is_one = len(names) == 1
            said = text % (paths[replaced.by], paths[replaced.number], ", ".join(names), "does" if is_one else "do")
            notes.append(Note("field-ignored", said))
    return notes


def unread_notes(tree: Tree, distribution: Distribution, arguments: Sequence[str], pid: int) -> list[str]:
    """Return what the unit of a running kubelet gives it that it was not started with: after a change without a
    restart, or without a daemon-reload before that.
    """
    words = unit_words(tree, distribution) if _is_kubelet(arguments) else []
    given, runs = ({flag.name: flag.value for flag in read_flags(some, "")} for some in (words, arguments))
    # What systemd or a shell puts in the place of these is not known here.
    names = [name for name, value in given.items() if not set("$%") & set(value) and runs.get(name) != value]
    if not names:
        return []
    text = (
        "the kubelet (process %d) was not started with %s as %s has it now, and what is said here goes by the process:"
        " its next start may be another one; let systemd read the unit again (systemctl daemon-reload), and restart it"
    )
    unit = _unit(service_of(tree, distribution))
    return [Note("kubelet-not-restarted", text % (pid, " and ".join(sorted(names)), unit))]


def _replaced_variables(tree: Tree, service: str) -> list[str]:
    """Return what of a unit's variables does not count: a later drop-in, or any environment file, gives them again."""
    given = read_service(tree, service)
    command = "".join(start_lines(tree, service)[-1:])
    notes: list[str] = []
    for name, old in given.replaced:
        new = given.variables.get(name)
        kept = {flag.name for flag in read_flags(split_words(new.value), "")} if new else set()
        lost = [flag.name for flag in read_flags(split_words(old.value), "") if flag.name not in kept]
        is_used = re.search(r"\$\{?%s\b" % re.escape(name), command)
        if lost and new and is_used:
            text = (
                "%s: its %s takes the place of that of %s, so that %s there %s not count; write all flags in one file"
            )
            places = (tree.path(new.path), name, tree.path(old.path))
            said = text % (*places, ", ".join(dict.fromkeys(lost)), "does" if len(set(lost)) == 1 else "do")
            notes.append(Note("field-ignored", said))
    return notes


def find_words(tree: Tree, distribution: Distribution, arguments: Sequence[str]) -> list[str]:
    """Return all words that follow the program on the command line of a distribution's kubelet, as far as they can be
    seen.

    arguments: what it was started with. Raises NodeError for a file that cannot be read.
    """
    is_in_files = distribution.place == FLAGS or distribution.has_kubelet_args
    if not is_in_files:
        arguments = arguments or unit_words(tree, distribution)
        if _is_kubelet(arguments):
            return list(arguments[1:])
    words = [word for _path, some in _words_in_files(tree, distribution) for word in some]
    if distribution.has_kubelet_args:
        words += _kubelet_args_of(unit_command(tree, service_of(tree, distribution)) or arguments)
    if is_in_files and _is_kubelet(arguments):
        # What else a kubelet was started with it will be given again.
        words = _with_others(words, arguments[1:])
    return words


def _with_others(words: list[str], others: Sequence[str]) -> list[str]:
    """Return the words behind those other words whose flags they do not have."""
    names = {name for name, _words in split_flags(words) if name}
    kept: list[str] = []
    behind: list[str] = []
    is_left_out = False
    for name, some in split_flags(others):
        if some[0] == END_OF_FLAGS:
            behind = some
            continue
        # What follows a flag that no table has may be its value.
        if name or some[0].startswith("-"):
            is_left_out = name in names
        if not is_left_out:
            kept += some
    return [*kept, *words, *behind]


def unit_words(tree: Tree, distribution: Distribution) -> list[str]:
    """Return the kubelet's command line as its unit has it; empty where that starts another program."""
    return kubelet_words(unit_command(tree, service_of(tree, distribution)))


def _unit(service: str) -> str:
    return "the unit %s.service" % service


def _is_kubelet(arguments: Sequence[str]) -> bool:
    return posixpath.basename(arguments[0]) == KUBELET if arguments else False


def _kubelet_args_of(arguments: Sequence[str]) -> list[str]:
    words: list[str] = []
    for position, argument in enumerate(arguments):
        if argument == END_OF_FLAGS:
            break
        name, equals, value = argument.partition("=")
        if name == HANDED_ON:
            words += [
                "--" + word.lstrip("-") for word in ([value] if equals else arguments[position + 1 : position + 2])
            ]
    return words


def _words_in_files(tree: Tree, distribution: Distribution) -> Iterator[tuple[str, list[str]]]:
    """Yield the words in each file that gives a distribution's kubelet flags: (path here, words)."""
    for path, form, _writer in distribution.flag_files:
        if form == KUBELET_ARG:
            yield from _kubelet_arg_words(tree, path)
        elif tree.exists(path):
            words = {ENVIRONMENT: environment_words, LINES: line_words}[form]
            given = words(tree.read_text(path, LARGEST_OF_KUBELET))
            yield tree.path(path), [_in_snap(path, word) for word in given] if form == LINES else given


def _in_snap(path: str, word: str) -> str:
    """Return a word of a file of a snap, with the directories of that in place of its variables."""
    name = path.split("/")[3]
    places = {"SNAP_DATA": "/var/snap/%s/current", "SNAP_COMMON": "/var/snap/%s/common", "SNAP": "/snap/%s/current"}
    return _SNAP.sub(lambda found: places[found.group(1) or found.group(2)] % name, word)


def kubelet_arg_paths(tree: Tree, path: str) -> list[str]:
    """Return k3s' or RKE2's configuration file and those beside it, in the order in which they are read."""
    beside = ["%s.d/%s" % (path, name) for name in tree.names(path + ".d") if name.endswith((".yaml", ".yml"))]
    return [file for file in (path, *beside) if tree.exists(file)]


def _kubelet_arg_words(tree: Tree, path: str) -> list[tuple[str, list[str]]]:
    """Return the kubelet's arguments in each of these files. Raises ConfigurationError."""
    paths, texts = _kubelet_arg_texts(tree, path)
    try:
        return list(zip(paths, kubelet_args(texts)))
    except ValueError as error:
        raise ConfigurationError(
            "kubelet-arg cannot be read: %s" % error, tree.path(path), "write it as a list"
        ) from error


def _kubelet_arg_texts(tree: Tree, path: str) -> tuple[list[str], list[str]]:
    """Return the paths here of these files, and their texts."""
    paths = kubelet_arg_paths(tree, path)
    return list(map(tree.path, paths)), [tree.read_text(file, LARGEST_OF_KUBELET) for file in paths]

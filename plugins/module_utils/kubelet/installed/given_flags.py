# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which flags the kubelet of a node is given: by its command line, else by the files of its distribution."""

from __future__ import annotations

import posixpath
from typing import Callable, Container, Sequence

from ...errors import ConfigurationError, Note
from ...host.environment import split_words
from ...host.service import command_words, read_service, settings_of, unit_command
from ...tree import LARGEST_OF_KUBELET, Tree
from .distributions import ENVIRONMENT, FLAGS, KUBELET_ARG, LINES, Distribution, service_of
from .flag_file import environment_words, kubelet_args, line_words, replaced_lists
from .flags import END_OF_FLAGS, Given, read_flags


def find_flags(tree: Tree, distribution: Distribution, arguments: Sequence[str], pid: int | None) -> list[Given]:
    """The flags of a distribution's kubelet that was started with these arguments, none where that is not known.

    pid: of the one that runs. Raises NodeError for a file that cannot be read.
    """
    told = "its command line" if pid is None else "the command line of process %d" % pid
    from_files = [
        flag
        for file in distribution.flag_files
        if file.form == KUBELET_ARG or tree.exists(file.path)
        for flag in _file_flags(tree, file.path, file.form)
    ]
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
        # What else a running kubelet has it will be given again.
        others = read_flags(arguments, told) if pid is not None and _is_kubelet(arguments) else []
        return [flag for flag in others if flag.name not in names] + given
    if not arguments:
        arguments, told = unit_command(tree, service), _unit(service)
        if not _is_kubelet(arguments):
            return from_files
    # The files show where a flag comes from.
    return _by_file(read_flags(arguments, told), [*_in_unit(tree, service, list), *from_files])


def _by_file(flags: Sequence[Given], in_files: Sequence[Given]) -> list[Given]:
    """The flags, each with the last file that gives it so."""
    sources = {(flag.name, flag.value): flag.source for flag in in_files}
    return [flag._replace(source=sources.get((flag.name, flag.value), flag.source)) for flag in flags]


def _in_unit(tree: Tree, service: str, read: Callable[[Sequence[str]], list[str]]) -> list[Given]:
    """The flags in the drop-in and environment files of a unit. read: what of their words the kubelet is given."""
    texts = [(path, value) for path, name, value in settings_of(tree, service) if name == "ExecStart"]
    words = [(path, command_words(value) or []) for path, value in texts]
    words += [(given.path, split_words(given.value)) for given in read_service(tree, service).variables.values()]
    return [
        flag
        for path, some in words
        if not path.endswith("/%s.service" % service)
        for flag in read_flags(read(some), tree.path(path))
    ]


def replaced_notes(tree: Tree, distribution: Distribution) -> list[str]:
    """What of k3s' or RKE2's files does not count, as a later file has the same key. Raises ConfigurationError."""
    if not distribution.has_kubelet_args:
        return []
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


def find_words(tree: Tree, distribution: Distribution, arguments: Sequence[str]) -> list[str]:
    """All words that follow the program on the command line of a distribution's kubelet, as far as they can be seen.

    arguments: what it was started with. Raises NodeError for a file that cannot be read.
    """
    is_in_files = distribution.place == FLAGS or distribution.has_kubelet_args
    if not is_in_files:
        arguments = arguments or unit_command(tree, service_of(tree, distribution))
        if _is_kubelet(arguments):
            return list(arguments[1:])
    words = [
        word
        for file in distribution.flag_files
        if file.form == KUBELET_ARG or tree.exists(file.path)
        for _source, some in _words_of_file(tree, file.path, file.form)
        for word in some
    ]
    if distribution.has_kubelet_args:
        words += _kubelet_args_of(unit_command(tree, service_of(tree, distribution)) or arguments)
    if is_in_files and _is_kubelet(arguments):
        # What else a running kubelet has it will be given again.
        words = _without(arguments[1:], {word.partition("=")[0] for word in words}) + words
    return words


def _without(words: Sequence[str], names: Container[str]) -> list[str]:
    """The words without the flags of these names, and without their values."""
    kept = []
    is_left_out = False
    for word in words:
        if word.startswith("-"):
            is_left_out = word.partition("=")[0] in names
        if not is_left_out:
            kept.append(word)
    return kept


def _unit(service: str) -> str:
    return "the unit %s.service" % service


def _is_kubelet(arguments: Sequence[str]) -> bool:
    return posixpath.basename(arguments[0]) == "kubelet" if arguments else False


def _kubelet_args_of(arguments: Sequence[str]) -> list[str]:
    words: list[str] = []
    for position, argument in enumerate(arguments):
        if argument == END_OF_FLAGS:
            break
        name, equals, value = argument.partition("=")
        if name == "--kubelet-arg":
            words += [
                "--" + word.lstrip("-") for word in ([value] if equals else arguments[position + 1 : position + 2])
            ]
    return words


def _file_flags(tree: Tree, path: str, form: str) -> list[Given]:
    return [flag for file, words in _words_of_file(tree, path, form) for flag in read_flags(words, file)]


def _words_of_file(tree: Tree, path: str, form: str) -> list[tuple[str, list[str]]]:
    """The words in a file, and in those beside it: [(path here, words)]."""
    if form == KUBELET_ARG:
        return _kubelet_arg_words(tree, path)
    words = {ENVIRONMENT: environment_words, LINES: line_words}[form]
    return [(tree.path(path), list(words(tree.read_text(path, LARGEST_OF_KUBELET))))]


def kubelet_arg_paths(tree: Tree, path: str) -> list[str]:
    """k3s' or RKE2's configuration file and those beside it, in the order in which they are read."""
    beside = ["%s.d/%s" % (path, name) for name in tree.names(path + ".d") if name.endswith((".yaml", ".yml"))]
    return [file for file in (path, *beside) if tree.exists(file)]


def _kubelet_arg_words(tree: Tree, path: str) -> list[tuple[str, list[str]]]:
    """The kubelet's arguments in each of these files. Raises ConfigurationError."""
    paths, texts = _kubelet_arg_texts(tree, path)
    try:
        return list(zip(paths, kubelet_args(texts)))
    except ValueError as error:
        raise ConfigurationError(
            "kubelet-arg cannot be read: %s" % error, tree.path(path), "write it as a list"
        ) from error


def _kubelet_arg_texts(tree: Tree, path: str) -> tuple[list[str], list[str]]:
    """The paths here of these files, and their texts."""
    paths = kubelet_arg_paths(tree, path)
    return list(map(tree.path, paths)), [tree.read_text(file, LARGEST_OF_KUBELET) for file in paths]

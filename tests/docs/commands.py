# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands of the documentation: what they name exists, and they are spelled as the programs take them.

Ansible's own parsers read the command lines of Ansible, bash reads all others.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple, NoReturn
from unittest.mock import patch

import yaml
from ansible.cli.adhoc import AdHocCLI
from ansible.cli.doc import DocCLI
from ansible.cli.galaxy import GalaxyCLI
from ansible.cli.inventory import InventoryCLI
from ansible.cli.playbook import PlaybookCLI
from ansible.parsing.splitter import parse_kv

from .pages import CHECKOUT
from .values import COLLECTION, check_arguments, check_variables, check_yaml, modules

# What is run beside Ansible and make: on a node, on its console, or where the cluster is administered. A command that
# is not here is a mistake, or belongs into this list.
OTHER_PROGRAMS = frozenset(
    (
        # files
        *("chattr", "cp", "df", "findmnt", "ls", "mkdir", "mount", "mv"),
        # what they print
        *("grep", "sed", "tail"),
        # in a container
        *("echo", "sleep"),
        # the system
        *("dmesg", "journalctl", "systemctl"),
        # the controller
        *(".", "ansible-builder", "ansible-lint", "ansible-rulebook", "ansible-runner", "cd", "pip"),
    )
)
# What stands before a command.
BEFORE = frozenset(("sudo", "nice", "time", "then", "do", "else", "!", "{"))
WITHOUT_COMMAND = frozenset(("for", "if", "while", "case", "done", "fi", "esac", "}"))
INTERPRETERS = frozenset(("python", "python3"))
HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class Command(NamedTuple):
    """A simple command, and the text of its here-document."""

    words: list[str]
    document: str


class _UsageError(Exception):
    """What a parser of Ansible says of a command line."""


def commands_of(text: str) -> Iterator[Command]:
    """Yield the simple commands of a text for the shell."""
    lines = iter(text.replace("\\\n", " ").splitlines())
    for line in lines:
        found = HEREDOC.search(line)
        document = []
        if found:
            for inner in lines:
                if inner.strip() == found[2]:
                    break
                document.append(inner)
            line = line.replace(found[0], "")  # noqa: PLW2901
        for words in _split(line):
            yield Command(words, "\n".join(document))


def _split(line: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a line, without redirections and what stands before a command."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    is_target = False
    for token in [*lexer, ";"]:
        if is_target:
            is_target = False
        elif token[0] in "<>":
            is_target = True
            if words and words[-1] in ("1", "2"):
                words.pop()
        elif token.strip("();|&"):
            words.append(token)
        else:
            while words and (words[0] in BEFORE or ASSIGNMENT.match(words[0])):
                words.pop(0)
            if words and words[0] not in WITHOUT_COMMAND:
                yield words
            words = []


def check_shell(text: str, files: set[str]) -> tuple[int, list[str]]:
    """Return how many commands a block has, and what is wrong with them. files: those that its page shows."""
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        return 1, ["bash does not take it: %s" % done.stderr.strip()]
    found = list(commands_of(text))
    return len(found), [problem for command in found for problem in check_command(command, files)]


def check_command(command: Command, files: set[str]) -> list[str]:
    """Return what is wrong with a command."""
    program, *_arguments = command.words
    check = PROGRAMS.get(program)
    if check:
        try:
            return check(command, files)
        except _UsageError as error:
            return ["%s: %s" % (shlex.join(command.words), error)]
    if program in INTERPRETERS:
        return _check_python(command)
    if "/" in program and not program.startswith(("/", "~")):
        # .venv is made by make.
        path = program if not program.startswith(".venv/bin/") else next(iter(_paths(command)), "")
        return [] if (CHECKOUT / path).exists() else ["there is no %s" % path]
    return [] if program in OTHER_PROGRAMS else ["%s is no program that the documentation may name" % program]


def _paths(command: Command) -> Iterator[str]:
    return (word for word in command.words[1:] if not word.startswith("-"))


def _parsed(cli: Any, words: list[str]) -> Any:
    """Return the arguments as a program of Ansible reads them."""
    program = cli(words)
    program.init_parser()

    def error(_parser: argparse.ArgumentParser, message: str) -> NoReturn:
        raise _UsageError(message)

    with patch.object(argparse.ArgumentParser, "error", error):
        return program.parser.parse_args(words[1:])


def _check_playbook(command: Command, files: set[str]) -> list[str]:
    arguments = _parsed(PlaybookCLI, command.words)
    problems = check_extra_variables(arguments.extra_vars)
    for playbook in arguments.args:
        namespace, _dot, name = playbook.rpartition(".")
        if namespace == COLLECTION:
            exists = (CHECKOUT / "playbooks" / (name + ".yml")).is_file()
        else:
            exists = playbook in files or (CHECKOUT / playbook).is_file()
        if not exists:
            problems.append("there is no playbook %s" % playbook)
    return problems


def check_extra_variables(given: list[str]) -> list[str]:
    """Return what is wrong with the variables of --extra-vars."""
    problems = []
    for text in given:
        if not text.startswith("@"):
            is_mapping = text[:1] in "{["
            variables = yaml.safe_load(text) if is_mapping else parse_kv(text)
            problems += check_variables(variables, must_be_known=True)
    return problems


def _check_ad_hoc(command: Command, _files: set[str]) -> list[str]:
    arguments = _parsed(AdHocCLI, command.words)
    return [
        *check_extra_variables(arguments.extra_vars),
        *check_arguments(arguments.module_name, parse_kv(arguments.module_args)),
    ]


def _check_doc(command: Command, _files: set[str]) -> list[str]:
    arguments = _parsed(DocCLI, command.words)
    kind = arguments.type
    names = [name.rpartition(".")[2] for name in arguments.args]
    if kind == "role":
        return ["there is no role %s" % name for name in names if not (CHECKOUT / "roles" / name).is_dir()]
    folder = CHECKOUT / "plugins" / {"module": "modules"}.get(kind, kind)
    return ["there is no %s %s" % (kind, name) for name in names if not list(folder.glob(name + ".*"))]


def _check_only_usage(cli: Any) -> Callable[[Command, set[str]], list[str]]:
    def check(command: Command, _files: set[str]) -> list[str]:
        _parsed(cli, command.words)
        return []

    return check


def _check_make(command: Command, _files: set[str]) -> list[str]:
    makefile = (CHECKOUT / "Makefile").read_text("utf-8")
    problems = []
    for word in command.words[1:]:
        name, is_variable, _value = word.partition("=")
        wanted = rf"\$\({name}[):]|^export {name}$" if is_variable else r"^%s:" % name
        if not word.startswith("-") and not re.search(wanted, makefile, re.MULTILINE):
            problems.append("make has no %s %s" % ("variable" if is_variable else "target", name))
    return problems


def _check_python(command: Command) -> list[str]:
    """Return what is wrong with a command of Python: programs in it or below it must compile, and files must exist."""
    words = command.words[1:]
    if "-c" in words or command.document:
        program = words[words.index("-c") + 1] if "-c" in words else command.document
        try:
            compile(program, command.words[0], "exec")
        except SyntaxError as error:
            return ["Python does not take it: %s" % error]
        return []
    if words[:1] == ["-m"]:
        return [] if words[1] in ("venv", "pip") else ["python -m %s is not what a user has" % words[1]]
    # As the user has it, or as this checkout has it.
    path = next(_paths(command), "").rpartition("ansible_collections/kubenode/cpu_manager/")[2]
    return [] if path and (CHECKOUT / path).exists() else ["there is no program %s" % path]


def _check_written(command: Command, _files: set[str]) -> list[str]:
    """Return a here-document is what is applied."""
    return check_yaml(command.document)[1] if command.document else []


PROGRAMS: dict[str, Callable[[Command, set[str]], list[str]]] = {
    "ansible": _check_ad_hoc,
    "ansible-doc": _check_doc,
    "ansible-galaxy": _check_only_usage(GalaxyCLI),
    "ansible-inventory": _check_only_usage(InventoryCLI),
    "ansible-playbook": _check_playbook,
    "kubectl": _check_written,
    "make": _check_make,
}


def check_literal(text: str, files: set[str]) -> list[str] | None:
    """Return what is wrong with a command, or with variables of one, within the text of a page; None where it is
    neither."""
    if text.startswith("-e "):
        return check_extra_variables([shlex.split(text)[1]])
    if text.startswith("kubenode.cpu_manager.") and text.count(".") == 2:
        name = text.rpartition(".")[2]
        places = [*modules(), *(path.stem for path in Path(CHECKOUT, "playbooks").glob("*.yml"))]
        places += [path.name for path in Path(CHECKOUT, "roles").iterdir()]
        places += [path.stem for kind in ("filter", "test") for path in (CHECKOUT / "plugins" / kind).iterdir()]
        return [] if name in places else ["there is no %s" % text]
    program, _space, rest = text.partition(" ")
    is_command = program in PROGRAMS or program in INTERPRETERS or program == ".venv/bin/pytest"
    if not rest or not is_command or not text.isascii():
        return None
    return check_shell(text, files)[1]

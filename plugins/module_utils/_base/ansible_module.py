# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one place where the core meets Ansible: arguments in, one call, result or failure out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Mapping, NamedTuple, NoReturn, Sequence

from ansible.module_utils.basic import AnsibleModule

# Before all others, for its effect on them.
from . import startup
from .arguments import Arguments, refusal
from .errors import CPUManagerError, NodeError, call_options, option
from .secrets import texts_redacted
from .tree import Tree, node_name

if TYPE_CHECKING:
    from .archive import Archive


# What every module takes.
ROOT = Arguments({"root": {"type": "path", "default": "/"}, "option_names": {"type": "dict", "default": {}}})


class Outcome(NamedTuple):
    """What a module answers."""

    result: Mapping[str, object]
    changed: bool = False
    # What Ansible's --diff shows: a difference() for each file.
    diff: Sequence[Mapping[str, str]] | None = None


def difference(path: str, before: str, after: str) -> dict[str, str]:
    """Return what a file, or whatever `path` names, holds before and after."""
    return {"before_header": path, "after_header": path, "before": before, "after": after}


# What a module is given: Ansible has checked each value against the options.
Parameters = Mapping[str, Any]
Work = Callable[[Tree, Parameters, bool], Outcome]


def run(work: Work, *arguments: Arguments) -> None:
    """Run one module: `work` is given the node's files, the parameters, and whether to leave everything as it is."""
    module = _module((ROOT, *arguments))
    name, root = "", module.params["root"]
    archive: Archive | None = None
    call_options(module.params["option_names"])
    try:
        if os.path.isfile(root):
            # Imported here: nodes and saved trees are directories.
            from .archive import unpacked

            archive = unpacked(root)
            root = archive.directory
        tree = Tree(root)
        if archive is not None and not module.check_mode:
            tree.refusal = archive.read_only()
        name = node_name(tree)
        outcome = work(tree, module.params, module.check_mode or archive is not None)
        if archive is not None and outcome.changed and not module.check_mode:
            raise archive.read_only()
    except (CPUManagerError, OSError) as error:
        failure = error if isinstance(error, CPUManagerError) else _of_system(error)
        message = "%s: %s" % (name, failure) if name else str(failure)
        # It may quote a file, or what a program said.
        answer = {**failure.result, "msg": message, "failure": failure.to_dict()}
        module.fail_json(**_shown(texts_redacted(answer), archive))
    result: dict[str, object] = {**outcome.result, "changed": outcome.changed, "node": name}
    if outcome.diff is not None:
        result["diff"] = outcome.diff[0] if len(outcome.diff) == 1 else outcome.diff
    answer = _shown(result, archive)
    # Before Python ends, the collector would look through all objects.
    startup.spare_collector()
    module.exit_json(**answer)


def _shown(answer: object, archive: Archive | None) -> Any:
    """Return what is printed of an answer. archive: of the node, where its files are in one; it is not needed any
    more."""
    if archive is not None:
        archive.remove()
        answer = archive.named(answer)
    return printable(answer)


def printable(value: object) -> object:
    """Return plain data whose texts can be written as UTF-8: a byte of a file's name that is no text becomes \\xff."""
    if isinstance(value, str):
        if value.isascii():
            return str(value)
        try:
            return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        except UnicodeEncodeError:  # half a character, as JSON may have it
            return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {printable(key): printable(item) for key, item in value.items()}
    return [printable(item) for item in value] if isinstance(value, (list, tuple)) else value


def _of_system(error: OSError) -> NodeError:
    """Return an error of the operating system that nobody below gave a better message."""
    # Imported here: every import costs time on every node.
    from .files import remedy_for

    return NodeError(error.strerror or str(error), where=str(error.filename or ""), remedy=remedy_for(error))


class _Module(AnsibleModule):  # type: ignore[misc]  # Ansible is untyped
    """A module that refuses arguments in the words of who set them."""

    def __init__(self, **keywords: Any) -> None:
        try:
            super().__init__(**keywords)
        except TypeError as error:
            # Ansible's check does not expect anything but a mapping where an option has options of its own.
            self.fail_json(str(error))

    def fail_json(self, msg: str, **result: Any) -> NoReturn:
        """End with this message; Ansible itself has another one for arguments only."""
        if "failure" not in result:
            # Imported here: arguments are seldom wrong.
            from ansible.module_utils.common.parameters import DEFAULT_TYPE_VALIDATORS

            names = self.params.get("option_names")
            call_options(names if isinstance(names, Mapping) else {})
            error = refusal(self.argument_spec, vars(self), self.params, DEFAULT_TYPE_VALIDATORS, option)
            if error is not None:
                msg, result["failure"] = str(error), error.to_dict()
        super().fail_json(msg=msg, **result)
        raise SystemExit(1)


def _module(arguments: Sequence[Arguments]) -> Any:
    options: dict[str, object] = {}
    for group in arguments:
        options.update(group.options)
    return _Module(
        argument_spec=options,
        supports_check_mode=True,
        mutually_exclusive=[names for group in arguments for names in group.mutually_exclusive],
        required_if=[condition for group in arguments for condition in group.required_if],
        required_one_of=[names for group in arguments for names in group.required_one_of],
        required_by={name: names for group in arguments for name, names in group.required_by.items()},
    )

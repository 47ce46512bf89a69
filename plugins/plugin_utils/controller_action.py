# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What action plugins share that run on the controller alone: arguments in, a result or one clear error out."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Mapping

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import DEFAULT_TYPE_VALIDATORS
from ansible.module_utils.common.yaml import yaml_load

from ..module_utils._base.arguments import NameOf, refusal
from ..module_utils._base.errors import InputError, call_options, option
from .guarded_action import GuardedAction

# The arguments of action plugins, checked as those of modules are.


# What every plugin takes, as every module does.
OPTION_NAMES: dict[str, dict[str, Any]] = {"option_names": {"type": "dict", "default": {}}}


def validated(
    options: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any], names: Any = None, name_of: NameOf = option
) -> tuple[dict[str, Any], InputError | None]:
    """Return the values that Ansible makes of what was given, and what is wrong with that.

    names: from now on, messages of this process use these for options, where it is a mapping.
    """
    call_options(names if isinstance(names, Mapping) else {})
    values, messages = dict(given), ["the arguments are wrong"]
    # Ansible's check does not expect anything but a mapping where an option has options of its own.
    with suppress(TypeError):
        result = ArgumentSpecValidator(options).validate(given)
        values, messages = result.validated_parameters, result.error_messages
    if not messages:
        return values, None
    error = refusal(options, {}, given, DEFAULT_TYPE_VALIDATORS, name_of)
    return values, error or InputError("; ".join(messages))


_ROLES = Path(__file__).resolve().parents[2] / "roles"
_NOTHING = object()


def check_role_variables(role: str, templar: Any, task_vars: Mapping[str, Any]) -> None:
    """Refuse a host whose variables have values that a role of this collection does not take. Raises InputError."""
    spec = yaml_load((_ROLES / role / "meta" / "argument_specs.yml").read_bytes())
    options = spec["argument_specs"]["main"]["options"]
    # As a whole: what is omitted is left out, and is a sign of its own for older versions.
    found = templar.template({name: task_vars[name] for name in options if name in task_vars})
    omitted = task_vars.get("omit", _NOTHING)
    _values, wrong = validated(options, {name: value for name, value in found.items() if value != omitted})
    if wrong:
        raise wrong


# What a task is given: Ansible has checked each value against the arguments.
Given = Mapping[str, Any]


class ControllerAction(GuardedAction):
    """An action plugin that needs no connection. A plugin has its arguments and made()."""

    ARGUMENTS: Mapping[str, Mapping[str, object]] = {}
    READS_NODE = False

    _supports_async = False
    _requires_connection = False

    def act(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002  # the base gives them
        """Return the result of the task."""
        names = self._task.args.get("option_names")
        given, wrong = validated({**OPTION_NAMES, **self.ARGUMENTS}, self._task.args, names)
        if wrong:
            raise wrong
        return self.made(given)

    def made(self, given: Given) -> dict[str, Any]:
        """Do what the task says, and return its result. Raises CPUManagerError."""
        raise NotImplementedError

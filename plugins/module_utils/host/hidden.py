# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a service of systemd does not see, as with ProtectHome=, and so cannot run."""

from __future__ import annotations

import json
import os
from typing import Iterable, Iterator, Sequence

from ..command import run_command
from ..errors import InputError, RefusedError, option

# Where a Python is: the program, and the directories that it reads its own modules from.
_PLACES = "import json, os, sys; print(json.dumps([sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)]))"


def check_visible(interpreter: str, files: Iterable[str], hidden: Sequence[str]) -> None:
    """Raises RefusedError where a service that does not see the hidden directories could not run a program.

    interpreter: the Python; files: the program, and what else it takes.
    """
    if not os.path.isabs(interpreter):
        raise InputError("%r is not an absolute path" % interpreter, where=option("interpreter"))
    if not hidden:
        return
    for path in files:
        for directory in _above(path, hidden):
            raise _hidden(path, directory, "", "take a path elsewhere")
    remedy = "name a Python elsewhere in %s, such as /usr/bin/python3" % option("interpreter")
    for place in _places(interpreter):
        for directory in _above(place, hidden):
            what = ", where this Python is" + ("" if place == interpreter else " (%s)" % place)
            raise _hidden(interpreter, directory, what, remedy)


def _places(interpreter: str) -> Iterator[str]:
    """Where a Python is. One that is hidden itself need not be run."""
    yield from (interpreter, os.path.realpath(interpreter))
    for place in json.loads(run_command([interpreter, "-I", "-c", _PLACES])):
        yield from (place, os.path.realpath(place))


def _hidden(where: str, directory: str, what: str, remedy: str) -> RefusedError:
    text = "the service does not see what is in %s%s; nothing was written" % (directory, what)
    return RefusedError(text, where=where, remedy=remedy, kind="hidden")


def _above(path: str, directories: Sequence[str]) -> list[str]:
    """Those of the directories that a path is below."""
    place = os.path.normpath(path) + "/"
    return [directory for directory in directories if place.startswith(directory.rstrip("/") + "/")]

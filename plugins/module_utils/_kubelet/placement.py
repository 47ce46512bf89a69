# Copyright (c) 2026, the kubenode.cpu_manager developers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a kubelet's settings are to be written, and what. Pure: it reads and writes nothing.

The law: with the files as planned, the kubelet has what is wanted. What would keep a change from having an effect, as
a flag does that counts before the file, ends in an error that names it.
"""

from __future__ import annotations

import posixpath
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from .._base.errors import InputError, RefusedError, option
from .._base.files import FileChange
from ..state.acceptance import NONE
from .configuration import API_VERSION, KIND, KubeletConfiguration
from .distributions import DROP_IN, DROP_IN_SINCE, FILE, FLAGS, NOWHERE, PATCHES_SINCE
from .effective import (
    FEATURE_GATES,
    NAMES,
    EffectiveConfiguration,
    GivenFlag,
    arguments_for,
    effective_configuration,
    read_flags,
    values_of,
)
from .flag_files import kubelet_arg_file, kubelet_args, line_words, replaced_lists, with_lines, writer_of
from .installation import Installation
from .settings import SETTINGS, SettingsPlan, written
from .yaml_nodes import REMOVE, value_at

_HEADER = "# The kubelet's CPU settings, written by kubenode.cpu_manager.\napiVersion: %s\nkind: %s\n" % (
    API_VERSION,
    KIND,
)
_BY_PATH = {setting.path: setting for setting in SETTINGS.values()}


class Sources(NamedTuple):
    """What a node's kubelet takes its settings from, with the paths as they are here."""

    installation: Installation
    file: KubeletConfiguration | None
    drop_ins: Sequence[KubeletConfiguration]
    # The files that hold flags and may be written, in the order in which they are read: (path, text).
    flag_files: Sequence[tuple[str, str]]
    # Our own files: in the directory of drop-ins, beside k3s' configuration, among kubeadm's patches. Whether they
    # exist or not; None where there is no such directory.
    drop_in_path: str | None
    kubelet_arg_path: str | None
    patch_path: str | None
    patch: KubeletConfiguration | None
    # The command of the unit that writes the file anew before each start; empty for none.
    overwriter: str = ""


# Of a new file.
_MODE = 0o644


class PlacedFile(NamedTuple):
    """A file to write: its path here, and its text before (None: there is no file) and after."""

    path: str
    before: str | None
    after: str


def file_changes(files: Iterable[PlacedFile]) -> list[FileChange]:
    """Return these files as what is to be written."""
    return [FileChange(file.path, _encoded(file.before), _encoded(file.after), _MODE) for file in files]


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8")


class _Written(NamedTuple):
    """One file as it is to be, and the configuration that it makes."""

    change: PlacedFile
    configuration: EffectiveConfiguration


def plan_files(sources: Sources, plan: SettingsPlan, wanted: Iterable[str], minor: int) -> list[PlacedFile]:
    """Return the files to write, the one that the kubelet reads last, if anything is to be changed in them.

    Raises RefusedError where nothing may be written, or what is written would have no effect.
    """
    files = []
    place = place_to_write(sources, minor)
    if _has_patch(sources, minor):
        files.append(_patched(sources, plan, wanted))
    if plan.changes:
        if place == NOWHERE:
            distribution = sources.installation.distribution
            raise RefusedError("%s manages its kubelets itself" % distribution.name, remedy=distribution.pointer)
        done = {FILE: _in_file, DROP_IN: _in_drop_in, FLAGS: _in_flags}[place](sources, plan)
        _check_effect(done, plan.changes, sources.installation)
        files.append(done.change)
    return [file for file in files if file.before != file.after]


def main_file(sources: Sources, minor: int) -> str | None:
    """Return the path of the file that the settings are, or would be, written to; None where none may be."""
    place = place_to_write(sources, minor)
    if place == DROP_IN:
        return sources.drop_in_path
    if place == FLAGS:
        return sources.kubelet_arg_path or sources.flag_files[0][0]
    return sources.file.source if place == FILE and sources.file is not None else None


def touched_files(sources: Sources, minor: int) -> list[str]:
    """Return the paths of all files that any change of settings may write."""
    patch = sources.patch_path if _has_patch(sources, minor) else None
    return [path for path in (patch, main_file(sources, minor)) if path is not None]


def _has_patch(sources: Sources, minor: int) -> bool:
    is_used = sources.patch_path is not None and minor >= PATCHES_SINCE
    return is_used and place_to_write(sources, minor) == FILE


def place_to_write(sources: Sources, minor: int) -> str:
    """Return FILE, DROP_IN, FLAGS or NOWHERE."""
    installation = sources.installation
    place = installation.distribution.place
    drop_ins_work = installation.config_dir is not None and minor >= DROP_IN_SINCE
    if place == DROP_IN:
        # Flags count before drop-ins, so what was once written as flags stays there.
        has_own_flags = any(path == sources.kubelet_arg_path for path, _text in sources.flag_files)
        return DROP_IN if drop_ins_work and not has_own_flags else FLAGS
    return DROP_IN if place == FILE and drop_ins_work else place


# --- the three places -------------------------------------------------------------------------------


def _in_file(sources: Sources, plan: SettingsPlan) -> _Written:
    file = sources.file
    if file is None:
        raise RefusedError(
            "the kubelet was started without a configuration file, so there is none to write to",
            remedy="give it one with --config, or name it in %s" % option("config_path"),
        )
    if sources.overwriter:
        raise RefusedError(
            "%s writes this file anew before the kubelet starts, so that what is written there is lost"
            % sources.overwriter,
            where=file.source,
            remedy="give the same settings to what writes it",
        )
    new = file.with_changes(plan.changes)
    return _Written(
        PlacedFile(file.source, file.text, new.text),
        effective_configuration(new, sources.drop_ins, sources.installation.flags),
    )


def _in_drop_in(sources: Sources, plan: SettingsPlan) -> _Written:
    path = str(sources.drop_in_path)
    directory, name = posixpath.split(path)
    old = next((drop_in for drop_in in sources.drop_ins if drop_in.source == path), None)
    others = [drop_in for drop_in in sources.drop_ins if drop_in is not old]
    before = [drop_in for drop_in in others if posixpath.relpath(drop_in.source, directory).split("/", 1)[0] < name]
    lower = effective_configuration(sources.file, before, ()).values
    own = old or KubeletConfiguration.parse(_HEADER, path)
    new = own.with_changes({at: _over(value, value_at(lower, at)) for at, value in plan.changes.items()})
    return _Written(
        PlacedFile(path, None if old is None else old.text, new.text),
        effective_configuration(sources.file, [*before, new, *others[len(before) :]], sources.installation.flags),
    )


def _over(value: object, lower: object) -> object:
    """Return what a JSON merge patch has for a value over a lower one: null removes."""
    if value is REMOVE:
        return REMOVE if lower is None else None
    if isinstance(value, Mapping) and isinstance(lower, Mapping):
        return {**value, **{key: None for key in lower if key not in value}}
    return value


def _in_flags(sources: Sources, plan: SettingsPlan) -> _Written:
    if sources.kubelet_arg_path is not None:
        return _in_kubelet_args(sources, plan)
    path, text = sources.flag_files[0]
    values = _flag_values(plan, values_of(sources.installation.flags))
    arguments = [argument for field in values for argument in _arguments(field, values[field])]
    new = with_lines(text, values, arguments)
    return _Written(
        PlacedFile(path, text, new),
        effective_configuration(sources.file, sources.drop_ins, read_flags(line_words(new), path)),
    )


def _in_kubelet_args(sources: Sources, plan: SettingsPlan) -> _Written:
    path = str(sources.kubelet_arg_path)
    texts = dict(sources.flag_files)
    old = texts.get(path)
    own = values_of(_given({path: old} if old is not None else {}))
    values = {**own, **_flag_values(plan, own)}
    arguments = [argument for field in values for argument in _arguments(field, values[field])]
    texts[path] = kubelet_arg_file(arguments)
    # The main file comes first, those beside it in the order of their names.
    main = [file for file in texts if posixpath.dirname(file) != posixpath.dirname(path)]
    texts = {file: texts[file] for file in main + sorted(file for file in texts if file not in main)}
    given = _given(texts)
    if arguments and not any(flag.source == path for flag in given):
        by = next(replaced.by for replaced in replaced_lists(texts.values()) if list(texts)[replaced.number] == path)
        raise RefusedError(
            "its kubelet-arg takes the place of those of all files before it, also of %s" % path,
            where=list(texts)[by],
            remedy="write it there as kubelet-arg+, and run again",
        )
    by_command_line = [flag for flag in sources.installation.flags if flag.source not in dict(sources.flag_files)]
    return _Written(
        PlacedFile(path, old, texts[path]),
        effective_configuration(sources.file, sources.drop_ins, given + by_command_line),
    )


def _given(texts: Mapping[str, str]) -> list[GivenFlag]:
    return [flag for path, words in zip(texts, kubelet_args(texts.values())) for flag in read_flags(words, path)]


def _flag_values(plan: SettingsPlan, own: Mapping[str, Any]) -> dict[str, object]:
    """Return the fields that change, as flags give them: each with all of its members, but feature gates one by one."""
    values: dict[str, object] = {path[0]: plan.configuration.values.get(path[0]) for path in plan.changes}
    if FEATURE_GATES in values:
        gates = {path[1]: value for path, value in plan.changes.items() if path[0] == FEATURE_GATES}
        values[FEATURE_GATES] = {**own.get(FEATURE_GATES, {}), **gates}
    return values


def _arguments(field: str, value: object) -> list[str]:
    return [] if value is None else arguments_for(field, value)


# --- kubeadm's patch --------------------------------------------------------------------------------


def _patched(sources: Sources, plan: SettingsPlan, wanted: Iterable[str]) -> PlacedFile:
    """Return the patch with which kubeadm makes the file anew: with all that is wanted, as it is not known what it
    patches."""
    old = sources.patch
    own = old or KubeletConfiguration.parse(_HEADER, str(sources.patch_path))
    file = sources.file.values if sources.file is not None else {}
    edits = {SETTINGS[name].path: written(name, plan.settings[name]) for name in _with_options(wanted, plan.settings)}
    edits.update(plan.changes)
    patch = {
        path: None if value is REMOVE else _over(_over(value, value_at(file, path)), value_at(own.values, path))
        for path, value in edits.items()
    }
    # Nothing wanted, nothing to keep.
    if not patch:
        return PlacedFile(own.source, own.text, own.text)
    return PlacedFile(own.source, None if old is None else old.text, own.with_changes(patch).text)


def _with_options(wanted: Iterable[str], settings: Mapping[str, object]) -> list[str]:
    """Return the names of these settings, and the options where the policy none goes without."""
    names = list(wanted)
    drops = "cpu_manager_policy" in names and settings["cpu_manager_policy"] == NONE
    return [*names, *(["cpu_manager_policy_options"] if drops and "cpu_manager_policy_options" not in names else [])]


# --- the law ----------------------------------------------------------------------------------------


def _check_effect(done: _Written, changes: Mapping[tuple[str, ...], object], installation: Installation) -> None:
    for path, value in changes.items():
        found = value_at(done.configuration.values, path)
        if not _means(path, value, found):
            origin = done.configuration.origin(path)
            if origin is None or origin == done.change.path:
                raise AssertionError("internal error, nothing was written: %s would be %r" % (".".join(path), found))
            what = "%s overrides the configuration file"
            if len(path) > 1 and done.configuration.has_flag(path[0]):
                what = "%%s takes the place of the whole %s of the configuration file" % path[0]
            places = [flag.source for flag in installation.flags if NAMES.get(path[0]) == flag.name]
            writer = writer_of(installation.distribution, places[-1]) if places else ""
            there = "there and from %s (which writes it again)" % writer if writer else "there"
            raise RefusedError(
                what % done.configuration.origin(path, has_value=True),
                where=".".join(path),
                remedy="remove it %s, restart the kubelet, run again" % there,
            )


def _means(path: tuple[str, ...], value: object, found: object) -> bool:
    setting = _BY_PATH.get(path)
    if value is REMOVE or found in (None, ""):
        # Nothing at all is the default.
        value, found = (
            None if value_there is REMOVE or value_there == "" else value_there for value_there in (value, found)
        )
    if setting is None:
        return bool(value == found)
    value, found = (setting.default if value_there is None else value_there for value_there in (value, found))
    meaning = setting.meaning(value)
    try:
        return bool(meaning == setting.meaning(found))
    except InputError:  # no kubelet takes what is there
        return False

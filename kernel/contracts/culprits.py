"""Pure core: whose code it is that failed, or that is running: so that a log line names the plugin.

What is known is a fact of the process, as `sys.modules` is: which module belongs to which plugin. The plugin manager
notes it; frames tell their module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..errors import PluginError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType, TracebackType

OURS: Final = __name__.partition(".")[0]
"""The package in which the kernel lives, and plugins beside each other."""

_names: Final[dict[str, str]] = {}
_roots: Final[dict[str, str]] = {}
"""Whose a top-level package is, by its name; empty where several plugins live in one, as ours do."""


class Culprit(NamedTuple):
    """A plugin, and where in its code: `storage.py:88 in read`."""

    plugin: str
    place: str


def note_plugin(name: str, module: str) -> None:
    """Take note that a module, and what is below it, belongs to a plugin; so does what is beside it, if it is alone."""
    _names[module] = name
    root = module.partition(".")[0]
    _roots[root] = name if _roots.get(root, name) == name and root != OURS else ""


def plugin_of(module: str) -> str:
    """Return the plugin that a module belongs to, empty when none."""
    root = module.partition(".")[0]
    while module:
        if module in _names:
            return _names[module]
        module = module.rpartition(".")[0]
    return _roots.get(root, "")


def root_of(error: BaseException) -> BaseException:
    """Return what an exception is about: the only one of a group, however deep."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def culprit_of_error(error: BaseException) -> Culprit | None:
    """Return the plugin in whose code an exception was raised, or was on its way: the innermost of several."""
    return _innermost(_frames_of_traceback(root_of(error).__traceback__))


def where_of_error(error: BaseException) -> str:
    """Return `file:line` of what a plugin's author has to look at: the innermost line of a plugin, else of anybody.

    Of a file that is no Python it is where that shows. Empty when only the kernel's code was met.
    """
    error = root_of(error)
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = [(frame, line) for frame, line in _frames_of_traceback(error.__traceback__) if not _is_ours(frame)]
    of_plugins = [(frame, line) for frame, line in frames if plugin_of(_module(frame))]
    for frame, line in reversed(of_plugins or frames):
        return f"{frame.f_code.co_filename}:{line}"
    return ""


def _is_ours(frame: FrameType) -> bool:
    """Return whether a frame is the kernel's, or of the machinery that imports modules."""
    module = _module(frame)
    is_kernel = module.partition(".")[0] == OURS and not plugin_of(module)
    return is_kernel or module.partition(".")[0] == "importlib" or frame.f_code.co_filename.startswith("<frozen")


def blame(error: BaseException) -> dict[str, str]:
    """Return fields for the log line of an error that is logged without a trace: the plugin whose bug is its cause."""
    cause = error.__cause__
    culprit = None if cause is None or isinstance(cause, OSError) else culprit_of_error(cause)
    return {} if culprit is None else culprit._asdict()


def is_bug(error: Exception) -> bool:
    """Return whether an error is a plugin's bug, which stays until somebody repairs it.

    What may pass is none: a disk's error, a plugin that is not there, and what no plugin's code had a part in.
    """
    if isinstance(error, PluginError):
        return bool(error.plugin)
    return not isinstance(error, StorageError | OSError | MemoryError) and culprit_of_error(error) is not None


def culprit_of_stack(frame: FrameType | None) -> Culprit | None:
    """Return the plugin whose code a thread is in, `frame` being the innermost; the innermost of several."""
    return _innermost(reversed(list(_frames_of_stack(frame))))


def _innermost(frames: Iterator[tuple[FrameType, int]]) -> Culprit | None:
    """Look at frames, the outermost first."""
    found = None
    for frame, line in frames:
        plugin = plugin_of(_module(frame))
        if plugin:
            file = frame.f_code.co_filename.rpartition("/")[2]
            found = Culprit(plugin, f"{file}:{line} in {frame.f_code.co_name}")
    return found


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _frames_of_traceback(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next


def _frames_of_stack(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back

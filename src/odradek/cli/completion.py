"""Shell: `odradek completion`: scripts that let bash, zsh and fish complete this command.

They are made from the parsers once and ask nothing when a person presses TAB: starting Python then would be felt.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from .completion_tree import ANYTHING, FILE, Node, nodes
from .options import document

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Mapping, Sequence


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    document(
        parser,
        "Write a script to standard output by which a shell completes commands, actions, options and their choices, "
        "those of installed plugins too. Make it again after an upgrade, or when plugins come and go.",
        [
            ("completion bash > ~/.local/share/bash-completion/completions/odradek", "for every new bash"),
            ("completion zsh > ~/.zfunc/_odradek", "for zsh, with `fpath+=~/.zfunc` before `compinit` in ~/.zshrc"),
            ("completion fish > ~/.config/fish/completions/odradek.fish", "for fish"),
        ],
    )
    parser.add_argument("shell", choices=tuple(_SHELLS), metavar="SHELL", help=", ".join(_SHELLS))


def run(arguments: argparse.Namespace) -> int:
    """Print the script of a shell."""
    from . import whole_parser

    print(script(arguments.shell, list(nodes(whole_parser()))), end="")
    return 0


def script(shell: str, tree: Sequence[Node]) -> str:
    """Return the script of a shell: `bash`, `zsh` or `fish`."""
    return f"# {shell} completion of odradek, made by `odradek completion {shell}`\n{_SHELLS[shell](tree)}"


# ------------------------------------------------------------------------------------------------------ bash and zsh


def _function(name: str, answers: Mapping[str, Iterable[str]]) -> str:
    """Return a shell function that prints, of what it is asked for, the answers, a line each."""
    cases = []
    for asked, lines in answers.items():
        if texts := list(lines):
            printed = " ".join(shlex.quote(text) for text in texts)
            cases.append(f"    {shlex.quote(asked)}) printf '%s\\n' {printed} ;;")
    body = "\n".join(cases)
    return f'{name}() {{\n    case "$1" in\n{body}\n    esac\n}}\n'


def _functions(tree: Sequence[Node], *, with_summaries: bool) -> str:
    def line(name: str, summary: str) -> str:
        name = name.replace(":", r"\:") if with_summaries else name
        return f"{name}:{summary}" if with_summaries else name

    options = {
        node.path: [line(name, option.summary) for option in node.options for name in option.names] for node in tree
    }
    values = {
        f"{node.path} {name}".strip(): option.values
        for node in tree
        for option in node.options
        for name in option.names
    }
    return "".join(
        (
            _function("_odradek_commands", {node.path: node.commands for node in tree}),
            _function("_odradek_described", {n.path: [line(*each) for each in n.commands.items()] for n in tree}),
            _function("_odradek_options", options),
            _function("_odradek_values", values),
            _function("_odradek_operands", {node.path: node.operands for node in tree}),
        )
    )


_BASH: Final = r"""
_odradek() {
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD - 1]}" at="" index part found
    COMPREPLY=()
    # bash makes three words of --option=value.
    [ "$word" = "=" ] && word=""
    [ "$before" = "=" ] && before="${COMP_WORDS[COMP_CWORD - 2]}"
    for ((index = 1; index < COMP_CWORD; index++)); do
        part="${COMP_WORDS[index]}"
        if _odradek_commands "$at" | grep -qxF -e "$part"; then at="${at:+$at }$part"; fi
    done
    found="$(_odradek_values "${at:+$at }$before")"
    if [ -z "$found" ]; then
        case "$word" in
        -*) found="$(_odradek_options "$at")" ;;
        *) found="$(_odradek_commands "$at"; _odradek_operands "$at")" ;;
        esac
    fi
    case "$found" in
    *'@FILE@'*) compopt -o default 2>/dev/null ;;
    '@ANYTHING@') ;;
    *)
        local IFS=$'\n'
        for part in $(compgen -W "$found" -- "$word"); do COMPREPLY+=("${part// /\\ }"); done
        ;;
    esac
}
complete -F _odradek odradek
"""

_ZSH: Final = r"""
_odradek() {
    local at="" part before="${words[CURRENT-1]}" values
    local -a found
    for part in "${(@)words[2,CURRENT-1]}"; do
        if _odradek_commands "$at" | grep -qxF -e "$part"; then at="${at:+$at }$part"; fi
    done
    if [[ "$PREFIX" == --*=* ]]; then
        before="${PREFIX%%=*}"
        compset -P '*='
    fi
    values="$(_odradek_values "${at:+$at }$before")"
    [[ -z "$values" && "$PREFIX" != -* ]] && values="$(_odradek_operands "$at")"
    case "$values" in
    *'@FILE@'*) _files; return ;;
    '@ANYTHING@') return ;;
    ?*) compadd -- "${(@f)values}"; return ;;
    esac
    if [[ "$PREFIX" == -* ]]; then
        found=("${(@f)$(_odradek_options "$at")}")
        _describe -o option found
    else
        found=("${(@f)$(_odradek_described "$at")}")
        _describe command found
    fi
}
compdef _odradek odradek
"""


def _of_posix(text: str) -> str:
    return text.lstrip("\n").replace("@FILE@", FILE).replace("@ANYTHING@", ANYTHING)


def _bash(tree: Sequence[Node]) -> str:
    return _functions(tree, with_summaries=False) + _of_posix(_BASH)


def _zsh(tree: Sequence[Node]) -> str:
    return "#compdef odradek\n" + _functions(tree, with_summaries=True) + _of_posix(_ZSH)


# -------------------------------------------------------------------------------------------------------------- fish

_FISH: Final = r"""
function __odradek_at
    set -l at ""
    for word in (commandline -opc)[2..-1]
        if contains -- (string trim "$at $word") $__odradek_paths
            set at (string trim "$at $word")
        end
    end
    test "$at" = "$argv"
end
complete -c odradek -f
"""


def _fish(tree: Sequence[Node]) -> str:
    lines = [f"set -g __odradek_paths {' '.join(_fish_quoted(node.path) for node in tree if node.path)}"]
    lines += _FISH.strip().splitlines()
    for node in tree:
        begin = f"complete -c odradek -n {_fish_quoted(f'__odradek_at {node.path}'.strip())}"
        lines += [f"{begin} -a {name} -d {_fish_quoted(summary)}" for name, summary in node.commands.items()]
        lines += [f"{begin}{_fish_values(node.operands)}"] if node.operands else []
        for option in node.options:
            names = "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names)
            lines.append(f"{begin}{names}{_fish_taken(option.values)} -d {_fish_quoted(option.summary)}")
    return "\n".join(lines) + "\n"


def _fish_taken(values: Sequence[str]) -> str:
    """Return how an option takes a value: files are offered only where they are meant."""
    if not values:
        return ""
    return f" -r{_fish_values(values)}" if FILE in values else f" -x{_fish_values(values)}"


def _fish_values(values: Sequence[str]) -> str:
    if FILE in values:
        return " -F"
    choices = [value.replace(" ", r"\ ") for value in values if value != ANYTHING]
    return f" -a {_fish_quoted(' '.join(choices))}" if choices else ""


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SHELLS: Final[Mapping[str, Callable[[Sequence[Node]], str]]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}

"""The command line, thin over `Lab`. Heavy libraries are loaded when a command needs them."""

import atexit
import gc
import json
import os
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from judge_gym.errors import BudgetError, JudgeGymError, SourceError

if TYPE_CHECKING:
    from typer import Typer

SECTIONS = {
    "Check a file": "check:check",
    "Run a study": (
        "init:studies demo:demo plan:studies run:runs status:runs pause:runs "
        "resume:runs cancel:runs retry:runs retune:runs"
    ),
    "See results": (
        "judges:reports report:reports answers:reports export:reports usage:reports "
        "calibrate:calibrate"
    ),
    "People": "label:labels labels:labels improve:improve",
    "Code suites": "suite:suites analyze:failures schedule:schedule",
    "Serve": "lab:serve mcp:serve worker:runs token:admin db:admin",
    "Data": (
        "import:imports models:models axes:axes benchmark:benchmarks pool:evidence reparse:runs "
        "cleanup:runs ledger:admin sim:serve"
    ),
    "Research protocol": (
        "evidence:evidence rubric:workflows score:workflows swap:workflows probe:workflows"
    ),
}
"""The commands and groups by what a user wants, each with the module that declares it."""
COMMANDS = dict(entry.split(":") for section in SECTIONS.values() for entry in section.split())
"""The module of each command, in the order of the help."""
THREAD_PATIENCE = 2.0
"""Seconds that threads may take to end when a command has ended."""


def load_app(command: str | None = None) -> "Typer":
    """Builds the application with one command, or with all if there is no such command."""
    from judge_gym.cli.app import app

    modules = [COMMANDS[command]] if command in COMMANDS else COMMANDS.values()
    for module in modules:
        import_module(f"{__name__}.{module}")
    order = list(COMMANDS)
    app.registered_groups.sort(key=lambda group: order.index(str(group.name)))
    app.registered_commands.sort(
        key=lambda command: order.index(
            str(command.name or getattr(command.callback, "__name__", ""))
        )
    )
    return app


def _command(words: Sequence[str]) -> str | None:
    """Finds the first word that is neither a global option nor its value."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            return word
        if "=" not in word and word not in ("--version", "--help", "-h"):
            next(rest, None)
    return None


def main(arguments: list[str] | None = None) -> None:
    """Runs a command. Errors that the user can fix are shown without a traceback."""
    try:
        _run(arguments)
    except SystemExit as end:
        if arguments is None:
            _leave_stuck_threads(end.code)
        raise


def _leave_stuck_threads(code: object) -> None:
    """Ends this process at once if the queue still waits for a database that is away or full.

    Its threads wait for up to a minute at a time, and Python would wait for them.
    """
    threads = [
        thread for thread in threading.enumerate() if thread.name.startswith("dbos-executor-")
    ]
    for thread in threads:
        thread.join(THREAD_PATIENCE / len(threads))
    if any(thread.is_alive() for thread in threads):
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _run(arguments: list[str] | None) -> None:
    # Commands create many objects and little garbage: fewer, larger collections, and none of what
    # is left when the process ends.
    gc.set_threshold(200_000, 20, 20)
    atexit.register(gc.freeze)
    # To find plugins, pydantic reads the metadata of every installed distribution.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Our matrices are small: further threads of BLAS take memory and save no time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from typer import Abort, Exit, TyperException

    from judge_gym.cli.app import BAD_INPUT, FAILED, INTERRUPTED, STOPPED

    words = sys.argv[1:] if arguments is None else arguments
    app = load_app(_command(words))
    try:
        code = app(words, prog_name="judge-gym", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except JudgeGymError as error:
        message = error.message
        if error.remedy is not None:
            from judge_gym.verbs import as_command

            message += f"; run '{as_command(error.remedy)}'"
        _print_error(error.kind, message, error.choices, "--json" in words)
        codes = {BudgetError: STOPPED, SourceError: FAILED}
        sys.exit(codes.get(type(error), BAD_INPUT))
    except Exit as exit:
        sys.exit(exit.exit_code)
    except (KeyboardInterrupt, Abort):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # the reader of a pipe has closed it
        sys.stderr.close()
        sys.exit(FAILED)
    except OSError as error:  # a file or folder that cannot be written
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        _print_error("file", message, (), "--json" in words)
        sys.exit(BAD_INPUT)
    except TyperException as error:  # the arguments are not what the command takes
        message = str(getattr(error, "format_message", error.__str__)())
        if message.startswith("Usage:"):  # no command was given: print the help
            print(message)
        else:
            _print_error("usage", message + _invalid_value(error), (), "--json" in words)
        sys.exit(BAD_INPUT)


def _invalid_value(error: Exception) -> str:
    """Finds the value that does not fit its option, which the message leaves out."""
    from pydantic import ValidationError

    cause = error.__cause__
    return f", not {cause.errors()[0]['input']!r}" if isinstance(cause, ValidationError) else ""


def _print_error(kind: str, message: str, choices: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"error": {"kind": kind, "message": message, "choices": list(choices)}}))
    else:
        print(f"judge-gym: {message}", file=sys.stderr)

"""The command line, thin over `Lab`. Heavy libraries are loaded when a command needs them."""

import json
import sys
from typing import TYPE_CHECKING

from judge_gym.cli.app import BAD_INPUT, FAILED, INTERRUPTED, STOPPED
from judge_gym.errors import BudgetError, JudgeGymError, SourceError

if TYPE_CHECKING:
    from typer import Typer

__all__ = ["main"]

# The order of the help, whichever module was loaded first; what is not named comes last.
COMMANDS = (
    "init demo plan run start status pause resume cancel retry retune reparse cleanup report "
    "answers export usage analyze schedule calibrate axes lab mcp worker"
).split()
GROUPS = (
    "evidence rubric score swap probe pool labels benchmark suite models token db ledger sim"
).split()


def whole_app() -> "Typer":
    """Returns the application with all its commands, in the order of the help."""
    from judge_gym.cli import (  # noqa: F401
        answers,
        axes,
        benchmarks,
        calibrate,
        db,
        demo,
        evidence,
        failures,
        labels,
        ledger,
        models,
        pools,
        reports,
        runs,
        schedule,
        serve,
        simulated,
        studies,
        suites,
        tokens,
        workflows,
    )
    from judge_gym.cli.app import app

    app.registered_groups.sort(key=lambda group: _place(str(group.name), GROUPS))
    app.registered_commands.sort(
        key=lambda command: _place(getattr(command.callback, "__name__", ""), COMMANDS)
    )
    return app


def _place(name: str, order: list[str]) -> int:
    return order.index(name) if name in order else len(order)


def main(arguments: list[str] | None = None) -> None:
    """Runs a command; errors that the user can fix are shown without a traceback."""
    from typer import Abort, Exit, TyperException

    app = whole_app()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(words, prog_name="judge-gym", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except JudgeGymError as error:
        _print_error(error.kind, error.message, error.choices, "--json" in words)
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
    """Returns the value that does not fit its option, which the message leaves out."""
    from pydantic import ValidationError

    cause = error.__cause__
    return f", not {cause.errors()[0]['input']!r}" if isinstance(cause, ValidationError) else ""


def _print_error(kind: str, message: str, choices: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"error": {"kind": kind, "message": message, "choices": list(choices)}}))
    else:
        print(f"judge-gym: {message}", file=sys.stderr)

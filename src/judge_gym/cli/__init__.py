"""The command line: a thin face over `Lab`. Heavy libraries load when a command needs them."""

import json
import sys
from typing import TYPE_CHECKING

from judge_gym.errors import BudgetError, JudgeGymError, SourceError

if TYPE_CHECKING:
    from typer import Typer

__all__ = ["main"]

# The order of the help, whichever module was loaded first.
GROUPS = (
    "evidence rubric score swap probe pool labels benchmark suite models token db ledger sim"
).split()
FAILED, BAD_INPUT, STOPPED, INTERRUPTED = 1, 2, 3, 130


def whole_app() -> "Typer":
    """The application with all its verbs, in the order of the help."""
    from judge_gym.cli import (  # noqa: F401
        analyze,
        benchmark,
        calibrate,
        db,
        demo,
        evidence,
        lab,
        mcp,
        models,
        schedule,
        steering,
        study,
        suite,
        token,
        upkeep,
        workflows,
    )
    from judge_gym.cli.app import app

    app.registered_groups.sort(key=lambda group: GROUPS.index(str(group.name)))
    return app


def main(arguments: list[str] | None = None) -> None:
    """Run a command; errors that the user can mend are shown without a traceback."""
    from typer import Abort, Exit, TyperException

    app = whole_app()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        code = app(words, prog_name="judge-gym", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except JudgeGymError as fault:
        _complain(fault.kind, fault.message, fault.choices, "--json" in words)
        codes = {BudgetError: STOPPED, SourceError: FAILED}
        sys.exit(codes.get(type(fault), BAD_INPUT))
    except Exit as fault:
        sys.exit(fault.exit_code)
    except (KeyboardInterrupt, Abort):
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # the reader of a pipe has gone
        sys.stderr.close()
        sys.exit(FAILED)
    except OSError as fault:  # a file or folder that cannot be written
        what = f"{fault.filename}: {fault.strerror}" if fault.filename else str(fault)
        _complain("file", what, (), "--json" in words)
        sys.exit(BAD_INPUT)
    except TyperException as fault:  # the words of the call are not as a command takes them
        message = str(getattr(fault, "format_message", fault.__str__)())
        if message.startswith("Usage:"):  # no command was given: the help is the answer
            print(message)
        else:
            _complain("usage", message + _refused_value(fault), (), "--json" in words)
        sys.exit(BAD_INPUT)


def _refused_value(fault: Exception) -> str:
    """The value that does not fit its option, which the message leaves out."""
    from pydantic import ValidationError

    cause = fault.__cause__
    return f", not {cause.errors()[0]['input']!r}" if isinstance(cause, ValidationError) else ""


def _complain(kind: str, message: str, choices: tuple[str, ...], as_json: bool) -> None:
    if as_json:
        print(json.dumps({"error": {"kind": kind, "message": message, "choices": list(choices)}}))
    else:
        print(f"judge-gym: {message}", file=sys.stderr)

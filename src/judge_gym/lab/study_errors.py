"""Says in which line of a study file an error is."""

from collections.abc import Iterator
from contextlib import contextmanager

from judge_gym.errors import DesignError, MissingFileError
from judge_gym.studies import Study


@contextmanager
def missing_files_at(study: Study, path: tuple[str | int, ...]) -> Iterator[None]:
    """Names the study's file, line and key where the file that the key names is missing."""
    try:
        yield
    except MissingFileError as error:
        with study.locate_errors():
            message = f"{'.'.join(map(str, path))}: {error.message}"
            raise DesignError(message, path=path) from error

"""Our reading of recorded answers beside the verdict that was recorded."""

from dataclasses import replace

import pandas as pd

from judge_gym.recorded.recording import Recording


def disagreements(recording: Recording) -> pd.DataFrame:
    """Lists the verdicts whose recorded label differs from our reading of the judge's words.

    Verdicts without a text that could be read again are left out. A text that is no verdict
    disagrees with any label.
    """
    verdicts = recording.verdicts
    differ = verdicts["label"] != verdicts["read_label"]
    return verdicts[(verdicts["read_status"] != "") & differ]


def as_read(recording: Recording) -> Recording:
    """Puts our reading in the place of the recorded verdict, wherever there is one."""
    verdicts = recording.verdicts
    has_reading = verdicts["read_status"] != ""
    return replace(
        recording,
        verdicts=verdicts.assign(
            status=verdicts["read_status"].where(has_reading, verdicts["status"]),
            label=verdicts["read_label"].where(has_reading, verdicts["label"]),
        ),
    )


def reading_note(recording: Recording) -> str:
    """Says how many recorded verdicts differ from our reading; empty if none was read again."""
    answers = int((recording.verdicts["read_status"] != "").sum())
    if not answers:
        return ""
    differing = disagreements(recording)
    contradicted = int(((differing["label"] != "") & (differing["read_label"] != "")).sum())
    unread = int(((differing["label"] != "") & (differing["read_label"] == "")).sum())
    new = int((differing["label"] == "").sum())
    if differing.empty:
        return f"Our reading of {answers:,} recorded answers agrees with every recorded verdict."
    return (
        f"We read {answers:,} recorded answers again. Answers that say the opposite of the "
        f"recorded verdict: {contradicted:,}; recorded verdicts that are not in the answer's "
        f"words: {unread:,}; verdicts that were not recorded: {new:,}. The recorded verdicts count."
    )

"""Rows of scores, from the reports of suite runs."""

from collections.abc import Collection, Sequence

from judge_gym.lab.suite_reports import SuiteReport
from judge_gym.lab.suite_schedule import CHECK
from judge_gym.records.responses import LeaderboardRow, ScoreRow
from judge_gym.suites import leaderboard


def leaderboard_rows(reports: Sequence[SuiteReport]) -> Sequence[LeaderboardRow]:
    """Ranks the last complete runs of each model, condition and version, the best first."""
    names = {report.run.version: report.run.suite for report in reports}
    in_process = {report.run.version for report in reports if report.in_process}
    scores = (report.balanced().score for report in reports if report.run.series != CHECK)
    return [
        {
            "suite": names[row.version],
            "version": row.version,
            "condition": row.condition,
            "model": row.model,
            "score": number_or_none(row.score.value),
            "low": number_or_none(row.score.low),
            "high": number_or_none(row.score.high),
            "sd": number_or_none(row.sd),
            "runs": row.runs,
            "evals": row.evals,
            "passed": row.passed,
            "failed": row.failed,
            "inconclusive": row.inconclusive,
            "unscored": row.unscored,
            "usd": row.usd,
            "seconds": row.seconds,
            "in_process": row.version in in_process,
        }
        for row in leaderboard(scores)
    ]


def score_rows(
    reports: Sequence[SuiteReport],
    version: str,
    evals: Collection[str],
    category: str | None = None,
) -> Sequence[ScoreRow]:
    """Lists the scores of comparable runs, in the order of their last results.

    Args:
        reports: of the runs.
        version: the version of the suite; other runs are left out.
        evals: the paths of all evals of that version.
        category: only its evals count.
    """
    paths = {path for path in evals if category in (None, path.partition("/")[0])}
    rows: list[ScoreRow] = []
    for report in map(SuiteReport.balanced, reports):
        run = report.run
        if run.version != version or run.series == CHECK:
            continue
        results = [row for row in report.results if row.result.path in paths]
        score = report.score.within(category) if category is not None else report.score
        if score.score is None or len(results) < len(paths) * run.replicates:
            continue
        estimate = score.estimate
        rows.append(
            {
                "run": run.id,
                "model": run.model,
                "condition": run.condition,
                "series": run.series,
                "at": max(row.at for row in results),
                "score": score.score,
                "low": estimate.low,
                "high": estimate.high,
                "passed": score.passed,
                "failed": score.failed,
            }
        )
    return sorted(rows, key=lambda row: (row["at"], row["run"]))


def number_or_none(value: float) -> float | None:
    """Replaces NaN, which JSON lacks, by None."""
    return None if value != value else value

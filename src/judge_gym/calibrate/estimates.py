"""Stand-ins."""

import numpy as np
import pandas as pd
from judge_gym.analysis.belief.disagreement import Verdicts, squared_distance
from judge_gym.analysis.frames import JUDGE
from judge_gym.analysis.intervals import student, seeded
from judge_gym.calibrate.laws import spread as _spread
from judge_gym.calibrate.truth import _divergence, _dealt_anew as _permuted


def over_items(values: pd.Series) -> pd.DataFrame:
    rows = [
        {"task": task, **student(part)._asdict()} for task, part in values.groupby(level="task")
    ]
    return pd.DataFrame(rows)


def cells(frame: pd.DataFrame) -> pd.DataFrame:
    """task, condition, evidence"""
    f = frame[frame.status == "scored"].copy()
    sp = _spread(4)
    f["stage"] = (sp @ (np.arange(4) / 3))[f["mask"]]
    first = f["display"].str.split(" ").str[0].str.split("=").str[1].astype(int)
    f["first"] = sp[f["mask"], first - 1] - 1 / 4
    return f.groupby(["task", "condition", "evidence"])[["stage", "first", "probe"]].mean()


def diff(p, name, other, column="stage"):
    c = cells(p.of(name, other))[column].unstack("condition")
    return (c[name] - c[other]).dropna()


def mean(p, name, column):
    c = cells(p.of(name))[column].unstack("condition")
    return over_items(c[name].dropna())


def abstention(p, name):
    f = p.of(name)
    return over_items((f.status == "abstained").astype(float).groupby([f.task, f.evidence]).mean())


def dist_items(p, a, b):
    f = p.of(a, b)
    key, idx = pd.factorize(pd.MultiIndex.from_frame(f[["task", "evidence"]]))

    def v(n):
        k = (f.condition == n).to_numpy()
        return Verdicts(key[k], f.replicate.to_numpy()[k], f["mask"].to_numpy()[k])

    d = squared_distance(v(a), v(b), items=len(idx))
    return pd.Series(d, index=pd.MultiIndex.from_tuples(idx, names=["task", "evidence"]))


def signflip(values: pd.Series) -> pd.DataFrame:
    rows = []
    for task, part in values.groupby(level="task"):
        x = part.dropna().to_numpy()
        signs = 1 - 2 * ((np.arange(1 << len(x))[:, None] >> np.arange(len(x))) & 1)
        t = np.abs(signs @ x)
        rows.append({"task": task, "p": float((t >= abs(x.sum()) - 1e-12).mean())})
    return pd.DataFrame(rows)


def polar(p, *names, draws=199):
    f = p.of(*names)
    rows = []
    rng = seeded("standin")
    for task, part in f.groupby("task"):
        a = part.pivot_table(index=["evidence", "replicate"], columns="condition", values="mask")
        items = part.evidence.nunique()
        chosen = a[list(names)].to_numpy().astype(int).reshape(items, -1, len(names))
        raw = _divergence(chosen)
        null = np.stack([_divergence(_permuted(chosen, rng)) for _ in range(draws)])
        b = np.log2(min(len(names), 4))
        pv = (1 + (null.mean(axis=1) >= raw.mean() - 1e-12).sum()) / (draws + 1)
        rows.append({"task": task, **student((raw - null.mean(axis=0)) / b)._asdict(), "p": pv})
    return pd.DataFrame(rows)


def over(p, name, *others):
    f = p.of(name, *others)
    rows = []
    for (task, ev), part in f.groupby(["task", "evidence"]):
        ours = part[(part.condition == name) & (part.status == "scored")]
        o = part[(part.condition != name) & (part.status == "scored")]
        om, orp = o["mask"].to_numpy(), o["replicate"].to_numpy()
        vals = []
        for m, r, pr in zip(ours["mask"], ours["replicate"], ours["probe"]):
            B = om[orp != r]
            a = np.bitwise_count(B & m) / np.bitwise_count(B)
            n = len(a)
            if n < 3:
                continue
            p1, p2, p3 = a.sum(), (a**2).sum(), (a**3).sum()
            e2 = (p1**2 - p2) / (n * (n - 1))
            e3 = (p1**3 - 3 * p1 * p2 + 2 * p3) / (n * (n - 1) * (n - 2))
            vals.append(pr - (3 * e2 - 2 * e3))
        rows.append((task, ev, np.mean(vals) if vals else np.nan))
    s = pd.DataFrame(rows, columns=["task", "evidence", "v"]).set_index(["task", "evidence"])["v"]
    return over_items(s.dropna())

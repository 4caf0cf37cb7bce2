"""A lab in which every name and text tries to become markup."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from judge_gym.records import content_hash
from judge_gym.store import tables as t
from lab_server import OURS, ServedLab, serve_lab

RUN = "window.ran=1;top.ran=1;alert(1)"
CORPUS = (
    f"<script>{RUN}</script>",
    f"\"><img src=x onerror='{RUN}'>",
    f'\'><svg onload="{RUN}">',
    f"</textarea></title></style></script><script>{RUN}</script>",
    f"<a href='javascript:{RUN}'>go</a>",
    f"<iframe srcdoc='<script>{RUN}</script>'></iframe>",
    f"<details open ontoggle='{RUN}'>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    f"<math><mtext></mtext><mglyph><style></math><img src=x onerror='{RUN}'>",
    f"{{{{7*7}}}} ${{{RUN}}} <%= {RUN} %>",
    f"]]><![CDATA[<script>{RUN}</script>]]><!--",
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    "<base href='https://elsewhere.example/'>",
    "<b id=evil>bold</b>",
)
HOSTILE = " ".join(CORPUS)
SHORT = f"<b id=evil>x</b><img src=x onerror='{RUN}'>"
TAG = f"hostile/{SHORT}"
TITLED = 480
"""Letters that a title may have."""
# Pages, each with whether something hostile must be read on it.
PATHS = {
    "/evidence": True,
    "/windows/1": True,
    f"/pools/{quote(SHORT, safe='')}": True,
    "/evidence/4": True,  # the first that is hostile, with views
    "/evidence/4?compare=words": True,
    "/evidence/17": True,  # the last
    "/studies/hostile": False,
    "/studies/hostile?columns=all": False,
    "/studies/hostile/items": False,  # other titles
    f"/studies/hostile/items?item=4&of={quote(f'{SHORT} (ecc, {SHORT})')}": True,
    "/studies/hostile/runs": True,
    "/studies/hostile/design": True,
    "/studies/hostile/answers": True,
    "/new": True,
    "/new?from=hostile": True,
    f"/new?study={quote(HOSTILE)}": True,
    f"/new?yaml={quote(HOSTILE)}": True,
    "/usage": False,
    "/usage?study=hostile": True,
    "/report/hostile": True,
    "/": False,
    "/experiments": True,
    f"/experiments/{quote(TAG)}": True,
    "/samples/1": True,
    f"/compare?tag={quote(TAG)}&tag=pilot": True,
}


@contextmanager
def hostile_lab(folder: Path) -> Iterator[ServedLab]:
    """Serves a lab whose every name and text tries to become markup."""
    with serve_lab(folder, run=False) as opened:
        lab = opened.lab
        window = lab.create_window("2026-01-01", "2026-01-31", SHORT)
        titles = [one[:TITLED] for one in CORPUS]
        items = [
            {
                "title": title,
                "text": f"{HOSTILE} The court closed; number {number}.",
                "source": HOSTILE,
                "url": f"javascript:{RUN}//{number}",
                "date": "2026-01-02",
                "metadata": {SHORT: HOSTILE},
            }
            for number, title in enumerate(titles)
        ]
        assert len(lab.evidence.list(1)) == 3
        opened.post(f"/api/windows/{window}/evidence", items=items[:3])
        opened.post("/api/windows/1/evidence", items=items[3:])
        lab.evidence.freeze_pool(SHORT, window_id=window)
        config = {**OURS, "prompt.slots.scorer.persona": SHORT}
        lab.create_experiment(TAG, window, "sim:balanced", "ecc", SHORT, config)
        with lab.store.database.begin() as connection:
            connection.execute(t.tags.update().where(t.tags.c.tag == TAG).values(study="hostile"))
        lab.store.studies.save("hostile", {}, f"study: hostile\n# {HOSTILE}\n")
        lab.runs.run(TAG, samples=2)
        run = lab.get_experiment_summary(TAG)["runs"][-1]["run"]
        lab.store.events.record([run], "paused", HOSTILE)
        with lab.store.database.begin() as connection:  # what models wrote
            body = {"hash": content_hash(HOSTILE), "body": HOSTILE}
            connection.execute(t.texts.insert().values(body))
            for table in (t.views, t.attempts):
                connection.execute(table.update().values(text=body["hash"]))
            checks = {"words": 1, "length_ratio": 1.0, "too_long": True, "numbers": ["7"]}
            views = t.views.update()
            connection.execute(views.values(checks={**checks, "names": ["script", SHORT]}))
            connection.execute(t.rubrics.update().values(stages=[[HOSTILE, HOSTILE]] * 4))
        yield opened

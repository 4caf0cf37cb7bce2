"""What evidence, names and models hold is shown as text: nothing of it runs in a real browser."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, Page, expect

from browsed import Visit
from judge_gym.records import content_hash
from judge_gym.store import tables as t
from served import OURS, Served, served

pytestmark = pytest.mark.needs("chromium")
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
    "/studies/hostile": True,
    "/new": True,
    "/new?from=hostile": True,
    f"/new?study={quote(HOSTILE)}": True,
    f"/new?yaml={quote(HOSTILE)}": True,
    "/usage": False,
    "/usage?study=hostile": True,
    "/report/hostile": True,
    "/": True,
    f"/experiments/{quote(TAG)}": True,
    "/samples/1": True,
    f"/compare?tag={quote(TAG)}&tag=pilot": True,
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A lab in which whatever can be named or written was named and written by an enemy."""
    with served(tmp_path_factory.mktemp("hostile"), run=False) as opened:
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
        lab.store.studies.save("hostile", f"study: hostile\n# {HOSTILE}\n", {})
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


@pytest.mark.parametrize("path", PATHS)
def test_what_is_hostile_is_shown_as_text(browser: Browser, lab: Served, path: str) -> None:
    visit = Visit(browser, lab)
    page = visit.open(path)
    if path.startswith("/report"):
        expect(page.locator("iframe")).to_be_visible(timeout=180_000)
        expect(page.frame_locator("iframe").locator("svg").first).to_be_visible()
    if path.startswith("/studies"):
        expect(page.locator("#live")).not_to_contain_text("need JavaScript")
        expect(page.locator("#log tbody tr").first).to_contain_text("</textarea>")
    if path.startswith("/usage"):
        expect(page.locator("figure svg")).to_be_visible()
        expect(page.locator("[aria-busy]")).to_have_count(0)
    expect(page.locator("[data-load]:not([data-loaded])")).to_have_count(0)
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    page.wait_for_timeout(300)  # for what would have run by now
    refuse_harm(page)
    if PATHS[path]:
        assert any("<b id=evil>" in read(frame) for frame in page.frames), "it is there to be read"
    assert page.url.startswith(lab.url)
    visit.close()


def read(frame: object) -> str:
    """What a reader sees, also in fields."""
    return str(
        frame.evaluate(  # type: ignore[attr-defined]
            "() => document.body.innerText + ' ' + [...document.querySelectorAll("
            "'input, textarea, option')].map(one => one.value + one.text).join(' ')"
        )
    )


def refuse_harm(page: Page) -> None:
    for frame in page.frames:
        assert frame.evaluate("() => window.ran === undefined && top.ran === undefined")
        assert frame.evaluate("() => document.querySelectorAll('#evil, base').length") == 0
        links = frame.eval_on_selector_all("[href]", "all => all.map(one => one.href.toString())")
        assert not [link for link in links if str(link).lower().startswith("javascript:")]
        scripts = frame.eval_on_selector_all("script", "all => all.map(one => one.src)")
        assert all("/static/" in script for script in scripts)

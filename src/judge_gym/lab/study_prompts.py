"""Reads the prompts of its own that a study names, and says what they lack."""

from pathlib import Path

from judge_gym.axes import NONE, TEMPLATE, template_file, template_level
from judge_gym.lab.study_errors import missing_files_at
from judge_gym.records import storable
from judge_gym.sources import read_text
from judge_gym.studies import Study, Sweep, errors_at


def with_prompts(study: Study, folder: Path) -> tuple[Study, dict[str, str]]:
    """Reads a study's own prompts and names them by level in the study.

    A level names the digest of the text, so that it says what was asked after the file has changed.
    """
    files = [*study.vary.get(TEMPLATE, []), study.design.get(TEMPLATE, NONE)]
    if {*files} == {NONE}:
        return study, {}
    from judge_gym.stages.templates import read_template

    section = "vary" if TEMPLATE in study.vary else "design"
    levels: dict[str, str] = {NONE: NONE}
    texts: dict[str, str] = {}
    for file in files:
        if file in levels:
            continue
        with missing_files_at(study, (section, TEMPLATE)):
            text = storable(read_text(folder / file))
        with study.locate_errors(), errors_at((section, TEMPLATE)):
            read_template(text, file)
        levels[file] = template_level(Path(file).name, text)
        texts[levels[file]] = text
    design = {name: levels[v] if name == TEMPLATE else v for name, v in study.design.items()}
    vary = {
        name: [levels[v] for v in values] if name == TEMPLATE else values
        for name, values in study.vary.items()
    }
    contrasts = [
        contrast.model_copy(
            update={"level": levels[str(contrast.level)], "base": levels[str(contrast.base)]}
        )
        if contrast.knob == TEMPLATE
        else contrast
        for contrast in study.contrasts
    ]
    update = {"design": design, "vary": vary, "contrasts": contrasts}
    return study.model_copy(update=update), texts


def prompt_warnings(study: Study, sweep: Sweep) -> list[str]:
    """Says what a study's own prompts lack, and refuses those that cannot be filled."""
    from judge_gym.stages.templates import read_template

    doubts: dict[str, None] = {}
    for experiment in (each for each in sweep.experiments if each.template):
        task, design = experiment.task, experiment.design
        level = design.prompt.template
        template = read_template(experiment.template, template_file(level))
        section = "vary" if TEMPLATE in study.vary else "design"
        with study.locate_errors(), errors_at((section, TEMPLATE)):
            template.check(task.pool, task.rubric, neutralized=design.evidence.view != "raw")
        for doubt in template.doubts(task.pool, task.rubric):
            doubts[f"{template.name} {doubt}"] = None
    return [*doubts]

"""Figures for notebooks, reports and pages; their titles state what they show.

A figure takes a frame with its `columns` and a title; without a title, it uses its finding, a
sentence computed from the data. Undefined values are not drawn. A figure of a frame without data is
None, and a frame that lacks a column is refused. A figure is a function decorated with
`@drawing.figure` and one line here.
"""

from judge_gym.analysis.figures.decision import decision_figure as decision_figure
from judge_gym.analysis.figures.disagreement import pair_figure as pair_figure
from judge_gym.analysis.figures.disagreement import polarization_figure as polarization_figure
from judge_gym.analysis.figures.drawing import FIGURES as FIGURES
from judge_gym.analysis.figures.drawing import Figure as Figure
from judge_gym.analysis.figures.drawing import FigureKind as FigureKind
from judge_gym.analysis.figures.drawing import caption as caption
from judge_gym.analysis.figures.drawing import panels as panels
from judge_gym.analysis.figures.drawing import png as png
from judge_gym.analysis.figures.drawing import svg as svg
from judge_gym.analysis.figures.effects import accuracy_figure as accuracy_figure
from judge_gym.analysis.figures.effects import price_figure as price_figure
from judge_gym.analysis.figures.scores import history_figure as history_figure
from judge_gym.analysis.figures.verdicts import distribution_figure as distribution_figure
from judge_gym.analysis.figures.verdicts import heat_figure as heat_figure
from judge_gym.analysis.figures.verdicts import shape_figure as shape_figure
from judge_gym.records.palette import judge_colours as judge_colours

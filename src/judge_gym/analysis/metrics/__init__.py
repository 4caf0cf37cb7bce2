"""Metrics of a panel of judges, one module each; a new module registers its metric by itself.

Modules without a metric hold measures that several analyses share: distances, stated expert
agreement, shapes of verdicts.
"""

from importlib import import_module
from pkgutil import iter_modules

from judge_gym.analysis.metrics.summary import METRICS as METRICS
from judge_gym.analysis.metrics.summary import metric_table as metric_table

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

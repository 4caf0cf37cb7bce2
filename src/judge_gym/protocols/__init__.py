"""Statistics of research protocols: hypotheses, validity checks, their metrics and report.

Only what is asked of a study under a protocol imports this package; an ordinary study never does.
"""

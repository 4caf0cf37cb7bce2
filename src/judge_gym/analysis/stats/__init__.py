"""Statistics on values and frames: intervals, tests, agreement, contrasts, regressions, power."""

"""Statistics on values and frames: intervals, tests, agreement, contrasts."""

"""What to buy next: variance components, the intervals that more data would give, and power.

All three read the same components: `components` estimates them, `quantities` says of what,
`purchases` predicts intervals from them, and `power` the chance that a test finds an effect.
"""

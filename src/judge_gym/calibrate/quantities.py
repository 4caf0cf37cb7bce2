"""What is calibrated: a line per quantity and per test."""

from judge_gym.calibrate import estimates as e
from judge_gym.calibrate.gates import Quantity, Check

QUANTITIES = (
    Quantity(
        "expected stage",
        lambda p: e.mean(p, "plain", "stage"),
        lambda k: k.endpoint("stage", "plain"),
    ),
    Quantity(
        "expected stage, with abstentions",
        lambda p: e.mean(p, "cautious", "stage"),
        lambda k: k.endpoint("stage", "cautious"),
    ),
    Quantity(
        "biased - plain",
        lambda p: e.over_items(e.diff(p, "biased", "plain")),
        lambda k: k.endpoint("stage", "biased", "plain"),
    ),
    Quantity("twin - plain", lambda p: e.over_items(e.diff(p, "twin", "plain")), lambda k: 0.0),
    Quantity(
        "fixed - shuffled order",
        lambda p: e.over_items(e.diff(p, "leaning, fixed order", "leaning")),
        lambda k: k.endpoint("stage", "leaning, fixed order", "leaning"),
    ),
    Quantity(
        "evidence first",
        lambda p: e.over_items(e.diff(p, "plain, evidence first", "plain")),
        lambda k: 0.0,
    ),
    Quantity(
        "abstention", lambda p: e.abstention(p, "cautious"), lambda k: k.abstention("cautious")
    ),
    Quantity(
        "position",
        lambda p: e.mean(p, "leaning", "first"),
        lambda k: k.endpoint("position", "leaning"),
    ),
    Quantity(
        "distance single",
        lambda p: e.over_items(e.dist_items(p, "plain", "biased")),
        lambda k: k.distance("plain", "biased"),
    ),
    Quantity(
        "distance leaning",
        lambda p: e.over_items(e.dist_items(p, "plain", "leaning")),
        lambda k: k.distance("plain", "leaning"),
    ),
    Quantity(
        "distance subset",
        lambda p: e.over_items(e.dist_items(p, "plain, subset", "biased, subset")),
        lambda k: k.distance("plain, subset", "biased, subset"),
    ),
    Quantity(
        "distance single - subset",
        lambda p: e.over_items(
            e.dist_items(p, "plain", "biased") - e.dist_items(p, "plain, subset", "biased, subset")
        ),
        lambda k: k.distance_gap(("plain", "biased"), ("plain, subset", "biased, subset")),
    ),
    Quantity(
        "swap",
        lambda p: e.over_items(e.diff(p, "plain, own rubric", "plain, rival's rubric", "probe")),
        lambda k: k.endpoint("stated", "plain, own rubric", "plain, rival's rubric"),
    ),
    Quantity(
        "overconfidence",
        lambda p: e.over(p, "plain", "biased", "leaning"),
        lambda k: k.overconfidence("plain", ["biased", "leaning"]),
    ),
    Quantity(
        "P above chance",
        lambda p: e.polar(p, "plain", "biased", "leaning"),
        lambda k: k.polarization("plain", "biased", "leaning"),
    ),
)
TESTS = (
    Check("permutation P twins", lambda p: e.polar(p, "plain", "twin")),
    Check("permutation P biased", lambda p: e.polar(p, "plain", "biased"), null=False),
    Check("sign flip twins", lambda p: e.signflip(e.diff(p, "twin", "plain"))),
    Check(
        "sign flip evidence first",
        lambda p: e.signflip(e.diff(p, "plain, evidence first", "plain")),
    ),
    Check("sign flip biased", lambda p: e.signflip(e.diff(p, "biased", "plain")), null=False),
)

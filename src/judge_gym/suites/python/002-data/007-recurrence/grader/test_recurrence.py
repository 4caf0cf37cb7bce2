"""Zones with changes of their own, and each kind of rule."""

IMPORTS = """
from datetime import datetime
from solution import Zone, occurrences, to_local, to_utc
def at(text):
    return datetime.fromisoformat(text)
# Clocks are set forward by an hour in March and back in October, at 1:00 in UTC.
zone = Zone(60, ((at("2031-03-30T01:00"), 120), (at("2031-10-26T01:00"), 60)))
# Half an hour forward, west of Greenwich.
west = Zone(-210, ((at("2031-05-04T05:30"), -180), (at("2031-11-02T05:00"), -210)))
def text(moment):
    return moment.isoformat(timespec="minutes")
def days(start, rule, count):
    return [text(local)[:10] for local, _ in occurrences(at(start), rule, Zone(0), count)]
"""


def run(candidate, source, **inputs):
    return candidate.run(f"{IMPORTS}\n{source}", **inputs)


def days(candidate, *cases):
    return run(candidate, "[days(*case) for case in cases]", cases=list(cases))


def test_local_time(candidate):
    moments = ["2031-03-30T00:59", "2031-03-30T01:00", "2031-10-26T00:59", "2031-10-26T01:00"]
    source = "[[text(to_local(at(one), zone)), text(to_local(at(one), Zone(-90)))] for one in moments]"
    assert run(candidate, source, moments=moments) == [
        ["2031-03-30T01:59", "2031-03-29T23:29"],
        ["2031-03-30T03:00", "2031-03-29T23:30"],
        ["2031-10-26T02:59", "2031-10-25T23:29"],
        ["2031-10-26T02:00", "2031-10-25T23:30"],
    ]


def test_moments_of_local_times(candidate):
    times = ["2031-01-01T12:00", "2031-03-30T01:59", "2031-03-30T03:00", "2031-07-01T12:00"]
    times += ["2031-10-26T01:59", "2031-10-26T03:00", "2031-12-01T00:00"]
    assert run(candidate, "[text(to_utc(at(one), zone)) for one in times]", times=times) == [
        "2031-01-01T11:00", "2031-03-30T00:59", "2031-03-30T01:00", "2031-07-01T10:00",
        "2031-10-25T23:59", "2031-10-26T02:00", "2031-11-30T23:00",
    ]  # fmt: skip


def test_a_time_that_occurs_twice_is_the_earlier_one(candidate):
    times = ["2031-10-26T02:00", "2031-10-26T02:59"]
    assert run(candidate, "[text(to_utc(at(one), zone)) for one in times]", times=times) == [
        "2031-10-26T00:00", "2031-10-26T00:59",
    ]  # fmt: skip
    assert run(candidate, "text(to_utc(at('2031-11-02T01:45'), west))") == "2031-11-02T04:45"


def test_a_time_that_does_not_occur_moves_forward(candidate):
    times = ["2031-03-30T02:00", "2031-03-30T02:30", "2031-03-30T02:59"]
    source = "[text(to_utc(at(one), zone)) for one in times]"
    assert run(candidate, source, times=times) == [
        "2031-03-30T01:00", "2031-03-30T01:30", "2031-03-30T01:59",
    ]  # fmt: skip
    source = "moment = to_utc(at('2031-05-04T02:10'), west)\n[text(moment), text(to_local(moment, west))]"
    assert run(candidate, source) == ["2031-05-04T05:40", "2031-05-04T02:40"]


def test_days(candidate):
    assert days(candidate, ("2031-01-30T08:00", "every 3 days", 3), ("2032-02-28T23:59", "every 1 days", 3)) == [
        ["2031-01-30", "2031-02-02", "2031-02-05"], ["2032-02-28", "2032-02-29", "2032-03-01"],
    ]  # fmt: skip


def test_weeks_are_counted_from_monday(candidate):
    # 2031-01-01 is a Wednesday.
    assert days(
        candidate,
        ("2031-01-01T08:00", "every 2 weeks on thu,mon", 4),
        ("2031-01-01T08:00", "every 1 weeks on sun,wed", 3),
        ("2031-01-05T08:00", "every 3 weeks on mon", 2),
    ) == [
        ["2031-01-02", "2031-01-13", "2031-01-16", "2031-01-27"],
        ["2031-01-01", "2031-01-05", "2031-01-08"],
        ["2031-01-20", "2031-02-10"],
    ]


def test_months_without_the_day_are_left_out(candidate):
    assert days(
        candidate,
        ("2031-01-15T08:00", "every 1 months on 31", 4),
        ("2031-01-31T08:00", "every 1 months on 30", 3),
        ("2031-11-05T08:00", "every 2 months on 5", 3),
        ("2031-02-01T08:00", "every 12 months on 29", 2),
    ) == [
        ["2031-01-31", "2031-03-31", "2031-05-31", "2031-07-31"],
        ["2031-03-30", "2031-04-30", "2031-05-30"],
        ["2031-11-05", "2032-01-05", "2032-03-05"],
        ["2032-02-29", "2036-02-29"],
    ]


def test_the_last_day_of_a_month(candidate):
    assert days(candidate, ("2031-12-31T08:00", "every 1 months on last", 4)) == [
        ["2031-12-31", "2032-01-31", "2032-02-29", "2032-03-31"]
    ]


def test_weekdays_of_a_month(candidate):
    assert days(
        candidate,
        ("2031-01-15T08:00", "every 1 months on 2nd tue", 2),
        ("2031-01-01T08:00", "every 1 months on last fri", 2),
        ("2031-01-01T08:00", "every 1 months on 5th wed", 3),
        ("2031-01-01T08:00", "every 1 months on 1st wed", 2),
    ) == [
        ["2031-02-11", "2031-03-11"],
        ["2031-01-31", "2031-02-28"],
        ["2031-01-29", "2031-04-30", "2031-07-30"],
        ["2031-01-01", "2031-02-05"],
    ]


def test_appointments_keep_their_local_time(candidate):
    source = """
[[text(local), text(moment)] for local, moment in
    occurrences(at("2031-03-29T02:30"), "every 1 days", zone, 3)]
"""
    assert run(candidate, source) == [
        ["2031-03-29T02:30", "2031-03-29T01:30"],
        ["2031-03-30T03:30", "2031-03-30T01:30"],
        ["2031-03-31T02:30", "2031-03-31T00:30"],
    ]


def test_appointments_across_clocks_that_are_set_back(candidate):
    source = """
[[text(local), text(moment)] for local, moment in
    occurrences(at("2031-10-25T02:30"), "every 1 days", zone, 3)]
"""
    assert run(candidate, source) == [
        ["2031-10-25T02:30", "2031-10-25T00:30"],
        ["2031-10-26T02:30", "2031-10-26T00:30"],
        ["2031-10-27T02:30", "2031-10-27T01:30"],
    ]


def test_nothing_is_later_than_fifty_years(candidate):
    assert days(
        candidate,
        ("2031-02-01T08:00", "every 12 months on 30", 3),
        ("2031-02-01T08:00", "every 12 months on 1st sat", 999),
        ("2031-02-01T08:00", "every 999 days", 0),
    )[::2] == [[], []]
    source = "found = days('2031-02-01T08:00', 'every 12 months on 1', 999)\n[len(found), found[-1]]"
    assert run(candidate, source) == [51, "2081-02-01"]


def test_a_start_that_does_not_fit_is_no_appointment(candidate):
    assert days(candidate, ("2031-01-01T08:00", "every 1 weeks on tue", 1)) == [["2031-01-07"]]


REFUSED = [
    "", "every day", "every 0 days", "every 01 days", "every 1000 days", "every 1 day", "every 1 days on mon",
    "every 1 weeks", "every 1 weeks on", "every 1 weeks on mon, tue", "every 1 weeks on mon,mon",
    "every 1 weeks on monday", "Every 1 days", "every  1 days", "every 1 days ", "every 1 days\n",
    "every 1 months", "every 1 months on 0", "every 1 months on 32", "every 1 months on 05",
    "every 1 months on 6th mon", "every 1 months on 2nd", "every 1 months on mon", "every 1 weeks on 5",
    "every -1 days", "every 1 years on 5",
]  # fmt: skip


def test_other_rules_are_refused(candidate):
    source = """
def attempt(rule, count=1):
    try:
        return str(occurrences(at("2031-01-01T08:00"), rule, Zone(0), count))
    except ValueError:
        return "ValueError"
[[attempt(rule) for rule in rules], attempt("every 1 days", -1)]
"""
    found, negative = run(candidate, source, rules=REFUSED)
    assert {rule: told for rule, told in zip(REFUSED, found, strict=True) if told != "ValueError"} == {}
    assert negative == "ValueError"

"""The program as its user sees it."""

import pytest

TABLE = "name,amount\nMia,2.50\nBen,4\nMia,0.25\nAda,4.00\n"


def run(candidate, table, *options):
    return candidate.command(["{python}", "-I", "solution.py", *options], table)


def test_totals_in_alphabetical_order(candidate):
    ran = run(candidate, TABLE)
    assert (ran.code, ran.stdout) == (0, "Ada: 4.00\nBen: 4.00\nMia: 2.75\n")


def test_the_largest_first(candidate):
    assert run(candidate, TABLE, "--top", "2").stdout == "Ada: 4.00\nBen: 4.00\n"


def test_columns_in_any_order_and_quoted_names(candidate):
    table = 'amount,note,name\n1,x,"Lee, Kim"\n2,y,"Lee, Kim"\n'
    assert run(candidate, table).stdout == "Lee, Kim: 3.00\n"


@pytest.mark.parametrize("table", ["name,sum\nMia,1\n", "name,amount\nMia,1\nBen,many\n"])
def test_a_bad_table_ends_with_code_2(candidate, table):
    ran = run(candidate, table)
    assert (ran.code, ran.stdout) == (2, "")
    assert len(ran.stderr.strip().splitlines()) == 1


def test_importing_does_nothing(candidate):
    ran = candidate.command(["{python}", "-c", "import solution"], TABLE)
    assert (ran.code, ran.stdout) == (0, "")

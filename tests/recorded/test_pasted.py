"""Texts that are pasted into the form of a new study."""

from judge_gym.recorded.pasted import read_pasted

PARTS = "\n".join(
    [
        "input,output,reference,human",
        *(f"What is number {n}?,It is the number {n} here,The number {n},pass" for n in range(8)),
        "What is it now?,It is something else,The other one,fail",
    ]
)


def test_columns_named_like_parts_are_parts_until_one_is_named_alone() -> None:
    pasted = read_pasted(PARTS)
    parts = {"input": "What is number 0?", "output": "It is the number 0 here"}
    whole = {"title": "line 2", **parts, "reference": "The number 0", "human": "pass"}
    assert pasted.items[0] == whole
    roles = {column.name: column.role for column in pasted.columns}
    assert read_pasted(PARTS, roles=roles).items[0] == whole, "as the form sends it back"
    less = read_pasted(PARTS, roles={**roles, "reference": ""})
    assert less.items[0] == {"title": "line 2", **parts, "human": "pass"}
    alone = read_pasted(PARTS, roles={"output": "text", "human": "person"})
    assert alone.items[0] == {"title": "line 2", "text": parts["output"], "human": "pass"}


def test_a_form_is_told_of_no_options_of_commands() -> None:
    rows = [f"It is the reply {n} of many,{'gut' if n % 2 else 'schlecht'}" for n in range(9)]
    unordered = read_pasted("\n".join(["reply,human", *rows]))
    assert not unordered.ordered
    assert unordered.notes[-1].endswith("is the positive label is not known.")
    pairs = [f"The one number {n},The other number {n},neu" for n in range(9)]
    strange = read_pasted("\n".join(["response_a,response_b,human", *pairs]))
    told = [*unordered.questions, *unordered.notes, strange.error]
    assert strange.error
    assert "--" not in " ".join(told)

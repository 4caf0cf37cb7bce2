"""The prompts that ask for code. They are part of the benchmark version: do not edit them."""

SYSTEM = (
    "You are a careful programmer. What you write is saved to files exactly as you send it, then"
    " checked, run and tested by programs; nobody repairs it and nobody asks back."
)

# The reader needs nothing but headings and fences, so the example is the whole grammar.
FORMAT = """\
Answer with every file that the task needs, whole, in this form:

# Files
## path/of/the_file.py
```
the whole text of the file
```

Paths are relative to the project folder. A file that holds a fence stands in a longer fence. Text
outside of fences is not read."""

TASK = "TASK"
GUIDELINES = "GUIDELINES\nWhat follows applies to every file that you write."
WEB_SEARCH = (
    "You can search the web. Do so where you are not sure of a library's present behaviour."
)

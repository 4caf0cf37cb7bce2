"""The classes of failures. Their order is that of the rubric's stages."""

MODEL_FAULT, OVERLY_STRICT, AMBIGUOUS_TASK, KNOWN_GAP = CLASSES = (
    "MODEL_FAULT",
    "OVERLY_STRICT",
    "AMBIGUOUS_TASK",
    "KNOWN_GAP",
)
UNDECIDED = "undecided"
"""The class of a failure on which the verdicts tie, or of which none was scored."""

"""Whole cents."""


def split(cents: int, weights: list[int]) -> list[int]:
    """Shares in proportion to weights, which add up to the amount."""
    total = sum(weights)
    if cents < 0 or total <= 0 or min(weights) < 0:
        raise ValueError("the amount and the weights are not negative, one weight is above 0")
    shares = [divmod(cents * (weight / total), 1) for weight in weights]
    parts = [int(whole) for whole, _ in shares]
    order = sorted(range(len(shares)), key=lambda person: (-shares[person][1], person))
    for person in order[: cents - sum(parts)]:
        parts[person] += 1
    return parts

"""The search for versions that fit together."""

from collections.abc import Mapping

from resolver.versions import Constraint, Version

Index = Mapping[str, Mapping[str, Mapping[str, str]]]


class Unsolvable(Exception):
    """No choice of versions satisfies all constraints."""


class Solver:
    """Chooses packages in alphabetical order, the highest versions first."""

    def __init__(self, index: Index) -> None:
        self._versions = {
            name: sorted(
                (
                    (Version.parse(text), {key: Constraint.parse(each) for key, each in needs.items()})
                    for text, needs in versions.items()
                ),
                key=lambda entry: entry[0],
                reverse=True,
            )
            for name, versions in index.items()
        }

    def search(
        self, needed: Mapping[str, list[Constraint]], chosen: Mapping[str, Version]
    ) -> Mapping[str, Version] | None:
        """Returns the first complete choice, if there is one."""
        name = min((each for each in needed if each not in chosen), default=None)
        if name is None:
            return chosen
        for version, requirements in self._versions.get(name, []):
            if not all(constraint.allows(version) for constraint in needed[name]):
                continue
            following = {key: list(constraints) for key, constraints in needed.items()}
            for key, constraint in requirements.items():
                following.setdefault(key, []).append(constraint)
            now = {**chosen, name: version}
            if all(each.allows(now[key]) for key in now for each in following[key]):
                return self.search(following, now)
        return None


def solve(index: Index, requirements: Mapping[str, str]) -> dict[str, str]:
    """Returns a version for each package that is needed."""
    needed = {name: [Constraint.parse(text)] for name, text in requirements.items()}
    chosen = Solver(index).search(needed, {})
    if chosen is None:
        raise Unsolvable("no versions satisfy all requirements")
    return {name: str(chosen[name]) for name in sorted(chosen)}

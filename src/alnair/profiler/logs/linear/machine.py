"""Runs a program over a line: all ways of matching at once."""

from alnair.profiler.logs.linear.syntax import Assert, Char, Jump, Match, Program, Save, Split

#: Sets of places that are remembered, each with where characters lead from it.
_MOST_REMEMBERED = 2000

#: Begin and end of each group; -1 where it has not taken part.
Places = tuple[int, ...]


class Machine:
    """Searches lines for the first match of a program, as `re.search` would find it."""

    def __init__(self, program: Program) -> None:
        self._code = program.code
        self._groups = program.groups
        self._none = (-1,) * (2 * len(program.groups))
        self._start = self._unconditional([0])
        self._steps: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def search(self, line: str) -> dict[str, str] | None:
        """Return the text of each named group that has taken part; None without a match."""
        if not self._may_match(line):
            return None
        found = self._match(line)
        if found is None:
            return None
        places = {name: found[2 * n : 2 * n + 2] for name, n in self._groups.items()}
        return {name: line[a:b] for name, (a, b) in places.items() if 0 <= a <= b}

    def _may_match(self, line: str) -> bool:
        """Tell quickly whether there could be a match: assertions are taken to hold."""
        end = len(self._code) - 1
        here = self._start
        for character in line:
            if end in here:
                return True
            key = (here, character)
            there = self._steps.get(key)
            if there is None:
                if len(self._steps) >= _MOST_REMEMBERED:
                    self._steps.clear()
                after = [place + 1 for place in here if self._takes(place, character)]
                there = self._steps[key] = self._start | self._unconditional(after)
            here = there
        return end in here

    def _takes(self, place: int, character: str) -> bool:
        one = self._code[place]
        return isinstance(one, Char) and one.one.fullmatch(character) is not None

    def _unconditional(self, places: list[int]) -> frozenset[int]:
        """Return where one may be without taking a character, all assertions holding."""
        seen: set[int] = set()
        open_ = list(places)
        while open_:
            place = open_.pop()
            if place in seen:
                continue
            seen.add(place)
            match self._code[place]:
                case Jump(to=to):
                    open_.append(to)
                case Split(first=first, second=second):
                    open_ += (second, first)
                case Save() | Assert():
                    open_.append(place + 1)
        return frozenset(seen)

    def _match(self, line: str) -> Places | None:
        """Follow all ways in the order of their priority, with what their groups have taken."""
        best: Places | None = None
        ways: dict[int, Places] = {}
        for at in range(len(line) + 1):
            if best is None:
                self._add(ways, 0, self._none, line, at)  # behind all that began earlier
            elif not ways:
                break
            after: dict[int, Places] = {}
            for place, places in ways.items():
                one = self._code[place]
                if isinstance(one, Match):
                    best = places
                    break  # ways behind this one have less priority
                if at < len(line) and isinstance(one, Char) and one.one.fullmatch(line[at]):
                    self._add(after, place + 1, places, line, at + 1)
            ways = after
        return best

    def _add(self, ways: dict[int, Places], place: int, places: Places, line: str, at: int) -> None:
        """Add where one comes to from there without taking a character, in order of priority."""
        open_ = [(place, places)]
        seen: set[int] = set()
        while open_:
            place, places = open_.pop()
            if place in ways or place in seen:
                continue
            seen.add(place)
            match self._code[place]:
                case Jump(to=to):
                    open_.append((to, places))
                case Split(first=first, second=second):
                    open_ += ((second, places), (first, places))
                case Save(slot=slot):
                    open_.append((place + 1, (*places[:slot], at, *places[slot + 1 :])))
                case Assert(kind=kind):
                    if _holds(kind, line, at):
                        open_.append((place + 1, places))
                case _:
                    ways[place] = places


def _holds(kind: str, line: str, at: int) -> bool:
    if kind in ("^", r"\A"):
        return at == 0
    if kind in ("$", r"\Z"):
        return at == len(line)
    inside = _is_word(line, at - 1) != _is_word(line, at)
    return inside if kind == r"\b" else not inside


def _is_word(line: str, at: int) -> bool:
    return 0 <= at < len(line) and (line[at].isalnum() or line[at] == "_")

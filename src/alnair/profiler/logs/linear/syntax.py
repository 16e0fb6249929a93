"""A pattern in the syntax of `re`, as a program for the machine."""

import re
from typing import Final

import msgspec

#: Instructions of a program: with characters of a line, the bound of the work for it.
MOST_INSTRUCTIONS: Final = 500
_REPEAT = re.compile(r"[*+?]|\{(?=[\d,])(\d{0,4})(,?)(\d{0,4})\}")
_CLASS = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]", re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|0[0-7]{0,2}|.)", re.DOTALL
)
_GROUP = re.compile(r"\((?:\?P<(\w+)>|(\?:)|(?!\?))")
_FLAGS = re.compile(r"\(\?([ims]+)\)")
_ASSERTIONS = {r"\b", r"\B", r"\A", r"\Z"}


class PatternError(ValueError):
    """What is wrong with a pattern, and what to write."""


class Char(msgspec.Struct, frozen=True):
    """Take one character that the expression matches."""

    one: re.Pattern[str]


class Assert(msgspec.Struct, frozen=True):
    r"""Go on only at such a place: ^, $, \\b, \\B, \\A or \\Z."""

    kind: str


class Split(msgspec.Struct):
    """Go on at both, the first with priority."""

    first: int
    second: int


class Jump(msgspec.Struct):
    """Go on there."""

    to: int


class Save(msgspec.Struct, frozen=True):
    """Note the place: 2n where group n begins, 2n+1 where it ends."""

    slot: int


class Match(msgspec.Struct, frozen=True):
    """The pattern has matched."""


Instruction = Char | Assert | Split | Jump | Save | Match


class Program(msgspec.Struct, frozen=True):
    """Instructions, and the number of each named group, from 0 on."""

    code: list[Instruction]
    groups: dict[str, int]


def compile_pattern(text: str) -> Program:
    """Return the program of a pattern.

    Raises:
        PatternError: It is no pattern of `re`, or one that needs more than a line's length of time.
    """
    flags = 0
    if found := _FLAGS.match(text):
        for letter in found[1]:
            flags |= {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}[letter]
        text = text[found.end() :]
    try:
        re.compile(text, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"it is no regular expression: {error}") from None
    compiler = _Compiler(text, flags)
    compiler.alternatives()
    compiler.emit(Match())
    return Program(compiler.code, compiler.groups)


class _Compiler:
    """Reads the pattern from left to right and writes code; `re` has checked the syntax."""

    def __init__(self, text: str, flags: int) -> None:
        self._text = text
        self._flags = flags
        self._at = 0
        self.code: list[Instruction] = []
        self.groups: dict[str, int] = {}

    def emit(self, instruction: Instruction) -> None:
        if len(self.code) >= MOST_INSTRUCTIONS:
            raise PatternError("it is too long, or repeats too much: use * instead of large counts")
        self.code.append(instruction)

    def alternatives(self) -> None:
        """Read up to the end or a closing bracket."""
        begin, jumps = len(self.code), []
        self._sequence()
        while self._text.startswith("|", self._at):
            self._at += 1
            self._insert(begin, Split(begin + 1, 0))
            split = self.code[begin]
            jump = Jump(0)
            self.emit(jump)
            jumps.append(jump)
            assert isinstance(split, Split)
            split.second = begin = len(self.code)
            self._sequence()
        for jump in jumps:
            jump.to = len(self.code)

    def _sequence(self) -> None:
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            begin, read_from = len(self.code), self._at
            self._atom()
            if found := _REPEAT.match(self._text, self._at):
                self._repeat(begin, read_from, found)

    def _atom(self) -> None:
        text, at = self._text, self._at
        if text[at] == "(":
            self._group()
            return
        if text[at] in "^$":
            token = text[at]
        elif text[at] == "[":
            found = _CLASS.match(text, at)
            token = found[0] if found else ""
        elif text[at] == "\\":
            found = _ESCAPE.match(text, at)
            token = found[0] if found else ""
            if token[1:2] in "123456789" or not token:
                raise self._refused("a back reference")
        else:
            token = text[at]
        self._at += len(token)
        if token in _ASSERTIONS or token in "^$":
            self.emit(Assert(token))
        else:
            literal = len(token) == 1 and token != "."
            self.emit(Char(re.compile(re.escape(token) if literal else token, self._flags)))

    def _group(self) -> None:
        found = _GROUP.match(self._text, self._at)
        if found is None:
            raise self._refused(f"'{self._text[self._at : self._at + 3]}'")
        self._at = found.end()
        slot = None
        if found[1] is not None:
            # A group that is repeated is compiled several times, and is one all the same.
            slot = 2 * self.groups.setdefault(found[1], len(self.groups))
            self.emit(Save(slot))
        self.alternatives()
        self._at += 1
        if slot is not None:
            self.emit(Save(slot + 1))

    def _repeat(self, begin: int, read_from: int, found: re.Match[str]) -> None:
        least, most = _bounds(found)
        read_to = self._at
        self._at = found.end()
        lazy = self._text.startswith("?", self._at)
        if self._text.startswith("+", self._at):
            raise self._refused("a possessive repeat")
        end = self._at + lazy
        del self.code[begin:]
        for _ in range(least):
            self._again(read_from, read_to)
        if most is None:
            split = Split(0, 0)
            top = len(self.code)
            self.emit(split)
            self._again(read_from, read_to)
            self.emit(Jump(top))
            _aim(split, top + 1, len(self.code), lazy=lazy)
        else:
            splits = []
            for _ in range(most - least):
                splits.append((Split(0, 0), len(self.code)))
                self.emit(splits[-1][0])
                self._again(read_from, read_to)
            for split, place in splits:
                _aim(split, place + 1, len(self.code), lazy=lazy)
        self._at = end

    def _again(self, read_from: int, read_to: int) -> None:
        """Write the code of a part of the pattern once more."""
        self._at = read_from
        self._atom()
        assert self._at == read_to

    def _insert(self, place: int, instruction: Instruction) -> None:
        """Put an instruction in; what leads behind it is moved along."""
        self.emit(instruction)
        self.code.insert(place, self.code.pop())
        for one in self.code[place + 1 :]:
            if isinstance(one, Jump):
                one.to += one.to >= place
            elif isinstance(one, Split):
                one.first += one.first >= place
                one.second += one.second >= place

    def _refused(self, what: str) -> PatternError:
        return PatternError(
            f"{what} at character {self._at + 1} needs time without bound; use groups as"
            " (?P<step>...), (?:...), classes, |, *, +, ? and {m,n}"
        )


def _aim(split: Split, into: int, past: int, *, lazy: bool) -> None:
    split.first, split.second = (past, into) if lazy else (into, past)


def _bounds(found: re.Match[str]) -> tuple[int, int | None]:
    if found[0][0] != "{":
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[found[0]]
    least = int(found[1] or 0)
    if not found[2]:
        return least, least
    return least, int(found[3]) if found[3] else None

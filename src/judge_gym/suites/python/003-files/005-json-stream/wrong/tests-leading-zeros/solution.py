"""A reader of JSON that keeps its place between two pieces."""

import codecs
import re

SPACE = b" \t\n\r"
QUOTE, BACKSLASH = ord('"'), ord("\\")
ESCAPES = dict(zip(b'"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True))
HEX = b"0123456789abcdefABCDEF"
PLAIN = re.compile(rb'[^"\\\x00-\x1f]+')
WORDS: dict[int, tuple[bytes, object]] = {
    ord("t"): (b"true", True),
    ord("f"): (b"false", False),
    ord("n"): (b"null", None),
}
DIGITS = b"0123456789"
NUMBER: dict[str, dict[bytes, str]] = {
    "sign": {b"0": "zero", b"123456789": "integer"},
    "zero": {DIGITS: "integer", b".": "point", b"eE": "e"},
    "integer": {DIGITS: "integer", b".": "point", b"eE": "e"},
    "point": {DIGITS: "fraction"},
    "fraction": {DIGITS: "fraction", b"eE": "e"},
    "e": {b"+-": "e sign", DIGITS: "exponent"},
    "e sign": {DIGITS: "exponent"},
    "exponent": {DIGITS: "exponent"},
}
"""The state after each part of a number, by the state before it."""
ENDS = ("zero", "integer", "fraction", "exponent")


class Broken(ValueError):
    """The input is not JSON."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"broken at byte {offset}")
        self.offset = offset
        self.values: list[object] = []


class _String:
    """A string so far."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._escape: bytearray | None = None
        self._escape_at = 0
        self._high: tuple[int, int] | None = None

    def take(self, data: bytes, index: int, start: int) -> int:
        """Take some bytes of a piece that starts at an offset; returns the index after them."""
        byte, offset = data[index], start + index
        if self._escape is not None:
            self._escaped(self._escape, byte, offset)
            return index + 1
        if byte == BACKSLASH:
            self.check(offset)
            self._escape, self._escape_at = bytearray(), offset
            return index + 1
        if self._high:
            raise Broken(self._high[0])
        match = PLAIN.match(data, index)
        if not match:
            self.check(offset)
            raise Broken(offset)
        waiting = len(self._decoder.getstate()[0])
        try:
            self._parts.append(self._decoder.decode(match[0]))
        except UnicodeDecodeError as fault:
            raise Broken(offset - waiting + fault.start) from None
        return match.end()

    def check(self, offset: int) -> None:
        """Refuse a character that is not complete."""
        if waiting := len(self._decoder.getstate()[0]):
            raise Broken(offset - waiting)

    def ends(self, byte: int) -> bool:
        """Whether a byte is the closing quote."""
        return byte == QUOTE and self._escape is None

    def value(self, offset: int) -> str:
        """The whole string."""
        self.check(offset)
        if self._high:
            raise Broken(self._high[0])
        return "".join(self._parts)

    def _escaped(self, escape: bytearray, byte: int, offset: int) -> None:
        if not escape and byte in ESCAPES:
            if self._high:
                raise Broken(self._high[0])
            self._parts.append(ESCAPES[byte])
            self._escape = None
            return
        if byte not in (HEX if escape else b"u"):
            raise Broken(offset)
        escape.append(byte)
        if len(escape) < 5:
            return
        self._escape = None
        code = int(escape[1:], 16)
        if self._high:
            if not 0xDC00 <= code < 0xE000:
                raise Broken(self._high[0])
            self._parts.append(chr(0x10000 + ((self._high[1] - 0xD800) << 10) + code - 0xDC00))
            self._high = None
        elif 0xD800 <= code < 0xDC00:
            self._high = (self._escape_at, code)
        elif 0xDC00 <= code < 0xE000:
            raise Broken(self._escape_at)
        else:
            self._parts.append(chr(code))


class Reader:
    """The open arrays and objects, and a state that says what may come next."""

    def __init__(self) -> None:
        self._start = 0
        self._state = "value"
        self._open: list[list[object] | dict[str, object]] = []
        self._keys: list[str] = []
        self._string: _String | None = None
        self._token = bytearray()
        self._word: tuple[bytes, object] = (b"", None)
        self._done: list[object] = []
        self._fault: int | None = None
        self._closed = False

    def feed(self, data: bytes) -> list[object]:
        """Take a piece; returns the values that it completes."""
        if self._closed:
            raise ValueError("the reader is closed")
        if self._fault is not None:
            raise Broken(self._fault)
        index = 0
        try:
            while index < len(data):
                if self._string and not self._string.ends(data[index]):
                    index = self._string.take(data, index, self._start)
                else:
                    self._step(data[index], self._start + index)
                    index += 1
        except Broken as fault:
            self._fault = fault.offset
            fault.values = self._taken()
            raise
        self._start += len(data)
        return self._taken()

    def close(self) -> list[object]:
        """Nothing more comes."""
        if self._fault is not None:
            raise Broken(self._fault)
        try:
            if self._string:
                self._string.check(self._start)
            if self._state in ENDS and not self._open:
                self._end_number()
            if self._open or self._state not in ("value", "gap"):
                raise Broken(self._start)
        except Broken as fault:
            self._fault = fault.offset
            raise
        self._closed = True
        return self._taken()

    def _taken(self) -> list[object]:
        done, self._done = self._done, []
        return done

    def _step(self, byte: int, offset: int) -> None:
        """Take a byte that is not inside a string."""
        if self._string:
            text, self._string = self._string.value(offset), None
            if self._state == "in key":
                self._keys.append(text)
                self._state = "colon"
            else:
                self._complete(text)
        elif self._state == "word":
            self._token.append(byte)
            if not self._word[0].startswith(self._token):
                raise Broken(offset)
            if len(self._token) == len(self._word[0]):
                self._complete(self._word[1])
        elif self._state in NUMBER:
            after = (state for some, state in NUMBER[self._state].items() if byte in some)
            if state := next(after, ""):
                self._state = state
                self._token.append(byte)
            elif self._state in ENDS and (byte in SPACE or self._open and byte in b",]}"):
                self._end_number()
                self._step(byte, offset)
            else:
                raise Broken(offset)
        elif byte in SPACE:
            self._state = "value" if self._state == "gap" else self._state
        elif not self._structure(byte):
            raise Broken(offset)

    def _structure(self, byte: int) -> bool:
        """Take a byte that begins or ends something; returns whether it may stand here."""
        inner = self._open[-1] if self._open else None
        sign = chr(byte)
        if self._state in ("value", "first"):
            if sign == "]" and self._state == "first":
                self._close_last()
                return True
            return self._begin(byte)
        if self._state in ("key", "first key") and sign == '"':
            self._string, self._state = _String(), "in key"
        elif self._state == "first key" and sign == "}":
            self._close_last()
        elif self._state == "colon" and sign == ":":
            self._state = "value"
        elif self._state == "comma" and sign == ",":
            self._state = "value" if isinstance(inner, list) else "key"
        elif self._state == "comma" and sign == ("]" if isinstance(inner, list) else "}"):
            self._close_last()
        else:
            return False
        return True

    def _begin(self, byte: int) -> bool:
        """Begin a value."""
        if byte == QUOTE:
            self._string, self._state = _String(), "in string"
        elif byte == ord("["):
            self._open.append([])
            self._state = "first"
        elif byte == ord("{"):
            self._open.append({})
            self._state = "first key"
        elif byte in WORDS:
            self._word, self._token, self._state = WORDS[byte], bytearray([byte]), "word"
        elif byte in b"-0123456789":
            self._token = bytearray([byte])
            self._state = {"-": "sign", "0": "zero"}.get(chr(byte), "integer")
        else:
            return False
        return True

    def _close_last(self) -> None:
        self._complete(self._open.pop())

    def _end_number(self) -> None:
        text = self._token.decode("ascii")
        self._complete(float(text) if set(".eE") & set(text) else int(text))

    def _complete(self, value: object) -> None:
        self._state = "comma" if self._open else "gap"
        if not self._open:
            self._done.append(value)
        elif isinstance(outer := self._open[-1], list):
            outer.append(value)
        else:
            outer[self._keys.pop()] = value

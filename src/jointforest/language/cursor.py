"""Reading tokens one by one: symbols, columns' names, values."""

from __future__ import annotations

from collections.abc import Mapping

from ..table.schema import near
from .combine import Value
from .errors import QuerySyntaxError
from .tokens import KEYWORDS, Token, tokenize

_MISSING = {"na", "nan", "null", "none"}


class Cursor:
    """A place in a text: ``at`` is the number of the next token."""

    def __init__(self, text: str, kinds: Mapping[str, str] | None) -> None:
        self.text, self.kinds = text, kinds
        self.tokens = tokenize(text)
        self.at = 0

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    def advance(self) -> Token:
        """The next token, and go past it."""
        token = self.token
        self.at += 1
        return token

    def fail(self, problem: str, token: Token | None = None, hint: str = "") -> QuerySyntaxError:
        """The error to raise; at the next token, unless another is given."""
        return QuerySyntaxError(problem, self.text, (token or self.token).start, hint)

    def is_symbol(self, *symbols: str, ahead: int = 0) -> bool:
        """Whether the next token (or one further ahead) is one of the symbols."""
        token = self.tokens[min(self.at + ahead, len(self.tokens) - 1)]
        return token.sort == "symbol" and token.value in symbols

    def is_keyword(self, *words: str, ahead: int = 0) -> bool:
        """Whether the next token (or one further ahead) is one of the words, in any case."""
        token = self.tokens[min(self.at + ahead, len(self.tokens) - 1)]
        return token.sort == "word" and str(token.value).lower() in words

    def expect(self, symbol: str, hint: str = "") -> None:
        """Go past a symbol that must be there."""
        if not self.is_symbol(symbol):
            raise self.fail(f"expected '{symbol}', found {self.found()}", hint=hint)
        self.advance()

    def found(self) -> str:
        """The next token as errors show it."""
        if self.token.sort == "end":
            return "the end of the text"
        return repr(self.text[self.token.start : self.token.stop][:40])

    def is_column_name(self) -> bool:
        """Whether the next token can be a column: a bare word that is no keyword, or a quoted name."""
        token = self.token
        if token.sort == "word":
            return str(token.value).lower() not in KEYWORDS
        return token.sort in ("backtick", "double")

    def column(self) -> str:
        """Read a column's name; an error if the table has no such column."""
        if not self.is_column_name():
            hint = "names are bare words, or in backticks or double quotes"
            raise self.fail(f"expected a column's name, found {self.found()}", hint=hint)
        token = self.advance()
        name = str(token.value)
        if self.kinds is not None and name not in self.kinds:
            raise self.fail(f"no column is called {name!r}", token, self.similar(name))
        return name

    def similar(self, name: str) -> str:
        """Hint for a name that is no column."""
        names = list(self.kinds or ())
        longer = [other for other in names if other.startswith(name)]
        if longer and not self.is_symbol("=", "<", ">"):
            # The name was cut off at a dash or a space.
            return f"names with dots, dashes or spaces are quoted: `{longer[0]}`"
        return near(name, names)

    def value(self) -> Value:
        """Read a value: a number with its sign, a text, or a bare word."""
        sign = self.advance() if self.is_symbol("+", "-") else None
        token = self.token
        if token.sort == "number" and not isinstance(token.value, str):
            self.advance()
            return -token.value if sign and sign.value == "-" else token.value
        if sign:
            raise self.fail(f"expected a number after '{sign.value}', found {self.found()}")
        if token.sort in ("string", "double"):
            self.advance()
            return str(token.value)
        if token.sort == "word" and str(token.value).lower() not in KEYWORDS:
            return self.word()
        hint = "values are numbers, 'text in single quotes', or single words"
        raise self.fail(f"expected a value, found {self.found()}", hint=hint)

    def word(self) -> str | bool:
        """Read a bare word as a value: true and false are booleans, signs of a missing value an error."""
        token = self.advance()
        word = str(token.value)
        if word.lower() in ("true", "false"):
            return word.lower() == "true"
        if word.lower() in _MISSING:
            hint = f"leave out what is not known; a missing value is: column is missing; a level is: '{word}'"
            raise self.fail(f"{word} is not a value", token, hint)
        return word

    def quoting_hint(self) -> str:
        """Hint for a token that nothing leads up to: often the rest of a text without quotes."""
        previous = self.tokens[self.at - 1] if self.at else self.token
        if previous.sort in ("word", "number") and self.token.sort != "end":
            return "text with dashes, dots or spaces goes in single quotes: 'Never-married'"
        return ""

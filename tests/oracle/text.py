"""PTX text to functions: lists of instructions with resolved register names."""

import re
from dataclasses import dataclass, field

WORD = r"(?:::|[\w$.%])+"
TOKEN = re.compile(rf"\s*(?:(?P<word>{WORD})|(?P<text>\"[^\"]*\")|(?P<mark>.))", re.DOTALL)
LINE = re.compile(r"^\s*\.(loc|file|version|target|address_size)\b.*$", re.MULTILINE)


@dataclass(frozen=True)
class Reg:
    name: str
    type: str


@dataclass(frozen=True)
class Imm:
    value: int
    kind: str  # int, f32, f64


@dataclass(frozen=True)
class Sym:
    name: str
    offset: int = 0


@dataclass(frozen=True)
class Mem:
    base: object
    offset: int


@dataclass(frozen=True)
class Group:
    """{a, b}, (a, b), or a|b."""

    mark: str
    items: tuple


@dataclass(frozen=True)
class Not:
    item: object


@dataclass(frozen=True)
class Op:
    parts: tuple
    args: tuple
    guard: object = None
    unless: bool = False

    @property
    def name(self):
        return ".".join(self.parts)


@dataclass
class Var:
    name: str
    space: str
    type: str
    size: int
    align: int
    initial: list


@dataclass
class Func:
    name: str
    entry: bool
    params: list
    results: list
    locals: list = field(default_factory=list)
    code: list = field(default_factory=list)
    labels: dict = field(default_factory=dict)
    tables: dict = field(default_factory=dict)


def width_of(type_):
    """Bits of a type: s32, .b8, f16x2, pred."""
    type_ = type_.lstrip(".")
    if type_ == "pred":
        return 1
    digits, pair = re.fullmatch(r"[a-z]*?(\d+)(x2)?", type_).groups()
    return int(digits) * (2 if pair else 1)


def number(word):
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", word):
        return Imm(int("0x" + word[2:], 0), "f32")
    if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", word):
        return Imm(int("0x" + word[2:], 0), "f64")
    word = word.rstrip("U")
    if re.fullmatch(r"0[0-7]+", word):
        return Imm(int(word, 8), "int")
    return Imm(int(word, 0), "int")


class Reader:
    def __init__(self, text):
        text = re.sub(r"//.*|/\*.*?\*/", "", text)
        text = LINE.sub("", text).split(".section")[0].replace(".reg.", ".reg .")
        self.tokens = [m[m.lastgroup] for m in TOKEN.finditer(text) if m[0].strip()]
        self.at = 0
        self.functions, self.variables = {}, []
        self.scopes, self.fresh = [], 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, wanted=None):
        token = self.peek()
        assert wanted is None or token == wanted, (wanted, self.tokens[self.at - 5 : self.at + 5])
        self.at += 1
        return token

    def accept(self, wanted):
        if self.peek() == wanted:
            self.at += 1
            return True
        return False

    def module(self):
        while self.peek() is not None:
            if self.peek() in (".visible", ".weak", ".extern", ".common"):
                self.take()
            elif self.peek() in (".entry", ".func"):
                self.function()
            elif self.peek() == ".pragma":
                while self.take() != ";":
                    pass
            else:
                self.variables.append(self.variable())
                self.take(";")
        return self

    def variable(self):
        space, align, type_ = None, None, None
        while self.peek().startswith("."):
            word = self.take()
            if word == ".align":
                align = int(self.take())
            elif word == ".ptr":
                continue
            elif word in (".param", ".global", ".const", ".shared", ".local"):
                space = space or word[1:]
            elif word in (".visible", ".weak", ".extern", ".managed"):
                continue
            elif word == ".attribute":
                while self.take() != ")":
                    pass
            else:
                type_ = word[1:]
        name, count = self.take(), 1
        while self.accept("["):
            count *= 0 if self.peek() == "]" else int(self.take())
            self.take("]")
        initial = self.initial() if self.accept("=") else []
        size = width_of(type_) // 8
        return Var(name, space, type_, size * count, align or size, initial)

    def initial(self):
        if self.accept("{"):
            values = []
            while not self.accept("}"):
                values += self.initial()
                self.accept(",")
            return values
        negative = self.accept("-")
        word = self.take()
        if word == "generic":
            self.take("(")
            word = self.take()
            self.take(")")
        if re.match(r"\d", word):
            value = number(word).value
            return [-value if negative else value]
        offset = int(self.take()) if self.accept("+") else 0
        return [Sym(word, offset)]

    def group(self):
        """Declared parameters in brackets."""
        found = []
        if self.accept("("):
            while not self.accept(")"):
                found.append(self.variable())
                self.accept(",")
        return found

    def function(self):
        entry = self.take() == ".entry"
        results = self.group()
        name = self.take()
        f = Func(name, entry, self.group(), results)
        while self.peek() not in ("{", ";"):
            self.take()
        if self.accept(";"):
            return
        self.scopes = []
        self.block(f)
        self.functions[name] = f

    def block(self, f):
        self.take("{")
        self.scopes.append({})
        while not self.accept("}"):
            if self.peek() == "{":
                self.block(f)
            elif self.tokens[self.at + 1] == ":":
                self.label(f)
            elif self.peek() == ".reg":
                self.registers()
            elif self.peek() in (".local", ".shared", ".param", ".global", ".const"):
                v = self.variable()
                self.take(";")
                self.fresh += 1
                self.scopes[-1][v.name] = Sym(f"{v.name}!{self.fresh}")
                v.name = self.scopes[-1][v.name].name
                f.locals.append(v)
            elif self.peek() == ".pragma":
                while self.take() != ";":
                    pass
            else:
                f.code.append(self.op())
        self.scopes.pop()

    def label(self, f):
        name = self.take()
        self.take(":")
        if self.peek() == ".branchtargets":
            self.take()
            f.tables[name] = []
            while not self.accept(";"):
                f.tables[name].append(self.take())
                self.accept(",")
        elif self.peek() == ".callprototype":
            while self.take() != ";":
                pass
        else:
            f.labels[name] = len(f.code)

    def registers(self):
        self.take(".reg")
        type_ = self.take()[1:]
        self.fresh += 1
        while True:
            name = self.take()
            if self.accept("<"):
                for i in range(int(self.take())):
                    self.scopes[-1][f"{name}{i}"] = Reg(f"{name}{i}!{self.fresh}", type_)
                self.take(">")
            else:
                self.scopes[-1][name] = Reg(f"{name}!{self.fresh}", type_)
            if self.take() == ";":
                return

    def op(self):
        guard, unless = None, False
        if self.accept("@"):
            unless = self.accept("!")
            guard = self.word(self.take())
        parts = tuple(self.take().split("."))
        args = []
        while not self.accept(";"):
            args.append(self.arg())
            self.accept(",")
        return Op(parts, tuple(args), guard, unless)

    def arg(self):
        for mark, end in (("{", "}"), ("(", ")")):
            if self.accept(mark):
                items = []
                while not self.accept(end):
                    items.append(self.arg())
                    self.accept(",")
                return Group(mark, tuple(items))
        if self.accept("["):
            base, offset = self.word(self.take()), 0
            if self.accept("+"):
                sign = -1 if self.accept("-") else 1
                offset = sign * int(self.take(), 0)
            elif self.accept("-"):
                offset = -int(self.take(), 0)
            self.take("]")
            return Mem(base, offset)
        if self.accept("!"):
            return Not(self.word(self.take()))
        if self.accept("-"):
            return Imm(-number(self.take()).value, "int")
        word = self.word(self.take())
        if self.accept("|"):
            return Group("|", (word, self.word(self.take())))
        if self.accept("+"):
            return Sym(word.name, int(self.take(), 0))
        return word

    def word(self, word):
        for scope in reversed(self.scopes):
            if word in scope:
                return scope[word]
        if re.match(r"\d", word):
            return number(word)
        return Sym(word)


def read(text):
    """The functions and variables of a module."""
    return Reader(text).module()

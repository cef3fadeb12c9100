#!/usr/bin/env python3
"""Rejects circles between modules, and imports that do not name the module that owns the item.

Reads the `use` declarations and the qualified paths of each crate's src (tests left out), and the import statements of
the Python package (those under `if TYPE_CHECKING` left out), and checks two rules.

**Owners.** A re-export serves code outside of the re-exporting module. Code inside names the module that defines the
item: within a crate nothing is imported through the crate root, and within a folder nothing through the folder's own
file. From outside, a folder may be named instead of the file: `crate::wire::Chunk` is right in `crate::endpoint` and
wrong in `crate::wire::packet`.

**Circles.** Modules are compared with their siblings, at each level of the tree: the use of an item of `a::b::c` in
`a::d::e` is an import of `b` by `d`. The siblings must not import each other in a circle. A folder's own file
(`mod.rs`, `lib.rs`, `__init__.py`) is not compared with the modules in the folder: it declares and dispatches to them,
and they may use what it defines itself, such as the trait that all of them implement.

    scripts/check-circles.py
"""

import ast
import bisect
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(eq=False)
class Module:
    """A module: a file, a folder with its own file, or a `mod name { ... }`."""

    name: str
    file: Path
    parent: "Module | None" = None
    children: "dict[str, Module]" = field(default_factory=dict)
    #: Names of the items defined in it.
    items: set[str] = field(default_factory=set)
    #: Imported names, each with its full path.
    imports: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: Paths whose names are all imported.
    globs: list[tuple[str, ...]] = field(default_factory=list)
    #: Paths that it uses, with their lines.
    uses: list[tuple[tuple[str, ...], int]] = field(default_factory=list)

    def lineage(self) -> "list[Module]":
        """The modules from the root of the crate down to this one."""
        return [*(self.parent.lineage() if self.parent else []), self]

    def every(self):
        yield self
        for child in self.children.values():
            yield from child.every()

    def path(self) -> str:
        return "::".join(module.name for module in self.lineage())


# Rust.

TOKEN = re.compile(
    r"""
    (?P<skip>//[^\n]*|/\*.*?\*/|\s+)
    |(?P<text>b?c?r(?P<hash>\#*)".*?"(?P=hash)|[bc]?"(?:\\.|[^"\\])*"|b?'(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\])'|'\w+)
    |(?P<word>(?:r\#)?[A-Za-z_]\w*)
    |(?P<mark>::|[^\w\s])
    |(?P<number>\d\w*)
    """,
    re.DOTALL | re.VERBOSE,
)
DEFINES = {"const", "enum", "fn", "mod", "static", "struct", "trait", "type", "union"}


class Rust:
    """Parser of one file, and of the files of the modules that it declares."""

    def __init__(self, module: Module):
        text = module.file.read_text()
        self.lines = [match.start() for match in re.finditer("\n", text)]
        self.tokens = [(m.group(), m.start()) for m in TOKEN.finditer(text) if m.lastgroup in ("word", "mark")]
        self.tokens.append(("", len(text)))
        self.at = 0
        self.folder = module.file.parent
        if module.file.name not in ("lib.rs", "main.rs", "mod.rs"):
            self.folder /= module.file.stem
        self.items(module, module.file)

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][0]

    def line(self) -> int:
        return bisect.bisect_left(self.lines, self.tokens[self.at][1]) + 1

    def items(self, top: Module, file: Path) -> None:
        """Reads the whole file."""
        scopes: list[Module | None] = []
        module, inside = top, False
        while self.peek():
            word = self.peek()
            if word == "#" and self.peek(1) in ("[", "!"):
                whole = self.peek(1) == "!"
                if self.attribute():
                    if whole:
                        return
                    self.skip_item(inside)
            elif word == "use" and self.peek(1) != "<":
                line = self.line()
                self.at += 1
                for path, name in self.tree(()):
                    self.imported(module, path, name, line, inside)
            elif word == "mod" and not inside and self.peek(2) in (";", "{"):
                name, opened = self.peek(1), self.peek(2) == "{"
                child = Module(name, module.file if opened else self.file_of(module, top, name), module)
                module.children[name] = child
                self.at += 3
                if opened:
                    scopes.append(module)
                    module = child
                else:
                    Rust(child)
            elif word == "{":
                self.at += 1
                scopes.append(None if inside else module)
                inside = True
            elif word == "}":
                self.at += 1
                outer = scopes.pop()
                if outer is not None:
                    module, inside = outer, False
            elif not inside and word in DEFINES and re.match(r"\w", self.peek(1)):
                if self.peek(1) not in DEFINES:
                    module.items.add(self.peek(1))
                    self.at += 1
                self.at += 1
            elif not inside and word == "macro_rules" and self.peek(1) == "!":
                module.items.add(self.peek(2))
                self.at += 3
            elif self.peek(1) == "::" and re.match(r"[a-zA-Z_]", word) and not self.qualified():
                line, path = self.line(), [word]
                while self.peek(1) == "::" and re.match(r"[a-zA-Z_]", self.peek(2)):
                    path.append(self.peek(2))
                    self.at += 2
                self.at += 1
                module.uses.append((tuple(path), line))
            else:
                self.at += 1

    def qualified(self) -> bool:
        """Whether the word continues a path."""
        return self.at > 0 and self.tokens[self.at - 1][0] in ("::", ".")

    def attribute(self) -> bool:
        """Reads an attribute; returns whether it is `cfg(test)`."""
        begin = self.at
        self.at += 2 if self.peek(1) == "!" else 1
        self.skip_group()
        words = [token for token, _ in self.tokens[begin : self.at]]
        return words[-6:] == ["[", "cfg", "(", "test", ")", "]"]

    def skip_group(self) -> None:
        """Skips a bracket and everything up to the one that closes it."""
        depth = 0
        while self.peek():
            depth += (self.peek() in "([{") - (self.peek() in ")]}")
            self.at += 1
            if depth == 0:
                return

    def skip_item(self, inside: bool) -> None:
        """Skips an item, a field or a statement."""
        while self.peek() == "#":
            self.attribute()
        listed = inside and self.peek() not in DEFINES | {"pub", "async", "unsafe", "impl"}
        while self.peek() and self.peek() != "}":
            word = self.peek()
            if word in ("(", "[", "{"):
                self.skip_group()
                if word == "{":
                    break
                continue
            self.at += 1
            if word == ";" or (listed and word == ","):
                break

    def tree(self, before: tuple[str, ...]):
        """(path, name) of each import of a `use` tree."""
        path = before
        while True:
            word = self.peek()
            self.at += 1
            if word == "{":
                while self.peek() != "}":
                    yield from self.tree(path)
                    if self.peek() == ",":
                        self.at += 1
                self.at += 1
                return
            if word == "*":
                yield path, "*"
                return
            if word == "::":
                continue
            if word == "self" and path:
                pass
            else:
                path = (*path, word)
            if self.peek() == "as":
                name = self.peek(1)
                self.at += 2
                yield path, name
                return
            if self.peek() != "::":
                yield path, path[-1]
                return

    def imported(self, module: Module, path: tuple[str, ...], name: str, line: int, inside: bool) -> None:
        module.uses.append((path if name != "*" else (*path, "*"), line))
        if inside:
            return
        if name == "*":
            module.globs.append(path)
        elif name != "_":
            module.imports[name] = path

    def file_of(self, module: Module, top: Module, name: str) -> Path:
        folder = self.folder.joinpath(*(m.name for m in module.lineage()[len(top.lineage()) :]))
        flat = folder / f"{name}.rs"
        return flat if flat.exists() else folder / name / "mod.rs"


def rust(src: Path) -> list[Module]:
    """The module trees of a crate: of its library and of its program."""
    roots = [Module("crate", src / name) for name in ("lib.rs", "main.rs") if (src / name).exists()]
    for root in roots:
        Rust(root)
    return roots


# Python.


def python(folder: Path) -> list[Module]:
    """The module tree of a package."""
    return [python_module(folder, None)]


def python_module(path: Path, parent: Module | None) -> Module:
    file = path / "__init__.py" if path.is_dir() else path
    module = Module(path.stem, file, parent)
    if path.is_dir():
        for inner in sorted(path.iterdir()):
            if (inner / "__init__.py").exists() or (inner.suffix == ".py" and inner != file):
                module.children[inner.stem] = python_module(inner, module)
    python_statements(module, ast.parse(file.read_text()).body, outermost=True)
    return module


def python_statements(module: Module, body: list[ast.stmt], *, outermost: bool) -> None:
    for node in body:
        match node:
            case ast.Import():
                for alias in node.names:
                    use_python(module, tuple(alias.name.split(".")), alias.asname, node.lineno, outermost)
            case ast.ImportFrom():
                here = [m.name for m in module.lineage()]
                if module.file.name != "__init__.py":
                    here.pop()
                before = here[: len(here) - node.level + 1] if node.level else []
                before += node.module.split(".") if node.module else []
                for alias in node.names:
                    use_python(module, (*before, alias.name), alias.asname or alias.name, node.lineno, outermost)
            case ast.If() if "TYPE_CHECKING" in ast.dump(node.test):
                python_statements(module, node.orelse, outermost=outermost)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if outermost:
                    module.items.add(node.name)
                python_statements(module, node.body, outermost=False)
            case _:
                if outermost and isinstance(node, (ast.Assign, ast.AnnAssign)):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    module.items |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
                for name in ("body", "orelse", "finalbody", "handlers", "cases"):
                    for inner in getattr(node, name, []):
                        inner_body = [inner] if isinstance(inner, ast.stmt) else inner.body
                        python_statements(module, inner_body, outermost=outermost)


def use_python(module: Module, path: tuple[str, ...], name: str | None, line: int, outermost: bool) -> None:
    root = module.lineage()[0]
    if path[0] != root.name:
        return
    path = ("crate", *path[1:])
    module.uses.append((path, line))
    if outermost and name:
        module.imports[name] = path


# Both.


def resolve(module: Module, path: tuple[str, ...], depth: int = 0) -> tuple[Module, Module | None] | None:
    """The module that a path names, and the one that owns the item.

    The owner is None if the named module re-exports the item from another crate. A path that begins in another crate,
    or with a local name, has no module at all.
    """
    first, rest = path[0], path[1:]
    if first == "crate":
        at = module.lineage()[0]
    elif first == "self":
        at = module
    elif first == "super":
        at = module.parent
    elif first in module.children:
        at = module.children[first]
    elif first in module.imports and module.imports[first] != path and depth < 20:
        return resolve(module, (*module.imports[first], *rest), depth + 1)
    else:
        return None
    for index, name in enumerate(rest):
        last = index == len(rest) - 1
        if name == "super":
            at = at.parent
        elif name in at.children and not (last and name in at.items):
            at = at.children[name]
        elif name in at.items or name == "*" or depth >= 20:
            return at, at
        elif name in at.imports:
            found = resolve(at, (*at.imports[name], *rest[index + 1 :]), depth + 1)
            return at, found and found[1]
        else:
            for glob in at.globs:
                found = resolve(at, (*glob, *rest[index:]), depth + 1)
                if found and found[1] and name in found[1].items:
                    return at, found[1]
            # Made by a macro.
            return at, at
    return at, at


def place(module: Module, line: int) -> str:
    return f"{module.file.relative_to(ROOT)}:{line}"


def folder(module: Module) -> str:
    """The path of a module's folder."""
    named = module.file.name in ("lib.rs", "main.rs", "mod.rs", "__init__.py")
    return str((module.file.parent if named else module.file.with_suffix("")).relative_to(ROOT))


def owners(root: Module) -> list[str]:
    """The imports that name another module than the owner."""
    wrong = []
    for module in root.every():
        for path, line in module.uses:
            found = resolve(module, path)
            if found is None:
                continue
            named, owner = found
            if owner is named or named is module:
                continue
            within = named in module.lineage()
            if owner is None and not within:
                continue
            if owner is None or within or named not in owner.lineage():
                instead = "its own crate" if owner is None else f"`{owner.path()}`"
                wrong.append(f"{place(module, line)}: `{'::'.join(path)}` is a re-export: name {instead}")
    return wrong


def edges(root: Module):
    """For each folder, the imports of siblings by siblings: {(importer, imported): [place and path]}."""
    found: dict[str, dict[tuple[str, str], list[str]]] = {}
    for module in root.every():
        for path, line in module.uses:
            target = resolve(module, path)
            for owner in dict.fromkeys(target or ()):
                if owner is None:
                    continue
                here, there = module.lineage(), owner.lineage()
                level = next((i for i, (a, b) in enumerate(zip(here, there, strict=False)) if a is not b), None)
                if level is not None:
                    pairs = found.setdefault(folder(here[level - 1]), {})
                    imports = pairs.setdefault((here[level].name, there[level].name), [])
                    what = f"{place(module, line)}: `{'::'.join(path)}`"
                    # Of an imported name, the import is enough.
                    if what not in imports and not (imports and path[0] in module.imports):
                        imports.append(what)
    return found


def components(pairs) -> list[set[str]]:
    """The circles of a graph: its strongly connected components of more than one node."""
    after: dict[str, set[str]] = {}
    for a, b in pairs:
        after.setdefault(a, set()).add(b)
    reached = {}
    for start in after:
        todo, seen = [start], set()
        while todo:
            for node in after.get(todo.pop(), ()):
                if node not in seen:
                    seen.add(node)
                    todo.append(node)
        reached[start] = seen
    circles: list[set[str]] = []
    for node, seen in sorted(reached.items()):
        circle = {other for other in seen if node in reached.get(other, ())}
        if len(circle) > 1 and circle not in circles:
            circles.append(circle)
    return circles


def main() -> None:
    crates = {str(src.relative_to(ROOT)): rust for src in sorted(ROOT.glob("crates/*/src"))}
    crates["python/polypath"] = python
    complaints: list[str] = []
    for name, read in crates.items():
        for root in read(ROOT / name):
            complaints += owners(root)
            for level, pairs in sorted(edges(root).items()):
                for circle in components(pairs):
                    complaints.append(f"{level}: a circle of {', '.join(sorted(circle))}")
                    for (a, b), imports in sorted(pairs.items()):
                        if a in circle and b in circle:
                            complaints += [f"    {a} -> {b}  {what}" for what in imports]
    for line in complaints:
        print(line, file=sys.stderr)
    if complaints:
        sys.exit("check-circles: modules must not import each other in a circle (rules: scripts/check-circles.py)")
    print("check-circles: no circles between modules")


if __name__ == "__main__":
    main()

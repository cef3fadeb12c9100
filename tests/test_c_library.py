"""libpolypath: what `make install-c` installs, and C programs that are built with it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from support import program, statements
from support.namespaces import Namespace
from support.program import ROOT

SOURCES = ROOT / "tests"
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-O2"]
LINKS = ["shared", "static"]


class Installed:
    """The files of `make install-c`, and what pkg-config reports about them."""

    def __init__(self, prefix: Path):
        self.prefix = prefix
        self.environment = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}

    def config(self, *options: str) -> list[str]:
        done = subprocess.run(["pkg-config", *options, "polypath"], capture_output=True, text=True, check=False,
                              env=self.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    def build(self, out: Path, *words: object, link: str = "shared", compiler: str = "gcc") -> Path:
        """A program with the shared library, which it finds where it is installed, or with the static one."""
        libraries = self.config("--libs", *(["--static"] if link == "static" else []))
        if link == "static":
            libraries[libraries.index("-lpolypath")] = "-l:libpolypath.a"
        else:
            libraries.append(f"-Wl,-rpath,{self.prefix / 'lib'}")
        compiled(compiler, *self.config("--cflags"), *words, "-o", out, *libraries, "-lpthread")
        return out


def compiled(*words: object) -> None:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def make_install(**variables: object) -> None:
    """`make install-c` of what `cargo build` has built."""
    variables["LIBRARIES"] = Path(program.binary()).parent
    command = ["make", "install-c", *(f"{name}={value}" for name, value in variables.items())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    prefix = tmp_path_factory.mktemp("installed") / "usr"
    make_install(PREFIX=prefix)
    return Installed(prefix)


@pytest.fixture
def host():
    """A host with nothing but its loopback."""
    with Namespace() as made:
        yield made


def header(installed: Installed, name: str = "polypath.h") -> str:
    """A header without its comments."""
    return re.sub(r"/\*.*?\*/", "", (installed.prefix / "include" / name).read_text(), flags=re.DOTALL)


def declared(installed: Installed) -> set[str]:
    """The functions that polypath.h declares."""
    return set(re.findall(r"\b(polypath_\w+)\(", header(installed)))


# What an installation has.


@pytest.mark.needs("make", "objcopy")
def test_an_installation_may_have_another_root(tmp_path):
    make_install(PREFIX="/opt/polypath", LIBDIR="/opt/polypath/lib64", DESTDIR=tmp_path)
    root = tmp_path / "opt/polypath"
    files = {str(file.relative_to(root)) for file in root.rglob("*") if not file.is_dir()}
    assert files == {"include/polypath.h", "include/polypath/sctp_compat.h", "lib64/libpolypath.a",
                     "lib64/libpolypath.so", "lib64/libpolypath.so.0.1", "lib64/libpolypath.so.0.1.0",
                     "lib64/pkgconfig/polypath.pc"}
    assert str(tmp_path) not in (root / "lib64/pkgconfig/polypath.pc").read_text()
    assert [file.name for file in tmp_path.iterdir()] == ["opt"]


@pytest.mark.needs("make", "objcopy", "pkg-config")
def test_names_and_versions_agree(installed):
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    assert installed.config("--modversion") == [version]
    assert f'#define POLYPATH_VERSION "{version}"' in header(installed)
    library = installed.prefix / "lib"
    dynamic = subprocess.run(["objdump", "-p", library / "libpolypath.so"], capture_output=True, text=True, check=True)
    (soname,) = re.findall(r"SONAME\s+(\S+)", dynamic.stdout)
    assert version.startswith(soname.removeprefix("libpolypath.so.") + ".")
    assert (library / "libpolypath.so").readlink() == Path(soname)
    assert (library / soname).readlink() == Path(f"libpolypath.so.{version}")


@pytest.mark.needs("make", "objcopy")
@pytest.mark.parametrize(("file", "options"), [("libpolypath.so", ["-D"]), ("libpolypath.a", [])], ids=LINKS)
def test_the_declared_functions_are_the_only_symbols(installed, file, options):
    done = subprocess.run(["nm", "--defined-only", "--extern-only", *options, installed.prefix / "lib" / file],
                          capture_output=True, text=True, check=True)
    symbols = {line.split()[-1] for line in done.stdout.splitlines() if len(line.split()) == 3}
    assert symbols == declared(installed)


@pytest.mark.needs("make", "objcopy")
def test_every_function_has_a_name_of_the_system_and_a_test(installed):
    names = {name.removeprefix("polypath_") for name in declared(installed)}
    own = {"configure", "configure_error", "version"}
    renamed = re.findall(r"^#define (\w+) polypath_(\w+)$", header(installed, "polypath/sctp_compat.h"), re.MULTILINE)
    assert [pair for pair in renamed if pair[0] != pair[1]] == []
    assert {name for name, _ in renamed} == names - own
    tests = "".join((SOURCES / f"{name}.c").read_text() for name in ("c-library", *statements.PROGRAMS))
    assert [name for name in sorted(names) if not re.search(rf"\b(polypath_)?{name}\(", tests)] == []


# Headers.


@pytest.mark.needs("make", "objcopy", "pkg-config", "g++")
@pytest.mark.parametrize("name", ["polypath.h", "polypath/sctp_compat.h"])
def test_the_headers_are_valid_cxx(installed, tmp_path, name):
    """They declare what the program below calls, and need nothing before them."""
    prefix = "polypath_" if name == "polypath.h" else ""
    source = tmp_path / "program.cc"
    source.write_text(f"""#include <{name}>
#include <memory>
int main() {{
    int fd = {prefix}socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
    sctp_status status = sctp_status();
    socklen_t size = sizeof status;
    return fd < 0 || {prefix}getsockopt(fd, SOL_SCTP, SCTP_STATUS, &status, &size) == 0 || {prefix}close(fd) != 0;
}}
""")
    for standard in ("c++11", "c++20"):
        built = installed.build(tmp_path / "program", *WARNINGS, f"-std={standard}", source, compiler="g++")
        assert subprocess.run([built], check=False).returncode == 0


@pytest.mark.needs("make", "objcopy", "pkg-config")
def test_the_program_of_the_documentation_compiles(installed, tmp_path):
    (code,) = re.findall(r"^```c\n(.*?)^```", (ROOT / "docs/c-library.md").read_text(), re.MULTILINE | re.DOTALL)
    source = tmp_path / "program.c"
    source.write_text(code)
    installed.build(tmp_path / "program", *WARNINGS, source)


@pytest.mark.needs("make", "objcopy", "pkg-config", "netinet/sctp.h")
def test_without_libsctp_the_structures_are_the_same(installed, tmp_path):
    """Sizes, offsets and values of what polypath.h declares itself, next to those of libsctp's header."""
    text = header(installed)
    own = text[text.index("#define HAVE_SCTP_SENDV"):text.index("int polypath_configure")]
    values = re.findall(r"\bSCTP_(?:SENDV?|RECVV)_\w+", own)
    members = [(struct, member) for struct, body in re.findall(r"struct (\w+) \{(.*?)\};", own, re.DOTALL)
               for member in re.findall(r"(\w+);", body)]
    assert len(values) == 12 and len(members) == 6
    lines = [f'printf("{value} %d\\n", (int){value});' for value in [*values, "SOL_SCTP", "IPPROTO_SCTP"]]
    lines += [f'printf("{struct} %zu {member} %zu\\n", sizeof(struct {struct}), offsetof(struct {struct}, {member}));'
              for struct, member in members]
    source = tmp_path / "sizes.c"
    source.write_text("#include <polypath.h>\n#include <stdio.h>\nint main(void) {\n" + "\n".join(lines) + "\n}\n")
    outputs = []
    for options in ([], ["-DPOLYPATH_WITHOUT_LIBSCTP"]):
        # Whether the header of libsctp was used.
        needed = subprocess.run(["gcc", "-M", *options, *installed.config("--cflags"), source], capture_output=True,
                                text=True, check=True).stdout
        assert ("netinet/sctp.h" in needed) == (not options)
        built = installed.build(tmp_path / "sizes", *WARNINGS, *options, source)
        outputs.append(subprocess.run([built], capture_output=True, text=True, check=True).stdout)
    assert len(outputs[0].splitlines()) == len(lines) and outputs[0] == outputs[1]


@pytest.mark.needs("make", "objcopy", "pkg-config")
def test_every_documented_setting_is_accepted(installed, tmp_path):
    """Those of the table in docs/c-library.md, and of the one in the header, each in a process of its own."""
    values = {"port": "9900", "peer-port": "9901", "raw": "true", "bind": "192.0.2.1,fd00::1", "encrypt": "true",
              "profile": "rfc9260", "rto_min": "200ms"}
    page = (ROOT / "docs/c-library.md").read_text().partition("## Settings")[2]
    listed = re.findall(r"^\| (?:a constant, such as )?`([\w-]+)` \|", page, re.MULTILINE)
    assert listed == list(values)
    table = (installed.prefix / "include/polypath.h").read_text().partition(" *     key  ")[2]
    assert re.findall(r"^ \*     ([a-z-]+)  ", table, re.MULTILINE) == listed[:-1]
    source = tmp_path / "program.c"
    source.write_text("""#include <polypath.h>
#include <stdio.h>
int main(int count, char **words) {
    return count != 3 || polypath_configure(words[1], words[2]) ? puts(polypath_configure_error()) : 0;
}
""")
    built = installed.build(tmp_path / "program", *WARNINGS, source, link="static")
    for key, value in values.items():
        assert subprocess.run([built, key, value], capture_output=True, check=False).returncode == 0, key


# Programs.

def held(ended: program.Ended) -> list[str]:
    """The statements that hold; fails if one does not. The library has printed nothing."""
    lines = ended.out.splitlines()
    assert ended.code == 0 and ended.err == "", f"{ended.code}: {ended.out} {ended.err}"
    assert lines and all(line.startswith("ok ") for line in lines), lines
    return lines


@pytest.mark.needs("make", "objcopy", "pkg-config", "namespaces")
@pytest.mark.parametrize("link", LINKS)
def test_the_library_behaves_as_its_header_says(installed, host, processes, tmp_path, link):
    built = installed.build(tmp_path / "c-library", *WARNINGS, SOURCES / "c-library.c", link=link)
    # This makes the library of `polypath run` print a report.
    environment = {**os.environ, "POLYPATH_RUN_REPORT": "1"}
    ended = processes.start(built, inside=host.inside, env=environment).wait()
    assert len(held(ended)) > 60


def compatible(installed: Installed, tmp_path: Path, name: str, link: str = "shared") -> Path:
    """A program that calls the functions by the system's names."""
    return installed.build(tmp_path / name, "-Wall", "-Werror", "-O2", "-include", "polypath/sctp_compat.h",
                           SOURCES / f"{name}.c", link=link)


# The static library is the same code.
LINKED = [*(statements.case(name, "shared") for name in statements.PROGRAMS), ("run-api", "static"),
          ("run-many", "static")]


@pytest.mark.needs("make", "objcopy", "pkg-config", "namespaces")
@pytest.mark.parametrize("name, link", LINKED)
def test_a_program_for_the_kernel_runs_with_the_library(installed, host, processes, tmp_path, name, link):
    """Written for the kernel's SCTP: see test_run.py."""
    built = compatible(installed, tmp_path, name, link)
    undefined = subprocess.run(["nm", "--undefined-only", built], capture_output=True, text=True, check=True).stdout
    assert "sctp_" not in undefined.replace("polypath_sctp_", "")
    ended = processes.start(built, inside=host.inside).wait()
    results = statements.results(ended.out)
    failed = {statement for statement, result in results.items() if result == "failed"}
    known = {statement for statement, one in statements.differences(name).items() if one.polypath == "failed"}
    assert failed == known and ended.code == int(bool(failed)) and ended.err == "", ended
    assert len(results) > 40


# Those of run-ends.c that do not concern what `polypath run` does with the descriptors of a program that does not know
# of the engine.
ENDS = {"arguments": 0, "ends": 1, "forks": 2, "threads": 4}


@pytest.mark.needs("make", "objcopy", "pkg-config", "namespaces")
@pytest.mark.parametrize("part", ENDS)
def test_sockets_of_the_library_end_as_those_of_the_kernel(installed, host, processes, tmp_path, part):
    built = compatible(installed, tmp_path, "run-ends")
    held(processes.start(built, ENDS[part], inside=host.inside).wait())


@pytest.mark.needs("make", "objcopy", "pkg-config", "namespaces")
def test_random_calls_of_the_library_agree_with_a_model(installed, host, processes, tmp_path):
    held(processes.start(compatible(installed, tmp_path, "run-random"), 4, inside=host.inside).wait())


# The example.

COUNT = 1500


@pytest.mark.needs("make", "objcopy", "pkg-config", "namespaces", "tc")
@pytest.mark.parametrize("link", LINKS)
def test_the_example_goes_on_when_a_path_is_cut(installed, hosts, processes, tmp_path, link):
    """Both paths carry the messages; without the first, the second does."""
    built = {name: installed.build(tmp_path / name, *WARNINGS, ROOT / "examples" / "c" / f"{name}.c", link=link)
             for name in ("server", "client")}
    remote = [hosts.address("b", path) for path in (1, 2)]
    local = ",".join(hosts.address("a", path) for path in (1, 2))
    server = processes.start(built["server"], 7000, *remote, inside=hosts.b.inside).said("listening on 2 addresses")
    client = processes.start(built["client"], local, 7000, COUNT, *remote, inside=hosts.a.inside)
    client.said("connected to 2 addresses")
    server.said("received 400 messages")
    before = [hosts.a.sent(f"va{path}") for path in (1, 2)]
    assert min(before) > 1_000_000, before
    for side in ("a", "b"):
        hosts.swallow(side, 1)
    ended = client.wait()
    assert ended.code == 0 and ended.out.endswith(f"sent {COUNT} messages\n"), ended
    served = server.wait()
    assert served.code == 0 and served.out.endswith(f"after {COUNT} messages\n"), served
    assert hosts.a.sent("va2") - before[1] > 2_000_000


@pytest.mark.needs("make", "objcopy", "pkg-config", "namespaces", "ss")
def test_the_environment_of_polypath_run_sets_ports(installed, hosts, processes, tmp_path):
    built = {name: installed.build(tmp_path / name, ROOT / "examples" / "c" / f"{name}.c")
             for name in ("server", "client")}
    local, remote = (hosts.address(side, 1) for side in ("a", "b"))


    def start(name: str, *words: object, inside: list[str], **settings: str) -> program.Process:
        environment = {**os.environ, **{f"POLYPATH_RUN_{key}": value for key, value in settings.items()}}
        return processes.start(built[name], *words, inside=inside, env=environment)

    server = start("server", 7000, remote, inside=hosts.b.inside, PORT="9900")
    server.said("listening on 1 addresses")
    assert f"{remote}:9900 " in hosts.b.run("ss", "-uln")
    ended = start("client", local, 7000, 100, remote, inside=hosts.a.inside, PEER_PORT="9900").wait()
    assert ended.code == 0, ended.err
    assert server.wait().code == 0, server.err


@pytest.mark.needs("make", "objcopy", "pkg-config")
def test_the_example_explains_a_wrong_setting(installed, tmp_path):
    built = installed.build(tmp_path / "client", ROOT / "examples" / "c" / "client.c")
    ended = subprocess.run([built, "eth0", "7000", "1", "192.0.2.1"], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == 'client: "eth0" is not a value of bind: IP addresses, separated by commas\n'

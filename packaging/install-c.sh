#!/bin/bash
# Installs the C library: shared and static library, headers, and the file for pkg-config.
#
#   packaging/install-c.sh [--libraries FOLDER]
#
# In the environment: PREFIX (/usr/local), LIBDIR (PREFIX/lib), INCLUDEDIR (PREFIX/include), and DESTDIR, a root that is
# not part of the names in the installed files. Without --libraries, a release build; FOLDER has libpolypath.so and
# libpolypath.a of another build. Needs ld, objcopy and strip (binutils).
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
libraries=
while [ $# -gt 0 ]; do
    case $1 in
    --libraries) libraries=$2 ;;
    *)
        echo "usage: $0 [--libraries FOLDER]" >&2
        exit 2
        ;;
    esac
    shift 2
done
if [ -z "$libraries" ]; then
    cargo build --release --locked -p polypath-c
    libraries=$target/release
fi

prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
includedir=${INCLUDEDIR:-$prefix/include}
root=${DESTDIR:-}
crate=crates/polypath-c
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The name for the dynamic linker is in the library (build.rs).
soname=$(objdump -p "$libraries/libpolypath.so" | sed -n 's/^ *SONAME *//p')
shared=libpolypath.so.$version
install -D -m 755 "$libraries/libpolypath.so" "$root$libdir/$shared"
strip --strip-unneeded "$root$libdir/$shared"
ln -sf "$shared" "$root$libdir/$soname"
ln -sf "$soname" "$root$libdir/libpolypath.so"

# One object whose only global symbols are the exported functions: those of Rust's standard library would conflict with
# another library in Rust. Its intermediate code (.llvmbc) is of no use and would be joined to something invalid.
ld -r --whole-archive "$libraries/libpolypath.a" -o "$work/all.o"
objcopy --strip-debug --remove-section .llvmbc --remove-section .llvmcmd --wildcard \
    --keep-global-symbol='polypath_*' "$work/all.o" "$work/polypath.o"
ar crsD "$work/libpolypath.a" "$work/polypath.o"
install -D -m 644 "$work/libpolypath.a" "$root$libdir/libpolypath.a"

install -D -m 644 $crate/include/polypath.h "$root$includedir/polypath.h"
install -D -m 644 $crate/include/polypath/sctp_compat.h "$root$includedir/polypath/sctp_compat.h"

# What the static library needs (rustc --print native-static-libs).
private="-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc"
sed "s|@prefix@|$prefix|; s|@libdir@|$libdir|; s|@includedir@|$includedir|; s|@version@|$version|; s|@private@|$private|" \
    $crate/polypath.pc.in >"$work/polypath.pc"
install -D -m 644 "$work/polypath.pc" "$root$libdir/pkgconfig/polypath.pc"

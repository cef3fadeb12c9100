#!/bin/bash
# Makes a Debian package of the program, with its man pages, completions and systemd units, and with the library that
# `polypath run` preloads.
#
#   packaging/deb.sh [--program FILE] [--out FOLDER] [--compress METHOD]
#
# Without --program, a release build; the library is the one next to the program. METHOD is one of dpkg-deb -Z; gzip is
# faster than its default. Needs dpkg-deb, strip and readelf (dpkg, binutils).
set -eu
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
program=
out=$target/debian
compress=xz
while [ $# -gt 0 ]; do
    case $1 in
    --program) program=$2 ;;
    --out) out=$2 ;;
    --compress) compress=$2 ;;
    *)
        echo "usage: $0 [--program FILE] [--out FOLDER] [--compress METHOD]" >&2
        exit 2
        ;;
    esac
    shift 2
done
if [ -z "$program" ]; then
    cargo build --release --locked -p polypath-cli -p polypath-preload -p polypath-supervise
    program=$target/release/polypath
fi

umask 022
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
version=$("$program" --version | cut -d ' ' -f 2)
architecture=$(dpkg --print-architecture)

install -D -m 755 "$program" "$root/usr/bin/polypath"
library=$root/usr/lib/polypath/libpolypath_preload.so
install -D -m 644 "$(dirname "$program")/libpolypath_preload.so" "$library"
supervisor=$root/usr/lib/polypath/polypath-supervise
install -D -m 755 "$(dirname "$program")/polypath-supervise" "$supervisor"
strip "$root/usr/bin/polypath" "$supervisor"
strip --strip-unneeded "$library"
"$program" man --output "$root/usr/share/man/man1"
gzip -9 -n "$root"/usr/share/man/man1/*.1
install -d "$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions" \
    "$root/usr/share/fish/vendor_completions.d"
"$program" completions bash >"$root/usr/share/bash-completion/completions/polypath"
"$program" completions zsh >"$root/usr/share/zsh/vendor-completions/_polypath"
"$program" completions fish >"$root/usr/share/fish/vendor_completions.d/polypath.fish"
install -d "$root/usr/lib/systemd/system"
for unit in systemd/*.service; do
    sed 's|/usr/local/bin/polypath|/usr/bin/polypath|' "$unit" >"$root/usr/lib/systemd/system/${unit##*/}"
done
documents=$root/usr/share/doc/polypath
install -d "$documents"
gzip -9 -n -c CHANGELOG.md >"$documents/changelog.gz"
{
    echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    echo "Source: https://github.com/polypath/polypath"
    echo
    echo "Files: *"
    echo "Copyright: 2026 The polypath authors"
    echo "License: Expat or Apache-2.0"
    echo
    echo "License: Expat"
    sed '1,4d; s/^$/./; s/^/ /' LICENSE-MIT
    echo
    echo "License: Apache-2.0"
    echo " On Debian systems, see /usr/share/common-licenses/Apache-2.0."
} >"$documents/copyright"

# The newest version of the C library that a symbol of the program or of the library needs.
libc=$(readelf -V "$root/usr/bin/polypath" "$library" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
depends="libc6 (>= ${libc#GLIBC_}), libgcc-s1"
[ -n "$libc" ] || depends=
install -d "$root/DEBIAN"
{
    echo "Package: polypath"
    echo "Version: $version"
    echo "Architecture: $architecture"
    echo "Maintainer: The polypath authors <polypath@users.noreply.github.com>"
    echo "Installed-Size: $(du -k -s "$root/usr" | cut -f 1)"
    [ -z "$depends" ] || echo "Depends: $depends"
    echo "Section: net"
    echo "Priority: optional"
    echo "Homepage: https://github.com/polypath/polypath"
    echo "Description: file transfer and forwarding over several network paths"
    echo " polypath opens one SCTP association (RFC 9260) over every path between two"
    echo " hosts, in user space and encrypted. When a path fails, transfers continue on"
    echo " the others. A simulator runs the same code."
} >"$root/DEBIAN/control"
mkdir -p "$out"
dpkg-deb -Z"$compress" --root-owner-group --build "$root" "$out/polypath_${version}_$architecture.deb" >&2
echo "$out/polypath_${version}_$architecture.deb"

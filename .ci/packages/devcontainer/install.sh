#!/bin/sh
# Installs a release in a dev container, as root. The options of
# devcontainer-feature.json are variables. DESTDIR is put before every path.
# Needs tar, sha256sum, and curl or wget.
set -eu
fail() { echo "sandbox-sidecar: $*" >&2; exit 1; }

version=${VERSION:-}
from=${FROM:-https://github.com/sandbox-sidecar/sandbox-sidecar/releases/download}
expr "$version" : 'v[0-9][0-9]*\.[0-9][0-9]*\.[0-9][0-9]*[-.0-9A-Za-z]*$' >/dev/null ||
	fail "set the option \"version\" to a release such as v1.2.3"
case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) fail "no release for $(uname -m)" ;;
esac
name=sandbox-sidecar_${version}_linux_$arch

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
get() { # get FILE
	if command -v curl >/dev/null; then
		curl --fail --silent --show-error --location --output "$work/$1" "$from/$version/$1"
	elif command -v wget >/dev/null; then
		wget -q -O "$work/$1" "$from/$version/$1"
	else
		fail "cannot download: install curl or wget"
	fi || fail "cannot download $from/$version/$1"
}
get checksums.txt
get "$name.tar.gz"
(cd "$work" && grep "  $name.tar.gz\$" checksums.txt >expected && sha256sum -c expected >/dev/null 2>&1) ||
	fail "$name.tar.gz is not what checksums.txt says"
tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "${DESTDIR:-}/usr/local/bin" "${DESTDIR:-}/usr/local/share"
for program in sandbox-sidecar sandbox-sidecar-mcp sandbox-sidecar-credentials; do
	cp "$work/$name/$program" "${DESTDIR:-}/usr/local/bin/"
	chmod 755 "${DESTDIR:-}/usr/local/bin/$program"
done
cp -r "$work/$name/share/." "${DESTDIR:-}/usr/local/share/"
# A volume that is mounted there gets its owner and mode.
if [ -n "${_REMOTE_USER_HOME:-}" ]; then
	cache=${DESTDIR:-}$_REMOTE_USER_HOME/.cache
	[ -d "$cache" ] || { mkdir -p "$cache" && chown "${_REMOTE_USER:-root}" "$cache"; }
	mkdir -p "$cache/sandbox-sidecar"
	chown "${_REMOTE_USER:-root}" "$cache/sandbox-sidecar"
	chmod 700 "$cache/sandbox-sidecar"
fi
echo "sandbox-sidecar $version is installed; \"sandbox-sidecar doctor\" says what holds here"

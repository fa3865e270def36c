# shellcheck shell=bash
# Debian packages: installed where missing as root, named where missing as another user.

packages_build=(
	gcc libc6-dev meson ninja-build pkgconf python3
	libssl-dev libsodium-dev libuv1-dev libyaml-dev libmicrohttpd-dev libjansson-dev libcurl4-openssl-dev
	libprotobuf-c-dev protobuf-c-compiler node-llhttp
)
packages_run=(openssl curl)
packages_test=(
	check clang libclang-rt-14-dev llvm clang-format shellcheck git python3-pytest python3-pytest-xdist golang-go
	gnutls-bin wrk apache2-utils nghttp2-client nghttp2-server haproxy nginx-light hitch iproute2 tcpdump
	chromium python3-venv groff-base
)
packages_bench=(haproxy nginx-light hitch curl git iproute2)

# packages_missing NAME...: those not installed, one a line
packages_missing() {
	local name
	for name; do
		[[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] || echo "$name"
	done
}

packages_need() {
	local missing
	mapfile -t missing < <(packages_missing "$@")
	[[ ${#missing[@]} -eq 0 ]] && return
	if [[ $EUID -ne 0 ]]; then
		say "missing packages: ${missing[*]}"
		die "install them with: sudo apt-get install --no-install-recommends ${missing[*]}"
	fi
	say "installing ${missing[*]}"
	apt-get update -qq >&2
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# promtool_get FOLDER: the checker of metrics, out of Debian's prometheus package, whose daemon nobody wants started here
promtool_get() {
	[[ ! -x $1/promtool ]] || return 0
	local package
	package=$(mktemp -d)
	(
		cd "$package" && apt-get download -qq prometheus >&2 && dpkg -x prometheus_*.deb . &&
			mkdir -p "$1" && cp usr/bin/promtool "$1/promtool"
	)
	rm -rf "$package"
}

# python_get FOLDER: a venv with the Python packages that Debian does not have, each of one version and one hash
python_get() {
	local wanted=$root/tests/requirements.txt
	! cmp -s "$wanted" "$1/requirements.txt" || return 0
	rm -rf "$1"
	/usr/bin/python3 -m venv "$1" &&
		"$1/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r "$wanted" >&2 &&
		cp "$wanted" "$1/requirements.txt"
}

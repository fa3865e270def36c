# shellcheck shell=bash
# packages: of Debian. As root, installs the missing ones; as another user, tells how. Debian 12 and 13 differ in a few.

debian_release=$(. /etc/os-release 2>/dev/null && echo "${VERSION_ID:-}")
case ${debian_release%%.*} in
13)
	packages_release=(libllhttp-dev protobuf-compiler)
	clang_runtime=libclang-rt-19-dev package_promtool=promtool
	;;
*)
	packages_release=() # llhttp: llhttp_get() below
	clang_runtime=libclang-rt-14-dev package_promtool=prometheus
	;;
esac

tools=$root/build-tools # what is unpacked and not installed, for tests and experiments

packages_build=(
	gcc libc6-dev make meson ninja-build pkgconf python3 # make: gcc links by several processes at a time
	libssl-dev libsodium-dev libuv1-dev libyaml-dev libmicrohttpd-dev libjansson-dev libcurl4-openssl-dev
	libprotobuf-c-dev protobuf-c-compiler libhiredis-dev libunbound-dev
	"${packages_release[@]}"
)
packages_run=(openssl curl)
packages_test_build=(check ccache python3-pytest)
packages_test=(
	"${packages_test_build[@]}" clang "$clang_runtime" llvm shellcheck git python3-pytest-xdist golang-go
	gnutls-bin wrk apache2-utils nghttp2-client nghttp2-server iproute2 nftables tcpdump
	chromium python3-venv groff-base gdb unbound ldnsutils
	testssl.sh sslscan
)
packages_bench=(curl git iproute2 nftables)
# Servers and clients that tests and experiments unpack and never install: installed, they would start and become this machine's own.
# What a mail room (bench/experiments/mail_room.py) has (libnet-ssleay-perl: the TLS of swaks), and what runs beside it.
packages_mail=(postfix exim4-daemon-light opensmtpd swaks libnet-ssleay-perl libnginx-mod-mail stunnel4 opendkim rspamd)
packages_peers=(haproxy nginx hitch redis-server redis-tools memcached)
programs_mail=(smtp-source smtp-sink stunnel4)
programs_peers=(haproxy nginx hitch redis-server redis-cli redis-benchmark memcached)
services=(nginx haproxy hitch redis-server unbound unbound-resolvconf) # of packages that are installed here; tests start their own

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
		say "${#missing[@]} packages are missing. Only root can install them:"
		printf '  %s\n' "$(as_root "$(front_door) packages ${missing[*]}")" >&2
		exit 1
	fi
	say "installing ${#missing[@]} packages: ${missing[*]}"
	with_progress "lists of packages" packages_lists || say "not all lists of packages are fresh; going on with those that are there"
	packages_install "${missing[@]}"
}

# A list that cannot be had is an error, which apt-get does not tell by itself.
packages_lists() {
	apt-get update -qq -o APT::Update::Error-Mode=any
}

# python_need ARGUMENT...: of a command whose help and options are Python's. A bare machine has none yet.
python_need() {
	[[ ! -x /usr/bin/python3 ]] || return 0
	! asks_help "$@" || die "this help needs Python: $(as_root "$(front_door) packages python3")"
	packages_need python3
}

# understand SCRIPT ARGUMENT...: gives help, or refuses wrong arguments, before anything is installed or built
understand() {
	python_need "$@"
	/usr/bin/python3 "$@" || exit
	! asks_help "$@" || exit 0
}

command_packages() {
	[[ $# -gt 0 ]] || usage_error packages "no package is named"
	[[ " $*" != *" -"* ]] || usage_error packages "takes no options"
	packages_need "$@"
}

# packages_install NAME...: no service is started, and those of `services` not at the next boot either
packages_install() {
	local policy=/usr/sbin/policy-rc.d new=() status=0 name
	mapfile -t new < <(services_disabled)
	[[ ! -e $policy ]] || policy=""
	[[ -z $policy ]] || install -m 755 /dev/stdin $policy <<<$'#!/bin/sh\nexit 101'
	with_progress "packages" env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends -o APT::Status-Fd=9 "$@" || status=$?
	[[ -z $policy ]] || rm -f $policy
	for name in "${new[@]}"; do
		[[ ! -e /lib/systemd/system/$name.service ]] || quietly env DPKG_MAINTSCRIPT_PACKAGE="$name" deb-systemd-helper disable "$name.service" || status=$?
	done
	return $status
}

# Services that this machine does not start at boot, one a line
services_disabled() {
	local name
	for name in "${services[@]}"; do
		[[ -e /etc/systemd/system/multi-user.target.wants/$name.service ]] || echo "$name"
	done
}

packages_lists_or_hint() {
	[[ $EUID -eq 0 ]] || say "if the lists of packages are missing: $(as_root "apt-get update")"
	packages_lists
}

# packages_fetch FOLDER NAME...: for with_progress
packages_fetch() {
	local fetch=(apt-get download -qq -o APT::Status-Fd=9 "${@:2}")
	cd "$1" || return
	"${fetch[@]}" && return
	packages_lists_or_hint
	"${fetch[@]}"
}

# packages_unpack WHAT FOLDER NAME...: unpacks their files, without dependencies and without installing them
packages_unpack() {
	local what=$1 folder=$2 place package status=0
	shift 2
	place=$(mktemp -d) || return
	{ with_progress "$what" packages_fetch "$place" "$@" && mkdir -p "$folder"; } || status=$?
	for package in "$place"/*.deb; do
		[[ $status -ne 0 ]] || dpkg -x "$package" "$folder" || status=$?
	done
	rm -rf "$place"
	return $status
}

# llhttp_get FOLDER: the sources of llhttp, which Debian 12 has in a package that depends on Node.js
llhttp_get() {
	[[ " ${packages_release[*]} " != *" libllhttp-dev "* && ! -e /usr/share/llhttp/llhttp.c && ! -e $1/usr/share/llhttp/llhttp.c ]] || return 0
	packages_unpack "llhttp" "$1" node-llhttp
}

# promtool_get FOLDER: the checker of metrics, unpacked, because in Debian 12 its package has a daemon that must not start here
promtool_get() {
	[[ ! -x $1/promtool ]] || return 0
	local package status=0
	package=$(mktemp -d) || return
	{ packages_unpack "promtool" "$package" "$package_promtool" && install -D -t "$1" "$package/usr/bin/promtool"; } || status=$?
	rm -rf "$package"
	return $status
}

# packages_with_needs NAME...: these, and what apt would install besides for each of them on this machine, one a line. Each is asked for
# alone, because mail servers refuse each other; a package that would become newer is none that is missing.
packages_with_needs() {
	local name said
	for name; do
		said=$(apt-get install --simulate --no-install-recommends "$name" 2>&1) || { echo "$said" >&2 && return 1; }
		echo "$name"
		sed -n 's/^Inst \([^ ]*\) (.*/\1/p' <<<"$said"
	done | sort -u
}

# packages_unpack_needs WHAT FOLDER NAME...: all under usr/, as it is where they are installed
packages_unpack_needs() {
	local all part
	all=$(packages_with_needs "${@:3}" 2>/dev/null) || { packages_lists_or_hint && all=$(packages_with_needs "${@:3}"); } || return
	mapfile -t all <<<"$all"
	packages_unpack "$1" "$2" "${all[@]}" || return
	for part in "$2"/{bin,lib,sbin}; do
		[[ ! -d $part ]] || { cp -a "$part" "$2/usr" && rm -rf "$part"; } || return
	done
}

# tree_get WHAT TREE PROGRAMS NAME...: packages with what they need, unpacked once as a tree of usr/ and etc/; and its programs
tree_get() {
	local what=$1 tree=$2 programs=$3 wanted="${*:3}"
	shift 3
	[[ $(cat "$tree/packages" 2>/dev/null) != "$wanted" ]] || return 0
	rm -rf "$tree"
	# shellcheck disable=SC2086 # words
	packages_unpack_needs "$what" "$tree" "$@" && tree_programs "$tree" $programs && echo "$wanted" >"$tree/packages"
}

# tree_programs TREE NAME...: programs of a tree in the folder beside it, which find the libraries that are unpacked with them
# shellcheck disable=SC2016 # their shell expands it
tree_programs() {
	local tree=$1 name path libraries
	shift
	libraries=$(cd "$tree" && find usr/lib -maxdepth 1 \( -name lib -o -name '*-linux-gnu*' -o -name postfix \) -printf '$tree/%p:')
	for name; do
		path=$(cd "$tree" && find usr -path "usr/*bin/$name" -print -quit)
		[[ $path ]] || { say "no $name was unpacked in $tree" && return 1; }
		printf '#!/bin/sh\ntree=${0%%/*}/%s\nLD_LIBRARY_PATH=%s exec "$tree/%s" "$@"\n' "${tree##*/}" "${libraries%:}" "$path" >"$tree/../$name"
		chmod +x "$tree/../$name"
	done
}

# go_source_get FOLDER: go-smtp-source, which Debian does not have, and the two states of it that its article compares, if this machine has
# a Go that can get and build them. Their experiment does without them, and says so.
go_source_get() {
	local row place
	place=$(mktemp -d) || return
	for row in go-smtp-source=v0.7.7 go-smtp-source-2015=b052ac1 go-smtp-source-2015-pool=3c082f0; do
		[[ ! -x $1/${row%=*} ]] || continue
		GOBIN=$place GOTOOLCHAIN=local timeout 300 go install "github.com/nabeken/go-smtp-source@${row#*=}" >/dev/null 2>&1 &&
			mv "$place/go-smtp-source" "$1/${row%=*}" && continue
		say "${row%=*} cannot be had here; going on without it"
	done
	rm -rf "$place"
}

# exim_heavy_get TREE: the Exim that reads PROXY headers, as usr/sbin/exim4-heavy beside the light one, and its libraries
exim_heavy_get() {
	local package status=0
	[[ ! -x $1/usr/sbin/exim4-heavy ]] || return 0
	package=$(mktemp -d) || return
	{
		packages_unpack_needs "Exim" "$package" exim4-daemon-heavy && cp -a "$package/usr/lib" "$1/usr" &&
			install -m 4755 "$package/usr/sbin/exim4" "$1/usr/sbin/exim4-heavy"
	} || status=$?
	rm -rf "$package"
	return $status
}

# mail_get FOLDER: mail servers in FOLDER/mail, which a room (bench/experiments/mail_room.py) lays over this machine's own
mail_get() {
	tree_get "mail servers" "$1/mail" "${programs_mail[*]}" "${packages_mail[@]}" && exim_heavy_get "$1/mail"
}

# peers_get FOLDER: servers beside which tests and experiments hold ours, in FOLDER/peers
peers_get() {
	tree_get "other servers" "$1/peers" "${programs_peers[*]}" "${packages_peers[@]}"
}

# python_get FOLDER: a venv with the Python packages that Debian does not have, each of one version and one hash
python_get() {
	local wanted=$root/tests/requirements.txt
	! cmp -s "$wanted" "$1/requirements.txt" || return 0
	rm -rf "$1"
	/usr/bin/python3 -m venv "$1" &&
		with_progress "packages of tests/requirements.txt" \
			"$1/bin/python3" -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r "$wanted" &&
		cp "$wanted" "$1/requirements.txt"
}

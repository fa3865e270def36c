# shellcheck shell=bash
# build: packages, then build/ by meson and ninja.

# shellcheck source=front/packages.sh
. "$root/front/packages.sh"

programs=(ragent/ragent sslagent/sslagent smtpproxy/smtpproxy csslctl/csslctl bench/cssl-bench)
manuals=(ragent/ragent.8 sslagent/sslagent.8 sslagent/cssl.yaml.5 smtpproxy/smtpproxy.8 csslctl/csslctl.1 bench/cssl-bench.1)

# build_configure FOLDER MESON-OPTION...: once
build_configure() {
	local folder=$1
	shift
	[[ ! -f $folder/build.ninja ]] || return 0
	llhttp_get "$root/build/llhttp"
	quietly meson setup "$folder" "$root" "$@"
}

# build_progress NAME: from ninja's output, shows the progress from time to time, and all errors
build_progress() {
	local name=$1 line next=$((SECONDS + 5))
	while IFS= read -r line; do
		if [[ ! $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
			[[ $line == "ninja: "[!e]* ]] || echo "$line" >&2
		elif [[ $SECONDS -ge $next ]]; then
			say "building $name: ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
			next=$((SECONDS + 10))
		fi
	done
}

# build_run FOLDER TARGET...: on a terminal, ninja shows the progress itself
build_run() {
	local folder=$1
	shift
	if [[ -t 2 ]]; then
		NINJA_STATUS="[%f of %t, %e s] " ninja -C "$folder" "$@" >&2
	else
		ninja -C "$folder" "$@" 2>&1 | build_progress "$(basename "$folder")"
	fi
}

# The programs, without their tests.
build_release() {
	packages_need "${packages_build[@]}" "${packages_run[@]}"
	build_configure "$root/build" -Dbuildtype=release -Dtests=false -Db_lto=true -Db_lto_threads="$(nproc)"
	build_run "$root/build" "${programs[@]}"
}

command_build() {
	[[ $# -eq 0 ]] || usage_error build "takes no options"
	build_release
	build_run "$root/build" "${manuals[@]}"
	say "built in $root/build, with manual pages: man -l $root/build/ragent/ragent.8"
}

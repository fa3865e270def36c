# shellcheck shell=bash
# build: packages, then build/ by meson and ninja.

# shellcheck source=front/packages.sh
. "$root/front/packages.sh"

# quietly COMMAND...: what it says is shown only when it fails
quietly() {
	local output status=0
	output=$("$@" 2>&1) || status=$?
	[[ $status -eq 0 ]] || echo "$output" >&2
	return $status
}

programs=(ragent/ragent sslagent/sslagent csslctl/csslctl bench/cssl-bench)

# build_configure FOLDER MESON-OPTION...: once
build_configure() {
	local folder=$1
	shift
	[[ -f $folder/build.ninja ]] || quietly meson setup "$folder" "$root" "$@"
}

# The programs, without their tests.
build_release() {
	packages_need "${packages_build[@]}" "${packages_run[@]}"
	build_configure "$root/build" -Dbuildtype=release -Dtests=false
	quietly ninja -C "$root/build" "${programs[@]}"
}

command_build() {
	[[ $# -eq 0 ]] || usage_error build "takes no options"
	build_release
	say "built in $root/build"
}

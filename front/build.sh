# shellcheck shell=bash
# build: packages, then build/ by meson and ninja.

# shellcheck source=front/packages.sh
. "$root/front/packages.sh"

# build_into FOLDER MESON-OPTION...: configured on the first call, compiled on each
build_into() {
	local folder=$1
	shift
	[[ -f $folder/build.ninja ]] || meson setup "$folder" "$root" "$@" >&2
	ninja -C "$folder" --quiet >&2
}

build_release() {
	packages_need "${packages_build[@]}" "${packages_run[@]}"
	build_into "$root/build" -Dbuildtype=release
}

command_build() {
	[[ $# -eq 0 ]] || usage_error build "takes no options"
	build_release
	say "built in $root/build"
}

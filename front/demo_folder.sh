# shellcheck shell=bash
# Where the demo's cluster lives: one folder for each user, which the user must own. Not in the clone: RAgent's own user could
# not reach a clone in root's home.

demo_folder() {
	echo "${TMPDIR:-/tmp}/cssl-demo-$EUID"
}

demo_folder_make() {
	local dir
	dir=$(demo_folder)
	mkdir -m 0755 "$dir" 2>/dev/null || [[ -O $dir && -d $dir && ! -L $dir ]] || die "$dir belongs to another user"
}

# shellcheck shell=bash
# test --faults: faults of one line, drawn by chance, in a copy of the sources; which test finds each.

faults_seed=42 faults_count=40

# faults_tree FOLDER: the sources with the faults, built with sanitizers. Each fault happens only where $CSSL_DRAWN is its number.
faults_tree() {
	local tree=$1
	if [[ ! -e $tree/build-asan/build.ninja ]]; then
		rm -rf "$tree"
		mkdir -p "$tree"
		(cd "$root" && git ls-files -z | xargs -0 cp --parents -t "$tree")
		git -C "$tree" init -q && git -C "$tree" add -A # what asks git for the sources finds them
		ln -s "$tools" "$tree/build-tools"
		/usr/bin/python3 "$root/tests/lib/drawn_faults.py" plant "$faults_seed" "$faults_count" "$tree" >&2
	fi
	local root=$tree # its own, for what is called here
	configure_build_asan -Dwerror=false "-Dc_args=-include $tree/tests/lib/drawn_fault.h" && build_run "$tree/build-asan"
}

# test_faults [N...]: these, or all. It takes hours. What was found is kept after each.
test_faults() {
	local profiles=$root/build-coverage/profiles PATH=$tools:$PATH
	[[ -d $profiles ]] || die "./cssl test --coverage comes first: it tells which scenarios run the line of a fault"
	test_download
	faults_tree "$root/build-faults" || die "the sources with the faults cannot be built"
	sanitized /usr/bin/python3 "$root/tests/lib/found_by.py" "$root/build-faults" "$faults_seed" "$faults_count" "$profiles" \
		"$root/build-faults.json" "$@"
}

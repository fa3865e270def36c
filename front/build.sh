# shellcheck shell=bash
# build: packages, then build/ by meson and ninja.

# shellcheck source=front/packages.sh
. "$root/front/packages.sh"

programs=(ragent/ragent sslagent/sslagent smtpproxy/smtpproxy csslctl/csslctl bench/cssl-bench)
manuals=(ragent/ragent.8 sslagent/sslagent.8 sslagent/cssl.yaml.5 smtpproxy/smtpproxy.8 csslctl/csslctl.1 bench/cssl-bench.1)

# Of two commands that build in one folder, the second waits: for the end of the build, and of tests of its programs.

declare -A build_turns=() # folder: descriptor of its lock

# build_turn FOLDER: until build_turn_over FOLDER or the end of this shell
build_turn() {
	local folder=$1 turn
	[[ -z ${build_turns[$folder]:-} ]] || return 0
	mkdir -p "$folder"
	{ exec {turn}>>"$folder/turn"; } 2>/dev/null || return 0 # who cannot write there cannot build there, and ninja says so
	if ! flock --nonblock "$turn"; then
		say "waiting for $(grep . "$folder/turn" || echo "another command"), which uses $folder"
		flock "$turn"
	fi
	echo "\`$command_line\` (process $$)" >"$folder/turn"
	build_turns[$folder]=$turn
}

build_turn_over() {
	local turn=${build_turns[$1]:-}
	[[ $turn ]] || return 0
	exec {turn}>&-
	unset "build_turns[$1]"
}

# without_turns COMMAND...: what it leaves running holds no turn
without_turns() {
	local turn
	(
		for turn in "${build_turns[@]}"; do
			exec {turn}>&-
		done
		exec "$@"
	)
}

# build_configure FOLDER MESON-OPTION...: once, and anew with other options; with tests also for another compiler, or when there is Go,
# without which some are left out. Meson takes another compiler only where nothing is configured; what ninja has built stays.
build_configure() {
	local folder=$1 wanted="${*:2}"
	shift
	wanted=${wanted%% -Db_lto_threads=*} # as many as this machine has processors today
	[[ $wanted != *-Dtests=true* ]] || wanted+=" with $CC$([[ ! -x /usr/lib/go/bin/go ]] || echo ", Go")"
	if [[ -f $folder/build.ninja ]]; then
		[[ $(cat "$folder/configured" 2>/dev/null) != "$wanted" && -w $folder ]] || return 0
		[[ -f $folder/configured ]] || say "$folder was not configured by this command, and is configured anew: $wanted"
		rm -rf "$folder"/{build.ninja,configured,meson-private}
	fi
	llhttp_get "$root/build/llhttp" && quietly meson setup "$folder" "$root" "$@" && echo "$wanted" >"$folder/configured"
}

# test_configure FOLDER MESON-OPTION...: a second build of unchanged files takes what ccache kept of the first, also in another clone
test_configure() {
	local folder=$root/$1
	shift
	export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$root CCACHE_DEPEND=1
	build_turn "$folder"
	CC="ccache ${CC:-gcc}" build_configure "$folder" -Dtests=true -Dtest_points=true -Dwerror=true "$@"
}

# The units that run only sanitized are compiled when somebody asks for one.
configure_build_test() {
	test_configure build-test -Dunits=plain
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

# build_release TARGET...: the programs, without their tests, and what else is named
build_release() {
	packages_need "${packages_build[@]}" "${packages_run[@]}"
	local status=0
	build_turn "$root/build"
	{ build_configure "$root/build" -Dbuildtype=release -Db_lto=true -Db_lto_threads="$(nproc)" &&
		build_run "$root/build" "${programs[@]}" "$@"; } || status=$?
	build_turn_over "$root/build"
	return $status
}

command_build() {
	[[ $# -eq 0 ]] || usage_error build "takes no options"
	build_release "${manuals[@]}"
	say "built in $root/build, with manual pages: man -l $(printf %q "$root")/build/ragent/ragent.8"
}

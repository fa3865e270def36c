# shellcheck shell=bash
# test FILE|PATTERN...: some units, scenarios or house rules, with what they need built.

# part_units FOLDER NAME: the units whose names have NAME in them, one a line
part_units() {
	meson test -C "$1" --list 2>/dev/null | sed -n 's|^.* / ||p' | grep -F -- "$2" || true
}

# part_python FOLDER PATTERN: pytest's names of the scenarios and house rules that have PATTERN in theirs, one a line. In an expression
# of pytest's, not every character of a parameter may stand.
part_python() {
	local expression=$2 name=tests/
	[[ $2 =~ \]\ (and|or)\  || ! $2 =~ ^([a-z0-9_]+)\[ ]] || { expression=${BASH_REMATCH[1]} && name=$2; }
	(cd "$root" && CSSL_BUILD_DIR=$1 /usr/bin/python3 -m pytest -q --collect-only -p no:cacheprovider -k "$expression" tests/house tests/scenario 2>/dev/null) |
		grep '^tests/.*::' | grep -F -- "$name" || true
}

# part_file NAME: where a file of Python tests is, with pytest's names behind it as they are
part_file() {
	local name=${1%%::*} path
	for path in "$name" "$root/$name" "$root/tests/scenario/$name" "$root/tests/house/$name"; do
		[[ ! -f $path ]] || { echo "$(readlink -f "$path")${1#"$name"}" && return; }
	done
}

# part_name FILE|PATTERN: what a failed run printed, as meson or pytest want it
part_name() {
	local name=${1##*cssl:* / } # meson puts the suites before it, pytest-xdist the group behind it, and tests/lib/tally.py names the module
	[[ ! $name =~ ^(.*::[^@[]*(\[.*\])?)@ ]] || name=${BASH_REMATCH[1]}
	[[ ! $name =~ ^(tests\.[a-z0-9_.]+)::(.*) ]] || name=${BASH_REMATCH[1]//.//}.py::${BASH_REMATCH[2]}
	echo "$name"
}

# part_is_known FILE|PATTERN: what nobody's name can have is refused before anything is installed. Names of units are of a word and of
# their file's name. Only a build knows the values of parameters, so they are only tried, as an expression of pytest's is.
part_is_known() {
	local name=${1%%\[*}
	[[ $1 == *[\ -]* || $(part_file "$1") ]] || grep -rqF -e "$name" "$root/tests" || [[ $(find "$root/tests" -path "*${name#*_}*" -print -quit) ]]
}

# part_say WHAT NAME...
part_say() {
	[[ $# -eq 1 ]] || say "$1 ($(($# - 1))): ${*:2:8}$([[ $# -le 9 ]] || echo " ...")"
}

# test_part BUILD FILE|PATTERN...
test_part() {
	local build=$1 PATH=$tools:$PATH asked units=() tests=() path
	shift
	for asked; do
		set -- "${@:2}" "$(part_name "$asked")"
	done
	for asked; do
		part_is_known "$asked" || usage_error test "no unit, scenario or house rule has '$asked' in its name"
	done
	test_download
	"configure_${build//-/_}" || die "$build cannot be configured"
	for asked; do
		path=$(part_file "$asked")
		case $asked in
		*.c) mapfile -t -O "${#units[@]}" units < <(part_units "$root/$build" "$(basename "$asked" .c | sed 's/^test_//')") ;;
		*) if [[ $path ]]; then
			tests+=("$path")
		else
			mapfile -t -O "${#units[@]}" units < <(part_units "$root/$build" "$asked")
			mapfile -t -O "${#tests[@]}" tests < <(part_python "$root/$build" "$asked")
		fi ;;
		esac
	done
	[[ $((${#units[@]} + ${#tests[@]})) -gt 0 ]] || usage_error test "no unit, scenario or house rule has '$*' in its name"
	part_say units "${units[@]}"
	part_say "scenarios and rules" "${tests[@]}"
	part_run "$build"
	test_sum
}

# part_run BUILD: `units` and `tests`
part_run() {
	local folder=$root/$1
	if [[ ${#units[@]} -gt 0 ]]; then
		CK_TIMEOUT_MULTIPLIER=4 without_turns meson test -C "$folder" --print-errorlogs --logbase part --timeout-multiplier 4 "${units[@]}" >&2 || true
		test_results+=(--meson "$folder/meson-logs/part.json")
	fi
	[[ ${#tests[@]} -gt 0 ]] || return 0
	build_release || test_broken+=("build of build")
	test_build "$1"
	(cd "$root" && test_python "$1" part "${tests[@]/#"$root/"/}")
	test_results+=(--junit "$folder/part.xml")
}

# shellcheck shell=bash
# test FILE|PATTERN...: some units, scenarios or house rules, with what they need built.

# part_units FOLDER NAME: the units whose names have NAME in them, one a line
part_units() {
	meson test -C "$1" --list 2>/dev/null | sed -n 's|^.* / ||p' | grep -F -- "$2" || true
}

# part_python FOLDER PATTERN: pytest's names of the scenarios and house rules that have PATTERN in theirs, one a line
part_python() {
	(cd "$root" && CSSL_BUILD_DIR=$1 /usr/bin/python3 -m pytest -q --collect-only -p no:cacheprovider -k "$2" tests/house tests/scenario 2>/dev/null) |
		grep '^tests/.*::' || true
}

# part_file NAME: where a file of Python tests is, with pytest's names behind it as they are
part_file() {
	local name=${1%%::*} path
	for path in "$name" "$root/$name" "$root/tests/scenario/$name" "$root/tests/house/$name"; do
		[[ ! -f $path ]] || { echo "$(readlink -f "$path")${1#"$name"}" && return; }
	done
}

# part_is_known FILE|PATTERN: what nobody's name has is refused before anything is installed; an expression of pytest's is only tried
part_is_known() {
	[[ $1 == *" "* || $(part_file "$1") ]] || grep -rqF -e "${1%%::*}" "$root/tests" || [[ $(find "$root/tests" -path "*$1*" -print -quit) ]]
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

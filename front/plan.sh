# shellcheck shell=bash
# DIR/plan: what `up` decided, for the commands that come later. Lines of `KEY VALUE`.

plan_get() {
	sed -n "s|^$2 ||p" "$1/plan"
}

# plan_listeners DIR: the names of the listeners for clients, one a line
plan_listeners() {
	sed -nE 's/^(sf|sl|smtp|submission|smtps) .*/\1/p' "$1/plan"
}

# plan_write DIR: the settings and fresh ports
plan_write() {
	local dir=$1 ports i count=${settings[agents]} wanted
	wanted=$((8 + 2 * count))
	mapfile -t ports < <("$root/front/free_ports" $wanted)
	[[ ${#ports[@]} -eq $wanted ]] || die "no free ports"
	{
		echo "build ${settings[build]}"
		echo "sf ${ports[0]}"
		echo "sl ${ports[1]}"
		echo "control ${ports[3]}"
		echo "control_plain ${ports[4]}"
		if [[ ${settings[backend]} ]]; then
			echo "backend ${settings[backend]}"
		else
			echo "backend 127.0.0.1:${ports[2]}"
			echo "embedded yes"
		fi
		if [[ ${settings[smtp_backend]} ]]; then
			echo "smtp_backend ${settings[smtp_backend]}"
			echo "smtp ${ports[5]}"
			echo "submission ${ports[6]}"
			echo "smtps ${ports[7]}"
		fi
		for ((i = 1; i <= count; i++)); do
			echo "agent a$i"
			echo "a$i.peer ${ports[6 + 2 * i]}"
			echo "a$i.tls ${ports[7 + 2 * i]}"
		done
	} >"$dir/plan"
}

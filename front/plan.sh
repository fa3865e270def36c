# shellcheck shell=bash
# DIR/plan: what `up` decided, for the commands that come later. Lines of `KEY VALUE`.

plan_get() {
	sed -n "s|^$2 ||p" "$1/plan"
}

# plan_write DIR: the settings and fresh ports
plan_write() {
	local dir=$1 ports i count=${settings[agents]}
	mapfile -t ports < <("$root/front/free_ports" $((5 + 2 * count)))
	[[ ${#ports[@]} -eq $((5 + 2 * count)) ]] || die "no free ports"
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
		for ((i = 1; i <= count; i++)); do
			echo "agent a$i"
			echo "a$i.peer ${ports[3 + 2 * i]}"
			echo "a$i.tls ${ports[4 + 2 * i]}"
		done
	} >"$dir/plan"
}

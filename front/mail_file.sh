# shellcheck shell=bash
# Writes DIR/smtpproxy.yaml: smtpproxy behind the listeners for mail.

# mail_listener_yaml DIR PORT [NEXT_HOP]
mail_listener_yaml() {
	text <<-YAML
		  - address: 127.0.0.1:$2
		    original_destination: proxy
		    trusted: [127.0.0.0/8]
	YAML
	[[ ! ${3:-} ]] || echo "    next_hop: \"$3\""
}

# Mail to the listeners in front would come back to smtpproxy.
mail_never_yaml() {
	local name
	for name in smtp submission smtps; do
		echo "    - 127.0.0.1:${plan[$name]:-}"
	done
}

mail_queue_yaml() {
	text <<-YAML
		deliver: queue
		queue:
		  role: alone
		  keys: mail.key
		  next_hop: "${settings[mail_to]}"
		  retry_first: 1s
		  retry_last: 1min
		  decided: 200000
		  backups:
		    - paths: ["127.0.0.1:${plan[redis1]:-}"]
		    - paths: ["127.0.0.1:${plan[redis2]:-}"]
	YAML
}

mail_yaml() {
	local dir=$1
	text <<-YAML
		# Written by ./cssl up. \`smtpproxy --help-config\` explains every key.
		name: $mail_name
		control: smtpproxy.sock
		status: mail-status.sock
		events: mail-events.json
	YAML
	[[ $EUID -ne 0 ]] || echo "user: $ragent_user"
	echo "listeners:"
	[[ ! ${plan[mail_queue]:-} ]] || mail_listener_yaml "$dir" "${plan[mail_queue]:-}"
	[[ ! ${plan[mail_gateway]:-} ]] || mail_listener_yaml "$dir" "${plan[mail_gateway]:-}" "${settings[mail_to]}"
	[[ ! ${plan[mail_relay]:-} ]] || mail_listener_yaml "$dir" "${plan[mail_relay]:-}"
	text <<-YAML
		outward:
		  any_port: on
		  local: [127.0.0.0/8, "::1/128"]
		  never:
	YAML
	mail_never_yaml "$dir"
	[[ ! ${plan[mail_queue]:-} ]] || mail_queue_yaml "$dir"
}

mail_file_write() {
	[[ ! ${plan[mail_port]:-} ]] || mail_yaml "$1" >"$1/smtpproxy.yaml"
}

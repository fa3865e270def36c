# shellcheck shell=bash
# Writes DIR/smtpproxy.yaml: smtpproxy behind the listeners for mail.

# mail_listener_yaml DIR PORT [NEXT_HOP]
mail_listener_yaml() {
	cat <<-YAML
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
		echo "    - 127.0.0.1:$(plan_get "$1" "$name")"
	done
}

mail_yaml() {
	local dir=$1
	cat <<-YAML
		# Written by ./cssl up. \`smtpproxy --help-config\` explains every key.
		name: $mail_name
		control: smtpproxy.sock
		events: mail-events.json
	YAML
	[[ $EUID -ne 0 ]] || echo "user: $ragent_user"
	echo "listeners:"
	[[ ! $(plan_get "$dir" mail_gateway) ]] || mail_listener_yaml "$dir" "$(plan_get "$dir" mail_gateway)" "${settings[mail_to]}"
	mail_listener_yaml "$dir" "$(plan_get "$dir" mail_relay)"
	cat <<-YAML
		outward:
		  any_port: on
		  local: [127.0.0.0/8, "::1/128"]
		  never:
	YAML
	mail_never_yaml "$dir"
}

mail_file_write() {
	[[ ! $(plan_get "$1" mail_relay) ]] || mail_yaml "$1" >"$1/smtpproxy.yaml"
}

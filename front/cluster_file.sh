# shellcheck shell=bash
# Writes DIR/cluster.yaml from the settings and the plan, and DIR/cluster.json from the plan and the running daemons.

# All daemons run as this user. The name of its group may be one that the cluster file does not accept.
link_group_yaml() {
	local group
	group=$(id -gn 2>/dev/null)
	[[ ! $group =~ ^[A-Za-z0-9][A-Za-z0-9_.-]*$ ]] || echo "    link_group: $group"
}

# backends_are_near DIR: a loopback source address reaches only these. Connections to an IPv6 address may have any source.
backends_are_near() {
	local mail
	mail=${plan[smtp_backend]:-}
	[[ ${plan[backend]:-} == 127.* ]] && [[ $mail == "" || $mail == 127.* || $mail == "["* || $mail == unix:* ]]
}

agent_yaml() {
	local dir=$1 name=$2 source=$3
	text <<-YAML
		  - name: $name
		    workers: ${settings[workers]}
		    link: unix:$dir/links/$name.sock
		    link_protection: ${settings[link]}
		    peer: 127.0.0.1:${plan[$name.peer]:-}
		    peer_socket: peers/$name.sock
	YAML
	# As root, RAgent becomes another user, and the socket gets the group of that user.
	[[ $EUID -eq 0 ]] || link_group_yaml
	! backends_are_near "$dir" || echo "    backend_source: $source"
	text <<-YAML
		    direct:
		      - address: 127.0.0.1:${plan[$name.tls]:-}
		        listener: sl
	YAML
}

http_service_yaml() {
	text <<-YAML
		    service: http
		    backend: main
		    alpn:
		      - { protocol: http/1.1, service: http, backend: main }
	YAML
}

# Every agent uses the same name. Mail servers look for their session by it. The certificates have it.
mail_name=mx.cssl.test

# smtp_service_yaml STARTTLS
smtp_service_yaml() {
	text <<-YAML
		    service: smtp
		    backend: mail
		    smtp:
		      starttls: $1
		      hostname: $mail_name
	YAML
	[[ ${settings[smtp_proxy_v2]} == on ]] || echo "      client_address: hidden"
}

# listener_yaml DIR NAME MODE COMMAND...: the command writes the keys of the service
listener_yaml() {
	local dir=$1 name=$2 mode=$3
	text <<-YAML
		  - name: $name
		    listen: [127.0.0.1:${plan[$name]:-}]
		    mode: $mode
		    migration: ${settings[migration]}
		    handshake: ${settings[handshake]}
		    resumption: ${settings[resumption]}
		    affinity_bound: ${settings[affinity_bound]}
	YAML
	"${@:4}"
	text <<-YAML
		    tls:
		      certificates: [ecdsa, rsa]
		      tls12_tickets: ${settings[tls12_tickets]}
	YAML
}

mail_listeners_yaml() {
	[[ ${plan[smtp_backend]:-} ]] || return 0
	listener_yaml "$1" smtp sf smtp_service_yaml offer
	listener_yaml "$1" submission sf smtp_service_yaml require
	listener_yaml "$1" smtps sf smtp_service_yaml implicit
}

mail_backend_yaml() {
	local address
	address=${plan[smtp_backend]:-}
	[[ -z $address ]] || echo "  - { name: mail, address: \"$address\", proxy_v2: ${settings[smtp_proxy_v2]} }"
}

cluster_yaml() {
	local dir=$1 name number=0
	text <<-YAML
		# Written by ./cssl up. conf/example.yaml explains every key.
		link_key: link.key
		agents_key: agents.key
		broadcast:
		  alone_after: 500ms
		ragents:
		  - name: r1
		    workers: ${settings[workers]}
		    control: ragent/control.sock
		    control_address: 127.0.0.1:${plan[control_plain]:-}
		    control_proxy_protocol: on
		    control_tokens: control.tokens
		    access_log: access.log
	YAML
	[[ ! ${plan[mail_port]:-} ]] || echo "    mail_status: mail-status.sock"
	[[ $EUID -ne 0 ]] || echo "    user: $ragent_user"
	echo "agents:"
	for name in ${plan[agents]}; do
		agent_yaml "$dir" "$name" "127.0.1.$((++number))"
	done
	text <<-YAML
		certificates:
		  - { name: ecdsa, chain: ecdsa.pem, key: ecdsa.key }
		  - { name: rsa, chain: rsa.pem, key: rsa.key }
		backends:
		  - { name: main, address: "${plan[backend]:-}" }
		  - { name: control, address: "127.0.0.1:${plan[control_plain]:-}", proxy_v2: on }
	YAML
	mail_backend_yaml "$dir"
	text <<-YAML
		listeners:
		  - name: control
		    listen: [127.0.0.1:${plan[control]:-}]
		    backend: control
		    tls:
		      certificates: [ecdsa, rsa]
	YAML
	listener_yaml "$dir" sf sf http_service_yaml
	listener_yaml "$dir" sl sl http_service_yaml
	mail_listeners_yaml "$dir"
}

cluster_file_write() {
	cluster_yaml "$1" >"$1/cluster.yaml"
}

agent_json() {
	printf '{"name":"%s","pid":%d,"tls":{"host":"127.0.0.1","port":%d}}' "$2" "$(daemon_pid "$1" "$2")" \
		"${plan[$2.tls]:-}"
}

listener_json() {
	printf '"%s":{"host":"127.0.0.1","port":%d}' "$2" "${plan[$2]:-}"
}

# The supervisor started the keeper, whose child is RAgent proper. If the kernel does not list children, this is the keeper.
ragent_json() {
	local keeper child=""
	keeper=$(daemon_pid "$1" r1)
	IFS=" " read -r child _ 2>/dev/null <"/proc/$keeper/task/$keeper/children" || true
	printf '{"pid":%d,"keeper":%d}' "${child:-$keeper}" "$keeper"
}

redis_json() {
	printf '{"host":"127.0.0.1","port":%d,"pid":%d}' "${plan[$2]:-}" "$(daemon_pid "$1" "$2")"
}

# The text ends with a comma.
mail_queue_json() {
	printf '"queue":{"host":"127.0.0.1","port":%d,"backups":[%s,%s]},' "${plan[mail_queue]:-}" \
		"$(redis_json "$1" redis1)" "$(redis_json "$1" redis2)"
}

# The text ends with a comma.
mail_json() {
	local gateway
	[[ ${plan[mail_port]:-} ]] || return 0
	gateway=${plan[mail_gateway]:-}
	printf '"mail":{"pid":%d,' "$(daemon_pid "$1" mail)"
	[[ ! ${plan[mail_relay]:-} ]] || printf '"relay":{"host":"127.0.0.1","port":%d},' "${plan[mail_relay]:-}"
	[[ ! ${plan[mail_queue]:-} ]] || mail_queue_json "$1"
	[[ -z $gateway ]] || printf '"gateway":{"host":"127.0.0.1","port":%d},' "$gateway"
	printf '"control":{"socket":"%s"}},' "$1/smtpproxy.sock"
}

cluster_json() {
	local dir=$1 name agents=() listeners=()
	for name in ${plan[listeners]}; do
		listeners+=("$(listener_json "$dir" "$name")")
	done
	for name in ${plan[agents]}; do
		agents+=("$(agent_json "$dir" "$name")")
	done
	local IFS=,
	printf '{"listeners":{%s},' "${listeners[*]}"
	printf '"control":{"socket":"%s","url":"https://localhost:%d/","token_file":"%s"},' \
		"$dir/ragent/control.sock" "${plan[control]:-}" "$dir/control.token"
	mail_json "$dir"
	printf '"ragent":%s,"agents":[%s],"ca":"%s"}\n' "$(ragent_json "$dir")" "${agents[*]}" "$dir/ca.pem"
}

# cluster_json_write DIR: complete or not at all. One writer at a time, or an older look at the daemons could be the last one.
cluster_json_write() {
	local lock
	exec {lock}<"$1"
	flock "$lock"
	cluster_json "$1" >"$1/cluster.json.new"
	mv "$1/cluster.json.new" "$1/cluster.json"
	exec {lock}<&-
}

# shellcheck shell=bash
# Writes DIR/cluster.yaml from the settings and the plan, and DIR/cluster.json from the plan and the running daemons.

# All daemons run as this user, whose group may have a name that is none for the file.
link_group_yaml() {
	local group
	group=$(id -gn 2>/dev/null)
	[[ ! $group =~ ^[A-Za-z0-9][A-Za-z0-9_.-]*$ ]] || echo "    link_group: $group"
}

agent_yaml() {
	local dir=$1 name=$2 source=$3
	cat <<-YAML
		  - name: $name
		    workers: ${settings[workers]}
		    link: unix:$dir/links/$name.sock
		    link_protection: ${settings[link]}
		    peer: 127.0.0.1:$(plan_get "$dir" "$name.peer")
		    peer_socket: peers/$name.sock
	YAML
	# As root, RAgent becomes another user, and its group is taken.
	[[ $EUID -eq 0 ]] || link_group_yaml
	# A loopback source reaches nothing else.
	[[ $(plan_get "$dir" backend) != 127.* ]] || echo "    backend_source: $source"
	cat <<-YAML
		    direct:
		      - address: 127.0.0.1:$(plan_get "$dir" "$name.tls")
		        listener: sl
	YAML
}

listener_yaml() {
	local dir=$1 mode=$2
	cat <<-YAML
		  - name: $mode
		    listen: [127.0.0.1:$(plan_get "$dir" "$mode")]
		    mode: $mode
		    migration: ${settings[migration]}
		    handshake: ${settings[handshake]}
		    resumption: ${settings[resumption]}
		    affinity_bound: ${settings[affinity_bound]}
		    service: http
		    backend: main
		    alpn:
		      - { protocol: http/1.1, service: http, backend: main }
		    tls:
		      certificates: [ecdsa, rsa]
		      tls12_tickets: ${settings[tls12_tickets]}
	YAML
}

cluster_yaml() {
	local dir=$1 name number=0
	cat <<-YAML
		# Written by ./cssl up. conf/example.yaml explains every key.
		link_key: link.key
		agents_key: agents.key
		broadcast:
		  alone_after: 500ms
		ragents:
		  - name: r1
		    workers: ${settings[workers]}
		    control: ragent/control.sock
		    control_address: 127.0.0.1:$(plan_get "$dir" control_plain)
		    control_proxy_protocol: on
		    control_tokens: control.tokens
		    access_log: access.log
	YAML
	[[ $EUID -ne 0 ]] || echo "    user: $ragent_user"
	echo "agents:"
	for name in $(plan_get "$dir" agent); do
		agent_yaml "$dir" "$name" "127.0.1.$((++number))"
	done
	cat <<-YAML
		certificates:
		  - { name: ecdsa, chain: ecdsa.pem, key: ecdsa.key }
		  - { name: rsa, chain: rsa.pem, key: rsa.key }
		backends:
		  - { name: main, address: "$(plan_get "$dir" backend)" }
		  - { name: control, address: "127.0.0.1:$(plan_get "$dir" control_plain)", proxy_v2: on }
		listeners:
		  - name: control
		    listen: [127.0.0.1:$(plan_get "$dir" control)]
		    backend: control
		    tls:
		      certificates: [ecdsa, rsa]
	YAML
	listener_yaml "$dir" sf
	listener_yaml "$dir" sl
}

cluster_file_write() {
	cluster_yaml "$1" >"$1/cluster.yaml"
}

agent_json() {
	printf '{"name":"%s","pid":%d,"tls":{"host":"127.0.0.1","port":%d}}' "$2" "$(daemon_pid "$1" "$2")" \
		"$(plan_get "$1" "$2.tls")"
}

# cluster_json_write DIR: complete or not at all
cluster_json_write() {
	local dir=$1 name agents=()
	for name in $(plan_get "$dir" agent); do
		agents+=("$(agent_json "$dir" "$name")")
	done
	(
		IFS=,
		printf '{"listeners":{"sf":{"host":"127.0.0.1","port":%d},"sl":{"host":"127.0.0.1","port":%d}},' \
			"$(plan_get "$dir" sf)" "$(plan_get "$dir" sl)"
		printf '"control":{"socket":"%s","url":"https://localhost:%d/","token_file":"%s"},' \
			"$dir/ragent/control.sock" "$(plan_get "$dir" control)" "$dir/control.token"
		printf '"ragent":{"pid":%d},"agents":[%s],"ca":"%s"}\n' "$(daemon_pid "$dir" r1)" "${agents[*]}" "$dir/ca.pem"
	) >"$dir/cluster.json.new"
	mv "$dir/cluster.json.new" "$dir/cluster.json"
}

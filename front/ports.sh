# shellcheck shell=bash
# Free loopback ports: below the range that the kernel gives to outgoing connections, so that none of those can take a port
# between its choice and its use.

# ports_free COUNT: so many, one a line, free for TCP and UDP
ports_free() {
	/usr/bin/python3 - "$1" <<-'PYTHON'
		import random, socket, sys

		def is_free(port):
		    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
		        with socket.socket(socket.AF_INET, kind) as s:
		            try:
		                s.bind(("127.0.0.1", port))
		            except OSError:
		                return False
		    return True

		count = int(sys.argv[1])
		chosen = []
		for port in random.sample(range(15000, 32000), 17000):
		    if len(chosen) == count:
		        break
		    if is_free(port):
		        chosen.append(port)
		if len(chosen) < count:
		    sys.exit("no free ports")
		print(*chosen, sep="\n")
	PYTHON
}

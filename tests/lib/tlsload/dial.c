/* dial.c */
#include "tests/lib/tlsload/dial.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/tlsload/group.h"

#define FIRST_SOURCE   0x7f010001u /* 127.1.0.1; agents ask the backend from 127.0.1.0/24 */
#define SOURCES_OF_NET 250u

static int bind_source(int fd, unsigned number)
{
	const struct sockaddr_in from = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(FIRST_SOURCE + (number / SOURCES_OF_NET << 8) + number % SOURCES_OF_NET) };

	return bind(fd, (const struct sockaddr *)&from, sizeof(from));
}

int dial(const struct group *g, unsigned client, uint16_t *port)
{
	const int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in local = { 0 };
	socklen_t len = sizeof(local);

	if (fd < 0)
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	/* Ports are chosen at connect, so that the same one serves towards different targets. */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	if ((g->sources > 0 && bind_source(fd, client % g->sources) < 0) ||
		(connect(fd, (const struct sockaddr *)&g->to, sizeof(g->to)) < 0 && errno != EINPROGRESS)) {
		const int error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	getsockname(fd, (struct sockaddr *)&local, &len);
	*port = ntohs(local.sin_port);
	return fd;
}

SSL *dial_tls(const struct group *g, unsigned client, int fd, SSL_SESSION *session)
{
	const int is_13 = g->version == VERSION_13 || (g->version == VERSION_BOTH && client % 2);
	SSL *ssl = SSL_new(is_13 ? g->load->tls13 : g->load->tls12);

	if (!ssl)
		return NULL;
	SSL_set_fd(ssl, fd);
	SSL_set_connect_state(ssl);
	SSL_set_tlsext_host_name(ssl, "localhost");
	SSL_set1_host(ssl, "localhost");
	if (session)
		SSL_set_session(ssl, session);
	return ssl;
}

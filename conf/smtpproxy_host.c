/* smtpproxy_host.c: tries the addresses that have to be this host's own, each at a port that the kernel chooses. Where
 * the kernel lets programs use addresses that are yet to come (net.ipv4.ip_nonlocal_bind), all are good. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conf/complaints.h"
#include "conf/smtpproxy.h"
#include "proto/error.h"

static int is_here(const struct sockaddr_storage *address)
{
	struct sockaddr_storage any_port = *address;
	struct sockaddr *a = (struct sockaddr *)&any_port;
	const int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	address_set_port(a, 0);
	const int is_not = fd < 0 ? errno == EAFNOSUPPORT : bind(fd, a, address_len(a)) < 0 && errno == EADDRNOTAVAIL;
	if (fd >= 0)
		close(fd);
	return !is_not;
}

static void check_address(
	struct complaints *k, const struct conf_smtpproxy *c, const char *key, const struct sockaddr_storage *address)
{
	char text[ADDRESS_TEXT_MAX];
	if (address->ss_family != AF_UNIX && !is_here(address))
		complain_value(k, conf_line(&c->file, address), key,
			address_format((const struct sockaddr *)address, text), "an address of this host");
}

int conf_smtpproxy_check_host(const struct conf_smtpproxy *c, char *error, size_t error_cap)
{
	struct complaints k;
	complaints_start(&k, c->file.path, error, error_cap);
	for (size_t i = 0; i < c->listener_count; i++)
		check_address(&k, c, "listeners.address", &c->listeners[i].address);
	for (size_t i = 0; i < c->outward.source_count; i++)
		check_address(&k, c, "outward.sources.address", &c->outward.sources[i].address);
	return k.count > 0 ? CSSL_E_CONFIG : 0;
}

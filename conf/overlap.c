/* overlap.c: 0.0.0.0:443 takes the port on every IPv4 address, also on 10.0.0.1; [::]:443 takes it on IPv6 addresses
 * only (net/listener.c). If two keys overlap, the complaint is about the later one. */
#include "conf/overlap.h"

/* Port 0 is a different port each time. UNIX sockets have no port. */
static int overlaps(const struct sockaddr_storage *one, const struct sockaddr_storage *other)
{
	const struct sockaddr *a = (const struct sockaddr *)one, *b = (const struct sockaddr *)other;

	return a->sa_family == b->sa_family && address_port(a) != 0 && address_port(a) == address_port(b) &&
	       (address_is_any(a) || address_is_any(b) || address_is_same_host(a, b));
}

/* @key has the address @late. @early is NULL, or the address that it overlaps with. */
static void tell(struct complaints *c, const struct conf *conf, const char *key, const struct sockaddr_storage *late,
	const struct sockaddr_storage *early)
{
	char found[ADDRESS_TEXT_MAX], taken[ADDRESS_TEXT_MAX];

	if (early)
		complain_value(c, conf_line(&conf->file, late), key,
			address_format((const struct sockaddr *)late, found),
			"another port than %s in line %u, or one of the two alone: the same process listens on both",
			address_format((const struct sockaddr *)early, taken), conf_line(&conf->file, early));
}

/* Of the listeners' addresses before the @number-th of the @listener-th, the first that is in the way of @late. */
static const struct sockaddr_storage *find_listen(
	const struct conf *conf, size_t listener, size_t number, const struct sockaddr_storage *late)
{
	for (size_t i = 0; i <= listener; i++) {
		const size_t count = i < listener ? conf->listeners[i].listen.count : number;
		for (size_t j = 0; j < count; j++)
			if (overlaps(late, &conf->listeners[i].listen.at[j]))
				return &conf->listeners[i].listen.at[j];
	}
	return NULL;
}

/* Each RAgent listens on the addresses of every listener, and on its own address for the control API. */
static void check_ragents(struct complaints *c, const struct conf *conf)
{
	for (size_t i = 0; i < conf->listener_count; i++) {
		const struct conf_addresses *listen = &conf->listeners[i].listen;
		for (size_t j = 0; j < listen->count; j++)
			tell(c, conf, "listen", &listen->at[j], find_listen(conf, i, j, &listen->at[j]));
	}
	for (size_t i = 0; i < conf->ragent_count; i++) {
		const struct sockaddr_storage *control = &conf->ragents[i].control_address;
		tell(c, conf, "control_address", control, find_listen(conf, conf->listener_count, 0, control));
	}
}

static const struct sockaddr_storage *find_bound(
	const struct conf_agent *a, size_t directs, const struct sockaddr_storage *late)
{
	if (overlaps(late, &a->link))
		return &a->link;
	if (overlaps(late, &a->peer))
		return &a->peer;
	for (size_t i = 0; i < directs; i++)
		if (overlaps(late, &a->direct[i].address))
			return &a->direct[i].address;
	return NULL;
}

/* No other key of the file may name an address that others connect to. Only a `direct` address can be the same. */
static void check_agent(struct complaints *c, const struct conf *conf, const struct conf_agent *a)
{
	for (size_t i = 0; i < a->direct_count; i++)
		tell(c, conf, "address", &a->direct[i].address, find_bound(a, i, &a->direct[i].address));
}

void overlap_check(struct complaints *c, const struct conf *conf)
{
	check_ragents(c, conf);
	for (size_t i = 0; i < conf->agent_count; i++)
		check_agent(c, conf, &conf->agents[i]);
}

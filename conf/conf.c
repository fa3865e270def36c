/* conf.c: loads the cluster file and derives values from it; and finds things by name. */
#include "conf/conf.h"

#include <string.h>

#include "conf/load.h"
#include "conf/memory.h"
#include "net/memory/machine_memory.h"

int conf_parse(const char *text, size_t len, const char *name, struct conf **out, char *error, size_t error_cap)
{
	return load_text(&schema_cluster, sizeof **out, text, len, name, out, error, error_cap);
}

int conf_load(const char *path, struct conf **out, char *error, size_t error_cap)
{
	const int r = load_file(&schema_cluster, sizeof **out, path, out, error, error_cap);
	if (r == 0)
		memory_derive(*out, machine_memory(""));
	return r;
}

void conf_destroy(struct conf *c)
{
	load_free(&schema_cluster, c);
}

/* One shape for all five: an array of structs that have a name. */
#define FIND(what, array, array_count)                                                                                 \
	const struct conf_##what *conf_##what##_find(const struct conf *c, const char *name)                           \
	{                                                                                                              \
		for (size_t i = 0; i < c->array_count; i++) {                                                          \
			if (strcmp(c->array[i].name, name) == 0)                                                       \
				return &c->array[i];                                                                   \
		}                                                                                                      \
		return NULL;                                                                                           \
	}

FIND(agent, agents, agent_count)
FIND(ragent, ragents, ragent_count)
FIND(listener, listeners, listener_count)
FIND(backend, backends, backend_count)
FIND(certificate, certificates, certificate_count)

bool conf_is_control_backend(const struct conf *c, const struct conf_backend *b)
{
	for (size_t i = 0; i < c->ragent_count; i++) {
		const struct sockaddr_storage *control = &c->ragents[i].control_address;
		if (control->ss_family != AF_UNSPEC && memcmp(control, &b->address, sizeof *control) == 0)
			return true;
	}
	return false;
}

bool conf_is_control(const struct conf *c, const struct conf_listener *l)
{
	const struct conf_backend *b = l->backend ? conf_backend_find(c, l->backend) : NULL;

	return b && conf_is_control_backend(c, b);
}

/* A worker shows its progress at every ping. */
uint32_t conf_ragent_hang_ms(const struct conf_ragent *r)
{
	const uint32_t pings_ms = 4 * r->health.ping_ms;

	return r->hang_ms > pings_ms ? r->hang_ms : pings_ms;
}

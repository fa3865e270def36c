/* conf.c: loads the cluster file and derives values from it; and finds things by name. */
#include "conf/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/document.h"
#include "conf/load.h"
#include "conf/memory.h"
#include "net/machine_memory.h"
#include "proto/error.h"

int conf_parse(const char *text, size_t len, const char *name, struct conf **out, char *error, size_t error_cap)
{
	const struct document_errors errors = { error, error_cap };
	struct conf *conf = calloc(1, sizeof *conf);
	int r = CSSL_E_NO_MEMORY;
	if (conf && (conf->path = strdup(name)) && (conf->marks = calloc(1, sizeof *conf->marks)))
		r = document_parse(text, len, name, &schema_cluster, conf, conf->marks, &errors);
	else
		snprintf(error, error_cap, "%s: out of memory", name);
	if (r) {
		conf_destroy(conf);
		return r;
	}
	*out = conf;
	return 0;
}

int conf_load(const char *path, struct conf **out, char *error, size_t error_cap)
{
	const struct document_errors errors = { error, error_cap };
	size_t len = 0;
	char *text = document_read(path, &len, &errors);
	if (!text)
		return CSSL_E_CONFIG;
	int r = conf_parse(text, len, path, out, error, error_cap);
	if (r == 0)
		memory_derive(*out, machine_memory(""));
	free(text);
	return r;
}

void conf_destroy(struct conf *c)
{
	if (!c)
		return;
	schema_free(&schema_cluster, c);
	if (c->marks)
		free(c->marks->at);
	free(c->marks);
	free(c->path);
	free(c);
}

unsigned conf_line(const struct conf *c, const void *field)
{
	return marks_line(c->marks, field);
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

int conf_is_control_backend(const struct conf *c, const struct conf_backend *b)
{
	for (size_t i = 0; i < c->ragent_count; i++) {
		const struct sockaddr_storage *control = &c->ragents[i].control_address;
		if (control->ss_family != AF_UNSPEC && memcmp(control, &b->address, sizeof *control) == 0)
			return 1;
	}
	return 0;
}

int conf_is_control(const struct conf *c, const struct conf_listener *l)
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

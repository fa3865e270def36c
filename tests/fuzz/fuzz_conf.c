/* fuzz_conf.c: cluster files. A good one has all that its schema requires. A bad one gets messages, each with the
 * name of the file. A small buffer for the messages changes nothing else. */
#include <string.h>

#include "conf/conf.h"
#include "tests/fuzz/must.h"

static void check_good(const struct conf *c)
{
	MUST(c->link_key && c->agents_key);
	MUST(c->agent_count > 0 && c->listener_count > 0);
	for (size_t i = 0; i < c->listener_count; i++) {
		const struct conf_listener *l = &c->listeners[i];
		MUST(conf_listener_find(c, l->name) == l);
		MUST(conf_backend_find(c, l->backend));
		MUST(l->tls.certificate_count > 0);
		MUST(conf_certificate_find(c, l->tls.certificates[0]));
		MUST(l->affinity_bound == 0 || l->affinity_bound >= 1);
	}
}

static void check_bad(const char *error, size_t cap)
{
	MUST(strnlen(error, cap) < cap);
	MUST(strncmp(error, "f.yaml:", strlen("f.yaml:")) == 0);
	for (const char *line = strchr(error, '\n'); line; line = strchr(line + 1, '\n'))
		MUST(strncmp(line + 1, "f.yaml:", strlen("f.yaml:")) == 0 ||
			strncmp(line + 1, "... and ", strlen("... and ")) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	char error[4096], small[48];
	struct conf *c = NULL, *again = NULL;
	const int r = conf_parse((const char *)in, len, "f.yaml", &c, error, sizeof error);
	MUST((r == 0) == (c != NULL));
	MUST(conf_parse((const char *)in, len, "f.yaml", &again, small, sizeof small) == r);
	if (c)
		check_good(c);
	else
		check_bad(error, sizeof error);
	conf_destroy(c);
	conf_destroy(again);
	return 0;
}

/* mx_list.c: each record is put at a random place among those of its preference. */
#include "smtpproxy/dns/mx_list.h"

#include <string.h>
#include <strings.h>

/* The first place whose preference is not below @preference. */
static unsigned place_of(const struct mx_list *l, uint32_t preference)
{
	unsigned at = 0;
	while (at < l->count && l->at[at].preference < preference)
		at++;
	return at;
}

static void insert(struct mx_list *l, const struct dns_mx *one, uint32_t (*random)(uint32_t below))
{
	const unsigned first = place_of(l, one->preference), behind = place_of(l, (uint32_t)one->preference + 1);
	const unsigned at = first + random(behind - first + 1);
	if (at == MX_LIST_MAX)
		return;
	l->count -= l->count == MX_LIST_MAX;
	memmove(&l->at[at + 1], &l->at[at], (l->count - at) * sizeof l->at[0]);
	l->at[at] = *one;
	l->count++;
}

enum mx_verdict mx_list_read(struct mx_list *l, const struct dns_record *records, size_t count, const char *own,
	uint32_t (*random)(uint32_t below))
{
	uint32_t own_preference = UINT32_MAX;
	struct dns_mx one;
	l->count = 0;
	for (size_t i = 0; i < count; i++) {
		if (dns_mx_read(records[i], &one) != 0)
			continue;
		if (one.host[0] == '\0' && count == 1)
			return MX_NULL;
		if (strcasecmp(one.host, own) == 0 && one.preference < own_preference)
			own_preference = one.preference;
		if (one.host[0] != '\0')
			insert(l, &one, random);
	}
	if (l->count == 0)
		return MX_BROKEN;
	l->count = place_of(l, own_preference);
	return l->count > 0 ? MX_HOSTS : MX_LOOP;
}

/* form.c: the table of forms. Durations and numbers of rows have limits of their own, and are read where they are used.
 */
#include "csslctl/form.h"

#include <stdlib.h>
#include <string.h>

#include "conf/value.h"
#include "net/report/log_level.h"
#include "net/socket/address.h"
#include "proto/cipher_suite.h"
#include "proto/session_id.h"

static bool is_hex(const char *text, size_t len)
{
	return strlen(text) == len && strspn(text, "0123456789abcdefABCDEF") == len;
}

static bool is_session(const char *text)
{
	return is_hex(text, 2 * SESSION_ID_LEN);
}

static bool is_family(const char *text)
{
	return is_hex(text, 2 * FAMILY_ID_LEN);
}

static bool is_hash(const char *text)
{
	return is_hex(text, 64);
}

/* As the cluster file wants it. */
static bool form_is_name(const char *text)
{
	static const struct schema_row any;
	char *name = NULL;
	const int r = value_parse(&any, SCHEMA_NAME, text, "", &name, sizeof name);

	free(name);
	return r == 0;
}

static bool is_network(const char *text)
{
	struct sockaddr_storage address;
	struct address_net net;

	return address_net_parse(text, &net) == 0 || address_parse_host(text, &address) == 0;
}

static bool is_version(const char *text)
{
	return strcmp(text, "1.2") == 0 || strcmp(text, "1.3") == 0;
}

static bool is_suite(const char *text)
{
	unsigned count;
	const struct cipher_suite *all = cipher_suites(&count);

	for (unsigned i = 0; i < count; i++)
		if (strcmp(all[i].name, text) == 0)
			return true;
	return false;
}

/* As the cluster file wants it. */
static bool is_weight(const char *text)
{
	char *end;
	const double weight = strtod(text, &end);

	return end != text && *end == '\0' && weight >= 0.01 && weight <= 1000;
}

static const struct form forms[] = {
	{ "AGENT", form_is_name, "name of an agent", "1 to 63 letters, digits and . _ - (not first)" },
	{ "SESSION", is_session, "session id", "64 hexadecimal digits" },
	{ "FAMILY", is_family, "family id", "32 hexadecimal digits" },
	{ "SHA256", is_hash, "SHA-256 of a certificate", "64 hexadecimal digits" },
	{ "NETWORK", is_network, "address or network", "such as 192.0.2.7 or 10.0.0.0/8" },
	{ "VERSION", is_version, "version of TLS here", "1.2 or 1.3" },
	{ "SUITE", is_suite, "cipher suite", "such as TLS_AES_128_GCM_SHA256" },
	{ "LEVEL", log_level_takes, "level", "debug, info, warning, error or configured" },
	{ "X", is_weight, "weight", "a number from 0.01 to 1000" },
};

const struct form *form_of(const char *placeholder)
{
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
		if (strcmp(forms[i].placeholder, placeholder) == 0)
			return &forms[i];
	return NULL;
}

/* --- connection ids are numbers of 32 hexadecimal digits here --- */

static const char digits[] = "0123456789abcdef";

bool id_is_beginning(const char *text)
{
	const size_t len = strlen(text);
	return len >= ID_DIGITS_MIN && len <= ID_DIGITS && strspn(text, digits) == len;
}

/* Fill the beginning up with zeros, and subtract one. */
bool id_before(const char *beginning, char out[static ID_DIGITS + 1])
{
	int i = ID_DIGITS - 1;

	memset(out, '0', ID_DIGITS);
	memcpy(out, beginning, strlen(beginning));
	out[ID_DIGITS] = '\0';
	while (i >= 0 && out[i] == '0')
		out[i--] = 'f';
	if (i < 0)
		return true;
	out[i] = strchr(digits, out[i])[-1];
	return false;
}

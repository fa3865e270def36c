/* place.c: --socket, --api, or a folder of ./cssl up with its cluster.json. */
#include "csslctl/place.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "csslctl/text.h"
#include "proto/error.h"

__attribute__((format(printf, 3, 4))) static int place_fail(char *error, int result, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(error, PLACE_ERROR_MAX, format, arguments);
	va_end(arguments);
	return result;
}

/* Where a cluster.json names the socket of the process that the command asks. */
static const struct {
	const char *member, *none;
} sockets[] = {
	[ASKS_CLUSTER] = { "control.socket", "%s names no control socket\nsay --socket PATH" },
	[ASKS_MAIL] = { "mail.control.socket",
		"%s names no smtpproxy\nstart a cluster with ./cssl up --mail, or say --socket PATH" },
};

static int find_in(const struct invocation *in, const char *folder, struct place *out, char *error)
{
	const unsigned reach = in->command ? in->command->reach : ASKS_CLUSTER;
	json_error_t fault;
	char *path = text_format("%s/cluster.json", folder);
	json_t *description = json_load_file(path, 0, &fault);
	const char *socket = json_string_value(member(description, sockets[reach].member));
	int result = 0;

	if (!description)
		result = place_fail(error, CSSL_E_NOT_FOUND,
			"%s: %s\nno cluster is up there; ./cssl up --dir starts one", path, fault.text);
	else if (!socket)
		result = place_fail(error, CSSL_E_NOT_FOUND, sockets[reach].none, path);
	else
		out->socket = text_format("%s", socket);
	json_decref(description);
	free(path);
	return result;
}

static int fits_together(const struct invocation *in, char *error)
{
	static const enum option of_api[] = { OPTION_CACERT, OPTION_TOKEN_FILE, OPTION_CERT, OPTION_KEY };
	const char *const *o = in->options;

	if (!!o[OPTION_SOCKET] + !!o[OPTION_API] + !!o[OPTION_DIR] > 1)
		return place_fail(
			error, CSSL_E_CONFIG, "--socket, --api and --dir name a cluster each: say one of them");
	for (size_t i = 0; !o[OPTION_API] && i < sizeof of_api / sizeof of_api[0]; i++)
		if (o[of_api[i]])
			return place_fail(
				error, CSSL_E_CONFIG, "--%s goes with --api URL", option_row(of_api[i])->name);
	if (o[OPTION_KEY] && !o[OPTION_CERT])
		return place_fail(error, CSSL_E_CONFIG, "--key goes with --cert FILE");
	return 0;
}

int place_find(const struct invocation *in, const char *folder, struct place *out, char error[static PLACE_ERROR_MAX])
{
	const char *const *o = in->options;

	*out = (struct place){ .token_file = o[OPTION_TOKEN_FILE],
		.ca_file = o[OPTION_CACERT],
		.certificate_file = o[OPTION_CERT],
		.key_file = o[OPTION_KEY] ? o[OPTION_KEY] : o[OPTION_CERT] };
	if (fits_together(in, error) < 0)
		return CSSL_E_CONFIG;
	if (o[OPTION_API]) {
		out->url = o[OPTION_API];
		return 0;
	}
	if (o[OPTION_SOCKET]) {
		out->socket = text_format("%s", o[OPTION_SOCKET]);
		return 0;
	}
	folder = o[OPTION_DIR] ? o[OPTION_DIR] : folder;
	if (folder && *folder != '\0')
		return find_in(in, folder, out, error);
	return place_fail(
		error, CSSL_E_CONFIG, "which cluster? Say --dir DIR (or set CSSL_DIR), --socket PATH or --api URL");
}

void place_clear(struct place *p)
{
	free(p->socket);
	*p = (struct place){ 0 };
}

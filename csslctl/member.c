/* member.c: the tool and RAgent may be of different releases, so an absent member is no error. */
#include "csslctl/member.h"

#include <string.h>

json_t *member(const json_t *object, const char *path)
{
	char name[64];

	for (;;) {
		const size_t len = strcspn(path, ".");
		snprintf(name, sizeof name, "%.*s", (int)len, path);
		object = json_object_get(object, name);
		if (!object || path[len] == '\0')
			return (json_t *)object;
		path += len + 1;
	}
}

uint64_t member_integer(const json_t *object, const char *path)
{
	const json_int_t n = json_integer_value(member(object, path));
	return n > 0 ? (uint64_t)n : 0;
}

double member_real(const json_t *object, const char *path)
{
	return json_number_value(member(object, path));
}

const char *member_text(const json_t *object, const char *path)
{
	const char *text = json_string_value(member(object, path));
	return text && *text != '\0' ? text : "-";
}

/* sess_obj_blobs.c: writes the stored blobs, one per suite and one of the next format, into a directory. Run once per
 * released format; blobs of released formats are never written again. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/proto/sess_obj_samples.h"

/* Field 500, a string: 0xa2 0x1f is its tag. A later format may add such a field. */
static const uint8_t unknown_field[] = { 0xa2, 0x1f, 5, 'l', 'a', 't', 'e', 'r' };

static void write_blob(const char *directory, unsigned format, const char *name, const uint8_t *blob, size_t len)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/sess_obj_format%u_%s", directory, format, name);
	file = fopen(path, "wb");
	if (!file || fwrite(blob, 1, len, file) != len || fclose(file) != 0)
		err(EXIT_FAILURE, "%s", path);
}

int main(int argc, char **argv)
{
	static struct sess_obj_sample sample;
	uint8_t blob[4096];
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);

	if (argc != 2)
		errx(EXIT_FAILURE, "usage: sess_obj_blobs DIRECTORY");
	for (unsigned i = 0; i < count; i++) {
		sess_obj_sample_fill(&sample, &suites[i], SAMPLE_BOTH);
		ptrdiff_t len = sess_obj_encode(&sample.object, blob, sizeof(blob));
		if (len < 0)
			errx(EXIT_FAILURE, "%s: %td", suites[i].name, len);
		write_blob(argv[1], SESS_OBJ_FORMAT, suites[i].name, blob, (size_t)len);
	}
	sess_obj_sample_fill(&sample, &suites[0], SAMPLE_BOTH);
	ptrdiff_t len = sess_obj_encode(&sample.object, blob, sizeof(blob) - sizeof(unknown_field));
	if (len < 2)
		errx(EXIT_FAILURE, "%s: %td", suites[0].name, len);
	blob[1] = SESS_OBJ_FORMAT_NEXT; /* the format is the first field: tag, value */
	for (size_t i = 0; i < sizeof(unknown_field); i++)
		blob[len++] = unknown_field[i];
	write_blob(argv[1], SESS_OBJ_FORMAT_NEXT, suites[0].name, blob, (size_t)len);
	return EXIT_SUCCESS;
}

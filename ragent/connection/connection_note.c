/* connection_note.c: the note that an owner left about the answer under way (download.h). The valid image for the next
 * process names it (trail.h). So one that is replaced or dropped stays until another image is valid.
 */
#include "ragent/connection/connection_internal.h"

static struct fine_blocks *memory(const struct connection *c)
{
	return &c->home->belongings;
}

/* If one waits for another image already, no image names the current one. */
static void part_with_note(struct connection *c)
{
	struct busy_part *a = c->busy;

	if (a->download_former || !table_slot_has_all(&c->slot)) {
		download_drop(&a->download, memory(c));
		return;
	}
	a->download_former = a->download;
	a->download = NULL;
}

int connection_set_note(struct connection *c, const uint8_t *data, size_t len)
{
	struct download *fresh = NULL;
	int r = download_make(&fresh, memory(c), data, len);

	if (r < 0)
		return r;
	part_with_note(c);
	c->busy->download = fresh;
	fault_at("note.set", NULL, NULL);
	return 0;
}

void connection_drop_note(struct connection *c)
{
	part_with_note(c);
}

void connection_forget_former_note(struct connection *c)
{
	download_drop(&c->busy->download_former, memory(c));
}

size_t connection_note_len(const struct connection *c)
{
	const struct download *d = c->busy->download;

	return d ? fine_block_len(download_len(d)) : 0;
}

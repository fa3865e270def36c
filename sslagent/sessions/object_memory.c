/* object_memory.c: size classes. */
#include "sslagent/sessions/object_memory.h"

#include <openssl/crypto.h>
#include <stdlib.h>

#include "net/memory/slabs.h"

/* Most objects are a live part of 250 to 350 bytes with its place in the store, or a session of 450 to 700: there the
 * steps are small. */
static const uint16_t class_len[] = { 256, 288, 320, 352, 384, 416, 448, 480, 512, 544, 576, 640, 704, 768, 1024, 1536,
	2048, 3072, 4096 };
#define CLASS_COUNT (sizeof class_len / sizeof class_len[0])
#define NO_CLASS    CLASS_COUNT

struct object_memory {
	struct slabs slabs[CLASS_COUNT];
};

static size_t object_class_of(size_t len)
{
	size_t size_class = 0;

	while (size_class < CLASS_COUNT && class_len[size_class] < len)
		size_class++;
	return size_class;
}

struct object_memory *object_memory_create(void)
{
	struct object_memory *m = calloc(1, sizeof *m);

	for (size_t size_class = 0; m && size_class < CLASS_COUNT; size_class++)
		slabs_init_secret(&m->slabs[size_class], class_len[size_class]);
	return m;
}

void object_memory_destroy(struct object_memory *m)
{
	if (!m)
		return;
	for (size_t size_class = 0; size_class < CLASS_COUNT; size_class++)
		slabs_clear(&m->slabs[size_class]);
	free(m);
}

size_t object_memory_cost(size_t len)
{
	size_t size_class = object_class_of(len);

	return size_class == NO_CLASS ? len : class_len[size_class];
}

void *object_alloc(struct object_memory *m, size_t len)
{
	size_t size_class = object_class_of(len);

	return size_class == NO_CLASS ? OPENSSL_zalloc(len) : slabs_take(&m->slabs[size_class]);
}

void object_free(struct object_memory *m, void *object, size_t len)
{
	size_t size_class = object_class_of(len);

	if (!object)
		return;
	if (size_class == NO_CLASS)
		OPENSSL_clear_free(object, len);
	else
		slabs_give(&m->slabs[size_class], object);
}

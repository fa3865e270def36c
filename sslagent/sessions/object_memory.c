/* object_memory.c: size classes, made when first used. */
#include "sslagent/sessions/object_memory.h"

#include <openssl/crypto.h>
#include <stdlib.h>

#include "net/arena.h"

/* Most objects are a live part of 250 to 350 bytes with its place in the store, or a session of 450 to 700: there the
 * steps are small. */
static const uint16_t class_len[] = { 256, 288, 320, 352, 384, 416, 448, 480, 512, 544, 576, 640, 704, 768, 1024, 1536,
	2048, 3072, 4096 };
#define CLASS_COUNT (sizeof class_len / sizeof class_len[0])
#define NO_CLASS    CLASS_COUNT

struct object_memory {
	struct arena *arenas[CLASS_COUNT];
};

static size_t class_of(size_t len)
{
	size_t size_class = 0;

	while (size_class < CLASS_COUNT && class_len[size_class] < len)
		size_class++;
	return size_class;
}

struct object_memory *object_memory_create(void)
{
	return calloc(1, sizeof(struct object_memory));
}

void object_memory_destroy(struct object_memory *m)
{
	if (!m)
		return;
	for (size_t size_class = 0; size_class < CLASS_COUNT; size_class++)
		if (m->arenas[size_class])
			arena_destroy(m->arenas[size_class]);
	free(m);
}

size_t object_memory_cost(size_t len)
{
	size_t size_class = class_of(len);

	return size_class == NO_CLASS ? len : class_len[size_class];
}

void *object_alloc(struct object_memory *m, size_t len)
{
	size_t size_class = class_of(len);

	if (size_class == NO_CLASS)
		return OPENSSL_zalloc(len);
	if (!m->arenas[size_class])
		m->arenas[size_class] = arena_create(class_len[size_class]);
	return m->arenas[size_class] ? arena_alloc(m->arenas[size_class]) : NULL;
}

void object_free(struct object_memory *m, void *object, size_t len)
{
	size_t size_class = class_of(len);

	if (!object)
		return;
	if (size_class == NO_CLASS)
		OPENSSL_clear_free(object, len);
	else
		arena_free(m->arenas[size_class], object);
}

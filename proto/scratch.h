/* scratch.h: memory for protobuf-c to unpack one message that may hold keys. It is bounded: when it is used up,
 * unpacking fails. Closing it wipes and frees the unpacked message as a whole. A small one is in the struct itself, on
 * the caller's stack. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

#define SCRATCH_INSIDE 8192u

struct scratch {
	ProtobufCAllocator allocator; /* hand this to protobuf-c */
	uint8_t *start, *at, *end;
	size_t refused; /* bytes of the request that did not fit; 0: all did */
	uint8_t inside[SCRATCH_INSIDE] __attribute__((aligned(16)));
};

/* Room for @cap bytes. 0 or CSSL_E_NO_MEMORY. @s must not move until it is closed. */
int scratch_open(struct scratch *s, size_t cap);
void scratch_close(struct scratch *s);

/* The beginning of a message on the stack: Cssl__Pull pull = { MESSAGE(pull), .session_id = ... }. */
#define MESSAGE(name) .base = PROTOBUF_C_MESSAGE_INIT(&cssl__##name##__descriptor)

/* Bytes for a message that is only written: protobuf-c does not write through the pointer then. */
static inline ProtobufCBinaryData bytes_of(const void *data, size_t len)
{
	return (ProtobufCBinaryData){ len, (uint8_t *)data };
}

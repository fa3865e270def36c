/* secret.c: mlock(2), madvise(2), and what could not be locked. */
#include "net/memory/secret.h"

#include <errno.h>
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "net/report/log.h"

static _Atomic int warned_of_locking;
static _Atomic int locking_error; /* of the last try that failed */
static _Atomic uint64_t unlocked_bytes;

void secret_warn_if_unlocked(void)
{
	if (atomic_load(&unlocked_bytes) > 0 && !atomic_exchange(&warned_of_locking, 1))
		log_event(LOG_WARNING, NULL, "keys may be swapped out",
			"cause=%s limit=%s remedy=\"raise it (systemd: LimitMEMLOCK)\"", strerror(locking_error),
			"RLIMIT_MEMLOCK");
}

size_t secret_lock(void *at, size_t len)
{
	if (mlock(at, len) == 0)
		return len;
	locking_error = errno;
	atomic_fetch_add(&unlocked_bytes, len);
	return 0;
}

void secret_unlock(size_t len, size_t locked)
{
	atomic_fetch_sub(&unlocked_bytes, len - locked);
}

uint64_t secret_unlocked_bytes(void)
{
	return atomic_load(&unlocked_bytes);
}

size_t secret_protect(void *at, size_t len)
{
	madvise(at, len, MADV_DONTDUMP);
	const size_t locked = secret_lock(at, len);
	secret_warn_if_unlocked();
	return locked;
}

/* A leak checker does not search mappings for pointers to blocks of malloc, unless it is told to. */
#ifdef CSSL_SANITIZED
#include <sanitizer/lsan_interface.h>
#else
#define __lsan_register_root_region(at, len)   ((void)(at))
#define __lsan_unregister_root_region(at, len) ((void)(at))
#endif

void *secret_alloc(size_t len)
{
	void *object = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (object == MAP_FAILED)
		return NULL;
	secret_protect(object, len);
	__lsan_register_root_region(object, len);
	return object;
}

void secret_free(void *object, size_t len)
{
	if (!object)
		return;
	sodium_memzero(object, len);
	__lsan_unregister_root_region(object, len);
	munmap(object, len);
}

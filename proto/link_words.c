/* link_words.c: the tables of words for causes, refusals and states of an answer. */
#include "proto/link_words.h"

#include <stddef.h>

#define NAME_IN(names, number) name_in(names, sizeof names / sizeof names[0], (unsigned)(number))

static const char *name_in(const char *const *names, size_t count, unsigned number)
{
	return number < count ? names[number] : "unknown";
}

const char *link_cause_name(Cssl__Cause cause)
{
	static const char *const names[] = {
		[CSSL__CAUSE__CAUSE_HAND_OFF] = "hand-off",
		[CSSL__CAUSE__CAUSE_MOVE] = "move",
		[CSSL__CAUSE__CAUSE_DRAIN] = "drain",
		[CSSL__CAUSE__CAUSE_WAKE] = "wake",
		[CSSL__CAUSE__CAUSE_TAKEOVER] = "takeover",
		[CSSL__CAUSE__CAUSE_REST] = "rest",
	};

	return NAME_IN(names, cause);
}

const char *link_refusal_name(Cssl__LinkRefused__Reason reason)
{
	static const char *const names[] = {
		[CSSL__LINK_REFUSED__REASON__BUSY] = "busy",
		[CSSL__LINK_REFUSED__REASON__LEAVING] = "leaving",
		[CSSL__LINK_REFUSED__REASON__UNKNOWN_LISTENER] = "unknown listener",
		[CSSL__LINK_REFUSED__REASON__EPOCH_OLD] = "old epoch",
		[CSSL__LINK_REFUSED__REASON__COPY_BAD] = "bad copy",
		[CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE] = "unsafe nonce",
		[CSSL__LINK_REFUSED__REASON__NO_BACKEND] = "no backend",
		[CSSL__LINK_REFUSED__REASON__CANNOT_MOVE] = "cannot move",
		[CSSL__LINK_REFUSED__REASON__INTERNAL] = "internal error",
		[CSSL__LINK_REFUSED__REASON__NO_STREAM] = "no stream",
	};

	return NAME_IN(names, reason);
}

const char *link_response_name(Cssl__ResponseState response)
{
	static const char *const names[] = {
		[CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT] = "at checkpoint",
		[CSSL__RESPONSE_STATE__RESPONSE_NOTHING_DELIVERED] = "nothing delivered",
		[CSSL__RESPONSE_STATE__RESPONSE_PARTLY_DELIVERED] = "partly delivered",
		[CSSL__RESPONSE_STATE__RESPONSE_NOT_REPLAYABLE] = "not replayable",
		[CSSL__RESPONSE_STATE__RESPONSE_POISONED] = "poisoned",
	};

	return NAME_IN(names, response);
}

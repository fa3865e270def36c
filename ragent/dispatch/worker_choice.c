/* worker_choice.c: where an agent's workers can be shared out evenly, each hears from as few of RAgent's as may be,
 * and fewer links carry more records at a time. Where they cannot, connections are spread over all. */
#include "ragent/dispatch/worker_choice.h"

unsigned worker_choice(unsigned ours, unsigned self, unsigned theirs, uint64_t hash)
{
	if (ours % theirs == 0)
		return self % theirs;
	if (theirs % ours == 0)
		return self + ours * (unsigned)(hash % (theirs / ours));
	return (unsigned)(hash % theirs);
}

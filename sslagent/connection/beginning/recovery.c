/* recovery.c: the rule, as tables. */
#include "sslagent/connection/beginning/recovery.h"

static const enum recovery by_response[][2] = {
	/*                                                   nothing exposed     exposed */
	[CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT] = { RECOVERY_GO_ON, RECOVERY_HEAR },
	[CSSL__RESPONSE_STATE__RESPONSE_NOTHING_DELIVERED] = { RECOVERY_GO_ON, RECOVERY_HEAR },
	[CSSL__RESPONSE_STATE__RESPONSE_PARTLY_DELIVERED] = { RECOVERY_ALERT, RECOVERY_ALERT },
	[CSSL__RESPONSE_STATE__RESPONSE_NOT_REPLAYABLE] = { RECOVERY_BACKEND_LOST, RECOVERY_BACKEND_LOST },
	[CSSL__RESPONSE_STATE__RESPONSE_POISONED] = { RECOVERY_ALERT, RECOVERY_ALERT },
};

enum recovery recovery_begin(const struct recovery_facts *f)
{
	if ((unsigned)f->response >= sizeof by_response / sizeof by_response[0])
		return RECOVERY_ALERT;
	/* without the request no agent can ask for the rest of its answer */
	if (f->loss == SERVICE_MAY_REPEAT && f->answer == RECOVERY_ANSWER_KNOWN && f->exposed == RECOVERY_EXPOSED &&
		f->response == CSSL__RESPONSE_STATE__RESPONSE_PARTLY_DELIVERED)
		return RECOVERY_HEAR;
	if (f->loss == SERVICE_MAY_REPEAT)
		return by_response[f->response][f->exposed];
	/* only a conversation that has not begun can begin again */
	return f->on_loss == CONF_RECONNECT && f->exposed == RECOVERY_NOTHING_EXPOSED &&
			       f->response == CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT
		       ? RECOVERY_GO_ON
		       : RECOVERY_ALERT;
}

enum recovery recovery_judge(const struct recovery_heard *h)
{
	static const enum recovery by_repeat[][2] = {
		/*                           it may still talk  it is dead */
		[SERVICE_REPEAT_ANY_TIME] = { RECOVERY_GO_ON, RECOVERY_GO_ON },
		[SERVICE_REPEAT_IF_ALONE] = { RECOVERY_BACKEND_LOST, RECOVERY_GO_ON },
		[SERVICE_REPEAT_NEVER] = { RECOVERY_BACKEND_LOST, RECOVERY_BACKEND_LOST },
		[SERVICE_REPEAT_CUTS] = { RECOVERY_ALERT, RECOVERY_ALERT },
	};

	if (h->loss == SERVICE_CUT_BY_LOSS)
		return RECOVERY_ALERT;
	if (h->answer == RECOVERY_ANSWER_KNOWN)
		return h->requests == RECOVERY_HEARD_ITS_REQUEST ? RECOVERY_ASK_REST : RECOVERY_ALERT;
	enum recovery r = by_repeat[h->repeat][h->fate == CSSL__FATE__FATE_DEAD];
	/* the words answer one request; after them the others would seem to have reached no backend */
	return r == RECOVERY_BACKEND_LOST && h->outstanding > 1 ? RECOVERY_ALERT : r;
}

const char *recovery_name(enum recovery r)
{
	static const char *const names[] = {
		[RECOVERY_GO_ON] = "go on",
		[RECOVERY_HEAR] = "hear",
		[RECOVERY_ASK_REST] = "ask for the rest",
		[RECOVERY_BACKEND_LOST] = "backend lost",
		[RECOVERY_ALERT] = "alert",
	};

	return names[r];
}

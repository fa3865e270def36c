/* smtp_ends.c: a table of the last replies that have a counter or a reason of their own. */
#include "sslagent/service/smtp/smtp_ends.h"

#include "sslagent/counters.h"

struct row {
	enum smtp_own why;
	enum agent_counter counter;
	enum end_reason reason;
};

static const struct row *row_of(enum smtp_own why)
{
	static const struct row others = { .counter = COUNT_MAIL_421_OTHER, .reason = END_TRACK_LOST };
	static const struct row rows[] = {
		{ SMTP_OWN_NONE, COUNT_MAIL_421_OTHER, END_DONE },
		{ SMTP_OWN_BYE, COUNT_MAIL_421_OTHER, END_DONE },
		{ SMTP_OWN_SHUTTING_DOWN, COUNT_MAIL_421_LEAVING, END_SHUTTING_DOWN },
		{ SMTP_OWN_AGENT_LOST, COUNT_MAIL_421_AGENT_LOST, END_AGENT_LOST },
		{ SMTP_OWN_BACKEND_UNREACHABLE, COUNT_MAIL_421_BACKEND_UNREACHABLE, END_BACKEND_UNREACHABLE },
		{ SMTP_OWN_BACKEND_LOST, COUNT_MAIL_421_BACKEND_LOST, END_BACKEND_CLOSED },
		{ SMTP_OWN_BACKEND_BROKEN, COUNT_MAIL_421_BACKEND_BROKEN, END_BACKEND_CLOSED },
		{ SMTP_OWN_BACKEND_CHANGED, COUNT_MAIL_421_BACKEND_CHANGED, END_BACKEND_CLOSED },
		{ SMTP_OWN_MISCONFIGURED, COUNT_MAIL_421_OTHER, END_INTERNAL },
		{ SMTP_OWN_OVERLOADED, COUNT_MAIL_421_OTHER, END_OVERLOADED },
		{ SMTP_OWN_TIMED_OUT, COUNT_MAIL_421_OTHER, END_IDLE_TIMEOUT },
		{ SMTP_OWN_RECEIVER_REFUSES, COUNT_MAIL_CLIENTS_REFUSED, END_DONE },
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].why == why)
			return &rows[i];
	return &others;
}

enum end_reason smtp_end_reason(enum smtp_own why)
{
	return row_of(why)->reason;
}

void smtp_end_count(enum smtp_own why)
{
	count(row_of(why)->counter);
}

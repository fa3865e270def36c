/* stream_hold.c: the end of a turn flushes the streams in its list; holding takes a stream off that list. */
#include "net/stream_hold.h"

#include "net/stream_inside.h"

int stream_flush_is_due(const struct stream *s)
{
	return s->turn.prev != NULL;
}

void stream_hold(struct stream *s)
{
	if (s->state == STREAM_OPEN && !s->rings && s->writes == 0 && s->written == 0 && s->failure == 0 &&
		s->reading != READING_KEPT && s->reading != READING_RESUMED)
		turn_end_cancel(&s->turn);
}

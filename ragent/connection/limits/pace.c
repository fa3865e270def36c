/* pace.c: the times are evenly spaced; a caller may begin up to one burst before its time. */
#include "ragent/connection/limits/pace.h"

void pace_init(struct pace *p, uint32_t per_s, unsigned among)
{
	*p = (struct pace){ 0 };
	if (per_s == 0)
		return;
	p->interval_us = UINT64_C(1000000) * among / per_s;
	p->burst_us = UINT64_C(1000000) / PACE_BURST_PER_S;
}

uint64_t pace_delay_ms(struct pace *p, uint64_t now_ms)
{
	uint64_t now_us = now_ms * 1000;

	if (p->next_us < now_us)
		p->next_us = now_us;
	uint64_t ahead_us = p->next_us - now_us;
	p->next_us += p->interval_us;
	return ahead_us > p->burst_us ? (ahead_us - p->burst_us + 999) / 1000 : 0;
}

/* schema_rows.c: words that several tables of keys use. */
#include "conf/schema_rows.h"

#include "conf/conf.h"

const struct schema_word schema_switch_words[] = {
	{ "on", CONF_ON },
	{ "off", CONF_OFF },
	{ "true", CONF_ON },
	{ "false", CONF_OFF },
	{ NULL },
};

const struct schema_word schema_format_words[] = { { "text", LOG_TEXT }, { "json", LOG_JSON }, { NULL } };
const struct schema_word schema_level_words[] = {
	{ "debug", LOG_DEBUG },
	{ "info", LOG_INFO },
	{ "warning", LOG_WARNING },
	{ "error", LOG_ERROR },
	{ NULL },
};

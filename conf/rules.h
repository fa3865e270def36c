/* rules.h: rules between the keys of one map of the cluster file. The loader calls them through the schema if all
 * values of the map are good. @object is the map's struct. */
#pragma once

#include "conf/complaints.h"
#include "conf/tree.h"

void rules_broadcast(struct complaints *c, const struct node *map, const void *object);
void rules_cluster(struct complaints *c, const struct node *map, const void *object); /* struct conf */
void rules_health(struct complaints *c, const struct node *map, const void *object);  /* struct conf_health */
void rules_ragent(struct complaints *c, const struct node *map, const void *object);
void rules_agent(struct complaints *c, const struct node *map, const void *object);    /* struct conf_agent */
void rules_direct(struct complaints *c, const struct node *map, const void *object);   /* struct conf_direct */
void rules_listener(struct complaints *c, const struct node *map, const void *object); /* struct conf_listener */
void rules_smtp(struct complaints *c, const struct node *map, const void *object);     /* struct conf_smtp */
void rules_tls(struct complaints *c, const struct node *map, const void *object);      /* struct conf_tls */

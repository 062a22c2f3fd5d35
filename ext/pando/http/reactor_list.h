/* Intrusive lists: circular and doubly linked through a member of the objects they hold, so that everything but a
 * search takes constant time and no memory. Used by the reactor. */
#ifndef PANDO_HTTP_REACTOR_LIST_H
#define PANDO_HTTP_REACTOR_LIST_H

#include <stddef.h>

struct pando_node {
    struct pando_node *next, *prev;
};

static inline void pando_list_init(struct pando_node *list)
{
    list->next = list->prev = list;
}

static inline int pando_list_empty(const struct pando_node *list)
{
    return list->next == list;
}

static inline void pando_list_append(struct pando_node *list, struct pando_node *node)
{
    node->prev = list->prev;
    node->next = list;
    list->prev->next = node;
    list->prev = node;
}

/* Also works on an initialised node that is in no list. */
static inline void pando_list_remove(struct pando_node *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    pando_list_init(node);
}

#define pando_owner(node, type, member) ((type *)((char *)(node) - offsetof(type, member)))

#endif

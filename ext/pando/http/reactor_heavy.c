/* Heavy requests. A path is heavy when one of its responses has filled response_memory and gone on to a file, because
 * the client took it slowly. While clients together leave much unread, at most half of the workers serve heavy requests,
 * and after each reader that is cut for lack of room no heavy request is served for a moment. All other requests
 * overtake them, so that a crowd of slow readers waits for itself. Runs in the reactor. */
#include "reactor_private.h"

#define TIMES 8u       /* answers in a row taken in time, after which a path is no longer heavy */
#define PAUSE 1000u    /* milliseconds, after a reader was cut */

int pando_reactor_heavy_times(const struct pando_reactor *reactor)
{
    return reactor->out_total + reactor->spooled_responses >= reactor->config->response_total / 2;
}

/* --- paths --- */

static int is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* FNV-1a of the path. Every number hashes alike: /files/17 equals /files/18. Never 0. */
static uint32_t route_of(const struct pando_connection *connection)
{
    pando_http_span target = connection->parser.target;
    uint32_t hash = 2166136261u;
    if (!connection->in.data || target.off > connection->in_end || target.len > connection->in_end - target.off)
        return 1;
    const char *path = connection->in.data + target.off, *end = path + target.len;
    for (; path < end && *path != '?'; path++) {
        int digit = is_digit(*path);
        if (digit && path + 1 < end && is_digit(path[1]))
            continue;
        hash = (hash ^ (digit ? '0' : (unsigned char)*path)) * 16777619u;
    }
    return hash ? hash : 1;
}

static struct pando_reactor_route *entry_of(struct pando_reactor *reactor, uint32_t route)
{
    return &reactor->routes[route % PANDO_REACTOR_ROUTES];
}

/* NULL: the request is light. */
static struct pando_reactor_route *heavy_route(struct pando_reactor *reactor, const struct pando_connection *connection)
{
    uint32_t route = route_of(connection);
    struct pando_reactor_route *entry = entry_of(reactor, route);
    return entry->route == route && entry->times > 0 ? entry : NULL;
}

static int is_heavy(struct pando_reactor *reactor, const struct pando_connection *connection)
{
    return heavy_route(reactor, connection) != NULL;
}

/* --- requests being served --- */

static void serve(struct pando_reactor *reactor, struct pando_connection *connection)
{
    reactor->heavy_served += !connection->request.heavy;
    connection->request.heavy = 1;
}

void pando_reactor_heavy_offer(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (pando_reactor_heavy_times(reactor) && is_heavy(reactor, connection))
        serve(reactor, connection);
}

void pando_reactor_heavy_settle(struct pando_reactor *reactor, struct pando_connection *connection)
{
    reactor->heavy_served -= connection->request.heavy;
    connection->request.heavy = 0;
}

/* The threshold is one client's share of memory: a short answer goes to a file too when others have filled the
 * memory. */
static int leaves_much(const struct pando_reactor *reactor, const struct pando_connection *connection)
{
    uint64_t spooled = connection->overflow == -1 ? 0 : connection->overflow_end - connection->overflow_given;
    return connection->out_bytes + spooled >= reactor->config->response_memory;
}

void pando_reactor_heavy_note(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (connection->request.place != PANDO_TAKEN || connection->request.noted || !leaves_much(reactor, connection))
        return;
    connection->request.noted = 1;
    uint32_t route = route_of(connection);
    *entry_of(reactor, route) = (struct pando_reactor_route){.route = route, .times = TIMES};
    serve(reactor, connection);
}

void pando_reactor_heavy_answered(struct pando_reactor *reactor, const struct pando_connection *connection)
{
    if (!connection->request.heavy || connection->request.noted)
        return;
    struct pando_reactor_route *route = heavy_route(reactor, connection);
    if (route)
        route->times--;
}

/* --- the next request --- */

static int may_serve(const struct pando_reactor *reactor)
{
    if (!pando_reactor_heavy_times(reactor))
        return 1;
    uint32_t half = reactor->open_count > 1 ? reactor->open_count / 2 : 1;
    return reactor->heavy_served < half && reactor->now >= reactor->heavy_pause_until;
}

uint32_t pando_reactor_heavy_due(const struct pando_reactor *reactor, const struct pando_reactor_line *line)
{
    return line->heavy.count > 0 && may_serve(reactor) ? line->heavy.count : 0;
}

int pando_reactor_heavy_waits(const struct pando_reactor *reactor)
{
    for (uint32_t pool = 0; pool < reactor->config->pools; pool++)
        if (reactor->lines[pool].heavy.count > 0)
            return 1;
    return 0;
}

void pando_reactor_heavy_cut(struct pando_reactor *reactor)
{
    reactor->heavy_pause_until = reactor->now + PAUSE;
}

int pando_reactor_heavy_set_aside(struct pando_reactor *reactor, struct pando_connection *connection)
{
    if (!pando_reactor_heavy_times(reactor) || !is_heavy(reactor, connection) ||
        pando_queue_push(&pando_reactor_line_of(reactor, connection)->heavy, connection) == -1)
        return 0;
    connection->request.place = PANDO_SET_ASIDE;
    reactor->roomier |= reactor->waiting > 0; /* blocked lanes try again, see may_wait in reactor_room.c */
    return 1;
}

struct pando_connection *pando_reactor_heavy_next_light(struct pando_reactor *reactor, struct pando_reactor_line *line)
{
    struct pando_connection *connection;
    while ((connection = pando_queue_shift(&line->queue)))
        if (!pando_reactor_heavy_set_aside(reactor, connection))
            return connection;
    return NULL;
}

/* Requests that were set aside have waited longest. */
struct pando_connection *pando_reactor_heavy_next(struct pando_reactor *reactor, struct pando_reactor_line *line)
{
    struct pando_connection *connection = NULL;
    if (pando_reactor_heavy_due(reactor, line) == 0)
        connection = pando_reactor_heavy_next_light(reactor, line);
    if (!connection && pando_reactor_heavy_due(reactor, line) > 0)
        connection = pando_queue_shift(&line->heavy);
    return connection;
}

struct pando_connection *pando_reactor_heavy_victim(struct pando_reactor *reactor,
                                                    const struct pando_connection *newcomer)
{
    const struct pando_queue *heavy = &pando_reactor_line_of(reactor, newcomer)->heavy;
    return is_heavy(reactor, newcomer) ? pando_queue_victim(heavy, newcomer) : pando_queue_heaviest(heavy);
}

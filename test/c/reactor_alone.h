/* A reactor without its loop, for programs that call a part of it: a new one between begin and end, and clients that are
 * the other ends of socket pairs. Included by one source. */
#include "http/reactor_private.h"
#include "require.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct pando_reactor_config config = {
    .response_memory = 100000, .response_total = 64 << 20, .spool_total = 1 << 30, .buffer_memory = 1 << 30,
    .max_connections = 100, .pools = 1, .max_queue = {2}, .max_header_bytes = 16384, .max_target_bytes = 4096,
    .max_headers = 50, .header_timeout = 10000, .idle_timeout = 30000, .write_timeout = 30000};
static struct pando_stats stats;
static struct pando_channel_shared shared;
static struct pando_reactor *reactor;

static void begin(void)
{
    stats = (struct pando_stats){0};
    reactor = calloc(1, sizeof(*reactor));
    REQUIRE(reactor);
    reactor->config = &config;
    reactor->stats = &stats;
    reactor->channel.shared = &shared;
    reactor->closer.to = -1;
    reactor->limits = (pando_http_limits){config.max_header_bytes, config.max_target_bytes, config.max_headers};
    pando_reactor_reserve_init(reactor);
    pando_reactor_pool_init(&reactor->pool, config.buffer_memory);
    struct pando_node *lists[] = {&reactor->connections, &reactor->again, &reactor->graveyard, &reactor->spare,
                                  &reactor->readers};
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) pando_list_init(lists[i]);
    pando_reactor_timers_init(reactor);
    pando_reactor_overflow_init(reactor);
    reactor->now = 1000000;
    pando_reactor_spool_measure(reactor);
    reactor->scratch = calloc(1, PANDO_SCRATCH_BYTES);
    reactor->fields = calloc(config.max_headers, sizeof(*reactor->fields));
    reactor->listeners = calloc(PANDO_REACTOR_LISTENERS, sizeof(*reactor->listeners));
    reactor->epoll = epoll_create1(EPOLL_CLOEXEC);
    REQUIRE(reactor->scratch && reactor->fields && reactor->listeners && reactor->epoll != -1);
    REQUIRE(pando_reactor_requests_begin(reactor) == 0);
}

static void end(void)
{
    pando_reactor_connections_drop(reactor);
    pando_reactor_pool_drop(&reactor->pool);
    pando_reactor_requests_drop(reactor);
    pando_addresses_drop(&reactor->addresses);
    close(reactor->epoll);
    free(reactor->listeners);
    free(reactor->fields);
    free(reactor->scratch);
    free(reactor);
}

static struct pando_connection *connect_from(const char *address, int *client)
{
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    *client = ends[1];
    struct pando_connection *connection = pando_reactor_connection_open(reactor, ends[0], 0);
    REQUIRE(connection);
    strcpy(connection->remote, address);
    connection->origin = pando_address_of(address);
    return connection;
}

/* Connections that end because their listener has closed, while a request arrives on one of them. It may close the
 * next one, and it may end itself: the reactor still meets the end of its list. */
#include "http/reactor_private.h"
#include "require.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE 60 /* seconds, after which SIGALRM ends this program */
#define REQUEST "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define UNFINISHED "GET / HTTP/1.1\r\n"
#define MALFORMED "GET\r\n\r\n"

static const struct pando_reactor_config config = {
    .response_memory = 100000, .response_total = 64 << 20, .spool_total = 1 << 30, .buffer_memory = 1 << 30,
    .max_connections = 100, .pools = 1, .max_queue = {2}, .max_header_bytes = 16384, .max_target_bytes = 4096,
    .max_headers = 50, .header_timeout = 10000, .idle_timeout = 30000, .write_timeout = 30000};
static struct pando_stats stats;
static struct pando_channel_shared shared;
static struct pando_reactor *reactor;

/* Each has a reactor of its own, with one listener that was closed a while ago. */
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
    reactor->now = reactor->idle_until = 1000000;
    reactor->scratch = calloc(1, PANDO_SCRATCH_BYTES);
    reactor->fields = calloc(config.max_headers, sizeof(*reactor->fields));
    reactor->listeners = calloc(PANDO_REACTOR_LISTENERS, sizeof(*reactor->listeners));
    reactor->epoll = epoll_create1(EPOLL_CLOEXEC);
    REQUIRE(reactor->scratch && reactor->fields && reactor->listeners && reactor->epoll != -1);
    REQUIRE(pando_reactor_requests_begin(reactor) == 0);
    reactor->listeners[0].left = 1;
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

static void say(int client, const char *text)
{
    REQUIRE(write(client, text, strlen(text)) == (ssize_t)strlen(text));
}

static void read_from(struct pando_connection *connection, int client, const char *text)
{
    say(client, text);
    pando_reactor_connection_event(reactor, connection, EPOLLIN | EPOLLOUT);
}

/* The queue is full, so another client's newest request makes way, whose client has gone in this moment. */
static void the_next_one_is_closed(void)
{
    int clients[3];
    begin();
    struct pando_connection *first = connect_from("10.0.0.2", &clients[0]);
    struct pando_connection *idle = connect_from("10.0.0.1", &clients[1]);
    struct pando_connection *next = connect_from("10.0.0.2", &clients[2]);
    read_from(first, clients[0], REQUEST);
    read_from(next, clients[2], REQUEST);
    say(clients[1], REQUEST);
    close(clients[2]);
    pando_control_finish_draining(reactor);

    REQUIRE(first->state == PANDO_IN_FLIGHT && idle->state == PANDO_IN_FLIGHT && next->state == PANDO_CLOSED);
    close(clients[0]);
    close(clients[1]);
    end();
}

/* Memory is full, so an unfinished request makes way. Both clients have gone. */
static void both_are_closed(void)
{
    int clients[3];
    begin();
    struct pando_connection *idle = connect_from("10.0.0.1", &clients[0]);
    struct pando_connection *next = connect_from("10.0.0.2", &clients[1]);
    struct pando_connection *last = connect_from("10.0.0.3", &clients[2]);
    read_from(next, clients[1], UNFINISHED);
    reactor->pool.most = reactor->pool.lent;
    say(clients[0], MALFORMED);
    close(clients[0]);
    close(clients[1]);
    pando_control_finish_draining(reactor);

    REQUIRE(idle->state == PANDO_CLOSED && next->state == PANDO_CLOSED && last->state == PANDO_CLOSED);
    REQUIRE(stats.shed_memory == 1 && stats.refused_malformed == 1);
    close(clients[2]);
    end();
}

int main(void)
{
    alarm(PATIENCE);
    the_next_one_is_closed();
    both_are_closed();
    puts("all hold");
    return 0;
}

/* Connections that end because their listener has closed, while a request arrives on one of them. It may close the
 * next one, and it may end itself: the reactor still meets the end of its list. */
#include "reactor_alone.h"

#include <stdio.h>

#define PATIENCE 60 /* seconds, after which SIGALRM ends this program */
#define REQUEST "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define UNFINISHED "GET / HTTP/1.1\r\n"
#define MALFORMED "GET\r\n\r\n"

static void say(int client, const char *text)
{
    REQUIRE(write(client, text, strlen(text)) == (ssize_t)strlen(text));
}

static void read_from(struct pando_connection *connection, int client, const char *text)
{
    say(client, text);
    pando_reactor_connection_event(reactor, connection, EPOLLIN | EPOLLOUT);
}

/* Its listener was closed a while ago. */
static void begin_to_end(void)
{
    begin();
    reactor->listeners[0].left = 1;
    reactor->idle_until = reactor->now;
}

/* The queue is full, so another client's newest request makes way, whose client has gone in this moment. */
static void the_next_one_is_closed(void)
{
    int clients[3];
    begin_to_end();
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
    begin_to_end();
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

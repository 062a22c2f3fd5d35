/* The file with the unread part of a response, when the reactor cannot record what it has written there: with its
 * connection the file is closed, and its space is free. */
#include "reactor_alone.h"

#include <stdio.h>

int main(void)
{
    static char data[30000];
    size_t bytes = sizeof(data);
    int client;
    begin();
    struct pando_connection *connection = connect_from("10.0.0.1", &client);
    REQUIRE(pando_reactor_overflow_write(reactor, connection, data, &bytes) == 0 && bytes == sizeof(data));
    REQUIRE(reactor->overflows == 1 && reactor->spooled_responses == sizeof(data) && !connection->out);
    int file = connection->overflow;
    pando_reactor_connection_close(reactor, connection);

    REQUIRE(reactor->overflows == 0 && reactor->spooled_responses == 0 && connection->overflow == -1);
    REQUIRE(fcntl(file, F_GETFD) == -1);
    close(client);
    end();
    puts("all hold");
    return 0;
}

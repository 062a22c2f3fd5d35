/* Writes peer addresses as text, see address.h. Runs in the reactor and in workers. Pure C. */
#include "address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

int pando_http_address_text(int family, const void *address, char *text, size_t size)
{
    const struct in6_addr *six = address;
    if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(six)) {
        family = AF_INET;
        address = &six->s6_addr[12];
    }
    if ((family == AF_INET || family == AF_INET6) && inet_ntop(family, address, text, (socklen_t)size))
        return 1;
    if (size > 0)
        text[0] = '\0';
    return 0;
}

int pando_http_peer_text(const struct sockaddr_storage *peer, char *text, size_t size)
{
    const void *address = &((const struct sockaddr_in *)peer)->sin_addr;
    if (peer->ss_family == AF_INET6)
        address = &((const struct sockaddr_in6 *)peer)->sin6_addr;
    return pando_http_address_text(peer->ss_family, address, text, size);
}

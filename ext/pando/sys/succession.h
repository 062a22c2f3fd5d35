/* A line of processes of which one lives and the others only wait: the first,
 * whose end others wait for, and the witness, which may take up the work. */
#ifndef PANDO_SYS_SUCCESSION_H
#define PANDO_SYS_SUCCESSION_H

#include <sys/types.h>

/* In the first process, which has forked `living` and must be a subreaper. Guards the line, whose ends
 * are a pair of SEQPACKET sockets: hears of each birth, dismisses the witness before the last, reaps
 * whatever ends, passes signals on to the living process. When that one exits, or is asked to end by a signal,
 * so does this process, in the same way. When it crashes, the witness is told so; without
 * a witness the number of the signal is returned. -1 and an errno on failure. */
int pando_succession_guard(int line, pid_t living);
/* In a process that has forked its heir: waits to be told that the heir crashed, and of what
 * signal; most often it is killed here instead. -1 and an errno on failure. */
int pando_succession_witness(int line);
/* In the heir: tells the first process that this one lives now. 0, or -1 and an errno. */
int pando_succession_announce(int line);

#endif

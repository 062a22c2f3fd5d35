/* A line of processes, each forked from the one before, of which only the last works. Two others wait: the first
 * process, whose exit the user waits for, and the witness, which takes over if its heir crashes. Runs in all
 * processes of a test run. */
#ifndef PANDO_SYS_SUCCESSION_H
#define PANDO_SYS_SUCCESSION_H

#include <sys/types.h>

/* In the first process, which has forked `living` and must be a subreaper. Guards the line, whose ends are a pair of
 * SEQPACKET sockets: reads each birth, dismisses the witness before the last, reaps every ended child, passes signals
 * on to the living process. When that exits, or a signal asks it to end, this process ends in the same way. When it
 * crashes, the witness is told; without a witness, returns the number of the signal. -1 and errno on failure. */
int pando_succession_guard(int line, pid_t living);
/* In a process that has forked its heir: waits to hear that the heir crashed, and returns the signal; usually this
 * process is killed here instead. -1 and errno on failure. */
int pando_succession_witness(int line);
/* In the heir: tells the first process that this one lives now. 0, or -1 and errno. */
int pando_succession_announce(int line);

#endif

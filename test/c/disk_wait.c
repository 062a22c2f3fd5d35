/* Stays in the state that a process has while it waits for a disk: as the parent in vfork(2), until its child ends. The
 * child ends with standard input. */
#include <unistd.h>

int main(void)
{
    if (vfork() == 0) {
        char byte;
        ssize_t count = read(STDIN_FILENO, &byte, 1);
        _exit(count == 0 ? 0 : 1);
    }
    return 0;
}

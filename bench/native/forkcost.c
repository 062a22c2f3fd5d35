/* What a forked process pays for the memory that it inherits, on this machine: microseconds of CPU time for its first
 * read and for its first write of a page that the parent has written to. Prints both.
 *
 * The kernel copies the page tables when it forks, so a read costs no page fault: only the processor's own look-up. A
 * hypervisor that keeps page tables of its own has to fill these at the first access, and then each page costs
 * microseconds. A write costs a page fault and a copy everywhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 16384 };

static volatile char sink;

static double cpu_time(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0) {
        perror("clock_gettime");
        exit(1);
    }
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void visit(volatile char *memory, size_t page, int writes)
{
    for (size_t place = 0; place < PAGES * page; place += page) {
        if (writes)
            memory[place] = 2;
        else
            sink = memory[place];
    }
}

static double per_page(volatile char *memory, size_t page, int writes)
{
    double before = cpu_time();
    visit(memory, page, writes);
    return (cpu_time() - before) / PAGES;
}

int main(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    (void)madvise(memory, PAGES * page, MADV_NOHUGEPAGE); /* Ruby's heap is in small pages; an old kernel may not know it */
    visit(memory, page, 1);

    pid_t child = fork();
    if (child < 0) {
        perror("fork");
        return 1;
    }
    if (child == 0) {
        double read = per_page(memory, page, 0);
        double write = per_page(memory, page, 1);
        printf("%.3f %.3f\n", read, write);
        fflush(stdout);
        _exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child) {
        perror("waitpid");
        return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

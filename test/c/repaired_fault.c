/* A library that handles signals of its own making, as WebAssembly and Java runtimes do. Loaded by a Ruby. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

static struct sigaction before;
static char *page;
static int repaired;

static void repair(int signo, siginfo_t *info, void *context)
{
    char *address = info->si_addr;
    if (address < page || address >= page + 4096) {
        before.sa_sigaction(signo, info, context);
        return;
    }
    repaired++;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

/* -1 on failure. */
int install_repair(void)
{
    struct sigaction action;
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return -1;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = repair;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    return sigaction(SIGSEGV, &action, &before);
}

/* Makes a fault, and returns how many have been repaired. */
int fault(void)
{
    mprotect(page, 4096, PROT_NONE);
    *(volatile char *)page = 1;
    return repaired;
}

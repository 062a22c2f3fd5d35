/* For `pando doctor`, which examines processes from outside: whether two descriptors are one open file, and at which
 * line of Ruby a process that does not answer stands. Runs in the doctor's process, and as a signal handler in the
 * process it examines. */
#include "bind_sys.h"

#include <errno.h>
#include <ruby/debug.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/kcmp.h"

#define FRAMES 64
#define LINE_BYTES 1024

static int place_fd = -1;

static VALUE open_file_shared(VALUE self, VALUE one, VALUE fd, VALUE other, VALUE other_fd)
{
    int same = pando_open_file_shared(NUM2PIDT(one), NUM2INT(fd), NUM2PIDT(other), NUM2INT(other_fd));
    if (same == -1) rb_sys_fail("kcmp");
    return same ? Qtrue : Qfalse;
}

/* A C method has no file: "in sleep". */
static void write_frame(VALUE frame, int line)
{
    char text[LINE_BYTES];
    VALUE path = rb_profile_frame_path(frame);
    VALUE name = line > 0 ? Qnil : rb_profile_frame_method_name(frame);
    if (RB_TYPE_P(name, T_STRING)) {
        int length = snprintf(text, sizeof text, "in %.*s\n", (int)RSTRING_LEN(name), RSTRING_PTR(name));
        if (length <= 0 || length >= (int)sizeof text || write(place_fd, text, (size_t)length) == -1) return;
    }
    if (!RB_TYPE_P(path, T_STRING)) return;
    int length = snprintf(text, sizeof text, "%.*s:%d\n", (int)RSTRING_LEN(path), RSTRING_PTR(path), line);
    if (length <= 0 || length >= (int)sizeof text) return;
    if (write(place_fd, text, (size_t)length) == -1) return; /* nobody reads it any more */
}

static void write_place(void)
{
    static VALUE frames[FRAMES];
    static int lines[FRAMES];
    int count = rb_profile_frames(0, FRAMES, frames, lines);
    for (int i = 0; i < count; i++) write_frame(frames[i], lines[i]);
    if (write(place_fd, "\n", 1) == -1) place_fd = -1;
}

/* Reads frames as sampling profilers do: allocates nothing, runs no Ruby. Only the main thread certainly has a Ruby
 * stack, and it is the one that serves. If the kernel has chosen another thread (Ruby's timer thread, say), that one
 * passes the signal on. */
static void tell_place(int signal)
{
    int before = errno;
    pid_t main_thread = getpid();
    if (place_fd != -1) {
        if (syscall(SYS_gettid) == main_thread) write_place();
        else syscall(SYS_tgkill, main_thread, main_thread, signal);
    }
    errno = before;
}

/* From now on this signal makes the process write its stack to this descriptor, even when no Ruby can run: one line
 * per frame ("app.rb:3", or "in sleep" for a C method), then an empty line. */
static VALUE tell_place_on(VALUE self, VALUE signal, VALUE io)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = tell_place;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    place_fd = pando_fd_of(io);
    if (sigaction(NUM2INT(signal), &action, NULL) == -1) rb_sys_fail("sigaction");
    return Qnil;
}

void pando_init_inspect(void)
{
    rb_define_singleton_method(pando_mSys, "open_file_shared?", open_file_shared, 4);
    rb_define_singleton_method(pando_mSys, "tell_place_on", tell_place_on, 2);
}

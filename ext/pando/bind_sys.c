/* Pando::Sys: thin Linux calls, for any process. Each failure raises the Errno of its call. */
#include "bind_sys.h"

#include <math.h>
#include <ruby/io.h>

VALUE pando_mSys;

int pando_fd_of(VALUE io)
{
    return RB_INTEGER_TYPE_P(io) ? NUM2INT(io) : NUM2INT(rb_funcall(io, rb_intern("fileno"), 0));
}

int pando_milliseconds(VALUE seconds)
{
    double value = NUM2DBL(seconds);
    return value > 0 ? (int)ceil(fmin(value, 86400) * 1000) : 0;
}

void pando_init_sys(void)
{
    pando_mSys = rb_define_module_under(pando_mPando, "Sys");
    pando_init_process();
    pando_init_exercise();
    pando_init_fork();
    pando_init_fork_check();
    pando_init_pages();
    pando_init_hot_set();
    pando_init_page_watch();
    pando_init_record();
    pando_init_scoreboard();
    pando_init_poller();
    pando_init_fds();
    pando_init_descriptors();
    pando_init_title();
    pando_init_succession();
    pando_init_inspect();
}

/* Binds sys/title.c. Runs in workers. */
#include "bind_sys.h"

#include "sys/title.h"

/* Whether the end of this title, which the caller has just set, can be rewritten in place. */
static VALUE locate_title(VALUE self, VALUE title)
{
    StringValue(title);
    return pando_title_locate(RSTRING_PTR(title), (size_t)RSTRING_LEN(title)) == 0 ? Qtrue : Qfalse;
}

/* False if the title is no longer there: the application may have set another. */
static VALUE end_title(VALUE self, VALUE word)
{
    StringValue(word);
    return pando_title_end(RSTRING_PTR(word), (size_t)RSTRING_LEN(word)) == 0 ? Qtrue : Qfalse;
}

void pando_init_title(void)
{
    rb_define_singleton_method(pando_mSys, "locate_title", locate_title, 1);
    rb_define_singleton_method(pando_mSys, "end_title", end_title, 1);
}

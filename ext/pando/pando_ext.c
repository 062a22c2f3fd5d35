/* Entry point of the extension: defines Pando and lets each part add its own. Runs in every process with Ruby, when
 * the extension is loaded. */
#include "pando_ext.h"

VALUE pando_mPando;

RUBY_FUNC_EXPORTED void Init_pando_ext(void)
{
    pando_mPando = rb_define_module("Pando");
    pando_init_sys();
    pando_init_http();
    pando_init_origins();
}

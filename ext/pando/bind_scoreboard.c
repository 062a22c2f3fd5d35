/* Pando::Sys::Scoreboard and its rows. Runs in all processes of a cluster. */
#include "bind_sys.h"

#include <errno.h>
#include <unistd.h>

#include "bind_row.h"
#include "sys/measure.h"
#include "sys/scoreboard.h"

static VALUE cScoreboard, cRow;

static void scoreboard_free(void *data)
{
    struct pando_scoreboard *board = data;
    pando_scoreboard_unmap(board);
    if (board->fd != -1) close(board->fd);
    xfree(board);
}

static size_t scoreboard_size(const void *data)
{
    return sizeof(struct pando_scoreboard);
}

static const rb_data_type_t scoreboard_type = {
    .wrap_struct_name = "Pando::Sys::Scoreboard",
    .function = {.dfree = scoreboard_free, .dsize = scoreboard_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

struct row_view {
    struct pando_row *row;
    VALUE scoreboard; /* keeps the mapping alive */
};

static void row_mark(void *data)
{
    rb_gc_mark_movable(((struct row_view *)data)->scoreboard);
}

static void row_compact(void *data)
{
    struct row_view *view = data;
    view->scoreboard = rb_gc_location(view->scoreboard);
}

static const rb_data_type_t row_type = {
    .wrap_struct_name = "Pando::Sys::Row",
    .function = {.dmark = row_mark, .dfree = RUBY_DEFAULT_FREE, .dcompact = row_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static struct pando_scoreboard *board_of(VALUE self)
{
    struct pando_scoreboard *board;
    TypedData_Get_Struct(self, struct pando_scoreboard, &scoreboard_type, board);
    if (!board->mapping) rb_raise(rb_eIOError, "the scoreboard is not mapped");
    return board;
}

struct pando_row *pando_row_of(VALUE self)
{
    struct row_view *view;
    TypedData_Get_Struct(self, struct row_view, &row_type, view);
    return view->row;
}
#define row_of pando_row_of

static VALUE seconds(uint64_t nanoseconds)
{
    return nanoseconds ? DBL2NUM((double)nanoseconds / 1e9) : Qnil;
}

static VALUE scoreboard_wrap(struct pando_scoreboard **board)
{
    VALUE self = TypedData_Make_Struct(cScoreboard, struct pando_scoreboard, &scoreboard_type, *board);
    (*board)->fd = -1;
    return self;
}

static VALUE scoreboard_create(VALUE klass, VALUE seats)
{
    struct pando_scoreboard *board;
    long count = NUM2LONG(seats);
    if (count < 1 || count > PANDO_SEATS_MAX)
        rb_raise(rb_eArgError, "between 1 and %d seats, not %ld", PANDO_SEATS_MAX, count);
    VALUE self = scoreboard_wrap(&board);
    if (pando_scoreboard_create(board, (size_t)count) == -1) rb_sys_fail("scoreboard");
    return self;
}

static VALUE scoreboard_attach(VALUE klass, VALUE fd)
{
    struct pando_scoreboard *board;
    VALUE self = scoreboard_wrap(&board);
    if (pando_scoreboard_attach(board, NUM2INT(fd)) == -1) rb_sys_fail("scoreboard");
    return self;
}

/* A mapping outlives its descriptor: child processes close theirs. */
static VALUE scoreboard_close_fd(VALUE self)
{
    struct pando_scoreboard *board = board_of(self);
    if (board->fd != -1) close(board->fd);
    board->fd = -1;
    return Qnil;
}

static VALUE scoreboard_fileno(VALUE self)
{
    return INT2NUM(board_of(self)->fd);
}

static VALUE scoreboard_seats(VALUE self)
{
    return SIZET2NUM(board_of(self)->seats);
}

static VALUE wrap_row(VALUE self, struct pando_row *place)
{
    struct row_view *view;
    VALUE row = TypedData_Make_Struct(cRow, struct row_view, &row_type, view);
    view->row = place;
    RB_OBJ_WRITE(row, &view->scoreboard, self);
    return row;
}

static struct pando_row *row_at(struct pando_scoreboard *board, size_t index)
{
    struct pando_row *row = pando_scoreboard_row(board, index);
    if (!row) rb_raise(rb_eIndexError, "no seat %zu on this scoreboard", index);
    return row;
}

static VALUE scoreboard_row(VALUE self, VALUE seat)
{
    return wrap_row(self, row_at(board_of(self), NUM2SIZET(seat)));
}

static VALUE scoreboard_started_at(VALUE self)
{
    return seconds(pando_scoreboard_started_at(board_of(self)));
}

static VALUE scoreboard_used(VALUE self)
{
    return UINT2NUM(pando_scoreboard_used(board_of(self)));
}

/* Called by the monitor, as is the next one that writes. */
static VALUE scoreboard_use(VALUE self, VALUE seat)
{
    struct pando_scoreboard *board = board_of(self);
    size_t index = NUM2SIZET(seat);
    VALUE row = wrap_row(self, row_at(board, index));
    pando_scoreboard_use(board, index);
    return row;
}

static VALUE scoreboard_waiting(VALUE self, VALUE pool)
{
    return UINT2NUM(pando_scoreboard_waiting(board_of(self), NUM2SIZET(pool)));
}

static VALUE scoreboard_tell_waiting(VALUE self, VALUE pool, VALUE count)
{
    pando_scoreboard_tell_waiting(board_of(self), NUM2SIZET(pool), NUM2UINT(count));
    return count;
}

/* From now on this process can write no row. */
static VALUE scoreboard_guard(VALUE self)
{
    if (pando_scoreboard_guard(board_of(self)) == -1) rb_sys_fail("scoreboard");
    return self;
}

/* The row that this process writes. */
static VALUE scoreboard_take(VALUE self, VALUE seat)
{
    struct pando_scoreboard *board = board_of(self);
    size_t index = NUM2SIZET(seat);
    row_at(board, index);
    struct pando_row *row = pando_scoreboard_take(board, index);
    if (!row) rb_sys_fail("scoreboard");
    return wrap_row(self, row);
}

#define READER(field, convert) \
    static VALUE row_##field(VALUE self) \
    { \
        return convert(atomic_load_explicit(&row_of(self)->field, memory_order_acquire)); \
    }

READER(state, UINT2NUM)
READER(role, UINT2NUM)
READER(slot, UINT2NUM)
READER(generation, UINT2NUM)
READER(pool, UINT2NUM)
READER(threads, UINT2NUM)
READER(pid, INT2NUM)
READER(requests, ULL2NUM)

static VALUE row_lock_waited(VALUE self)
{
    return DBL2NUM((double)atomic_load_explicit(&row_of(self)->lock_waited, memory_order_relaxed) / 1e9);
}

READER(heartbeat, seconds)
READER(started_at, seconds)
READER(connections, UINT2NUM)

/* Called by the process whose row it is. */
static VALUE row_set_connections(VALUE self, VALUE count)
{
    atomic_store_explicit(&row_of(self)->connections, NUM2UINT(count), memory_order_release);
    return count;
}

static VALUE row_claim(VALUE self, VALUE role, VALUE slot, VALUE generation)
{
    struct pando_row *row = row_of(self);
    atomic_store_explicit(&row->role, NUM2UINT(role), memory_order_relaxed);
    atomic_store_explicit(&row->slot, NUM2UINT(slot), memory_order_relaxed);
    atomic_store_explicit(&row->generation, NUM2UINT(generation), memory_order_relaxed);
    atomic_store_explicit(&row->pid, (int32_t)getpid(), memory_order_relaxed);
    atomic_store_explicit(&row->started_at, pando_now(), memory_order_relaxed);
    pando_measure_restart(row);
    atomic_store_explicit(&row->heartbeat, pando_now(), memory_order_release);
    return self;
}

/* Called by the monitor. */
static VALUE row_tell(VALUE self, VALUE state, VALUE pool, VALUE threads)
{
    struct pando_row *row = row_of(self);
    atomic_store_explicit(&row->pool, NUM2UINT(pool), memory_order_relaxed);
    atomic_store_explicit(&row->threads, NUM2UINT(threads), memory_order_relaxed);
    atomic_store_explicit(&row->state, NUM2UINT(state), memory_order_release);
    return self;
}

static VALUE row_beat(VALUE self)
{
    atomic_store_explicit(&row_of(self)->heartbeat, pando_now(), memory_order_release);
    return Qnil;
}

static VALUE row_reset(VALUE self)
{
    pando_row_reset(row_of(self));
    return Qnil;
}

static void define_row(void)
{
    cRow = rb_define_class_under(pando_mSys, "Row", rb_cObject);
    rb_undef_alloc_func(cRow);
#define ROW_READER(name) rb_define_method(cRow, #name, row_##name, 0)
    ROW_READER(state);
    ROW_READER(role);
    ROW_READER(slot);
    ROW_READER(generation);
    ROW_READER(pool);
    ROW_READER(threads);
    ROW_READER(pid);
    ROW_READER(requests);
    ROW_READER(lock_waited);
    ROW_READER(heartbeat);
    ROW_READER(started_at);
    ROW_READER(connections);
#undef ROW_READER
    rb_define_method(cRow, "claim", row_claim, 3);
    rb_define_method(cRow, "tell", row_tell, 3);
    rb_define_method(cRow, "beat", row_beat, 0);
    rb_define_method(cRow, "connections=", row_set_connections, 1);
    rb_define_method(cRow, "reset", row_reset, 0);
    pando_init_row_jobs(cRow);
    pando_init_row_flags(cRow);
    pando_init_row_measurements(cRow);
    pando_init_row_samples(cRow);
    pando_init_row_prefault(cRow);
}

void pando_init_scoreboard(void)
{
    cScoreboard = rb_define_class_under(pando_mSys, "Scoreboard", rb_cObject);
    rb_undef_alloc_func(cScoreboard);
    rb_define_singleton_method(cScoreboard, "create", scoreboard_create, 1);
    rb_define_singleton_method(cScoreboard, "attach", scoreboard_attach, 1);
    rb_define_method(cScoreboard, "close_fd", scoreboard_close_fd, 0);
    rb_define_method(cScoreboard, "fileno", scoreboard_fileno, 0);
    rb_define_method(cScoreboard, "seats", scoreboard_seats, 0);
    rb_define_method(cScoreboard, "row", scoreboard_row, 1);
    rb_define_method(cScoreboard, "started_at", scoreboard_started_at, 0);
    rb_define_method(cScoreboard, "used", scoreboard_used, 0);
    rb_define_method(cScoreboard, "use", scoreboard_use, 1);
    rb_define_method(cScoreboard, "waiting", scoreboard_waiting, 1);
    rb_define_method(cScoreboard, "tell_waiting", scoreboard_tell_waiting, 2);
    rb_define_method(cScoreboard, "guard", scoreboard_guard, 0);
    rb_define_method(cScoreboard, "take", scoreboard_take, 1);
    define_row();
}

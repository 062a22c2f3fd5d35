/* Pando::HTTP::Reactor: fills in a reactor's papers and starts its process, http/reactor_process.c, which has no
 * Ruby. Runs in the monitor. */
#include "bind_http.h"
#include "bind_sys.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "http/reactor_process.h"

#define MONITOR_SILENCE 30000u /* milliseconds; the monitor sends word each second */

static VALUE setting(VALUE settings, const char *name)
{
    return rb_funcall(settings, rb_intern(name), 0);
}

static uint32_t count_of(VALUE settings, const char *name)
{
    return NUM2UINT(setting(settings, name));
}

/* nil: no limit */
static uint64_t bytes_of(VALUE settings, const char *name)
{
    VALUE value = setting(settings, name);
    return RTEST(value) ? NUM2ULL(value) : PANDO_REACTOR_NO_LIMIT;
}

/* Seconds to milliseconds, at least one; nil: no limit. */
static uint32_t time_of(VALUE settings, const char *name)
{
    VALUE value = setting(settings, name);
    if (!RTEST(value)) return 0;
    double milliseconds = ceil(NUM2DBL(value) * 1000);
    if (!(milliseconds >= 0)) rb_raise(rb_eArgError, "%s is negative", name);
    return milliseconds < 1 ? 1 : (uint32_t)fmin(milliseconds, UINT32_MAX);
}

/* none: the value for nil or false */
static uint32_t count_or(VALUE settings, const char *name, uint32_t none)
{
    VALUE value = setting(settings, name);
    return RTEST(value) ? NUM2UINT(value) : none;
}

static void read_settings(struct pando_reactor_config *config, VALUE settings)
{
    config->max_header_bytes = count_of(settings, "max_header_bytes");
    config->max_target_bytes = count_of(settings, "max_target_bytes");
    config->max_headers = count_of(settings, "max_headers");
    config->max_body_bytes = bytes_of(settings, "max_body_bytes");
    config->body_memory = bytes_of(settings, "body_memory");
    config->response_memory = bytes_of(settings, "response_memory");
    config->response_total = bytes_of(settings, "response_memory_total");
    config->spool_total = bytes_of(settings, "spool_total");
    config->buffer_memory = bytes_of(settings, "buffer_memory");
    config->header_timeout = time_of(settings, "header_timeout");
    config->body_timeout = time_of(settings, "body_timeout");
    config->idle_timeout = time_of(settings, "idle_timeout");
    config->write_timeout = time_of(settings, "write_timeout");
    config->max_connections = count_or(settings, "max_connections", UINT32_MAX / 2);
    config->max_per_address = count_or(settings, "max_connections_per_address", 0);
    config->max_requests = count_or(settings, "max_requests", 0);
    config->retry_after = count_of(settings, "retry_after");
    config->spool_in_memory = RTEST(setting(settings, "spool_in_memory"));
    config->retry = RTEST(setting(settings, "retry"));
    config->monitor_silence = MONITOR_SILENCE;
}

/* Appends a String to a list of strings that an empty one ends, with the character `mark` before it, unless that
 * is 0. */
static void append_text(char *list, size_t room, size_t *used, char mark, VALUE text, const char *what)
{
    const char *string = StringValueCStr(text);
    size_t place = *used + (mark != '\0'), size = strlen(string) + 1;
    if (place + size >= room) rb_raise(rb_eArgError, "%s: too long", what);
    list[*used] = mark;
    memcpy(list + place, string, size);
    list[*used = place + size] = '\0';
}

static void read_stream_paths(struct pando_reactor_papers *papers, VALUE paths)
{
    size_t used = 0;
    Check_Type(paths, T_ARRAY);
    for (long i = 0; i < RARRAY_LEN(paths); i++)
        append_text(papers->stream_paths, sizeof(papers->stream_paths), &used, '\0', rb_ary_entry(paths, i),
                    "stream_bodies");
}

/* An Array with an Array for each pool: the most requests that wait for it (nil: any number), how many seconds at most
 * (nil: any time), its paths, and its name (nil: it is the only one). */
static void read_pools(struct pando_reactor_papers *papers, VALUE pools)
{
    size_t used = 0, names = 0;
    Check_Type(pools, T_ARRAY);
    long count = RARRAY_LEN(pools);
    if (count < 1 || count > (long)PANDO_REACTOR_POOLS) rb_raise(rb_eArgError, "1 to %u pools", PANDO_REACTOR_POOLS);
    papers->config.pools = (uint32_t)count;
    for (long pool = 0; pool < count; pool++) {
        VALUE one = rb_ary_entry(pools, pool);
        VALUE most = rb_ary_entry(one, 0), seconds = rb_ary_entry(one, 1), paths = rb_ary_entry(one, 2);
        papers->config.max_queue[pool] = NIL_P(most) ? UINT32_MAX : NUM2UINT(most);
        papers->config.queue_timeout[pool] = NIL_P(seconds) ? 0 : (uint32_t)pando_milliseconds(seconds);
        Check_Type(paths, T_ARRAY);
        for (long i = 0; i < RARRAY_LEN(paths); i++)
            append_text(papers->pool_paths, sizeof(papers->pool_paths), &used, (char)('0' + pool),
                        rb_ary_entry(paths, i), "the paths of pools");
        if (!NIL_P(rb_ary_entry(one, 3)))
            append_text(papers->pool_names, sizeof(papers->pool_names), &names, '\0', rb_ary_entry(one, 3),
                        "the names of pools");
    }
}

/* nil: none */
static void read_text(char *place, size_t room, VALUE value, const char *name)
{
    if (!RTEST(value)) return;
    const char *text = StringValueCStr(value);
    if (strlen(text) >= room) rb_raise(rb_eArgError, "%s is too long", name);
    strcpy(place, text);
}

/* nil, or an Array of the path ("-": standard output), the format's number, and the share of requests. */
static void read_access_log(struct pando_reactor_papers *papers, VALUE log)
{
    struct pando_access_log_config *config = &papers->config.access_log;
    if (!RTEST(log)) return;
    Check_Type(log, T_ARRAY);
    read_text(papers->access_log, sizeof(papers->access_log), rb_ary_entry(log, 0), "access_log");
    config->format = NUM2UINT(rb_ary_entry(log, 1));
    double share = NUM2DBL(rb_ary_entry(log, 2));
    if (!(share > 0 && share <= 1) || config->format > PANDO_LOG_JSON) rb_raise(rb_eArgError, "access_log");
    double parts = share * 4294967296.0;
    config->sample = share < 1 ? (uint32_t)(parts < 1 ? 1 : parts) : 0;
}

/* An Array of objects with fileno, number and flags. */
static void read_listeners(struct pando_reactor_papers *papers, VALUE listeners)
{
    Check_Type(listeners, T_ARRAY);
    long count = RARRAY_LEN(listeners);
    if (count > (long)PANDO_REACTOR_LISTENERS)
        rb_raise(rb_eArgError, "more than %u listeners", PANDO_REACTOR_LISTENERS);
    for (long i = 0; i < count; i++) {
        VALUE listener = rb_ary_entry(listeners, i);
        papers->listeners[i] = (struct pando_listener){
            .fd = pando_fd_of(listener), .number = count_of(listener, "number"), .flags = count_of(listener, "flags")};
    }
    papers->config.listener_count = (uint32_t)count;
}

/* Reads the arguments listeners, channel, wake, control, spool_directory, settings and grace. Everything that may
 * raise happens here. */
static void read_arguments(struct pando_reactor_papers *papers, const VALUE *arguments)
{
    struct pando_reactor_config *config = &papers->config;
    VALUE settings = arguments[5];
    read_listeners(papers, arguments[0]);
    config->channel = pando_fd_of(arguments[1]);
    config->wake = pando_fd_of(arguments[2]);
    config->control = pando_fd_of(arguments[3]);
    read_text(papers->spool_directory, sizeof(papers->spool_directory), arguments[4], "spool_directory");
    read_settings(config, settings);
    read_pools(papers, setting(settings, "pools"));
    read_stream_paths(papers, setting(settings, "stream_bodies"));
    read_access_log(papers, setting(settings, "access_log"));
    read_text(papers->ready_path, sizeof(papers->ready_path), setting(settings, "ready_path"), "ready_path");
    read_text(papers->live_path, sizeof(papers->live_path), setting(settings, "live_path"), "live_path");
    config->grace = (uint32_t)pando_milliseconds(arguments[6]);
}

/* fork(listeners, channel, wake, control, spool_directory, settings, grace)
 *
 * The pid of a new process, which is the reactor until the monitor sends DRAIN or is gone. Its exit status is one of
 * the constants below. It has no other descriptors than these and the standard ones, and may outlive this process by
 * `grace` seconds. The caller keeps its own descriptors. */
static VALUE reactor_fork(int count, VALUE *arguments, VALUE module)
{
    struct pando_reactor_papers papers = {0};
    rb_check_arity(count, 7, 7);
    read_arguments(&papers, arguments);
    pid_t pid = pando_reactor_fork(&papers);
    if (pid == -1) rb_sys_fail("fork (of the reactor)");
    return PIDT2NUM(pid);
}

/* spawn(program, listeners, ...)
 *
 * The same, but the process executes that open file, which must be program/reactor_main.c, and so has none of this
 * process's memory. */
static VALUE reactor_spawn(int count, VALUE *arguments, VALUE module)
{
    struct pando_reactor_papers papers = {0};
    rb_check_arity(count, 8, 8);
    int program = pando_fd_of(arguments[0]);
    read_arguments(&papers, arguments + 1);
    pid_t pid = pando_reactor_spawn(program, &papers);
    if (pid == -1) rb_sys_fail("exec (of the reactor)");
    return PIDT2NUM(pid);
}

static void define_record(VALUE module, const char *name, int value)
{
    rb_define_const(module, name, INT2NUM(value));
}

void pando_init_http_reactor(void)
{
    VALUE module = rb_define_module_under(pando_mHTTP, "Reactor");
    rb_define_module_function(module, "fork", reactor_fork, -1);
    rb_define_module_function(module, "spawn", reactor_spawn, -1);

    /* Exit statuses; 1: it could not run. */
    define_record(module, "DRAINED", PANDO_REACTOR_DRAINED);
    define_record(module, "ORPHANED", PANDO_REACTOR_ORPHANED);
    define_record(module, "CONFUSED", PANDO_REACTOR_CONFUSED);

    /* Records of the control link: kind, lane, cause, and three numbers about a lane's worker; each 32 bits in the
     * machine's byte order. */
    define_record(module, "LANE_OPEN", PANDO_REACTOR_LANE_OPEN);
    define_record(module, "LANE_DEAD", PANDO_REACTOR_LANE_DEAD);
    define_record(module, "LANE_CLOSE", PANDO_REACTOR_LANE_CLOSE);
    define_record(module, "DRAIN", PANDO_REACTOR_DRAIN);
    define_record(module, "REOPEN_LOG", PANDO_REACTOR_REOPEN_LOG);
    define_record(module, "WELCOME", PANDO_REACTOR_WELCOME);
    define_record(module, "UNWELCOME", PANDO_REACTOR_UNWELCOME);
    define_record(module, "LISTENER_OPEN", PANDO_REACTOR_LISTENER_OPEN);
    define_record(module, "LISTENER_CLOSE", PANDO_REACTOR_LISTENER_CLOSE);
    define_record(module, "READY", PANDO_REACTOR_READY);
    define_record(module, "DRAINED_ALL", PANDO_REACTOR_DRAINED_ALL);
    define_record(module, "LANE_CORRUPT", PANDO_REACTOR_LANE_CORRUPT);
    define_record(module, "DIED", PANDO_REACTOR_DIED);
    define_record(module, "TIMEOUT", PANDO_REACTOR_TIMEOUT);
    define_record(module, "SUSPECT", PANDO_REACTOR_SUSPECT);
    define_record(module, "BESIDE", PANDO_REACTOR_BESIDE);
    define_record(module, "LEFT_LATE", PANDO_REACTOR_LEFT_LATE);
}

# frozen_string_literal: true

require "test_helper"
require "support/kept_connection"
require "support/limited_user"
require "support/namespaces"
require "support/ports"
require "support/servers"
require "support/shared_library"

# Promise: Pando may be what a container is started with: PID 1 or beneath an init, whatever user it runs as, on a file
# system that it cannot write to.
class ContainerTest < Minitest::Test
  include Support::Servers

  # Refuses the call that the variable REFUSED names. A seccomp filter does so with EPERM or, as a kernel that lacks the
  # call, with ENOSYS.
  REFUSING = <<~C
    #include <dlfcn.h>
    #include <errno.h>
    #include <stdarg.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/syscall.h>
    #include <unistd.h>

    static int refused(const char *call)
    {
        const char *calls = getenv("REFUSED");
        if (!calls || strcmp(calls, call) != 0) return 0;
        errno = access("denied", F_OK) == 0 ? EPERM : ENOSYS;
        return 1;
    }

    long syscall(long number, ...)
    {
        long a[6];
        va_list list;
        va_start(list, number);
        for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
        va_end(list);
        if (number == SYS_pidfd_open && refused("pidfd_open")) return -1;
        if (number == SYS_pidfd_send_signal && refused("pidfd_send_signal")) return -1;
        long (*kernel)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
        return kernel(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }

    int memfd_create(const char *name, unsigned int flags)
    {
        return refused("memfd_create") ? -1 : (int)syscall(SYS_memfd_create, name, flags);
    }

    int eventfd(unsigned int count, int flags)
    {
        return refused("eventfd2") ? -1 : (int)syscall(SYS_eventfd2, count, flags);
    }
  C
  # What does not work, the name in the error, and the calls that are needed.
  REFUSALS = {
    "memfd_create" => ["the memory that the server's processes share cannot be made", "scoreboard",
                       "call memfd_create(2): allow it"],
    "eventfd2" => ["what wakes the server's processes cannot be made", "eventfd", "call eventfd2(2): allow it"],
    "pidfd_open" => ["the server's processes cannot be watched", "pidfd_open",
                     "calls pidfd_open(2) and pidfd_send_signal(2): allow them"],
    "pidfd_send_signal" => ["the server's processes cannot be watched", "pidfd_send_signal",
                            "calls pidfd_open(2) and pidfd_send_signal(2): allow them"]
  }.freeze

  # /orphan leaves a process behind that has ended; its pid is the answer.
  APP = <<~'RUBY'
    run lambda { |env|
      body = "pid #{Process.pid} of #{Process.ppid}, #{env["rack.input"].read.size} bytes"
      if env["PATH_INFO"] == "/orphan"
        reader, writer = IO.pipe
        Process.wait(fork { writer.write(fork { exit!(0) }); writer.close; exit!(0) })
        writer.close
        body = reader.read
      end
      [200, {}, [body]]
    }
  RUBY

  INIT = 'trap "kill -TERM \$child" TERM; "$@" & child=$!; wait $child; wait $child'
  READ_ONLY = Support::Namespaces::READ_ONLY
  NO_PROC = 'mount -t tmpfs none /proc && exec "$@"'
  # What systemd's ProcSubset=pid does.
  PROCESSES_ONLY = 'umount /proc && mount -t proc -o subset=pid proc /proc && exec "$@"'

  def setup = need(nil)

  def need(script)
    obstacle = Support::Namespaces.obstacle(script)
    skip "no such container can be made here: #{obstacle}" if obstacle
  end

  def start(config = "workers 1", script: nil, user: [], **options)
    wrapper = [*Support::Namespaces.wrapper(script), *user]
    serve(app: APP, config: "refork :manual\n#{config}", wrapper: wrapper, **options)
  end

  # The process that is PID 1 in there, by its number out here.
  def first_process(server)
    wait_until { server.tree.children.first }.pid
  end

  def signal(server, name) = Process.kill(name, first_process(server))

  def test_pid_1_obeys_and_reaps
    server = start("workers 1\nrefork :manual")
    assert_equal 1, server.wait_past("monitor.listening")["pid"]
    assert_match(/ of 1, /, server.get("/").body)
    orphan = server.get("/orphan").body.to_i
    assert_equal orphan, server.wait_past("orphan.reaped")["pid"]
    server.wait_for("worker.ready", slot: 1) { signal(server, "TTIN") }
    server.wait_for("worker.exited", slot: 1) { signal(server, "TTOU") }
    server.wait_for("refork.finished") { signal(server, "USR2") }
    server.wait_for("reload.finished") { signal(server, "HUP") }
    server.wait_past("worker.exited", generation: 1) # else the killed one is this, and nothing replaces it
    server.wait_for("worker.ready") { Process.kill("KILL", worker_outside(server)) }
    assert_equal 200, server.get("/").status
    signal(server, "TERM")

    assert_equal 0, server.wait_for_exit.exitstatus
  end

  { "TERM" => 143, "INT" => 130 }.each do |name, status|
    define_method("test_pid_1_ends_by_#{name}_before_it_serves") do
      server = start("File.write('here', '')\nsleep", ready: false)
      wait_until { File.exist?(File.join(server.folder, "here")) }
      signal(server, name)

      assert_equal status, server.wait_for_exit.exitstatus
    end
  end

  def test_beneath_an_init
    server = start(script: INIT)
    monitor = server.wait_past("monitor.listening")["pid"]
    refute_equal 1, monitor
    assert_match(/ of #{monitor}, /, server.get("/").body)
    orphan = server.get("/orphan").body.to_i
    assert_equal orphan, server.wait_past("orphan.reaped")["pid"], "it is the monitor's, not the init's"
    signal(server, "TERM")

    assert_equal 0, server.wait_for_exit.exitstatus
  end

  def test_nothing_can_be_written_and_nobody_knows_the_user
    need(READ_ONLY)
    user = Support::LimitedUser.for(self)
    port = free_port
    server = start("workers 1\nhealth \"/up\"", script: READ_ONLY, user: user.wrapper, listen: "127.0.0.1:#{port}",
                                                env: { "HOME" => nil, "USER" => nil })
    wait_until(message: "its readiness") { ask(port, "/up", 0) == 200 }

    assert_equal [200, 503], [ask(port, "/", 100_000), ask(port, "/large", 1_000_000)], "no place for a large body"
    assert_equal 1, server.events("spool.unavailable").size
    signal(server, "TERM")
    assert_equal 0, server.wait_for_exit.exitstatus
  end

  def test_a_control_socket_that_cannot_be_made_is_said_so
    need(READ_ONLY)
    server = start("control \"control.sock\"", script: READ_ONLY, listen: "127.0.0.1:#{free_port}", ready: false)

    assert_equal 1, server.wait_for_exit.exitstatus
    assert_match(/cannot listen on unix:\S+control.sock: Read-only file system/, server.output)
  end

  def test_without_proc_the_server_says_what_is_missing
    need(NO_PROC)
    server = start(script: NO_PROC, ready: false)

    assert_equal 1, server.wait_for_exit.exitstatus
    assert_equal "pando: there is no /proc, where Pando reads what its processes use: mount it, as `mount -t proc " \
                 "proc /proc` does\n", server.output
  end

  def test_a_proc_with_nothing_but_processes_is_enough
    need(PROCESSES_ONLY)
    server = start(script: PROCESSES_ONLY)

    assert_equal 200, server.get("/").status
    signal(server, "TERM")
    assert_equal 0, server.wait_for_exit.exitstatus
  end

  REFUSALS.each do |call, (fault, name, advice)|
    define_method("test_a_filter_that_refuses_#{call}") do
      library = Support::SharedLibrary.path("librefusing.so", REFUSING)
      errors = { "" => "Function not implemented", 'File.write("denied", "")' => "Operation not permitted" }
      errors.each do |config, error|
        server = serve(ready: false, env: { "LD_PRELOAD" => library, "REFUSED" => call }, config: config)

        assert_equal(1, server.wait_for_exit.exitstatus)
        assert_equal("pando: #{fault}: #{error} - #{name}. Pando needs the system #{advice} in the seccomp filter of " \
                     "the container or service\n", server.output.lines.last)
      end
    end
  end

  private

  def ask(port, path, bytes)
    client = Support::KeptConnection.new(TCPSocket.new("127.0.0.1", port))
    fields = "Content-Length: #{bytes}\r\n" if bytes.positive?
    client.ask(path, fields: fields.to_s, body: "x" * bytes).answer.status
  end

  def worker_outside(server)
    Support::ProcTree.new(first_process(server)).titled("worker").first.pid
  end
end

# frozen_string_literal: true

require "test_helper"
require "open3"
require "support/limited_user"
require "support/servers"
require "support/shared_library"

# Promise: what the kernel refuses is nobody's fault. A server that has served waits for it however long that takes,
# keeps its mold, discards nothing, and serves again soon after.
class KernelRefusalsTest < Minitest::Test
  include Support::Servers

  parallelize_me! # they wait for the server's pauses most of the time

  # More than a fault of the application would be borne with.
  MANY = 8
  # The C library's posix_spawnp, in the process to which it is preloaded, and in none of those that it starts.
  REFUSING_SPAWN = <<~C
    #include <dlfcn.h>
    #include <errno.h>
    #include <spawn.h>
    #include <stdlib.h>
    #include <unistd.h>

    typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                               char *const[], char *const[]);

    int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                     const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
    {
        if (access("refuse", F_OK) == 0) return ENOMEM;
        spawn_function *next = (spawn_function *)dlsym(RTLD_NEXT, "posix_spawnp");
        return next(pid, file, actions, attributes, argv, envp);
    }
  C

  # What a fork is made of (ext/pando/sys/fork.c): the first question, which copies nothing, the fork of the middle
  # process, and its own. RLIMIT_NPROC refuses them with EAGAIN, want of memory with ENOMEM.
  FORKS = %w[vfork fork _Fork].freeze
  REFUSING_FORKS = <<~C
    #include <dlfcn.h>
    #include <errno.h>
    #include <unistd.h>

    typedef pid_t fork_function(void);

    static fork_function *fork_next, *plain_next;

    /* Now, for a new process must not look for anything. */
    __attribute__((constructor)) static void find(void)
    {
        fork_next = (fork_function *)dlsym(RTLD_NEXT, "fork");
        plain_next = (fork_function *)dlsym(RTLD_NEXT, "_Fork");
    }

    static pid_t ask(const char *file, fork_function *next)
    {
        if (access(file, F_OK) == -1) return next();
        errno = ENOMEM;
        return -1;
    }

    pid_t fork(void) { return ask("refuse fork", fork_next); }
    pid_t _Fork(void) { return ask("refuse _Fork", plain_next); }
    pid_t vfork(void) { return ask("refuse vfork", plain_next); } /* in C it cannot be passed on as it is */
  C

  # A process that has so many threads as the file says gets no further one, as by RLIMIT_NPROC or pids.max.
  REFUSING_THREADS = <<~C
    #include <dirent.h>
    #include <dlfcn.h>
    #include <errno.h>
    #include <pthread.h>
    #include <stdio.h>

    typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

    static int threads(void)
    {
        int count = 0;
        DIR *tasks = opendir("/proc/self/task");
        if (!tasks) return 0;
        for (struct dirent *one; (one = readdir(tasks));) count += one->d_name[0] != '.';
        closedir(tasks);
        return count;
    }

    static int refused(void)
    {
        int most = 0;
        FILE *file = fopen("most threads", "r");
        if (!file) return 0;
        int read = fscanf(file, "%d", &most);
        fclose(file);
        return read == 1 && threads() >= most;
    }

    int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument)
    {
        if (refused()) return EAGAIN;
        create_function *next = (create_function *)dlsym(RTLD_NEXT, "pthread_create");
        return next(thread, attributes, run, argument);
    }
  C

  # Older Rubies keep ended threads for the next ones, which the kernel then need not give.
  KEEPS_THREADS = RUBY_VERSION < "3.3"
  # Says which process and thread serve it.
  THREAD_APP = <<~'RUBY'
    run lambda { |env|
      sleep if env["PATH_INFO"] == "/late"
      [200, {}, ["#{Process.pid} #{Thread.current == Thread.main ? "main" : Thread.current.name}"]]
    }
  RUBY

  FORKS.each do |name|
    define_method(:"test_no_memory_for_#{name}_while_all_workers_are_gone") do
      server = serve(config: "workers 2\nrefork :manual\ncontrol 'control.sock'",
                     env: { "LD_PRELOAD" => refusing_forks })
      assert_kept(server) do
        server.write("refuse #{name}", "")
        assert_match(/Cannot allocate memory/, refused(server, "refork"))
        told = many(server, "fork.failed", role: "worker") { kill(*server.workers) }
        assert_equal([true], told.map { |event| event["reason"].include?("Cannot allocate memory") }.uniq, told.inspect)
        FileUtils.rm(File.join(server.folder, "refuse #{name}"))
      end
    end
  end

  def test_no_forks_while_all_workers_are_gone
    server = serve(config: "workers 3\nrefork :manual", wrapper: user.wrapper)
    assert_kept(server) do
      without_forks(server) { many(server, "fork.failed", role: "worker") { kill(*server.workers) } }
      server.wait_past("restart.recovered", role: "worker")
    end
  end

  def test_no_forks_while_a_rollout_is_under_way_and_all_workers_are_gone
    server = serve(config: <<~RUBY, wrapper: user.wrapper)
      workers 2
      refork :manual
      after_mold_fork { |_, mold| hold_until("go") if mold.generation.positive? }
    RUBY
    server.wait_for("refork.started") { server.signal("USR2") }
    wait_until { server.tree.titled("mold gen 1").any? }
    assert_kept(server, mold: false) do
      without_forks(server) do
        kill(*server.workers)
        many(server, "fork.failed", role: "worker") { server.write("go", "") }
      end
      server.wait_past("refork.finished", generation: 1)
    end
  end

  # The monitor has to boot a clean image, for no process is left that could fork one.
  def test_neither_forks_nor_programs_while_all_workers_and_the_mold_are_gone
    server = serve(config: "workers 2\nrefork :manual", env: { "LD_PRELOAD" => refusing_spawn }, wrapper: user.wrapper)
    assert_kept(server, mold: false) do
      without_forks(server) do
        server.write("refuse", "")
        mold = server.mold
        many(server, "fork.failed", role: "worker") { kill(*server.workers) } # none is left to be asked for a mold
        many(server, "spawn.failed", role: "mold") { kill(mold) }
      end
      FileUtils.rm(File.join(server.folder, "refuse"))
      server.wait_past("generation.current", purpose: "heal")
    end

    refute_empty(server.events("server.failing"))
  end

  def test_no_descriptors_for_the_monitor_while_all_workers_are_gone
    server = serve(config: "workers 2\nrefork :manual")
    assert_kept(server) do
      without_descriptors(server.pid) { many(server, "spawn.failed", role: "worker") { kill(*server.workers) } }
    end
  end

  def test_no_descriptors_for_the_monitor_while_the_mold_is_gone_too
    server = serve(config: "workers 2\nrefork :manual")
    assert_kept(server, mold: false) do
      without_descriptors(server.pid) do
        many(server, "spawn.failed", role: "mold") { kill(*server.workers, server.mold) }
      end
    end
  end

  # It hears of an order, and not what it needs to carry it out.
  def test_no_descriptors_for_the_mold_while_all_workers_are_gone
    server = serve(config: "workers 2\nrefork :manual")
    assert_kept(server) do
      without_descriptors(server.mold.pid) do
        many(server, "fork.failed", role: "worker") { kill(*server.workers) }
      end
    end
    assert_match(/Too many open files/, server.events("fork.failed").last["reason"])
  end

  def test_no_descriptors_for_the_worker_that_is_to_fork_the_next_mold
    server = serve(config: "workers 1\nrefork :manual\ncontrol 'control.sock'")
    assert_kept(server, mold: false) do
      without_descriptors(server.workers.first.pid) do
        assert_match(/Too many open files/, refused(server, "refork"))
      end
      server.refork
    end
  end

  # The processes begin, and cannot have what they need to be ready.
  def test_workers_that_are_refused_a_thread
    server = serve(config: <<~RUBY)
      workers 2
      refork :manual
      after_worker_fork { |*| raise ThreadError, "can't create Thread: Resource temporarily unavailable" if File.exist?("none") }
    RUBY
    assert_kept(server) do
      server.write("none", "")
      many(server, "worker.failed") { kill(*server.workers) }
      FileUtils.rm(File.join(server.folder, "none"))
    end
  end

  # It has ended its threads for the fork, and gets none of them back. The workers of the next generation get none.
  def test_a_worker_that_is_refused_all_its_threads_after_a_fork
    serving = refork_with_few_threads(0) { |server| assert_equal(504, server.get("/late").status) }

    assert_equal(["main"], serving) unless KEEPS_THREADS
  end

  def test_a_worker_that_is_refused_some_of_its_threads_after_a_fork
    serving = refork_with_few_threads(1)

    assert_equal(["pando request 1"], serving) unless KEEPS_THREADS
  end

  def test_reactor_and_service
    server = serve(config: <<~RUBY, wrapper: user.wrapper)
      workers 1
      refork :manual
      service(:clock) { |service| sleep 0.05 until service.leaving? }
    RUBY
    server.wait_past("service.ready")
    assert_kept(server) do
      without_forks(server) do
        many(server, "fork.failed", role: "service") { kill(*server.tree.titled("service")) }
        many(server, "spawn.failed", role: "reactor") { kill(*server.tree.titled("reactor")) }
      end
      wait_until(message: "the service") { server.tree.titled("service clock").any? }
    end
  end

  def test_orders_are_refused_and_change_nothing
    server = serve(config: "workers 2\nrefork :manual\ncontrol 'control.sock'", wrapper: user.wrapper)
    workers = server.workers.map(&:pid).sort
    assert_kept(server, mold: false) do
      without_forks(server) do
        assert_match(/Resource temporarily unavailable/, refused(server, "refork"))
        assert_match(/Resource temporarily unavailable/, refused(server, "reload"))
      end
      assert_equal(workers, server.workers.map(&:pid).sort)
      server.refork
    end
  end

  # The configuration can be read, and then there is no process for a mold.
  def test_a_reload_whose_mold_cannot_be_had
    server = serve(config: <<~RUBY, env: { "LD_PRELOAD" => refusing_spawn })
      workers 1
      refork :manual
      File.write("refuse", "") if File.exist?("reloading")
    RUBY
    server.write("reloading", "")
    failed = server.wait_for("reload.failed") { server.signal("HUP") }
    assert_match(/Cannot allocate memory/, failed["reason"])
    assert_empty(server.events("generation.discarded"))
    %w[reloading refuse].each { |name| FileUtils.rm(File.join(server.folder, name)) }
    server.wait_for("reload.finished") { server.signal("HUP") }
  end

  def test_a_time_after_which_it_gives_up
    server = serve(config: "workers 2\nrefork :manual\ngive_up after: 2", wrapper: user.wrapper)
    user.forbid_forks(server.processes)
    kill(*server.workers)
    status = server.wait_for_exit
    failing = server.events("server.failing")
    stopping = server.events("monitor.stopping").first

    assert_equal(1, status.exitstatus)
    assert_equal(["error"], failing.map { |event| event["level"] })
    assert_operator(failing.first["seconds"], :<=, 2)
    assert_equal(["error", 1], stopping.values_at("level", "status"))
    assert_match(/no worker has been ready for \d+ s \(give_up after: 2\).*temporarily unavailable/, stopping["reason"])
    assert_empty(server.events("generation.discarded"))
    assert_match(/give_up after: 2/, server.output[/^pando could not start or go on serving: .*/])
  end

  # It has never served a request, so the user who starts it wants to know at once.
  def test_a_first_boot_that_is_refused
    server = serve(ready: false, env: { "LD_PRELOAD" => refusing_spawn }, config: 'File.write("refuse", "")')

    assert_equal(1, server.wait_for_exit.exitstatus)
    assert_match(/could not start.*Cannot allocate memory/, server.output.lines.last)
  end

  private

  def user = @user ||= Support::LimitedUser.for(self)

  def refusing_forks = Support::SharedLibrary.path("librefusingforks.so", REFUSING_FORKS)
  def refusing_spawn = Support::SharedLibrary.path("librefusingspawn.so", REFUSING_SPAWN)

  # Reforks a server while each of its processes gets so many threads more than a mold has. Its only worker goes on, the
  # next ones are not ready before the shortage is over.
  # @return [Array<String>] the threads that serve meanwhile
  def refork_with_few_threads(count)
    server = serve(config: "workers 1\nthreads 3\nrefork :manual\ntimeout 1, grace: 20", app: THREAD_APP,
                   env: { "LD_PRELOAD" => Support::SharedLibrary.path("librefusingthreads.so", REFUSING_THREADS) })
    worker = server.workers.first.pid
    serving = assert_kept(server, mold: false) do
      most = Dir.children("/proc/#{server.mold.pid}/task").size + count
      server.write("most threads", most.to_s)
      many(server, "worker.failed") { server.signal("USR2") }
      bodies = Array.new(20) { server.get("/").body }
      yield server if block_given?
      FileUtils.rm(File.join(server.folder, "most threads"))
      server.wait_past("refork.finished", generation: 1)
      bodies.map { |body| body.split(" ", 2) }
    end
    assert_match(/can't create Thread/, server.events("worker.failed").last["reason"])
    assert_empty(server.events("worker.lost"))
    assert_equal([worker.to_s], serving.map(&:first).uniq)
    lacking = server.events("threads.refused").map { |event| event.values_at("pid", "count") }
    assert_equal([[worker, 3 - count]], lacking) unless KEEPS_THREADS
    serving.map(&:last).uniq
  end

  def kill(*processes) = processes.each { |process| Process.kill("KILL", process.pid) }

  # @return [Array<Hash>] so many events that come from now on
  def many(server, name, **where)
    wanted = where.transform_keys(&:to_s)
    before = server.events(name).size
    yield
    new = []
    wait_until(timeout: 15, message: -> { "#{MANY} of #{name}\n#{server.output[-6000..]}" }) do
      new = server.events(name).drop(before).select { |event| wanted <= event }
      new.size >= MANY
    end
    new
  end

  def without_forks(server)
    user.forbid_forks(server.processes)
    yield
  ensure
    user.allow_forks(server.processes)
  end

  def without_descriptors(pid)
    limit = prlimit(pid, "--nofile", "--output=SOFT", "--noheadings").strip
    prlimit(pid, "--nofile=3:")
    yield
  ensure
    prlimit(pid, "--nofile=#{limit}:") if limit && File.exist?("/proc/#{pid}")
  end

  def prlimit(pid, *arguments)
    output, status = Open3.capture2e("prlimit", "--pid=#{pid}", *arguments)
    status.success? ? output : raise(output)
  end

  # @return [String] what the command says
  def refused(server, order)
    output, status = Open3.capture2e(RbConfig.ruby, "-W0", "-I", Support::Checkout.path("lib"), Support::Checkout.path("exe/pando"),
                                     order, "--control", File.join(server.folder, "control.sock"))
    refute_predicate(status, :success?, output)
    output
  end

  # That the server goes through what is done in the block.
  # @param mold [Boolean] whether the mold is to live through it
  # @return what the block returns
  def assert_kept(server, mold: true)
    pid = server.mold.pid
    result = yield
    wait_until(message: -> { "an answer\n#{server.output[-6000..]}" }) { status_of(server, "/") == 200 }

    assert_equal(pid, server.mold.pid) if mold
    assert_empty(server.events("generation.discarded"))
    assert_empty(server.events("refork.suspended"))
    assert_predicate(server.stop, :success?)
    result
  end
end

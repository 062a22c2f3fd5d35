# frozen_string_literal: true

require "test_helper"
require "support/folder_jobs"
require "support/limited_user"
require "support/shared_library"
require "time"

# Promise: while the kernel refuses forks, programs and descriptors, all workers die, then the mold and the reactor
# too. Once the kernel has them again the server answers within 3 s, and a swarm works on; nothing is discarded. Where
# the mold died, the time that it takes to boot comes on top.
# CHAOS_REFUSAL says how many seconds it refuses them; without it, long enough for pauses to grow where it refuses all.
class KernelOutageTest < Minitest::Test
  include Support::FolderJobs

  LONG = 6 # seconds
  SHORT = 2
  WITHIN = 3 # seconds
  WORKERS = 3
  SERVERS = { reactor: "reactor true", direct: "reactor false" }.freeze
  REFUSED = { "forks" => %i[forks programs], "descriptors" => %i[descriptors],
              "anything" => %i[forks programs descriptors] }.freeze
  # Events: that it has been refused what it wanted, and that somebody pays for it.
  REFUSALS = %w[fork.failed spawn.failed monitor.starved].freeze
  LOSSES = %w[generation.discarded refork.suspended mold.failed monitor.stopping].freeze

  # All that the code under test starts programs with, in the processes to which it is preloaded.
  REFUSING_PROGRAMS = <<~C
    #include <dlfcn.h>
    #include <errno.h>
    #include <spawn.h>
    #include <unistd.h>

    typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                               char *const[], char *const[]);
    typedef int path_function(const char *, char *const[], char *const[]);
    typedef int file_function(int, char *const[], char *const[]);

    static spawn_function *spawn_next;
    static path_function *path_next;
    static file_function *file_next;

    /* Now, for a child of vfork(2) must not look for anything. */
    __attribute__((constructor)) static void find(void)
    {
        spawn_next = (spawn_function *)dlsym(RTLD_NEXT, "posix_spawnp");
        path_next = (path_function *)dlsym(RTLD_NEXT, "execve");
        file_next = (file_function *)dlsym(RTLD_NEXT, "fexecve");
    }

    static int refused(void) { return access("refuse", F_OK) == 0; }

    static int fail(void)
    {
        errno = ENOMEM;
        return -1;
    }

    int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                     const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
    {
        return refused() ? ENOMEM : spawn_next(pid, file, actions, attributes, argv, envp);
    }

    int execve(const char *path, char *const argv[], char *const envp[])
    {
        return refused() ? fail() : path_next(path, argv, envp);
    }

    int fexecve(int fd, char *const argv[], char *const envp[])
    {
        return refused() ? fail() : file_next(fd, argv, envp);
    }
  C

  SERVERS.each do |mode, line|
    REFUSED.each do |name, kinds|
      define_method(:"test_a_server_in_#{mode}_mode_is_refused_#{name}") do
        go_through(web(line), kinds) { |server, _, within| wait_for_answer(server, within) }
      end
    end
  end

  REFUSED.each do |name, kinds|
    define_method(:"test_a_swarm_is_refused_#{name}") do
      go_through(nodes, kinds) { |server, number, within| wait_for_job(server, number, within) }
    end
  end

  private

  def web(line) = serve(config: "workers #{WORKERS}\nrefork :manual\n#{line}", **terms)
  def nodes = swarm("count: #{WORKERS}", **terms)
  def terms = { env: { "LD_PRELOAD" => library }, wrapper: user.wrapper }
  def library = Support::SharedLibrary.path("librefusingprograms.so", REFUSING_PROGRAMS)
  def user = @user ||= Support::LimitedUser.for(self)

  # Of one server: first all workers die, then all processes but the monitor.
  # @yieldparam server [Support::ServerProcess] which is to serve @yieldparam number [Integer] how often it has been
  # @yieldparam within [Numeric] seconds
  def go_through(server, kinds)
    yield server, 0, WITHIN
    mold = server.mold.pid
    outage(server, kinds) { kill(workers(server)) }
    measure("all workers killed", kinds) { yield server, 1, WITHIN }
    assert_equal(mold, server.mold.pid, server.output[-6000..])
    whole(server)
    outage(server, kinds) { kill_children(server) }
    measure("all but the monitor killed", kinds) { yield server, 2, WITHIN + boot_time(server) }
    whole(server)

    assert_empty(server.events.select { |event| LOSSES.include?(event["event"]) })
    assert_predicate(server.stop, :success?)
  end

  # @yield in the midst of it
  def outage(server, kinds)
    before = server.events.size
    refuse(server, kinds)
    yield
    wait_until(message: -> { "a refusal\n#{server.output[-6000..]}" }) { told(server, before).any? }
    pass(seconds(kinds))

    assert_empty(workers(server), "nothing was refused")
    assert_predicate(server, :alive?, server.output)
  ensure
    allow(server, kinds)
  end

  def seconds(kinds) = Float(ENV.fetch("CHAOS_REFUSAL") { kinds == REFUSED["anything"] ? LONG : SHORT })

  # One may have ended in the meantime.
  def kill(processes)
    processes.each do |process|
      Process.kill("KILL", process.pid)
    rescue Errno::ESRCH
      nil
    end
  end

  # A worker could take the place of a mold that dies before the monitor has reaped the worker.
  def kill_children(server)
    kill(killed = workers(server))
    wait_until(message: "the workers' end") { !server.tree.children.map(&:pid).intersect?(killed.map(&:pid)) }
    kill(children(server))
  end

  def told(server, before) = server.events.drop(before).select { |event| REFUSALS.include?(event["event"]) }
  def children(server) = server.tree.children.reject(&:zombie?)
  def workers(server) = children(server).reject { |child| child.title.match?(/\Apando (mold|reactor)\b/) }

  # What the outage lasts is what is tested, no guess.
  def pass(seconds) = IO.select(nil, nil, nil, seconds)

  def refuse(server, kinds)
    server.write("refuse", "") if kinds.include?(:programs)
    user.forbid_descriptors(server.processes) if kinds.include?(:descriptors)
    user.forbid_forks(server.processes) if kinds.include?(:forks)
  end

  # What has been forked meanwhile has the limits of its parent.
  def allow(server, kinds)
    allowed = nil
    FileUtils.rm_f(File.join(server.folder, "refuse"))
    until (known = server.processes.map(&:pid)) == allowed
      user.allow_descriptors(server.processes) if kinds.include?(:descriptors)
      user.allow_forks(server.processes) if kinds.include?(:forks)
      allowed = known
    end
  end

  def measure(what, kinds)
    before = Support::FairClock.now
    yield
    puts "#{name}: #{seconds(kinds)} s, #{what}: serves after #{(Support::FairClock.now - before).round(2)} s"
  end

  # A client may be let in, and then wait.
  def wait_for_answer(server, within)
    client = Thread.new { wait_until { status_of(server, "/") == 200 } }
    wait_until(timeout: within, message: -> { "an answer\n#{server.output[-6000..]}" }) { !client.alive? }
  ensure
    client&.kill
  end

  def wait_for_job(server, number, within)
    order(server, "job#{number}")
    wait_until(timeout: within, message: -> { "a job\n#{server.output[-6000..]}" }) do
      jobs(server, "done").include?("job#{number}")
    end
  end

  # @return [Float] seconds that the first boot took: on a busy machine the next one takes no less
  def boot_time(server)
    began, ended = %w[mold.booting mold.ready].map { |name| Time.iso8601(server.events(name).first["time"]) }
    ended - began
  end

  def whole(server)
    wait_until(message: -> { "all workers and the mold: #{server.processes.map(&:title)}" }) do
      workers(server).size == WORKERS && server.mold
    end
  end
end
